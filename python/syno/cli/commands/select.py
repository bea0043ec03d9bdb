"""`syno select`: operators of a study that are worth going on with, as a folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.study.selection import Choice


@framework.command(
    name="select",
    examples=[
        (
            "the ten fastest that lose at most a point, no near twins",
            "syno select --store runs.db --top 10 --diverse --within 1.0 --out selected",
        ),
        (
            "the most accurate of one of several studies",
            "syno select --store runs.db --study resnet-small-digits-1 --by accuracy --top 3",
        ),
    ],
)
@options.store_option
@options.study_option
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="At most so many."
)
@click.option(
    "--within",
    type=click.FloatRange(min=0),
    metavar="POINTS",
    help="Only operators at most so many points (percent) below the reference, or of a perplexity "
    "at most so many percent above it.",
)
@click.option(
    "--reference",
    type=click.Choice(["baseline", "best"]),
    default="baseline",
    show_default=True,
    help="What --within compares with: the original network, or the best operator.",
)
@click.option(
    "--by",
    type=click.Choice(["latency", "macs", "params", "accuracy", "loss"]),
    default="latency",
    show_default=True,
    help="Their order: the fastest, cheapest, smallest, most accurate or of least loss first.",
)
@click.option(
    "--diverse", is_flag=True, help="Of near twins take the first: same steps at a like cost."
)
@click.option(
    "--least-distance",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="What --diverse takes for near: primitives that differ, and doublings of MACs and params.",
)
@click.option("--out", "-o", metavar="DIR", help="A new folder for them. Default: only list them.")
@output.json_option
def command(
    store: str,
    study: str | None,
    top: int,
    within: float | None,
    reference: str,
    by: str,
    diverse: bool,
    least_distance: float,
    out: str | None,
    as_json: bool,
) -> int:
    """Pick operators of a study and write them as `<score>_<key>/operator.txt`.

    Each folder holds the operator, the specification it was found under and its figures; commands
    take it wherever they take an operator. The exit code is 1 when there is none.
    """
    from syno.store import Store
    from syno.study import selection

    with Store.open(store, read_only=True) as opened:
        summary = opened.summary(study)
    chosen = selection.choose(
        summary,
        top=top,
        within=within,
        reference=reference,
        by=by,
        diverse=diverse,
        least_distance=least_distance,
    )
    folders = selection.write(summary, chosen, Path(out)) if out and chosen else []
    if as_json:
        listed = [selection.described(choice) for choice in chosen]
        for entry, folder in zip(listed, folders, strict=False):
            entry["folder"] = str(folder)
        output.print_json({"study": summary.study.name, "operators": listed})
    elif chosen:
        _print(chosen)
    if not chosen:
        asked = _asked(within, reference, summary.objective.name)
        output.say(f"no operator of '{summary.study.name}' is {asked}")
    elif out:
        following = shlex.join(["syno", "show", str(folders[0])])
        output.say(f"wrote {len(folders)} operators to {out}; next: {following}")
    return framework.OK if chosen else framework.NEGATIVE


def _asked(within: float | None, reference: str, objective: str) -> str:
    if within is None:
        return "trained"
    name = "the original network" if reference == "baseline" else "the best"
    if objective == "loss":
        return f"at most {within:g} % above the perplexity of {name}"
    return f"at most {within:g} points below {name}"


def _print(chosen: list[Choice]) -> None:
    from syno.report import format as fmt

    objective = "accuracy" if chosen[0].loss is None else "loss"
    rows: list[list[Any]] = [
        [
            choice.key[:8],
            fmt.quality(choice.quality, objective),
            fmt.ratio(choice.latency_ratio),
            fmt.count(choice.macs),
            fmt.count(choice.params),
            fmt.primitives(choice.primitives),
        ]
        for choice in chosen
    ]
    columns = [("key", "left"), (objective, "right"), ("ratio", "right"), ("MACs", "right")]
    columns += [("params", "right"), ("primitives", "fold")]
    output.console().print(output.table(columns, rows))
