"""`syno train`: chosen operators trained in a network, by a recipe, with several seeds."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.store import Outcome
    from syno.study.evaluate.quantization import Quantization
    from syno.study.training.train import TrainingObserver
    from syno.study.training.trainings import Job, Trainings
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
    from syno.study.training.train import follow, prepare, run

    trainings = _trainings(fidelity, seeds, given)
    prepare(trainings, ops, specification=given["preset"], store=store, study=given["study"])
    if dry_run:
        if group.is_first:
            _describe(trainings, store, as_json=as_json)
        return framework.OK
    if not group.is_first:
        follow(trainings, group)
        return framework.OK
    with output.progress("training", len(trainings.jobs())) as move:
        found = run(trainings, store, given["name"], _watch(move), group)
    if found.paused:
        output.say("paused; the same command with this --name goes on: " + found.study)
        return PAUSED
    if as_json:
        rows = [row.to_json() for row in found.rows]
        content = {"store": store, "study": found.study, "fidelity": fidelity.to_json()}
        output.print_json(content | {"results": rows})
    else:
        from syno.cli.commands.search import report_line
        from syno.cli.training_rows import print_rows

        print_rows(found.rows, found.study, fidelity)
        output.say(f"next: {report_line(store, found.study)}")
    return framework.OK if found.ok else framework.NEGATIVE


def _fidelity(
    recipe: str | None, name: str | None, changes: dict[str, Any], given: dict[str, Any]
) -> Fidelity:
    from syno.study.evaluate.loading import fidelity_for
    from syno.train import recipe as known_recipe

    if recipe is not None:
        known_recipe(recipe)
    seconds = given.pop("seconds")
    if seconds is not None:
        changes["seconds"] = seconds
    return fidelity_for(name, changes, given["data"], given["data_dir"], recipe)


def _trainings(fidelity: Fidelity, seeds: tuple[int, ...], given: dict[str, Any]) -> Trainings:
    from syno.cli.commands.search import numbers
    from syno.operators.specification import checked_binding
    from syno.study.training.train import usual_model
    from syno.study.training.trainings import Trainings

    folder = given["checkpoints"]
    return Trainings(
        model=given["model"] or usual_model(fidelity),
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
    from syno.study.evaluate.quantization import Quantization

    if given["quantize"]:
        return Quantization.of(given["engine"], given["calibration_images"])
    if given["engine"] is not None:
        raise UserError("an --engine is named, and nothing comes to INT8\n  expected: --quantize")
    return None


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
    import syno
    from syno.cli.running import amounts
    from syno.report import format as fmt

    found = trainings.forecast()
    if as_json:
        output.print_json(found | {"store": store})
        return
    jobs, seconds = found["trainings"], found["seconds_each"]
    layers = syno.layer_report(trainings.network(trainings.seeds[0]).template)
    screen = output.console()
    screen.print(output.heading("Layers"))
    screen.print(output.indented(str(layers), 2), soft_wrap=True)
    screen.print()
    screen.print(output.heading("Fidelity", f"\n  {amounts(trainings.fidelity)}"), soft_wrap=True)
    original = {"name": "baseline", "key": None, **found["baseline"]}
    rows = [
        [c["name"], (c["key"] or "")[:8], fmt.count(c["macs"]), fmt.count(c["params"])]
        for c in (original, *found["operators"])
    ]
    columns = [("operator", "left"), ("key", "left"), ("MACs", "right"), ("params", "right")]
    screen.print(output.table(columns, rows))
    cost = "unknown: the probe did not train"
    if seconds is not None:
        cost = (
            f"{jobs} x about {fmt.duration(seconds)} of training, by a few steps of the "
            f"original network: {fmt.duration(jobs * seconds)}; operators that lower badly "
            "take longer"
        )
    screen.print(output.heading("Cost", f"\n  {cost}\n"), soft_wrap=True)
    screen.print(f"Nothing was written; the results would go to {store}")
