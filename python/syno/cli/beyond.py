"""Random walks after an enumeration whose budget ended: watched, and what they met as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syno.cli import listed, output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno import Space
    from syno.space.beyond import Walked

# 95 of 100 estimates lie so many standard errors around the truth, were they normal.
_SIGMAS = 1.96


def walk(
    space: Space, count: int | None, seconds: float | None, settings: dict[str, Any]
) -> tuple[Walked, bool]:
    """Walks as `walk_beyond` does, and whether Ctrl-C ended them; what was met by then counts."""
    from syno.cli.watch_listing import ends_on_interrupt
    from syno.space.beyond import walk_beyond

    with (
        output.progress("walks", count, remaining=count is not None) as move,
        ends_on_interrupt("stopping: what the walks met by now is kept") as watch,
    ):

        def progress(walks: int, operators: int, coverage: float) -> bool:
            done = walks if count is None else min(walks, count)
            move(done, f"{operators:,} operators, coverage {coverage:.2f}")
            return not watch.interrupted

        walked = walk_beyond(space, count, seconds, settings, progress)
    return walked, watch.interrupted


def print_walks(walked: Walked, draw: int, seed: int) -> None:
    """Print the figures, and `draw` of the operators beyond the listing."""
    screen = output.console()
    walks = walked.walks
    screen.print(
        f"\nbeyond depth {walked.listed_depth}: {walks.walks:,} walks to depth {walked.depth} in "
        f"{fmt.duration(walked.seconds)} met {len(walks):,} operators, {len(walked.new):,} of them "
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
    if draw and walked.new:
        screen.print()
        listed.show(screen, walked.draw(draw, seed))
