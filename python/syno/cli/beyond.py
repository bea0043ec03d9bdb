"""Random walks after an enumeration whose budget ended: what they met, as text and as data."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syno.cli import listed, output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno import Operator, Space, Walks

# For walks that only time ends.
_WITHOUT_END = 2**62
# 95 of 100 estimates lie so many standard errors around the truth, were they normal.
_SIGMAS = 1.96


@dataclass
class Walked:
    """Walks and which of their operators the listing did not have."""

    walks: Walks
    new: list[int]
    seconds: float
    depth: int
    listed_depth: int
    interrupted: bool

    @property
    def found(self) -> bool:
        """Whether they met an operator."""
        return len(self.walks) > 0

    def as_json(self) -> dict[str, Any]:
        """Figures, and the operators beyond the listing with their weights."""
        return self.walks.statistics() | {
            "new": len(self.new),
            "depth": self.depth,
            "seconds": round(self.seconds, 3),
            "operators_found": [
                {
                    "key": self.walks[index].key,
                    "weight": self.walks.weights[index],
                    "text": self.walks[index].text,
                }
                for index in self.new
            ],
        }

    def print(self, draw: int, seed: int) -> None:
        """Print the figures, and `draw` of the operators beyond the listing."""
        screen = output.console()
        walks = self.walks
        screen.print(
            f"\nbeyond depth {self.listed_depth}: {walks.walks:,} walks to depth {self.depth} in "
            f"{fmt.duration(self.seconds)} met {len(walks):,} operators, {len(self.new):,} of them "
            "not in the listing"
        )
        structures, error = walks.structures
        screen.print(
            f"coverage {walks.coverage:.3f}: the share of what such walks find that has been found"
        )
        screen.print(
            f"at least {walks.at_least:,} operators up to this depth, by how often they repeat; "
            f"about {structures:,.0f} structures, ± {_SIGMAS * error:,.0f} (95 %)"
        )
        if draw and self.new:
            screen.print()
            listed.show(screen, self._drawn(draw, seed))

    def _drawn(self, count: int, seed: int) -> list[Operator]:
        from syno import _core

        order = _core.UniformDraws(len(self.new), seed)
        count = min(count, len(self.new))
        return [self.walks[self.new[order.at(n)]] for n in range(count)]


def walk(
    space: Space, count: int | None, seconds: float | None, settings: dict[str, Any]
) -> Walked:
    """Walks in the specification of a space. Ctrl-C ends them; what was met by then counts."""
    from syno import walk
    from syno.cli.watch_listing import ends_on_interrupt

    started = time.monotonic()
    total = count or _WITHOUT_END
    with (
        output.progress("walks", count, remaining=count is not None) as move,
        ends_on_interrupt("stopping: what the walks met by now is kept") as watch,
    ):

        def progress(walks: int, operators: int, coverage: float) -> bool:
            move(min(walks, total), f"{operators:,} operators, coverage {coverage:.2f}")
            return not watch.interrupted

        walks = walk(
            space.specification,
            count=total,
            seconds=seconds or 0.0,
            progress=progress,
            **settings,
        )
    known = {space.key_of(index) for index in range(len(space))}
    return Walked(
        walks,
        [i for i, operator in enumerate(walks) if operator.key not in known],
        time.monotonic() - started,
        settings["depth"],
        space.complete_depth,
        watch.interrupted,
    )
