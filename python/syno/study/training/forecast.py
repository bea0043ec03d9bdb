"""What a search would train, and about how long that takes: by a few steps of its networks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from syno.data import TextData
from syno.network.substitute import LayerReport, layer_report
from syno.study.evaluate.loading import load_for
from syno.study.evaluate.network import Network
from syno.study.evaluate.rungs import datasets, networks
from syno.study.fidelity.ladder import Ladder, Rung, chosen
from syno.study.training.probe import seconds_each
from syno.train import Fidelity


@dataclass(frozen=True)
class Forecast:
    """A search without a ladder.

    data: its name and amount; trainings: one for each operator and the original network;
    seconds_each: of one of them, None where the probe did not train.
    """

    data: dict[str, object]
    fidelity: Fidelity
    layers: LayerReport
    trainings: int
    seconds_each: float | None

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "data": self.data,
            "fidelity": self.fidelity.to_json(),
            "layers": [dataclasses.asdict(row) for row in self.layers.rows],
            "trainings": self.trainings,
            "seconds_each": self.seconds_each,
        }


@dataclass(frozen=True)
class RungForecast:
    """A rung: whether it continues from the checkpoints of the one below, for how many operators,
    and the seconds of each (None where the probe did not train)."""

    rung: Rung
    continues: bool
    operators: int
    seconds_each: float | None


@dataclass(frozen=True)
class LadderForecast:
    """A search with a ladder; seconds: of all of it, None where that is unknown."""

    data: dict[str, object]
    ladder: Ladder
    layers: LayerReport
    rungs: tuple[RungForecast, ...]
    seconds: float | None

    def as_json(self) -> dict[str, object]:
        """Plain values."""
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


def forecast(arguments: dict[str, Any]) -> Forecast:
    """What `syno.search` with these arguments would do; nothing is stored."""
    fidelity = arguments["fidelity"]
    dataset = load_for(arguments["data"], arguments["data_dir"], fidelity, arguments["tokenizer"])
    network = Network.named(
        arguments["net"],
        arguments["model_options"],
        dataset,
        arguments["seed"],
        size=fidelity.resolution,
        context=fidelity.context,
    )
    amount = (
        {"train_tokens": len(dataset.train_tokens)}
        if isinstance(dataset, TextData)
        else {"train_images": len(dataset.train.labels)}
    )
    return Forecast(
        {"name": arguments["data"], **amount},
        fidelity,
        layer_report(network.template),
        arguments["evaluations"] + 1,
        seconds_each(network, dataset, fidelity, threads=arguments["threads"]),
    )


def ladder_forecast(arguments: dict[str, Any]) -> LadderForecast:
    """The same for a ladder: what each rung has, for how many operators, and what it costs."""
    ladder = chosen(arguments["ladder"], arguments["eta"])
    data = datasets(ladder, arguments["data"], arguments["data_dir"])
    options, seed = arguments["model_options"], arguments["seed"]
    nets = networks(ladder, arguments["net"], options, data[-1], seed)
    rungs = []
    count = arguments["evaluations"]
    for index, rung in enumerate(ladder.rungs):
        each = seconds_each(nets[index], data[index], rung.fidelity, threads=arguments["threads"])
        if each is not None and ladder.continues(index):
            below = ladder.rungs[index - 1].fidelity.epochs or 0
            each *= 1 - below / (rung.fidelity.epochs or 1)
        rungs.append(RungForecast(rung, ladder.continues(index), count, each))
        count //= ladder.eta
    known = [each.seconds_each for each in rungs if each.seconds_each is not None]
    # The original network comes to a rung with the first operator.
    costs = [(r.operators + 1) * s for r, s in zip(rungs, known, strict=False) if r.operators]
    return LadderForecast(
        {"name": data[-1].name, "train_images": len(data[-1].train.labels)},
        ladder,
        layer_report(nets[-1].template),
        tuple(rungs),
        sum(costs) if len(known) == len(rungs) else None,
    )
