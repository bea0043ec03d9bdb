"""Progress bars and results of enumerations and random walks for the commands."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.interrupts import Interrupts, ends_on_interrupt
from syno.cli import output
from syno.space.pace import EnumerationPace
from syno.space.rejections import Rejections, rejection_tree

if TYPE_CHECKING:
    from rich.tree import Tree

    from syno import Operator, Rule, Space, Specification
    from syno._core import EnumerateStatus
    from syno.space.options import EnumerationOptions
    from syno.space.specification_options import NamedSpecification
    from syno.space.walk_extension import WalkExtension


def _ended_by(remark: str) -> contextlib.AbstractContextManager[Interrupts]:
    return ends_on_interrupt(lambda: output.say(f"{remark} (press Ctrl-C again to exit)"))


class EnumerationWatch:
    """The callbacks of `Space.enumerate`."""

    def __init__(
        self, move: output.Move, max_seconds: float | None, interrupts: Interrupts
    ) -> None:
        self._interrupts = interrupts
        self._move = move
        self._pace = EnumerationPace()
        self._done = 0
        self._visited = 0
        self._ends = None if not max_seconds else time.monotonic() + max_seconds

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interrupts.interrupted

    def progress(self, status: EnumerateStatus) -> bool:
        """Move the bar; return False to stop the enumeration."""
        until = None if self._ends is None else max(0.0, self._ends - time.monotonic())
        self._move(self._done, self._pace.in_words(status, until))
        return not self.interrupted

    def limit_completed(self, space: Space) -> None:
        """Record that a depth limit is completed."""
        self._visited += space.counts()["visited"]
        self._done = space.complete_depth
        self._pace.limit_completed(self._visited)
        self._move(self._done)


@contextlib.contextmanager
def watched(limits: int, max_seconds: float | None) -> Iterator[EnumerationWatch]:
    """Show a bar over depth limits while the block runs; Ctrl-C ends only the enumeration."""
    with (
        output.progress("depth", limits, remaining=False) as move,
        _ended_by("stopping; the last complete depth limit is kept") as interrupts,
    ):
        yield EnumerationWatch(move, max_seconds, interrupts)


def walk(
    space: Space,
    count: int | None,
    seconds: float | None,
    given: EnumerationOptions,
    *,
    seed: int = 0,
    rules_off: Sequence[str] = (),
    rules: Sequence[Rule] = (),
) -> tuple[WalkExtension, bool]:
    """Run `extend_by_walks`; return its result and whether Ctrl-C ended it early."""
    from syno.space.walk_extension import extend_by_walks

    with (
        output.progress("walks", count, remaining=count is not None) as move,
        _ended_by("stopping; the operators found so far are kept") as watch,
    ):

        def progress(walks: int, operators: int, coverage: float) -> bool:
            done = walks if count is None else min(walks, count)
            move(done, f"{operators:,} operators, coverage {coverage:.2f}")
            return not watch.interrupted

        walked = extend_by_walks(
            space,
            count,
            seconds,
            depth=given.depth or 0,
            seed=seed,
            threads=given.threads or 0,
            bound=given.bound,
            rules_off=rules_off,
            rules=rules,
            progress=progress,
        )
    return walked, watch.interrupted


def print_walks(walked: WalkExtension, count: int, seed: int) -> None:
    """Print the statistics, and `count` of the operators that only the walks found."""
    screen = output.console()
    screen.print(f"\n{walked.in_words()}")
    if count and walked.new:
        screen.print()
        print_operators(walked.sample(count, seed))


def specification(named: NamedSpecification) -> Specification:
    """Return the specification of the options, and print which example layers it has."""
    layers = named.example_layers()
    if layers:
        output.say(
            f"the preset '{named.preset}' takes its layers from a network; without one, this is an "
            f"example: {'; '.join(layers)} (--binding replaces it)"
        )
    return named.with_layers()


def print_operators(operators: Sequence[Operator]) -> None:
    """Print numbered operators, each with its key, costs and formula."""
    screen = output.console()
    for number, operator in enumerate(operators, start=1):
        costs = (
            f"  {fmt.count(operator.macs()):>7} MACs"
            f"  {fmt.count(operator.params()):>7} params  {fmt.primitives(operator.primitives())}"
        )
        screen.print(output.heading(operator.structure[:8], costs, before=f"{number:>4}  "))
        screen.print(output.indented(operator.formula(), 6), soft_wrap=True)


def print_rejections(rejections: Mapping[str, int]) -> None:
    """Print the number of rejections by reason, as a tree."""
    from rich.tree import Tree

    root = rejection_tree(rejections)
    made = Tree(output.heading(root["name"], f"  {root['count']:,}"))
    _grow(made, root)
    output.console().print(made)


def _grow(made: Tree, node: Rejections) -> None:
    from rich.text import Text

    parts = node.get("parts", [])
    width = max((len(part["name"]) for part in parts), default=0)
    digits = max((len(f"{part['count']:,}") for part in parts), default=0)
    for part in parts:
        share = fmt.percent(part["share"])
        line = Text(f"{part['name']:{width}}  {part['count']:>{digits},}  {share:>7}")
        if part.get("doc"):
            line.append(f"  {part['doc']}", style="dim")
        _grow(made.add(line), part)
