"""`syno bench synthesis`: the rate of synthesis."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from syno._util import numbers as fmt
from syno._util.options import Options, group, option
from syno._util.tables import Table
from syno.cli import framework, output
from syno.space.options import EnumerationOptions, rules_off, time_limit
from syno.space.specification_options import NamedSpecification, checked_depth

if TYPE_CHECKING:
    from syno.space.space import Space


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    named: NamedSpecification = group(NamedSpecification)
    seconds: float = option(
        "Time limit of the enumeration in seconds.", 10.0, minimum=0, above=True
    )
    walk_seconds: float | None = time_limit(
        "Then run random walks to the full depth for this time, if it was not enumerated."
    )
    enumeration: EnumerationOptions = group(EnumerationOptions)
    rules_off: tuple[str, ...] = rules_off()
    as_json: bool = output.as_json()


@framework.command("bench synthesis", _Arguments)
def synthesis(given: _Arguments) -> int:
    """Enumerate operators from a cold start, and print the rates.

    Depth limits grow until the time is over. The rates are those of the last depth limit that was
    completed. The exit code is 1 if no operator was found.
    """
    from syno_lab.experiments.synthesis import FIGURES, WALK_FIGURES, synthesis_rate

    specification = given.named.required()
    depth = checked_depth(given.enumeration.depth, specification)
    enumeration = dataclasses.replace(given.enumeration, depth=depth)
    timed = synthesis_rate(specification, given.seconds, enumeration, given.rules_off)
    figures = timed.figures()
    words = dict(FIGURES)
    if given.walk_seconds is not None:
        words |= WALK_FIGURES
        figures |= _walk_figures(timed.space, given.walk_seconds, enumeration, given.rules_off)
    settings = dataclasses.asdict(enumeration) | {"rules_off": list(given.rules_off)}
    settings |= {"threads": enumeration.threads or 0, "max_seconds": given.seconds}
    settings |= {"walk_seconds": given.walk_seconds}
    found = timed.described(enumeration.threads) | {"settings": settings}
    if given.as_json:
        output.print_json(figures | found)
    else:
        _print(figures, words, found)
    if not len(timed.space):
        output.say(f"no operator was found within {fmt.duration(timed.total)}")
        return framework.NEGATIVE
    return framework.OK


def _walk_figures(
    space: Space, seconds: float, given: EnumerationOptions, off: Sequence[str]
) -> dict[str, object]:
    """Return figures of walks to the full depth; they are None if it is enumerated."""
    from syno.cli.enumeration import walk
    from syno_lab.experiments.synthesis import WALK_FIGURES, walk_figures

    if space.exhausted:
        return dict.fromkeys(WALK_FIGURES)
    walked, _ = walk(space, None, seconds, given, rules_off=off)
    return walk_figures(walked)


def _print(figures: dict[str, object], words: dict[str, str], found: dict[str, Any]) -> None:
    output.show(
        Table.of(
            words.items(),
            ("figure", lambda each: each[0]),
            ("value>", lambda each: _shown(figures[each[0]])),
            ("meaning~", lambda each: each[1]),
        )
    )
    machine = found["machine"]
    output.console().print(
        f"{found['specification']['shapes']}; {machine['processor']}, {machine['cores']} cores, "
        f"{machine['threads']} threads; syno {found['versions'].get('syno', '')}"
        f"{', commit ' + found['commit'][:12] if found['commit'] else ''}"
    )


def _shown(value: object) -> str:
    if value is None:
        return fmt.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{cast(float, value):,.6g}"
