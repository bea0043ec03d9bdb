"""`syno enumerate`: all operators of a specification."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, group, option
from syno.cli import enumeration, framework, options, output
from syno.operators.summary import costed_summary
from syno.space.named import NamedSpecification, Rules, checked_depth
from syno.space.options import EnumerationOptions, time_limit
from syno.space.rejections import rejection_tree
from syno.space.summary import enumeration_json
from syno.space.tables import (
    counts_in_words,
    depths_table,
    known_before,
    multisets_table,
    nothing_found,
)

if TYPE_CHECKING:
    from syno import Operator, Specification
    from syno.space.space import Space

_MOST_MULTISETS = 20


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    named: NamedSpecification = group(NamedSpecification)
    enumeration: EnumerationOptions = group(EnumerationOptions)
    max_seconds: float | None = time_limit("Time. The result depends on the machine then.")
    rules: Rules = group(Rules)
    file: Path | None = option(
        "Keep what is listed in a file, after each depth limit.", None, metavar="PATH", parse=Path
    )
    resume: bool = option("Go on with --file at the next depth limit.", False)
    draw: int | None = option("Print K of the operators.", None, minimum=1, metavar="K")
    seed: int = options.seed()
    stratify: str = option(
        "Spread --draw over quantiles of cost, or over multisets of primitives.",
        "none",
        choices=("none", "macs", "params", "primitives"),
    )
    walks: int | None = option(
        "Where a budget ends the listing, go on with N guided random walks.",
        None,
        minimum=1,
        metavar="N",
    )
    walk_seconds: float | None = time_limit(
        "The same for so long. The result depends on the machine then."
    )
    stats: bool = options.stats()
    as_json: bool = output.as_json()


@framework.command("enumerate", _Arguments)
def command(given: _Arguments) -> int:
    """List every operator of a specification, and count them.

    Operators are listed under growing depth limits until the depth is reached or a budget is
    spent; then the last complete limit counts, and so it does after Ctrl-C. A graph is complete
    when it connects the shapes; a structure is such a graph with a matching to the input, and
    passes all conditions; an operator stands for all structures with one semantic key.

    With --walks, guided random walks go on to the full depth where a budget ended the listing. They
    say which share of what they can find they have found, and estimate the number of structures.

    The exit code is 1 when there is no operator, 130 after Ctrl-C.
    """
    if given.stratify != "none" and given.draw is None:
        raise UserError(
            "--stratify is given without --draw\n"
            "  expected: --draw K, the number of operators to draw      got: --stratify alone"
        )
    specification = given.named.required()
    depth = checked_depth(given.enumeration.depth, specification)
    limited = dataclasses.replace(given.enumeration, depth=depth)
    before = _opened(given, specification)
    started = time.monotonic()
    space, interrupted = _enumerated(given, specification, limited, before)
    taken = time.monotonic() - started
    walked = None
    if (given.walks or given.walk_seconds) and not interrupted and not space.exhausted:
        walked, interrupted = enumeration.walk(
            space,
            given.walks,
            given.walk_seconds,
            limited,
            seed=given.seed,
            rules_off=given.rules.off,
            rules=given.rules.added,
        )
    drawn = []
    if given.draw:
        drawn = space.draw(given.draw, given.seed, given.stratify, limited.threads or 0)
    if given.as_json:
        value = enumeration_json(space, before, taken) | {
            "file": None if given.file is None else str(given.file),
            "operators_drawn": [costed_summary(operator) for operator in drawn],
        }
        if given.stats:
            value["rejections"] = rejection_tree(space.rejections())
        output.print_json(value | {"walks": None if walked is None else walked.as_json()})
    else:
        _print(space, before, taken, drawn, stats=given.stats)
        if walked is not None:
            enumeration.print_walks(walked, given.draw or 0, given.seed)
    if given.file is not None:
        output.say(f"kept in {given.file}")
    if interrupted:
        return framework.INTERRUPTED
    if not len(space) and (walked is None or not walked.found):
        output.say(nothing_found(space))
        return framework.NEGATIVE
    return framework.OK


def _opened(given: _Arguments, specification: Specification) -> Space | None:
    """What a file holds already; None for a new one. UserError where the two do not go together."""
    from syno.space.space import Space, check_writable

    if given.file is None:
        if given.resume:
            raise UserError(
                "--resume is given without a file to go on with\n"
                "  expected: --file PATH, as an enumeration wrote it      got: no --file"
            )
        return None
    check_writable(given.file)
    if given.resume:
        return Space.load(given.file, specification, given.rules.off, given.rules.added)
    if given.file.exists():
        raise UserError(
            f"the file '{given.file}' exists already\n"
            "  what to do: add --resume to go on with it, or name another file"
        )
    return None


def _enumerated(
    given: _Arguments,
    specification: Specification,
    limited: EnumerationOptions,
    before: Space | None,
) -> tuple[Space, bool]:
    """The space, and whether Ctrl-C ended it. Each complete depth limit is kept in the file."""
    from syno.space.space import Space

    depth, file = limited.depth or 0, given.file
    if before is not None and before.complete_depth >= depth:
        return before, False
    with enumeration.watched(depth, given.max_seconds) as watch:

        def on_limit(space: Space) -> None:
            watch.limit_listed(space)
            if file is not None:
                space.save(file)

        space = Space.listed(
            specification,
            depth=depth,
            max_nodes=limited.max_nodes,
            max_memory=limited.max_memory,
            max_seconds=given.max_seconds or 0.0,
            threads=limited.threads or 0,
            rules_off=given.rules.off,
            rules=given.rules.added,
            bound=limited.bound,
            progress=watch.progress,
            on_limit=on_limit,
            before=before,
        )
    if file is not None and not file.exists():
        space.save(file)  # no depth limit was completed
    return space, watch.interrupted


def _print(
    space: Space, before: Space | None, taken: float, drawn: list[Operator], *, stats: bool
) -> None:
    screen = output.console()
    known = 0 if before is None else before.complete_depth
    news = space.complete_depth > known
    if before is not None:
        screen.print(known_before(space, before))
    _print_counts(space, known if news else 0)
    screen.print(counts_in_words(space, taken))
    if drawn:
        screen.print()
        enumeration.print_operators(drawn)
    if stats:
        screen.print()
        enumeration.print_rejections(space.rejections())


def _print_counts(space: Space, known: int) -> None:
    """Tables by depth and by primitives; depths up to `known` were printed before."""
    depths = [row for row in space.by_depth() if row["depth"] > known]
    if depths:
        output.show(depths_table(depths))
    multisets = list(space.by_primitives().items())
    if not multisets:
        return
    output.show(multisets_table(multisets[:_MOST_MULTISETS]))
    rest = multisets[_MOST_MULTISETS:]
    if rest:
        output.console().print(
            f"and {sum(count for _, count in rest):,} of {len(rest)} other multisets of primitives "
            "(--json lists them)\n"
        )
