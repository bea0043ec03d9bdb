"""Fine-tuning: a network learns from the original one, and keeps what it learnt in a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from syno._util.errors import UserError
from syno.adaptation.pipeline.journal import Journal
from syno.adaptation.pipeline.subject import Subject
from syno.options import AdaptOptions
from syno.study.evaluate import engines
from syno.study.evaluate.weights import load_weights, write_weights
from syno.train import Distillation, Fidelity, NonFinite, train
from syno.train.stoppers import State

_IN_FILES = str.maketrans({"/": "-", " ": "-", ",": ""})


@dataclass(frozen=True)
class Tuned:
    """A fine-tuned network: the objective on the validation split, and the time it took."""

    value: float
    seconds: float


def tuned(
    subject: Subject,
    net: nn.Module,
    options: AdaptOptions,
    fidelity: Fidelity,
    *,
    seed: int,
    file: Path | None,
    progress: Callable[[float], None],
) -> Tuned:
    """Train a network in place with distillation from the original.

    Args:
        subject: the original network with its data.
        net: the network, in evaluation mode.
        options: of the adaptation.
        fidelity: how long.
        seed: of the batches.
        file: for the weights; its checkpoint is beside it. None to keep neither.
        progress: called with the completed share.

    Raises:
        UserError: the training failed; the message says why.
    """
    features = [name for name in subject.features if options.distill_features]
    teaching = Distillation(subject.original, subject.dimension, features=features)
    checkpoint = None if file is None else file.with_suffix(".checkpoint")

    def told(state: State) -> None:
        progress(state.done)

    with engines.kernels(net, options.kernels or engines.EAGER, lambda _: None):
        outcome = train(
            net,
            subject.data,
            fidelity,
            seed,
            stoppers=(NonFinite(),),
            progress=told,
            checkpoint=checkpoint,
            distillation=teaching,
        )
    if outcome.status == "paused":
        raise KeyboardInterrupt
    if outcome.status != "ok":
        raise UserError(
            f"the fine-tuning failed: {outcome.reason}, {outcome.detail}\n"
            "  what to do: a smaller learning rate in a recipe of your own (--fidelity FILE.toml)"
        )
    if file is not None:
        write_weights(file, net, subject.network.shape)
        assert checkpoint is not None
        checkpoint.unlink(missing_ok=True)
    value = outcome.accuracy if subject.objective.field == "accuracy" else outcome.loss
    assert value is not None
    return Tuned(value, outcome.seconds)


def restored(net: nn.Module, file: Path) -> nn.Module:
    """The network with the weights of a file, in evaluation mode."""
    load_weights(file, net)
    return net.eval()


def fine_tuned(
    subject: Subject,
    name: str,
    build: Callable[[], nn.Module],
    structure: Callable[[], nn.Module],
    options: AdaptOptions,
    journal: Journal,
    seed: int,
    progress: Callable[[int, int, str], None],
    fidelity: Fidelity | None = None,
) -> tuple[nn.Module, list[Tuned], float]:
    """Train a network with each seed, or read what was trained before.

    Args:
        name: of the network, in the journal and of its files.
        build: makes the network with its fitted weights; structure: with any weights.
        fidelity: how long; default: that of the adaptation.

    Returns:
        The network of the first seed, the results of all seeds, and the objective before.
    """

    def told(share: float) -> None:
        journal.tick()
        progress(round(1000 * share), 1000, "")

    results: list[Tuned] = []
    first: nn.Module | None = None
    for number in range(options.seeds):
        key = f"{name} {seed + number}"
        file = file_of(journal, name, seed + number)
        found = journal.get("tuned", key)
        if found is not None and (number > 0 or (file is not None and file.is_file())):
            results.append(Tuned(**found))
            if number == 0 and file is not None:
                first = restored(structure(), file)
            continue
        net = build()
        if number == 0:
            journal.once("fitted", name, lambda net=net: subject.value(net))  # type: ignore[misc]
        result = tuned(
            subject,
            net,
            options,
            fidelity or subject.fidelity,
            seed=seed + number,
            file=file,
            progress=told,
        )
        journal.put("tuned", key, dataclasses.asdict(result))
        results.append(result)
        first = first if first is not None else net.eval()
    assert first is not None
    return first, results, journal.get("fitted", name)


def file_of(journal: Journal, name: str, seed: int) -> Path | None:
    """The file of the weights of a network; None if none are kept."""
    if journal.folder is None:
        return None
    return journal.folder / f"{name.translate(_IN_FILES)}-{seed}.safetensors"
