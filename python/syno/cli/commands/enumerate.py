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
from syno.space.options import EnumerationOptions, time_limit
from syno.space.rejections import rejection_tree
from syno.space.specification_options import NamedSpecification, Rules, checked_depth
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
    max_seconds: float | None = time_limit(
        "Time limit in seconds; the result then depends on the machine."
    )
    rules: Rules = group(Rules)
    file: Path | None = option(
        "Store the enumeration in this file after each depth limit.",
        None,
        metavar="PATH",
        parse=Path,
    )
    resume: bool = option("Continue --file with the next depth limit.", False)
    sample: int | None = option(
        "Sample K of the operators and print them.",
        None,
        minimum=1,
        former="--draw",
        metavar="K",
        unset="off",
    )
    seed: int = options.seed()
    stratify: str = option(
        "Stratify --sample by quantiles of a cost, or by multisets of primitives.",
        "none",
        choices=("none", "macs", "params", "primitives"),
    )
    walks: int | None = option(
        "If a limit ends the enumeration early, continue with N guided random walks.",
        None,
        minimum=1,
        metavar="N",
        unset="off",
    )
    walk_seconds: float | None = time_limit(
        "Continue with random walks for this time; the result then depends on the machine."
    )
    stats: bool = options.stats()
    as_json: bool = output.as_json()


@framework.command("enumerate", _Arguments)
def command(given: _Arguments) -> int:
    """Enumerate and count all operators of a specification.

    The enumeration proceeds under growing depth limits until it reaches the depth, or until a
    limit or Ctrl-C ends it. The result is that of the last complete depth limit. A graph is
    complete if it connects the shapes. A structure is a complete graph with a matching to the input
    that passes all conditions. An operator represents all structures with the same semantic key.

    With --walks, guided random walks to the full depth continue an enumeration that a limit ended
    early. The command prints which fraction of what such walks can find was found, and an estimate
    of the number of structures.

    The exit code is 1 if there is no operator, and 130 after Ctrl-C.
    """
    if given.stratify != "none" and given.sample is None:
        raise UserError(
            "--stratify is given without --sample\n"
            "  expected: --sample K, the number of operators to sample      got: --stratify alone"
        )
    specification = enumeration.specification(given.named)
    depth = checked_depth(given.enumeration.depth, specification)
    limited = dataclasses.replace(given.enumeration, depth=depth)
    before = _open_file(given, specification)
    started = time.monotonic()
    space, interrupted = _enumerate(given, specification, limited, before)
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
    sampled = []
    if given.sample:
        sampled = space.sample(given.sample, given.seed, given.stratify, limited.threads or 0)
    if given.as_json:
        value: dict[str, object] = {
            **enumeration_json(space, before, taken),
            "file": None if given.file is None else str(given.file),
            "operators_drawn": [costed_summary(operator) for operator in sampled],
        }
        if given.stats:
            value["rejections"] = rejection_tree(space.rejections())
        output.print_json(value | {"walks": None if walked is None else walked.as_json()})
    else:
        _print(space, before, taken, sampled, stats=given.stats)
        if walked is not None:
            enumeration.print_walks(walked, given.sample or 0, given.seed)
    if given.file is not None:
        output.say(f"wrote {given.file}")
    if interrupted:
        return framework.INTERRUPTED
    if not len(space) and (walked is None or not walked.found):
        output.say(nothing_found(space))
        return framework.NEGATIVE
    return framework.OK


def _open_file(given: _Arguments, specification: Specification) -> Space | None:
    """Return the space that the file holds, None for a new file."""
    from syno.space.space import Space, check_writable

    if given.file is None:
        if given.resume:
            raise UserError(
                "--resume is given without a file to continue\n"
                "  expected: --file PATH, a file that an enumeration wrote      got: no --file"
            )
        return None
    check_writable(given.file)
    if given.resume:
        return Space.load(given.file, specification, given.rules.off, given.rules.added)
    if given.file.exists():
        raise UserError(
            f"the file '{given.file}' exists already\n"
            "  what to do: add --resume to continue it, or name another file"
        )
    return None


def _enumerate(
    given: _Arguments,
    specification: Specification,
    limited: EnumerationOptions,
    before: Space | None,
) -> tuple[Space, bool]:
    """Enumerate; return the space and whether Ctrl-C ended it.

    The file is written after each completed depth limit.
    """
    from syno.space.space import Space

    depth, file = limited.depth or 0, given.file
    if before is not None and before.complete_depth >= depth:
        return before, False
    with enumeration.watched(depth, given.max_seconds) as watch:

        def on_limit(space: Space) -> None:
            watch.limit_completed(space)
            if file is not None:
                space.save(file)

        space = Space.enumerate(
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
    space: Space, before: Space | None, taken: float, sampled: list[Operator], *, stats: bool
) -> None:
    screen = output.console()
    known = 0 if before is None else before.complete_depth
    news = space.complete_depth > known
    if before is not None:
        screen.print(known_before(space, before))
    _print_counts(space, known if news else 0)
    screen.print(counts_in_words(space, taken))
    if sampled:
        screen.print()
        enumeration.print_operators(sampled)
    if stats:
        screen.print()
        enumeration.print_rejections(space.rejections())


def _print_counts(space: Space, known: int) -> None:
    """Print tables by depth and by primitives, without the depths up to `known`."""
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
            "(printed by --json)\n"
        )
