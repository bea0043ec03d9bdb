"""`syno select`: operators of a study that are worth going on with, as a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.command_line import command_line
from syno._util.options import Options, option
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.store.objective import Objective
    from syno.study.selection import Choice


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """Arguments of `syno select`."""

    store: str = options.store()
    study: str | None = options.study()
    top: int = option("At most so many.", 10, minimum=1)
    within: float | None = option(
        "Only operators at most so many points (percent) below the reference, or of a perplexity "
        "at most so many percent above it.",
        None,
        minimum=0,
        metavar="POINTS",
    )
    reference: str = option(
        "What --within compares with: the original network, or the best operator.",
        "baseline",
        choices=("baseline", "best"),
    )
    by: str = option(
        "Their order: the fastest, cheapest, smallest, most accurate or of least loss first.",
        "latency",
        choices=("latency", "macs", "params", "accuracy", "loss"),
    )
    diverse: bool = option("Of near twins take the first: same steps at a like cost.", False)
    least_distance: float = option(
        "What --diverse takes for near: primitives that differ, and doublings of MACs and params.",
        1.0,
        minimum=0,
    )
    out: str | None = option(
        "A new folder for them.", None, unset="only list them", names="--out/-o", metavar="DIR"
    )
    as_json: bool = output.as_json()


@framework.command("select", Arguments)
def command(given: Arguments) -> int:
    """Pick operators of a study and write them as `<score>_<key>/operator.txt`.

    Each folder holds the operator, the specification it was found under and its figures; commands
    take it wherever they take an operator. The exit code is 1 when there is none.
    """
    from syno.store import Store
    from syno.study import selection

    with Store.open(given.store, read_only=True) as opened:
        summary = opened.summary(given.study)
    chosen = selection.choose(
        summary,
        top=given.top,
        within=given.within,
        reference=given.reference,
        by=given.by,
        diverse=given.diverse,
        least_distance=given.least_distance,
    )
    folders = selection.write(summary, chosen, Path(given.out)) if given.out and chosen else []
    if given.as_json:
        listed = [selection.described(choice) for choice in chosen]
        for entry, folder in zip(listed, folders, strict=False):
            entry["folder"] = str(folder)
        output.print_json({"study": summary.study.name, "operators": listed})
    elif chosen:
        _print(chosen, summary.objective)
    if not chosen:
        asked = _asked(given.within, given.reference, summary.objective)
        output.say(f"no operator of '{summary.study.name}' is {asked}")
    elif given.out:
        following = command_line("show", str(folders[0]))
        output.say(f"wrote {len(folders)} operators to {given.out}; next: {following}")
    return framework.OK if chosen else framework.NEGATIVE


def _asked(within: float | None, reference: str, objective: Objective) -> str:
    if within is None:
        return "trained"
    name = "the original network" if reference == "baseline" else "the best"
    if not objective.is_share:
        return f"at most {within:g} % above the perplexity of {name}"
    return f"at most {within:g} points below {name}"


def _print(chosen: list[Choice], objective: Objective) -> None:
    output.show(
        chosen,
        ("key", lambda choice: choice.key[:8]),
        (f"{objective.name}>", lambda choice: objective.shown(choice.quality)),
        ("ratio>", lambda choice: fmt.ratio(choice.latency_ratio)),
        ("MACs>", lambda choice: fmt.count(choice.macs)),
        ("params>", lambda choice: fmt.count(choice.params)),
        ("primitives~", lambda choice: fmt.primitives(choice.primitives)),
    )
