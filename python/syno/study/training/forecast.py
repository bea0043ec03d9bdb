"""The forecast of a search: its trainings, and their time as estimated from a few steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from syno._util.numbers import duration
from syno.data import DataSet, Records, TextData
from syno.network.substitute import LayerReport, layer_report
from syno.study.evaluate.loading import load_for, usual_fidelity
from syno.study.evaluate.network import Network
from syno.study.evaluate.rungs import datasets, networks
from syno.study.fidelity.ladder import Ladder, Rung, resolve_ladder
from syno.study.training.probe import seconds_each
from syno.study_options import StudyOptions
from syno.train import Fidelity
from syno.train import fidelity as named_fidelity


def amounts(fidelity: Fidelity) -> str:
    """Describe a fidelity and its recipe in one line."""
    own = {name: value for name, value in fidelity.to_json().items() if name != "recipe"}
    parts = [f"{name} {value}" for name, value in own.items() if value is not None]
    recipe = fidelity.recipe
    return ", ".join([*parts, f"batch {recipe.batch}", f"recipe {recipe.name} {recipe.version}"])


def training_cost(count: int, seconds: float | None) -> str:
    """Describe the time of some trainings, given that of the original network."""
    if seconds is None:
        return "unknown: the probe training failed"
    return (
        f"{count} trainings of about {duration(seconds)} each, estimated from a few steps of the "
        f"original network: {duration(count * seconds)}; operators with slow code take longer"
    )


@dataclass(frozen=True)
class Forecast:
    """The forecast of a search without a ladder.

    data: name and amount of the data.
    trainings: their number: one for each operator, and one for the original network.
    seconds_each: the time of one training; None if the probe training failed.
    """

    data: dict[str, object]
    fidelity: Fidelity
    layers: LayerReport
    trainings: int
    seconds_each: float | None

    @property
    def trained(self) -> tuple[str, str]:
        """A title, and how networks are trained."""
        return "Fidelity", amounts(self.fidelity)

    @property
    def cost(self) -> str:
        """The time of the search, in words."""
        return training_cost(self.trainings, self.seconds_each)

    def as_json(self) -> dict[str, object]:
        """Return the forecast as plain values."""
        return {
            "data": self.data,
            "fidelity": self.fidelity.to_json(),
            "layers": [dataclasses.asdict(row) for row in self.layers.rows],
            "trainings": self.trainings,
            "seconds_each": self.seconds_each,
        }


@dataclass(frozen=True)
class RungForecast:
    """The forecast of a rung.

    continues: whether trainings continue from the checkpoints of the rung below.
    operators: the number of operators.
    seconds_each: the time of one training; None if the probe training failed.
    """

    rung: Rung
    continues: bool
    operators: int
    seconds_each: float | None

    def __str__(self) -> str:
        rung, seconds = self.rung, self.seconds_each
        width = "" if rung.width == 1 else f", width {rung.width:g} of the network's"
        how = ", from the checkpoint of the rung below" if self.continues else ""
        cost = "unknown: the probe training failed" if seconds is None else duration(seconds)
        trained = f"about {self.operators} operators and the original, {cost} each{how}"
        return f"{amounts(rung.fidelity)}{width}\n  {trained}"


@dataclass(frozen=True)
class LadderForecast:
    """The forecast of a search with a ladder; seconds: of all trainings, None if unknown."""

    data: dict[str, object]
    ladder: Ladder
    layers: LayerReport
    rungs: tuple[RungForecast, ...]
    seconds: float | None

    @property
    def trained(self) -> tuple[str, str]:
        """A title, and how networks are trained."""
        title = f"Rungs of ladder {self.ladder.name}: the best 1/{self.ladder.eta} are promoted"
        return title, "\n".join(map(str, self.rungs))

    @property
    def cost(self) -> str:
        """The time of the search, in words."""
        cost = "unknown" if self.seconds is None else f"about {duration(self.seconds)}"
        return f"{cost}; operators with slow code take longer"

    def as_json(self) -> dict[str, object]:
        """Return the forecast as plain values."""
        return {
            "data": self.data,
            "ladder": self.ladder.to_json(),
            "layers": [dataclasses.asdict(row) for row in self.layers.rows],
            "rungs": [
                {
                    "name": each.rung.name,
                    "continues": each.continues,
                    "operators": each.operators,
                    "seconds_each": each.seconds_each,
                }
                for each in self.rungs
            ],
            "seconds": self.seconds,
        }


def forecast(net: str, data: str, study: StudyOptions) -> Forecast | LadderForecast:
    """Forecast what `syno.search` with these arguments does. Nothing is stored."""
    train, options, seed = study.train, dict(study.model_options), study.seed
    data_dir, threads = study.data_dir, study.timing.threads
    if train.ladder is not None:
        ladder = resolve_ladder(train.ladder, train.eta)
        loaded = datasets(ladder, data, data_dir)
        nets = networks(ladder, net, options, loaded[-1], seed)
        return _of_ladder(data, ladder, loaded, nets, study.evaluations, threads)
    fidelity = train.fidelity
    if not isinstance(fidelity, Fidelity):
        fidelity = named_fidelity(fidelity or usual_fidelity(data, data_dir))
    dataset = load_for(data, data_dir, fidelity, train.tokenizer)
    amount = {"size": fidelity.resolution, "context": fidelity.context}
    network = Network.named(net, options, dataset, seed, **amount)
    if isinstance(dataset, TextData):
        count = {"train_tokens": len(dataset.train_tokens)}
    else:
        count = {"train_images": len(dataset.train.labels)}
    return Forecast(
        {"name": data, **count},
        fidelity,
        layer_report(network.template),
        study.evaluations + 1,
        seconds_each(network, dataset, fidelity, threads=threads),
    )


def _of_ladder(
    name: str,
    ladder: Ladder,
    data: Sequence[DataSet | Records],
    nets: Sequence[Network],
    evaluations: int,
    threads: int,
) -> LadderForecast:
    """Forecast the trainings of each rung."""
    rungs = []
    count = evaluations
    for index, rung in enumerate(ladder.rungs):
        each = seconds_each(nets[index], data[index], rung.fidelity, threads=threads)
        if each is not None and ladder.continues(index):
            below = ladder.rungs[index - 1].fidelity.epochs or 0
            each *= 1 - below / (rung.fidelity.epochs or 1)
        rungs.append(RungForecast(rung, ladder.continues(index), count, each))
        count //= ladder.eta
    known = [each.seconds_each for each in rungs if each.seconds_each is not None]
    # The original network is promoted together with the first operator.
    costs = [(r.operators + 1) * s for r, s in zip(rungs, known, strict=False) if r.operators]
    return LadderForecast(
        {"name": name, "train_images": len(data[-1].train.labels)},
        ladder,
        layer_report(nets[-1].template),
        tuple(rungs),
        sum(costs) if len(known) == len(rungs) else None,
    )
