"""`syno tune`: operators and their baselines, tuned in several back ends."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from syno._util.errors import UserError
from syno._util.options import Options, option
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.tune import Grid, GridRun, TuningTask


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[OP]...")
    config: Path | None = option("Grid of tasks: a JSON file.", None, metavar="FILE")
    models: tuple[str, ...] = option(
        "Model whose slots are tuned; can be repeated.",
        cast(tuple[str, ...], ()),
        names="--model",
        metavar="NAME",
    )
    layers: tuple[str, ...] = option(
        "Layer as CHANNELSxSIZE, such as 64x56; can be repeated.",
        cast(tuple[str, ...], ()),
        names="--layer",
        metavar="LAYER",
    )
    networks: tuple[str, ...] = option(
        "Model that is tuned and timed as a whole network; can be repeated.",
        cast(tuple[str, ...], ()),
        names="--network",
        metavar="NAME",
    )
    back_ends: str = option(
        "Back ends, separated by commas: eager, inductor, cpp, triton, tvm.",
        "eager,inductor,cpp,tvm",
        metavar="NAMES",
    )
    baseline: bool = option("Also tune the original layers.", True)
    binding: str | None = options.operator_sizes()
    size: int | None = option(
        "Height and width of the images in pixels.", None, minimum=1, unset="that of the model"
    )
    batch: int = options.batch()
    device: str = option("Device.", "cpu", choices=("cpu", "cuda"))
    threads: int = options.threads(2)
    rpc_key: str | None = option(
        "Key of a device at the tracker, which does the work.", None, metavar="KEY"
    )
    tracker: str | None = option(
        "Tracker of the devices that rpc_key names.", None, metavar="HOST:PORT"
    )
    secret: Path | None = option("File with the secret of the tracker.", None, metavar="FILE")
    target: str | None = option(
        "Target of TVM, such as 'llvm -mtriple=aarch64-linux-gnu'.",
        None,
        metavar="TEXT",
        unset="the processor",
    )
    trials: int = option("Schedules that are measured for each kernel.", 64, minimum=1)
    plans: int = option("Plans that are measured for each kernel.", 4, minimum=1, maximum=1000)
    rounds: int = options.rounds()
    out: Path = option("Folder of the results.", Path("tuned"), metavar="DIRECTORY")
    outside: bool = option(
        "Accept a grid of --config with results outside of the folder of its file.", False
    )
    dry_run: bool = option(
        "Print the tasks, and which of them this machine cannot do, and do nothing.", False
    )
    clear: bool = option("Delete the results of all tasks first, after a question.", False)
    yes: bool = option("Delete without a question.", False)
    retry: bool = option("Do tasks again that failed.", False)
    as_json: bool = output.as_json()


@framework.command("tune", _Arguments)
def command(given: _Arguments) -> int:
    """Tune operators and original layers for a device, and compare back ends.

    OP is an operator, as for `syno train`, in the slots of a model, in single layers or in whole
    networks; or --config names a grid of targets, models, operators and back ends. Each form of an
    operator is compared with the interpreter and measured in turns; a network with --network is
    compared with eager PyTorch and timed as a whole. Finished tasks are skipped; an interrupted
    task is resumed; a task that fails is recorded, and the next one begins. The exit code is 1 if a
    task failed.
    """
    from syno.tune import run_grid, tasks_of
    from syno.tune.run import check_folders

    tasks = tasks_of(_grid(given))
    check_folders(tasks)
    if given.clear:
        _clear(tasks, given)
    if given.dry_run:
        return _show(tasks, given)
    framework.resumable(framework.this_command())
    with output.progress("tasks", None) as move:
        run = run_grid(
            tasks,
            retry=given.retry,
            progress=lambda done, total, what: move(done, f"of {total}: {what}"),
        )
    if given.as_json:
        output.print_json([dataclasses.asdict(result) for result in run.results])
    else:
        _print(run)
    return framework.NEGATIVE if run.failures else framework.OK


def _grid(given: _Arguments) -> Grid:
    from syno.operators.specification import checked_binding
    from syno.tune import read_grid, single_grid

    if given.config is not None:
        own = (given.ops, given.models, given.layers, given.networks, given.rpc_key, given.target)
        if any(own):
            raise UserError(
                "--config has operators, models, layers, networks and targets of its own\n"
                "  expected: either --config, or OP with --model, --layer or --network"
            )
        return read_grid(
            given.config, tracker=given.tracker, secret=given.secret, outside=given.outside
        )
    if not given.ops and not given.networks:
        raise UserError(
            "nothing to tune\n  expected: an operator, --network NAME, or --config FILE"
        )
    return single_grid(
        given.ops,
        models=given.models,
        layers=given.layers,
        networks=given.networks,
        out=given.out,
        device=given.device,
        threads=given.threads,
        rpc_key=given.rpc_key,
        target=given.target,
        tracker=given.tracker,
        secret=given.secret,
        back_ends=_back_ends(given.back_ends),
        baseline=given.baseline,
        binding={} if given.binding is None else checked_binding(given.binding),
        batch=given.batch,
        size=given.size,
        trials=given.trials,
        plans=given.plans,
        rounds=given.rounds,
    )


def _back_ends(names: str) -> tuple[str, ...]:
    from syno._util.errors import nearest
    from syno.tune.grid import BACK_ENDS

    wanted = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in wanted:
        if name not in BACK_ENDS:
            raise UserError(
                f"unknown back end '{name}'{nearest(name, BACK_ENDS)}\n"
                f"  expected: {', '.join(BACK_ENDS)}"
            )
    return wanted


def _clear(tasks: Sequence[TuningTask], given: _Arguments) -> None:
    from syno.tune.results import TaskFiles, stored

    found = stored(tasks)
    if given.dry_run:
        output.say(f"--clear would delete the results of {len(found)} tasks")
        return
    if not found:
        return
    if not given.yes and not click.confirm(
        f"delete the results of {len(found)} of {len(tasks)} tasks?", err=True
    ):
        raise UserError("nothing was deleted\n  what to do: leave out --clear, or confirm it")
    for task in found:
        if not TaskFiles(task).remove():
            output.say(f"kept '{task.folder}': it has files that Syno did not write")


def _show(tasks: Sequence[TuningTask], given: _Arguments) -> int:
    from syno.tune.tables import obstacle, state, tasks_table

    if given.as_json:
        output.print_json(
            [task.as_json() | {"state": state(task), "obstacle": obstacle(task)} for task in tasks]
        )
    else:
        output.show(tasks_table(tasks))
        refused = sum(bool(obstacle(task)) for task in tasks)
        impossible = f", {refused} of which this machine cannot do" if refused else ""
        output.echo(f"{len(tasks)} tasks{impossible}")
    return framework.OK


def _print(run: GridRun) -> None:
    from syno.tune.tables import layers_table, results_table

    done = [result for result in run.results if result not in run.failures]
    if done:
        output.show(results_table(done))
    if len(done) == 1 and len(done[0].rows) > 1:
        output.show(layers_table(done[0]))
    for result in run.failures:
        task = result.task
        first = result.reason.partition("\n")[0]
        output.echo(
            f"failed: {task['operator']} in {task['place']}, {task['back_end']} on "
            f"{task['target']}: {first}"
        )
    if run.failures:
        output.say("--retry does them again")
