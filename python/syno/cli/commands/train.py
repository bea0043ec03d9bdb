"""`syno train`: chosen operators trained in a network, by a recipe, with several seeds."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util import numbers as fmt
from syno._util.command_line import report_line
from syno._util.errors import UserError
from syno._util.options import Options, group, option, required
from syno.cli import framework, options, output
from syno.store.records import FLOAT32
from syno.study.evaluate.options import IsolationOptions, TimingOptions, TrainOptions

if TYPE_CHECKING:
    from syno.store import Outcome
    from syno.study.evaluate.quantization import Quantization
    from syno.study.training.comparison import Paired, Spread
    from syno.study.training.rows import TrainedOperator
    from syno.study.training.train import TrainingObserver
    from syno.study.training.trainings import Job, Trainings
    from syno.train import Fidelity

PAUSED = 128 + signal.SIGTERM


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """Arguments of `syno train`."""

    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[OP]...")
    baseline: bool = option("Also train the network as it is.", False)
    model: str | None = option(
        "", None, unset="resnet-small, or gpt2-small for text", metavar="NAME"
    )
    model_options: Mapping[str, int | str] = options.model_options()
    data: str = required("digits, cifar10, a folder, a text.", metavar="NAME")
    data_dir: str | None = options.data_dir()
    recipe: str | None = option(
        "How to train: a recipe, or a .toml file.",
        None,
        unset="that of the fidelity",
        metavar="NAME",
    )
    seeds: int = option("How many trainings.", 1, minimum=1)
    seconds: float | None = option("Changes its seconds (text): equal time.", None)
    binding: str | None = options.own_sizes()
    preset: str | None = option(
        "The specification that operators are read under.", None, metavar="NAME"
    )
    store: str = options.store()
    study: str | None = option("Where a key is looked for, in --store.", None, metavar="NAME")
    name: str | None = option("Name of the study; one that is there goes on.", None, metavar="NAME")
    seed: int = options.seed()
    latency: bool = option(
        "Time each trained network on the CPU, in turns with the original. [on]", True
    )
    quantize: bool = option(
        "Also bring each trained network to INT8, and measure its accuracy and latency.", False
    )
    engine: str | None = option(
        "What of torch computes in INT8: fbgemm, x86, onednn, qnnpack.",
        None,
        unset="the first there is",
        metavar="NAME",
    )
    calibration_images: int = option(
        "Training images that --quantize takes the ranges of numbers from.", 256, minimum=1
    )
    device: str = option("cpu, or cuda.", "cpu", metavar="NAME")
    workers: int = option("Threads that read images ahead.", 0, minimum=0)
    checkpoints: str | None = option(
        "Keep the state of each training there; the same command goes on from it.",
        None,
        metavar="DIR",
    )
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()
    fidelity: options.FidelityArguments = group(options.FidelityArguments)
    train: TrainOptions = group(TrainOptions, "tokenizer", "deadline_s")
    isolation: IsolationOptions = group(IsolationOptions, without=("max_attempts",))
    timing: TimingOptions = group(TimingOptions)

    def trainings(self) -> Trainings:
        """What is to be trained; nothing is loaded yet."""
        from syno.operators.specification import checked_binding
        from syno.study.training.train import usual_model
        from syno.study.training.trainings import Trainings
        from syno.train import recipe as known_recipe

        if self.recipe is not None:
            known_recipe(self.recipe)
        fidelity = self.fidelity.found(self.data, self.data_dir, self.recipe, self.seconds)
        return Trainings(
            model=self.model or usual_model(fidelity),
            model_options=dict(self.model_options),
            data=self.data,
            data_dir=self.data_dir,
            fidelity=fidelity,
            seeds=tuple(range(self.seed, self.seed + self.seeds)),
            baseline=self.baseline,
            sizes={} if self.binding is None else checked_binding(self.binding),
            train=self.train,
            timing=self.timing,
            isolation=self.isolation,
            device=self.device,
            workers=self.workers,
            checkpoints=None if self.checkpoints is None else Path(self.checkpoints),
            latency=self.latency,
            quantization=self._quantization(),
        )

    def _quantization(self) -> Quantization | None:
        from syno.study.evaluate.quantization import Quantization

        if self.quantize:
            return Quantization.of(self.engine, self.calibration_images)
        if self.engine is not None:
            raise UserError(
                "an --engine is named, and nothing comes to INT8\n  expected: --quantize"
            )
        return None


@framework.command("train", Arguments)
def command(given: Arguments) -> int:
    """Train networks with chosen operators in them, and keep the results in a store.

    OP is a name of the zoo, an operator as every command takes it, a folder with operators, or a
    file with an OP in each line. Quality is measured on data held out of the training split; the
    test split is read by `syno report --final` alone. With --baseline the same seeds train the
    network as it is, and operators are compared with it seed by seed. An operator that crashes,
    hangs or eats memory is a row with its reason.
    """
    from syno.study.training.train import follow, prepare, run
    from syno.train import joined

    with joined(given.device) as processes:
        trainings = given.trainings()
        prepare(
            trainings,
            given.ops,
            specification=given.preset,
            store=given.store,
            study=given.study,
        )
        if given.dry_run:
            if processes.is_first:
                _describe(trainings, given.store, as_json=given.as_json)
            return framework.OK
        if not processes.is_first:
            follow(trainings, processes)
            return framework.OK
        with output.progress("training", len(trainings.jobs())) as move:
            found = run(trainings, given.store, given.name, _watch(move), processes)
    if found.paused:
        output.say("paused; the same command with this --name goes on: " + found.study)
        return PAUSED
    if given.as_json:
        rows = [row.to_json() for row in found.rows]
        content = {"store": given.store, "study": found.study}
        output.print_json(content | {"fidelity": trainings.fidelity.to_json(), "results": rows})
    else:
        _print(found.rows, found.study, trainings.fidelity)
        output.say(f"next: {report_line(given.store, found.study)}")
    return framework.OK if found.ok else framework.NEGATIVE


def _watch(move: output.Move) -> TrainingObserver:
    """An observer that says on the bar what runs."""
    from syno.study.training.train import TrainingObserver

    class Watch(TrainingObserver):
        number, name = 0, ""

        def on_training(self, number: int, count: int, job: Job) -> None:
            self.number, self.name = number, f"{job.name}, seed {job.seed}"

        def on_trained(self, number: int, count: int, job: Job, outcome: Outcome | None) -> None:
            if outcome is None:
                words = "is in the store"
            else:
                share = outcome.accuracy
                words = outcome.status if share is None else f"{share:.2%}"
            move(number + 1, f"{job.name}, seed {job.seed}: {words}")

        def on_step(self, step: str) -> None:
            move(self.number, f"{self.name}: {step}")

        def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
            of = f" of {epochs}" if epochs else ""
            move(self.number, f"{self.name}: epoch {epoch}{of}, loss {loss:.3g}")

    return Watch()


def _describe(trainings: Trainings, store: str, *, as_json: bool) -> None:
    from syno.cli.commands.search import amounts, training_cost
    from syno.network.substitute import layer_report

    found = trainings.forecast()
    if as_json:
        output.print_json(found | {"store": store})
        return
    screen = output.console()
    output.paragraph("Layers", str(layer_report(trainings.network(trainings.seeds[0]).template)))
    screen.print()
    output.paragraph("Fidelity", amounts(trainings.fidelity))
    output.show(
        [{"name": "baseline", "key": None, **found["baseline"]}, *found["operators"]],
        ("operator", lambda each: each["name"]),
        ("key", lambda each: (each["key"] or "")[:8]),
        ("MACs>", lambda each: fmt.count(each["macs"])),
        ("params>", lambda each: fmt.count(each["params"])),
    )
    output.paragraph("Cost", training_cost(found["trainings"], found["seconds_each"]) + "\n")
    screen.print(f"Nothing was written; the results would go to {store}")


def _print(rows: Sequence[TrainedOperator], study: str, fidelity: Fidelity) -> None:
    """The results as a table, and below it how much of each network is in INT8."""
    recipe, text = fidelity.recipe, fidelity.task == "text"
    measure = "loss" if text else "accuracy"
    timed = any(row.latency_ms is not None for row in rows)
    rest = f"  fidelity {fidelity.name}, recipe {recipe.name} {recipe.version}"
    output.console().print(output.heading(study, rest))
    accuracy = ("accuracy>", lambda row: _spread(row.accuracy, "accuracy"))
    output.show(
        rows,
        ("operator", _name),
        ("key", lambda row: (row.key or "")[:8]),
        (f"{measure}>", lambda row: _spread(row.measures[measure][0], measure)),
        ("beside the baseline", lambda row: _pair(row.measures[measure][1], measure)),
        *([accuracy] if text else []),
        ("MACs>", lambda row: fmt.count(row.macs)),
        ("params>", lambda row: fmt.count(row.params)),
        *([("latency>", _latency)] if timed else []),
        ("time>", lambda row: fmt.duration(row.seconds)),
        ("status~", _status),
    )
    for row in rows:
        if row.precision != FLOAT32 and row.ok:
            output.console().print(_int8_share(row), soft_wrap=True)


def _name(row: TrainedOperator) -> str:
    return row.name if row.precision == FLOAT32 else f"{row.name} {row.precision}"


def _status(row: TrainedOperator) -> str:
    failed = [f"seed {s.seed}: {s.reason}" for s in row.seeds if s.status != "ok"]
    return "; ".join(failed) or ("ok" if row.ok else "not trained")


def _latency(row: TrainedOperator) -> str:
    if row.latency_ms is None:
        return "-"
    return f"{row.latency_ms:.3g} ms (x {row.latency_ratio:.2f})"


def _int8_share(row: TrainedOperator) -> str:
    """How much of a network is in INT8."""
    details = row.seeds[0].details
    share = details["int8_macs"] / details["network_macs"]
    parts = ", ".join(f"{count} x {part}" for part, count in details["float_parts"].items())
    rest = f"; in float32: {parts}" if parts else ""
    return f"{row.name} in INT8: {share:.1%} of the network's multiply-adds{rest}"


def _number(value: float, measure: str, *, sign: bool = False) -> str:
    shown = value * 100 if measure == "accuracy" else value
    places = 2 if measure == "accuracy" else 4
    return f"{shown:{'+' if sign else ''}.{places}f}"


def _spread(spread: Spread | None, measure: str) -> str:
    if spread is None:
        return "-"
    unit = " %" if measure == "accuracy" else ""
    mean = _number(spread.mean, measure)
    if spread.deviation is None:
        return mean + unit
    return f"{mean} ± {_number(spread.deviation, measure)}{unit} ({spread.count})"


def _pair(pair: Paired | None, measure: str) -> str:
    if pair is None:
        return ""
    shown = _number(pair.difference, measure, sign=True)
    if pair.low is None or pair.high is None:
        return shown
    low, high = (_number(value, measure, sign=True) for value in (pair.low, pair.high))
    return f"{shown} ({low} to {high}), better in {pair.wins} of {pair.count}"
