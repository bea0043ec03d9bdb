"""Evaluation at the rungs of a ladder: a network, data and a training for each. Needs torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from torch import nn

from syno._util.errors import UserError
from syno.data import DataSet, load
from syno.data.custom import CustomData
from syno.network.models import describe
from syno.network.placeholder import slots
from syno.operators.operator import Operator
from syno.store import Outcome
from syno.store.records import BASELINE
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.evaluator import NetworkEvaluator
from syno.study.evaluate.evaluator_settings import EvaluatorSettings, TrainingPart
from syno.study.evaluate.loading import Data
from syno.study.evaluate.network import Network
from syno.study.evaluate.observer import EvaluationObserver
from syno.study.fidelity.ladder import Ladder, Rung
from syno.train import check


class LadderEvaluator:
    """One NetworkEvaluator for each rung.

    Trainings write their states to `checkpoints`, so that a higher rung can continue from them, and
    an interrupted training can be resumed.
    """

    def __init__(
        self, ladder: Ladder, rungs: Sequence[NetworkEvaluator], checkpoints: Checkpoints
    ) -> None:
        self._ladder = ladder
        self._rungs = rungs
        self._checkpoints = checkpoints
        self.observer = rungs[0].observer

    @property
    def observer(self) -> EvaluationObserver:
        """The observer of the evaluators of all rungs."""
        return self._rungs[0].observer

    @observer.setter
    def observer(self, observer: EvaluationObserver) -> None:
        for evaluator in self._rungs:
            evaluator.observer = observer

    def baseline(self, rung: int) -> Outcome:
        """See RungEvaluator."""
        return self._rungs[rung].baseline(self._path(BASELINE, rung))

    def evaluate(self, operator: Operator, rung: int) -> Outcome:
        """See RungEvaluator."""
        return self._rungs[rung].evaluate(operator, self._path(operator.key, rung))

    def repeat(self, operator: Operator, seed: int, rung: int) -> Outcome:
        """See RungEvaluator. The training starts from the beginning."""
        return self._rungs[rung].repeat(operator, seed)

    def compile_ahead(self, operator: Operator) -> None:
        """See NetworkEvaluator. New operators begin at the lowest rung."""
        self._rungs[0].compile_ahead(operator)

    def failure(self) -> Outcome:
        """Return the outcome of an evaluation without a result, at the lowest rung."""
        return self._rungs[0].failure()

    def failures(self) -> list[Outcome]:
        """Return the outcome of an evaluation without a result, for each rung."""
        return [evaluator.failure() for evaluator in self._rungs]

    def _path(self, key: str, rung: int) -> Path:
        return self._checkpoints.path(key, self._ladder.stretch(rung)[0])


def datasets(
    ladder: Ladder, data: str, data_dir: str | None, *, progress: bool = True
) -> list[DataSet]:
    """Load the data set for each rung; rungs of the same resolution share one.

    Raises:
        UserError: if a rung cannot be trained on the data set.
    """
    if ladder.task != "images":
        raise UserError(
            f"ladder '{ladder.name}' is for custom data, and '{data}' is a data set by name\n"
            "  expected: a ladder for images, such as fast/cifar"
        )
    loaded: dict[int | None, DataSet] = {}
    for rung in ladder.rungs:
        size = rung.fidelity.loaded_at
        if size not in loaded:
            loaded[size] = load(data, data_dir, size=size, progress=progress)
        check(loaded[size], rung.fidelity)
    return [loaded[rung.fidelity.loaded_at] for rung in ladder.rungs]


def custom(
    ladder: Ladder, net: str | nn.Module, data: CustomData, seed: int
) -> tuple[list[Network], list[Data]]:
    """Return the network and the custom data of each rung, which are the same at all of them.

    Raises:
        UserError: if a rung cannot be trained on the data, or the network does not fit it.
    """
    for rung in ladder.rungs:
        check(data, rung.fidelity)
    count = len(ladder.rungs)
    return [Network.custom(net, data, seed)] * count, [data] * count


def networks(
    ladder: Ladder, net: str | nn.Module, options: Mapping[str, int | str], data: DataSet, seed: int
) -> list[Network]:
    """Build the network of each rung; rungs of the same resolution and width share one.

    Args:
        ladder: the rungs.
        net: the name of a model, or a module.
        options: options of the model.
        data: the data set of the highest rung.
        seed: of the initial weights.

    Raises:
        UserError: for a rung with less than the full width if the model has no such option, and for
            a rung with another resolution if the module has slots.
    """
    found: dict[tuple[int, float], Network] = {}
    for rung in reversed(ladder.rungs):  # errors of the network itself are reported first
        shape = _shape(rung)
        if shape not in found:
            found[shape] = _network(ladder, rung, net, options, data, seed)
    return [found[_shape(rung)] for rung in ladder.rungs]


def _shape(rung: Rung) -> tuple[int, float]:
    assert rung.fidelity.resolution is not None
    return rung.fidelity.resolution, float(rung.width)


def _network(
    ladder: Ladder,
    rung: Rung,
    net: str | nn.Module,
    options: Mapping[str, int | str],
    data: DataSet,
    seed: int,
) -> Network:
    size, width = _shape(rung)
    where = f"\n  in rung '{rung.name}' of ladder '{ladder.name}'"
    if width != 1 and (not isinstance(net, str) or "width" not in describe(net).options):
        what = f"model '{net}'" if isinstance(net, str) else "a module"
        raise UserError(
            f"{what} has no width to change, and a rung requests {width:g} of it{where}\n"
            "  expected: a ladder without `width`, or a model with that option, as resnet-small"
        )
    if not isinstance(net, str) and size != ladder.top.fidelity.resolution and slots(net):
        raise UserError(
            f"a module with slots of its own has one size, and a rung requests {size} px{where}\n"
            "  expected: a ladder whose rungs have the same resolution, or a module without slots"
        )
    try:
        if not isinstance(net, str):
            return Network.given(net, data, seed, size=size)
        if width != 1:
            whole = int(options.get("width", describe(net).options["width"].default))
            options = {**options, "width": round(whole * width)}
        return Network.named(net, options, data, seed, size=size)
    except UserError as error:
        if rung is ladder.top:
            raise
        raise UserError(f"{error}{where}") from error


def evaluators(
    ladder: Ladder,
    nets: Sequence[Network],
    data: Sequence[Data],
    **settings: Unpack[EvaluatorSettings],
) -> list[NetworkEvaluator]:
    """Make an evaluator for each rung.

    The time of a training step is only checked if the network or the batch size differs from the
    rung below.

    Args:
        ladder: the rungs.
        nets, data: the network and the data of each rung.
        settings: further arguments of NetworkEvaluator.
    """
    found = []
    for index, rung in enumerate(ladder.rungs):
        whole, stop_after = ladder.training(index)
        part = TrainingPart(whole, stop_after, rung.width)
        own = settings | {"fidelity": rung.fidelity, "part": part, "priced": nets[-1]}
        below = index - 1
        known = index > 0 and nets[index] is nets[below]
        if known and rung.fidelity.batch == ladder.rungs[below].fidelity.batch:
            own["max_slowdown"] = float("inf")
        found.append(NetworkEvaluator(nets[index], data[index], **own))
    return found


def make_custom_ladder_evaluator(
    network: Network,
    data: Data,
    ladder: Ladder,
    checkpoints: Checkpoints,
    /,
    **settings: Unpack[EvaluatorSettings],
) -> LadderEvaluator:
    """Make an evaluator in another process for data that is sent to it, as all rungs share it."""
    count = len(ladder.rungs)
    each = evaluators(ladder, [network] * count, [data] * count, **settings)
    each[0].prepared()
    return LadderEvaluator(ladder, each, checkpoints)


def make_ladder_evaluator(
    top: Network,
    lower: Sequence[Network],
    ladder: Ladder,
    data: str,
    data_dir: str | None,
    fingerprints: Sequence[str],
    checkpoints: Checkpoints,
    /,
    **settings: Unpack[EvaluatorSettings],
) -> LadderEvaluator:
    """Make an evaluator in another process: see `make_evaluator`.

    Args:
        top, lower: the networks of the highest rung, and of all rungs below.
        ladder: the rungs.
        data, data_dir: the data set, as in `syno.data.load`.
        fingerprints: of the data of each rung when the search started.
        checkpoints: where trainings write their states.
        settings: further arguments of NetworkEvaluator.

    Raises:
        UserError: if the data changed meanwhile.
    """
    sets = datasets(ladder, data, data_dir, progress=False)
    found = [dataset.fingerprint for dataset in sets]
    if found != list(fingerprints):
        raise UserError(
            f"the data set '{data}' changed while the search began\n"
            f"  expected: {fingerprints[-1]}      got: {found[-1]}"
        )
    each = evaluators(ladder, [*lower, top], sets, **settings)
    each[0].prepared()  # most evaluations are at the lowest rung
    return LadderEvaluator(ladder, each, checkpoints)
