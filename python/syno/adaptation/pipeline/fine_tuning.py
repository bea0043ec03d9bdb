"""Fine-tuning: a network learns from the original one, and keeps what it learnt in a file."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from syno._util.errors import UserError
from syno.adaptation.frozen import freeze
from syno.adaptation.pipeline.journal import AdaptationJournal
from syno.adaptation.pipeline.progress import Progress, silent
from syno.adaptation.pipeline.results import NetworkRow
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.options import AdaptOptions
from syno.study.evaluate import engines
from syno.study.evaluate.weights import load_weights, write_weights
from syno.train import Distillation, Fidelity, NonFinite, train
from syno.train.stoppers import State

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
# Modules of torchvision and timm that drop whole branches, by the name of their class.
_BRANCHES = {"StochasticDepth": "p", "DropPath": "drop_prob"}
_IN_FILES = str.maketrans({"/": "-", " ": "-", ",": ""})


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned network: the objective on the validation split, and the time it took."""

    value: float
    seconds: float


@dataclass(frozen=True)
class FineTuner:
    """Trains networks with distillation from the original one.

    seed: of the batches; further ones follow it. note: is told why operators are not compiled, and
    which networks keep their fitted weights.
    The networks of further seeds are kept by name.
    """

    subject: AdaptationSubject
    options: AdaptOptions
    journal: AdaptationJournal
    seed: int
    note: Callable[[str], object]
    _others: dict[str, list[Callable[[], nn.Module]]] = field(default_factory=dict)

    def kernels(self, net: nn.Module) -> AbstractContextManager[object]:
        """Run the operators of a network as the options say inside of the block."""
        return engines.kernels(net, self.options.kernels or engines.EAGER, self.note)

    def distillation(self, net: nn.Module) -> Distillation:
        """How a network learns from the original one."""
        features = self.subject.features_of(net) if self.options.distill_features else ()
        return Distillation(
            self.subject.original,
            self.subject.dimension,
            self.subject.distance,
            features=features,
        )

    def tuned(
        self,
        net: nn.Module,
        fidelity: Fidelity,
        *,
        seed: int,
        checkpoint: Path | None = None,
        progress: Callable[[float], None] = silent,
    ) -> FineTuned:
        """Train a network in place.

        Args:
            net: the network, in evaluation mode.
            fidelity: how long.
            seed: of the batches.
            checkpoint: the file from which the training continues; None for none.
            progress: called with the completed share.

        Raises:
            UserError: the training failed; the message says why.
        """

        def told(state: State) -> None:
            self.journal.tick()
            progress(state.done)

        freeze(net, self.subject.frozen)
        with self.kernels(net), without_dropout(net):
            outcome = train(
                net,
                self.subject.data,
                fidelity,
                seed,
                stoppers=(NonFinite(),),
                progress=told,
                checkpoint=checkpoint,
                distillation=self.distillation(net),
            )
        if outcome.status == "paused":
            raise KeyboardInterrupt
        if outcome.status != "ok":
            raise UserError(
                f"the fine-tuning failed: {outcome.reason}, {outcome.detail}\n"
                "  what to do: a smaller learning rate in a recipe of your own "
                "(--fidelity FILE.toml)"
            )
        is_accuracy = self.subject.objective.field == "accuracy"
        value = outcome.accuracy if is_accuracy else outcome.loss
        assert value is not None
        return FineTuned(value, outcome.seconds)

    def network(
        self,
        name: str,
        about: str,
        build: Callable[[], nn.Module],
        structure: Callable[[], nn.Module],
        ratio: float,
        fidelity: Fidelity,
        progress: Progress = silent,
    ) -> tuple[NetworkRow, nn.Module]:
        """Train a network with each seed, or read what was trained before.

        The weights from before are kept where the training makes the objective worse.

        Args:
            name: of the network, in the journal and of its files; about: what it is.
            build: makes the network with its fitted weights; structure: with any weights.
            ratio: its latency relative to that of the original network.
            fidelity: how long.
            progress: of this network.

        Returns:
            Its results without MACs and parameters, and the network of the first seed.
        """
        score = self.subject.objective.score
        results: list[FineTuned] = []
        first: nn.Module | None = None
        others = self._others[name] = []
        fitted = self._file(name, "fitted")
        for seed in range(self.seed, self.seed + self.options.seeds):
            key, file = f"{name} {seed}", self._file(name, str(seed))
            found = self.journal.get("tuned", key)
            is_needed = first is None
            if found is not None and (not is_needed or (file is not None and file.is_file())):
                results.append(FineTuned(**found))
                if is_needed and file is not None:
                    first = _restored(structure, file)
                elif file is not None and file.is_file():
                    others.append(functools.partial(_restored, structure, file))
                continue
            net = self._built(build, structure, fitted)
            if is_needed:
                self.journal.once("fitted", name, lambda net=net: self.subject.value(net))  # type: ignore[misc]
            before = copy.deepcopy(net.state_dict())
            result = self.tuned(
                net,
                fidelity,
                seed=seed,
                checkpoint=None if file is None else file.with_suffix(".checkpoint"),
                progress=lambda share: progress(round(1000 * share), 1000, ""),
            )
            value = self.journal.get("fitted", name)
            if value is not None and score(result.value) < score(value):
                net.load_state_dict(before)
                result = FineTuned(value, result.seconds)
                self.note(
                    f"{name}: the fine-tuning made it worse, so the fitted weights are kept\n"
                    "  what to do: a longer training, or a smaller learning rate in a recipe of "
                    "your own (--fidelity FILE.toml)"
                )
            if file is not None:
                write_weights(file, net, self.subject.network.shape)
                file.with_suffix(".checkpoint").unlink(missing_ok=True)
            # The weights of an earlier training may be gone: they were in memory, or were deleted.
            store = self.journal.put if found is None else self.journal.change
            store("tuned", key, dataclasses.asdict(result))
            results.append(result)
            if first is None:
                first = net.eval()
            else:
                kept = net.eval if file is None else functools.partial(_restored, structure, file)
                others.append(kept)
        if fitted is not None:
            fitted.unlink(missing_ok=True)
        assert first is not None
        values = tuple(each.value for each in results)
        row = NetworkRow(
            name=name,
            about=about,
            value=sum(values) / len(values),
            values=values,
            fitted=self.journal.get("fitted", name),
            ratio=ratio,
            latency_ms=ratio * self.journal.get("original", "")["latency_ms"],
            engine=self.options.engine or "",
            seconds=sum(each.seconds for each in results),
            length=fidelity.length,
        )
        return row, first

    def others(self, name: str) -> list[nn.Module]:
        """The networks of further seeds, in evaluation mode; those whose files are gone missing."""
        return [make() for make in self._others.get(name, [])]

    def _built(
        self, build: Callable[[], nn.Module], structure: Callable[[], nn.Module], file: Path | None
    ) -> nn.Module:
        """The network with its fitted weights, which a file keeps until it is trained.

        Another fit would be a little different, and a checkpoint belongs to its initial weights.
        """
        if file is None:
            return build()
        if not file.is_file():
            write_weights(file, build(), self.subject.network.shape)
        return _restored(structure, file)

    def _file(self, name: str, what: str) -> Path | None:
        """A file of weights of a network; None if none are kept."""
        if self.journal.folder is None:
            return None
        return self.journal.folder / f"{name.translate(_IN_FILES)}-{what}.safetensors"


@contextmanager
def without_dropout(net: nn.Module) -> Iterator[None]:
    """Let a network drop nothing inside of the block: no elements, and no branches.

    The outputs of a trained network are what a student learns, in evaluation mode and with little
    training: dropout hides them behind noise, and 500 steps of it leave a small GPT-2 worse than
    its fitted weights.
    """
    before = [
        (each, name, getattr(each, name))
        for each in net.modules()
        if (name := "p" if isinstance(each, _DROPOUTS) else _BRANCHES.get(type(each).__name__))
    ]
    for each, name, _ in before:
        setattr(each, name, 0.0)
    try:
        yield
    finally:
        for each, name, probability in before:
            setattr(each, name, probability)


def _restored(structure: Callable[[], nn.Module], file: Path) -> nn.Module:
    """The network with the weights of a file, in evaluation mode."""
    net = structure()
    load_weights(file, net)
    return net.eval()
