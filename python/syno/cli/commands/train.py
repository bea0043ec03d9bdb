"""`syno train`: chosen operators trained in a network, by a recipe, with several seeds."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno import Operator
    from syno.cli.trainings import Results, Trainings
    from syno.study.evaluate.evaluator import Quantization
    from syno.train import Fidelity, Group

PAUSED = 128 + signal.SIGTERM


@framework.command(
    name="train",
    examples=[
        (
            "two operators of the zoo beside the original network, three seeds each",
            "syno train conv2d operator-1 --baseline --data digits --seeds 3",
        ),
        (
            "an operator of a search, by a longer recipe",
            "syno train 3f2a --store runs.db --data cifar10 --recipe fast/cifar --seeds 3",
        ),
        (
            "a projection in a language model, at equal time",
            "syno train gpt2-projection --binding g=32 --baseline --model gpt2-small "
            "--data ~/text --fidelity fast/text-time",
        ),
        (
            "how good and how fast both are in INT8",
            "syno train operator-1 --baseline --model resnet20 --data cifar10 --quantize",
        ),
        (
            "what it would cost",
            "syno train conv2d --model resnet18 --data cifar100 --recipe paper/cifar100 --dry-run",
        ),
    ],
)
@click.argument("ops", metavar="[OP]...", nargs=-1)
@click.option("--baseline", is_flag=True, help="Also train the network as it is.")
@click.option("--model", metavar="NAME", help="[resnet-small, or gpt2-small for text]")
@options.model_option_option
@click.option("--data", required=True, metavar="NAME", help="digits, cifar10, a folder, a text.")
@options.data_dir_option
@click.option(
    "--recipe",
    metavar="NAME",
    help="How to train: a recipe, or a .toml file. [that of the fidelity]",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many trainings."
)
@options.fidelity_options
@click.option("--seconds", type=float, help="Changes its seconds (text): equal time.")
@options.tokenizer_option
@options.own_sizes_option
@click.option("--preset", metavar="NAME", help="The specification that operators are read under.")
@options.store_option
@click.option("--study", metavar="NAME", help="Where a key is looked for, in --store.")
@click.option("--name", metavar="NAME", help="Name of the study; one that is there goes on.")
@options.seed_option
@options.timing_options
@click.option(
    "--latency/--no-latency",
    default=True,
    help="Time each trained network on the CPU, in turns with the original. [on]",
)
@click.option(
    "--quantize",
    is_flag=True,
    help="Also bring each trained network to INT8, and measure its accuracy and latency.",
)
@click.option(
    "--engine",
    metavar="NAME",
    help="What of torch computes in INT8: fbgemm, x86, onednn, qnnpack. [the first there is]",
)
@click.option(
    "--calibration-images",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Training images that --quantize takes the ranges of numbers from.",
)
@click.option("--device", default="cpu", show_default=True, metavar="NAME", help="cpu, or cuda.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Threads that read images ahead.",
)
@options.deadline_option
@options.isolation_options
@click.option(
    "--checkpoints",
    metavar="DIR",
    help="Keep the state of each training there; the same command goes on from it.",
)
@output.dry_run_option
@output.json_option
def command(
    ops: tuple[str, ...],
    recipe: str | None,
    fidelity: str | None,
    fidelity_changes: dict[str, Any],
    seeds: int,
    seed: int,
    store: str,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Train networks with chosen operators in them, and keep the results in a store.

    OP is a name of the zoo, an operator as every command takes it, a folder with operators, or a
    file with an OP in each line. Quality is measured on data held out of the training split; the
    test split is read by `syno report --final` alone. With --baseline the same seeds train the
    network as it is, and operators are compared with it seed by seed. An operator that crashes,
    hangs or eats memory is a row with its reason.
    """
    from syno.train import joined

    with joined(given["device"]) as group:
        return _command(
            ops,
            _fidelity(recipe, fidelity, fidelity_changes, given),
            tuple(range(seed, seed + seeds)),
            store,
            group,
            dry_run=dry_run,
            as_json=as_json,
            **given,
        )


def _command(
    ops: tuple[str, ...],
    fidelity: Fidelity,
    seeds: tuple[int, ...],
    store: str,
    group: Group,
    *,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    from syno.cli.chosen import gathered, layer_specification
    from syno.store import Store

    trainings = _trainings(fidelity, seeds, given)
    if not ops and not given["baseline"]:
        raise UserError(
            "nothing is to be trained\n  expected: an operator, such as conv2d, or --baseline"
        )
    trainings.prepare()
    from syno import Specification

    template = trainings.network(seeds[0]).template
    preset = None if given["preset"] is None else Specification.preset(given["preset"])
    layers = layer_specification(template, trainings.sizes)
    where = store if _exists(store) else None
    trainings.adopt(
        gathered(ops, store=where, study=given["study"], specification=preset, layers=layers)
    )
    trainings.specification()  # what cannot stand in one study is refused before all
    if dry_run:
        if group.is_first:
            _describe(trainings, store, as_json=as_json)
        return framework.OK
    if not group.is_first:
        _follow(trainings, group)
        return framework.OK
    from syno.cli.training_rows import print_rows, result_rows
    from syno.cli.trainings import Results

    with Store.open(store) as opened:
        results = Results(opened, given["name"], trainings)
        paused = _run(trainings, results, group)
        if paused:
            output.say("paused; the same command with this --name goes on: " + results.record.name)
            return PAUSED
        rows = result_rows(trainings, results)
    if as_json:
        output.print_json(
            {"store": store, "study": results.record.name, "fidelity": fidelity.to_json()}
            | {"results": rows}
        )
    else:
        print_rows(rows, results.record.name, fidelity)
        from syno.cli.commands.search import report_line

        output.say(f"next: {report_line(store, results.record.name)}")
    return framework.OK if all(row["ok"] for row in rows) else framework.NEGATIVE


def _exists(store: str) -> bool:
    """Whether there may be something in the store: a file that is not there holds no keys."""
    path = store.removeprefix("sqlite:///")
    return "://" in path or Path(path).is_file()


def _fidelity(
    recipe: str | None, name: str | None, changes: dict[str, Any], given: dict[str, Any]
) -> Fidelity:
    from syno.train import recipe as known_recipe

    if recipe is not None:
        known_recipe(recipe)
    seconds = given.pop("seconds")
    if seconds is not None:
        changes["seconds"] = seconds
    return options.named_fidelity(name, changes, given["data"], given["data_dir"], recipe)


def _trainings(fidelity: Fidelity, seeds: tuple[int, ...], given: dict[str, Any]) -> Trainings:
    from syno.cli.commands.search import numbers
    from syno.cli.trainings import Trainings
    from syno.operators.specification import checked_binding

    model = given["model"] or ("gpt2-small" if fidelity.task == "text" else "resnet-small")
    folder = given["checkpoints"]
    return Trainings(
        model=model,
        model_options=numbers(given["model_options"]),
        data=given["data"],
        data_dir=given["data_dir"],
        fidelity=fidelity,
        seeds=seeds,
        baseline=given["baseline"],
        sizes={} if given["binding"] is None else checked_binding(given["binding"]),
        tokenizer=given["tokenizer"],
        threads=given["threads"],
        device=given["device"],
        workers=given["workers"],
        deadline_s=given["deadline_s"],
        checkpoints=None if folder is None else Path(folder),
        repeats=given["repeats"],
        warmup=given["warmup"],
        latency=given["latency"],
        quantization=_quantization(given),
        isolate=given["isolate"],
        memory_limit=given["memory_limit"],
    )


def _quantization(given: dict[str, Any]) -> Quantization | None:
    from syno.study.evaluate.evaluator import Quantization

    if given["quantize"]:
        return Quantization.of(given["engine"], given["calibration_images"])
    if given["engine"] is not None:
        raise UserError("an --engine is named, and nothing comes to INT8\n  expected: --quantize")
    return None


def _jobs(trainings: Trainings) -> list[tuple[Operator | None, str, int]]:
    """(operator, its name, seed), seed by seed, so that an early stop leaves whole comparisons."""
    named: list[tuple[Operator | None, str]] = [(None, "baseline")] if trainings.baseline else []
    named += [
        (operator, chosen.name)
        for operator, chosen in zip(trainings.operators, trainings.chosen, strict=True)
    ]
    return [(operator, name, seed) for seed in trainings.seeds for operator, name in named]


def _run(trainings: Trainings, results: Results, group: Group) -> bool:
    """Trains what is not in the store yet; True when it was paused."""
    jobs = _jobs(trainings)
    done = {name: results.done(operator) for operator, name, _ in jobs}
    try:
        with (
            output.progress("training", len(jobs)) as move,
            trainings.evaluators(group, (watch := _watch(move))) as evaluators,
        ):
            for index, (operator, name, seed) in enumerate(jobs):
                if seed in done[name]:
                    move(index + 1, f"{name}, seed {seed}: is in the store")
                    continue
                watch.at(index, f"{name}, seed {seed}")
                group.told(index)
                outcome = evaluators.run(operator, seed)
                if outcome is not None:
                    results.add(operator, outcome)
                    evaluators.forget(operator, seed)
                    words = outcome.status
                    if outcome.accuracy is not None:
                        words = f"{outcome.accuracy:.2%}"
                    move(index + 1, f"{name}, seed {seed}: {words}")
                if outcome is None or evaluators.terminated:
                    results.close("paused", "paused by SIGTERM")
                    group.told(None)
                    return True
    except KeyboardInterrupt:
        results.close("interrupted", "interrupted from the keyboard")
        raise
    group.told(None)
    results.close("done", f"{len(jobs)} trainings are done")
    return False


def _follow(trainings: Trainings, group: Group) -> None:
    """What the other processes do: train with the first one what it says."""
    from syno.study.observer import Observer

    jobs = _jobs(trainings)
    with trainings.evaluators(group, Observer()) as evaluators:
        while (index := group.told(None)) is not None:
            operator, _, seed = jobs[index]
            if evaluators.run(operator, seed) is None:
                group.told(None)
                return


def _watch(move: output.Move) -> Any:
    """An observer that says on the bar what runs: `at` tells it which training."""
    from syno.study.observer import Observer

    class Watch(Observer):
        index, name = 0, ""

        def at(self, index: int, name: str) -> None:
            self.index, self.name = index, name

        def on_step(self, step: str) -> None:
            move(self.index, f"{self.name}: {step}")

        def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
            of = f" of {epochs}" if epochs else ""
            move(self.index, f"{self.name}: epoch {epoch}{of}, loss {loss:.3g}")

    return Watch()


def _describe(trainings: Trainings, store: str, *, as_json: bool) -> None:
    import syno
    from syno.cli.running import amounts
    from syno.report import format as fmt

    network = trainings.network(trainings.seeds[0])
    jobs, seconds = _jobs(trainings), trainings.seconds_each()
    layers = syno.layer_report(network.template)
    costs: list[dict[str, Any]] = []
    for chosen, operator in zip(trainings.chosen, trainings.operators, strict=True):
        _, report = network.with_operator(operator)
        macs, params = network.cost(operator, report)
        costs.append({"name": chosen.name, "key": operator.key, "macs": macs, "params": params})
    if as_json:
        output.print_json(
            {
                "model": trainings.model,
                "data": trainings.data,
                "fidelity": trainings.fidelity.to_json(),
                "layers": [dataclasses.asdict(row) for row in layers.rows],
                "baseline": {"macs": network.macs, "params": network.params},
                "operators": costs,
                "trainings": len(jobs),
                "seconds_each": seconds,
                "store": store,
            }
        )
        return
    screen = output.console()
    screen.print(output.heading("Layers"))
    screen.print(output.indented(str(layers), 2), soft_wrap=True)
    screen.print()
    screen.print(output.heading("Fidelity", f"\n  {amounts(trainings.fidelity)}"), soft_wrap=True)
    original = {"name": "baseline", "key": None, "macs": network.macs, "params": network.params}
    rows = [
        [c["name"], (c["key"] or "")[:8], fmt.count(c["macs"]), fmt.count(c["params"])]
        for c in (original, *costs)
    ]
    columns = [("operator", "left"), ("key", "left"), ("MACs", "right"), ("params", "right")]
    screen.print(output.table(columns, rows))
    cost = "unknown: the probe did not train"
    if seconds is not None:
        cost = (
            f"{len(jobs)} x about {fmt.duration(seconds)} of training, by a few steps of the "
            f"original network: {fmt.duration(len(jobs) * seconds)}; operators that lower badly "
            "take longer"
        )
    screen.print(output.heading("Cost", f"\n  {cost}\n"), soft_wrap=True)
    screen.print(f"Nothing was written; the results would go to {store}")
