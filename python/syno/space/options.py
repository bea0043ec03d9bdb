"""Options of spaces: the extent of an enumeration, its rules and constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from syno import _core
from syno._util import checks
from syno._util.declaration import documented
from syno._util.errors import UserError
from syno._util.options import Options, Stored, described, mapping, memory_size, option, own
from syno._util.threads import MOST_THREADS
from syno.space.rules import switched_off

BUDGETS = _core.enumerate_options()
WALK_BUDGETS = _core.walk_options()

MAX_NODES = own(BUDGETS, "max_nodes")
WALKS, WALK_WIDTH = own(WALK_BUDGETS, "count"), own(WALK_BUDGETS, "width")
# The default for enumerations that are stored or counted, not sampled: a smaller limit would end
# most of them before their depth. A machine with 2 GB of memory suffices.
ENUMERATED_NODES = 20_000_000
# `rule_effects` enumerates a specification once for each rule.
EFFECT_NODES = 2_000_000

# The number of rejections that `check_rule` compares, and of the random graphs that it builds.
CHECK_TRIALS, CHECK_GRAPHS = 100, 2_000
# The time limit of the enumeration of `why_not` in seconds, and that of its search for changes.
EXPLANATION_SECONDS = 10.0

BOUNDS = ("full", "loose", "none")


def switch(text: str) -> tuple[str, bool]:
    """Parse a text such as `R6a=off`; return the rule and whether it is on."""
    rule, equals, state = (part.strip() for part in text.partition("="))
    if not rule or not equals or state not in ("on", "off"):
        raise UserError(
            f"'{checks.short(text)}' does not switch a rule\n"
            "  expected: ID=off or ID=on, such as R6a=off\n"
            "  what to do: `syno rules list` names the rules"
        )
    return rule, state == "on"


def _off(switches: Sequence[object]) -> tuple[str, ...]:
    return tuple(switched_off(cast(Sequence[tuple[str, bool]], switches)))


def rules_off() -> tuple[str, ...]:
    """Declare the rules to switch off, which the command line names by `--rule ID=off`."""
    return option(
        "Switch a rule off, by id, name or kind (`syno rules list`); can be repeated.",
        cast(tuple[str, ...], ()),
        names="--rule",
        metavar="ID=off",
        parse=switch,
        gather=_off,
        more="In Python, ids or names.",
        stored=Stored(always=True),
    )


def symmetry() -> tuple[str, ...]:
    """Declare the symmetries of the data."""
    return option(
        'Symmetry of the data, such as "mirror 3" for images that may be mirrored, or "exchange '
        '2 3" for height and width; can be repeated. One operator of each orbit is kept.',
        cast(tuple[str, ...], ()),
        more="They replace those of the specification.",
        metavar="SYMMETRY",
    )


def depth() -> int | None:
    """Declare the depth of an enumeration."""
    words = "Maximum number of primitives in an operator."
    return option(words, cast("int | None", None), minimum=1, unset="--max-depth")


def threads() -> int | None:
    """Declare the threads of an enumeration."""
    return option(
        "Number of threads; the result does not depend on it.",
        cast("int | None", None),
        minimum=1,
        maximum=MOST_THREADS,
        unset="all cores",
    )


def max_nodes(default: int) -> int:
    """Declare the limit of partial graphs, with a default that differs from that of C++."""
    return described(BUDGETS, "max_nodes", default)


def time_limit(doc: str) -> float | None:
    """Declare a time limit."""
    none = cast("float | None", None)
    return option(doc, none, minimum=0, above=True, metavar="SECONDS", unset="no limit")


@documented
@dataclass(frozen=True, kw_only=True)
class SpaceOptions(Options):
    """Which operators a search composes."""

    section: ClassVar[str] = "Space"
    max_nodes: int = described(BUDGETS, "max_nodes", MAX_NODES, stored=Stored(always=True))
    rules_off: tuple[str, ...] = rules_off()
    symmetry: tuple[str, ...] = symmetry()
    limits: Mapping[str, int | float | bool] = mapping(
        _core.option_descriptors,
        "Constraints that replace those of the specification, such as `{'max_depth': 8}`.",
    )


@dataclass(frozen=True, kw_only=True)
class EnumerationOptions(Options):
    """The extent of an enumeration; the options are arguments of `Space.enumerate`."""

    section: ClassVar[str] = "Enumeration"
    depth: int | None = depth()
    max_nodes: int = described(BUDGETS, "max_nodes", ENUMERATED_NODES)
    max_memory: int = described(BUDGETS, "max_memory", 0, parse=memory_size, metavar="BYTES")
    threads: int | None = threads()
    bound: str = option(
        "Completion bound; it affects the run time, not the operators.", "full", choices=BOUNDS
    )
