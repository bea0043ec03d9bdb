"""`syno experiment ranking`: how well a cheap training ranks operators."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import framework, options, output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.experiments.agreement import Agreement, Correlation
    from syno.experiments.ranking import Entry, Table

# Options that are settings of a table.
_SETTINGS = ("model", "low", "high", "high_epochs", "seeds", "part", "arms", "max_slowdown")


@framework.command(
    name="ranking",
    examples=[
        (
            "a hundred drawn operators and the zoo, about four hours of one core; again to go on",
            "syno experiment ranking --data cifar10 --out ranking.jsonl --jobs 2",
        ),
        ("what a table says", "syno experiment ranking --out ranking.jsonl --show"),
        (
            "a first look, for programs",
            "syno experiment ranking --data digits --operators 12 --low digits --high digits \\\n"
            "      --high-epochs 12 --arms 4 --out look.jsonl --json",
        ),
    ],
)
@click.option("--data", metavar="NAME", help="Images. Not needed for a table that is there.")
@options.data_dir_option
@click.option("--model", default="resnet-small", show_default=True, metavar="NAME")
@options.model_option_option
@click.option(
    "--operators",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="To draw, besides those of the zoo.",
)
@click.option("--low", default="tiny", show_default=True, metavar="FIDELITY", help="The low rung.")
@click.option(
    "--high", default="fast/cifar16", show_default=True, metavar="FIDELITY", help="The high rung."
)
@click.option(
    "--high-epochs", type=click.IntRange(min=1), default=14, show_default=True, help="Its epochs."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=2, show_default=True, help="At the low rung."
)
@click.option(
    "--part",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="One of so many operators is trained at the high rung.",
)
@click.option(
    "--arms",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    help="Operators to train without initial scales, too.",
)
@click.option(
    "--max-slowdown",
    type=click.FloatRange(min=0, min_open=True),
    default=1.8,
    show_default=True,
    help="Draw no operator whose training step takes longer than so many of the original's.",
)
@options.seed_option
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Processes.")
@click.option("--limit", type=click.IntRange(min=0), help="Trainings at most.")
@click.option(
    "--out",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The table (JSON lines); one that is there is gone on with.",
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where a picture goes (PNG).",
)
@click.option("--show", is_flag=True, help="Train nothing.")
@output.json_option
def command(
    out: Path, picture: Path | None, show: bool, as_json: bool, data_dir: str | None, **named: Any
) -> int:
    """Train many operators cheaply, some of them long, and compare the orders.

    Operators are drawn by the seed before anything is trained. Each is trained at the low rung with
    several seeds; one of three, by strata, at the high rung. A table that is not finished is gone
    on with by the same command; its settings are those of the file. The exit code is 1 while
    trainings are left.
    """
    from syno.experiments import ranking
    from syno.experiments.agreement import agreement
    from syno.experiments.pictures import save_ranking

    if not out.exists():
        if show:
            raise UserError(f"there is no table '{out}'\n  what to do: leave --show out to make it")
        _make(out, data_dir, **named)
    if show:
        table = ranking.Table.read(out)
    else:
        with output.progress("trainings", None) as move:
            table = ranking.run(
                out,
                data_dir=data_dir,
                jobs=named["jobs"],
                limit=named["limit"],
                progress=lambda done, total, what: move(done, f"of {total:,}: {what}"),
            )
    found = agreement(table)
    if picture is not None:
        save_ranking(table, found, picture)
    if as_json:
        output.print_json(dataclasses.asdict(found))
    else:
        _print(found, table)
    left = next(table.waiting(), None)
    if left is not None:
        again = shlex.join(["syno", "experiment", "ranking", "--out", str(out)])
        output.say(f"not finished: `{again}` goes on")
    return framework.OK if left is None else framework.NEGATIVE


def _make(
    out: Path, data_dir: str | None, data: str | None, operators: int, seed: int, **named: Any
) -> None:
    from syno.cli.commands.search import numbers
    from syno.experiments.ranking_draw import new_settings, new_table

    if data is None:
        raise UserError(f"there is no table '{out}' yet\n  expected: --data, to make it")
    settings = new_settings(
        data=data,
        draw=seed,
        model_options=numbers(named["model_options"]),
        **{name: named[name] for name in _SETTINGS},
    )
    with output.progress("drawing operators", operators) as move:
        table = new_table(settings, data_dir, operators, lambda done, total, what: move(done, what))
    out.parent.mkdir(parents=True, exist_ok=True)
    table.write(out)


def _print(found: Agreement, table: Table) -> None:
    screen = output.console()
    rows = [
        [each.name, str(each.count), *_shown(each)] for each in found.correlations if each.count
    ]
    headings = [
        ("ranks the high rung, or seed the other", "left"),
        ("operators", "right"),
        ("Spearman", "right"),
        ("95 % interval", "right"),
    ]
    screen.print(output.table(headings, rows))
    if found.recall is not None:
        screen.print(f"\nof the best ten at the high rung {found.recall} are so at the low one")
    if found.arms:
        screen.print(output.table(_ARM_HEADINGS, [_arm_row(arm) for arm in found.arms]))
    long = "" if found.seconds_high is None else f", {found.seconds_high:.0f} s at the high one"
    screen.print(
        f"\n{found.operators} operators; {found.trained_low} trained at the low rung, "
        f"{found.trained_high} at the high one, which sees {found.images:.0f} times as many "
        f"images; {found.failed} failures; median {found.seconds_low:.1f} s at the low rung{long}"
    )
    best = sorted(table.accuracies("high").items(), key=lambda each: -each[1])[:10]
    if best:
        named = ", ".join(f"{_name(table.entries[i])} {100 * a:.1f} %" for i, a in best)
        screen.print(f"best at the high rung: {named}")


_ARM_HEADINGS = [
    ("scales", "left"),
    ("operators", "right"),
    ("accuracy", "right"),
    ("difference", "right"),
    ("agreement of seeds", "right"),
]


def _arm_row(arm: Any) -> list[str]:
    return [
        arm.scales,
        str(arm.count),
        f"{100 * arm.accuracy:.2f} %",
        f"{100 * arm.difference:+.2f} ± {100 * arm.error:.2f}",
        " ".join(_shown(arm.seeds)),
    ]


def _shown(each: Correlation) -> list[str]:
    if each.value is None or each.low is None or each.high is None:
        return [fmt.MISSING, fmt.MISSING]
    return [f"{each.value:.2f}", f"{each.low:.2f} to {each.high:.2f}"]


def _name(entry: Entry) -> str:
    return entry.name or entry.key[:8]
