"""`syno select`: select operators of a study for further use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syno._util import numbers
from syno._util.command_line import command_line
from syno._util.options import Options, option
from syno.cli import framework, options, output
from syno.operands.options import study as study_option


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    study: str | None = study_option()
    top: int = option("Maximum number of operators.", 10, minimum=1)
    within: float | None = option(
        "Select only operators whose accuracy is at most this many percentage points below the "
        "reference, or whose perplexity is at most this many percent above it.",
        None,
        minimum=0,
        metavar="POINTS",
        unset="any accuracy",
    )
    reference: str = option(
        "Reference of --within: the baseline network or the best operator.",
        "baseline",
        choices=("baseline", "best"),
    )
    by: str = option(
        "Order of the operators, the best first.",
        "latency",
        choices=("latency", "macs", "params", "accuracy", "loss"),
    )
    front: bool = option(
        "Select only operators that no other one beats in accuracy (or loss) and in the cost of "
        "--by, or else latency. Of more than --top, an even choice along this front is selected.",
        False,
    )
    diverse: bool = option("Keep only the first of several similar operators.", False)
    least_distance: float = option(
        "Distance below which --diverse considers operators similar: the number of different "
        "primitives plus the doublings of MACs and parameters.",
        1.0,
        minimum=0,
    )
    out: str | None = option(
        "New folder to write the operators to.",
        None,
        unset="only list them",
        names="--out/-o",
        metavar="DIR",
    )
    as_json: bool = output.as_json()


@framework.command("select", _Arguments)
def command(given: _Arguments) -> int:
    """Select operators of a study, and write them as `<score>_<id>/operator.txt`.

    Each folder holds the operator, its specification and its results. Commands accept such a
    folder as an operator. The exit code is 1 if no operator is selected.
    """
    from syno.store import Store
    from syno.study import selection
    from syno.study.tables import asked_for, choices_table

    with Store.open(given.store, read_only=True) as opened:
        output.say_latest(opened, given.study)
        summary = opened.summary(given.study)
    choices = selection.choose(
        summary,
        top=given.top,
        within=given.within,
        reference=given.reference,
        by=given.by,
        diverse=given.diverse,
        least_distance=given.least_distance,
        front=given.front,
    )
    folders = selection.write(summary, choices, Path(given.out)) if given.out and choices else []
    if given.as_json:
        operators = [selection.described(choice) for choice in choices]
        for entry, folder in zip(operators, folders, strict=False):
            entry["folder"] = str(folder)
        output.print_json({"study": summary.study.name, "operators": operators})
    elif choices:
        output.show(choices_table(choices, summary.objective))
    if not choices:
        wanted = asked_for(given.within, given.reference, summary.objective)
        output.say(f"no operator of '{summary.study.name}' is {wanted}")
    elif given.out:
        following = command_line("show", str(folders[0]))
        written = numbers.counted(len(folders), "operator")
        output.say(f"wrote {written} to {given.out}; next: {following}")
    return framework.OK if choices else framework.NEGATIVE
