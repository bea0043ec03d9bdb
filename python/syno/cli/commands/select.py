"""`syno select`: operators of a study that are worth going on with, as a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syno._util.command_line import command_line
from syno._util.options import Options, option
from syno.cli import framework, options, output
from syno.operands.options import study as study_option


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    study: str | None = study_option()
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


@framework.command("select", _Arguments)
def command(given: _Arguments) -> int:
    """Pick operators of a study and write them as `<score>_<key>/operator.txt`.

    Each folder holds the operator, the specification it was found under and its figures; commands
    take it wherever they take an operator. The exit code is 1 when there is none.
    """
    from syno.store import Store
    from syno.study import selection
    from syno.study.tables import asked_for, choices_table

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
        output.show(choices_table(chosen, summary.objective))
    if not chosen:
        wanted = asked_for(given.within, given.reference, summary.objective)
        output.say(f"no operator of '{summary.study.name}' is {wanted}")
    elif given.out:
        following = command_line("show", str(folders[0]))
        output.say(f"wrote {len(folders)} operators to {given.out}; next: {following}")
    return framework.OK if chosen else framework.NEGATIVE
