"""`syno enumerate`: all operators of a specification."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import beyond, framework, listed, options, output, refused
from syno.report import format as fmt
from syno.space.rejections import rejection_tree
from syno.space.summary import enumeration_json

if TYPE_CHECKING:
    from rich.console import Console

    from syno import Operator, Rule, Specification
    from syno.space.space import Space

# Partial graphs visited unless --max-nodes says otherwise; as in syno.space.space.
_NODES = 20_000_000
_MOST_MULTISETS = 20

_SMALL = (
    "--input '[C_in, H]' --output '[C_out, H]' --primary 'C_in: 2' \\\n"
    "      --primary 'C_out: 2' --primary 'H: 1' --coefficient 'k=3: 1' \\\n"
    "      --binding C_in=16,C_out=16,H=32"
)


@framework.command(
    name="enumerate",
    examples=[
        (
            "of a setting of the paper, up to five primitives",
            "syno enumerate --preset paper/resnet18 --depth 5",
        ),
        ("of shapes of one's own, and what was refused", f"syno enumerate {_SMALL} --stats"),
        (
            "into a file, to go on with later",
            "syno enumerate --preset paper/resnet18 --depth 4 --file r18.space",
        ),
        (
            "one primitive deeper, and ten operators of all costs",
            "syno enumerate --preset paper/resnet18 --depth 5 --file r18.space --resume \\\n"
            "      --draw 10 --stratify macs",
        ),
        (
            "what fits the budget, then random walks to the full depth, and how much they cover",
            "syno enumerate --preset paper/resnet18 --max-nodes 50000 --walks 2000",
        ),
    ],
)
@options.specification_options
@options.bindings_option
@options.listing_options(_NODES)
@options.max_seconds_option
@options.rule_options
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Keep what is listed in a file, after each depth limit.",
)
@click.option("--resume", is_flag=True, help="Go on with --file at the next depth limit.")
@click.option("--draw", type=click.IntRange(min=1), metavar="K", help="Print K of the operators.")
@options.seed_option
@click.option(
    "--stratify",
    type=click.Choice(["none", "macs", "params", "primitives"]),
    default="none",
    show_default=True,
    help="Spread --draw over quantiles of cost, or over multisets of primitives.",
)
@click.option(
    "--walks",
    type=click.IntRange(min=1),
    metavar="N",
    help="Where a budget ends the listing, go on with N guided random walks.",
)
@click.option(
    "--walk-seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="The same for so long. The result depends on the machine then.",
)
@options.stats_option
@output.json_option
@options.limit_options
def command(
    depth: int | None,
    max_nodes: int,
    max_memory: int,
    max_seconds: float | None,
    threads: int | None,
    bound: str,
    rules_off: list[str],
    rules: list[Rule],
    file: Path | None,
    resume: bool,
    draw: int | None,
    seed: int,
    stratify: str,
    walks: int | None,
    walk_seconds: float | None,
    stats: bool,
    as_json: bool,
    **named: Any,
) -> int:
    """List every operator of a specification, and count them.

    Operators are listed under growing depth limits until the depth is reached or a budget is
    spent; then the last complete limit counts, and so it does after Ctrl-C. A graph is complete
    when it connects the shapes; a structure is such a graph with a matching to the input, and
    passes all conditions; an operator stands for all structures with one semantic key.

    With --walks, guided random walks go on to the full depth where a budget ended the listing. They
    say which share of what they can find they have found, and estimate the number of structures.

    The exit code is 1 when there is no operator, 130 after Ctrl-C.
    """
    if stratify != "none" and draw is None:
        raise UserError(
            "--stratify is given without --draw\n"
            "  expected: --draw K, the number of operators to draw      got: --stratify alone"
        )
    specification = options.required_specification(**named)
    before = _opened(file, resume, specification, rules_off, rules)
    budget = {"max_nodes": max_nodes, "max_memory": max_memory, "max_seconds": max_seconds or 0.0}
    started = time.monotonic()
    space, interrupted = _list(
        specification,
        budget | {"threads": threads or 0, "bound": bound, "rules_off": rules_off, "rules": rules},
        options.checked_depth(depth, specification),
        file,
        before,
    )
    seconds = time.monotonic() - started
    walked = None
    if (walks or walk_seconds) and not interrupted and not space.exhausted:
        settings: dict[str, Any] = {"depth": options.checked_depth(depth, specification)}
        settings |= {"threads": threads or 0, "bound": bound, "seed": seed}
        settings |= {"rules_off": rules_off, "rules": rules}
        walked, interrupted = beyond.walk(space, walks, walk_seconds, settings)
    drawn = space.draw(draw, seed, stratify, threads or 0) if draw else []
    if as_json:
        value = enumeration_json(space, before, seconds) | {
            "file": None if file is None else str(file),
            "operators_drawn": listed.as_json(drawn),
        }
        if stats:
            value["rejections"] = rejection_tree(space.rejections())
        output.print_json(value | {"walks": None if walked is None else walked.as_json()})
    else:
        _print(space, before, seconds, drawn, stats=stats)
        if walked is not None:
            beyond.print_walks(walked, draw or 0, seed)
    if file is not None:
        output.say(f"kept in {file}")
    if interrupted:
        return framework.INTERRUPTED
    if not len(space) and (walked is None or not walked.found):
        output.say(_nothing(space))
        return framework.NEGATIVE
    return framework.OK


def _opened(
    file: Path | None,
    resume: bool,
    specification: Specification,
    rules_off: list[str],
    rules: list[Rule],
) -> Space | None:
    """What a file holds already; None for a new one. UserError where the two do not go together."""
    from syno.space.space import Space, check_writable

    if file is None:
        if resume:
            raise UserError(
                "--resume is given without a file to go on with\n"
                "  expected: --file PATH, as an enumeration wrote it      got: no --file"
            )
        return None
    check_writable(file)
    if resume:
        return Space.load(file, specification, rules_off, rules)
    if file.exists():
        raise UserError(
            f"the file '{file}' exists already\n"
            "  what to do: add --resume to go on with it, or name another file"
        )
    return None


def _list(
    specification: Specification,
    settings: dict[str, Any],
    depth: int,
    file: Path | None,
    before: Space | None,
) -> tuple[Space, bool]:
    """The space, and whether Ctrl-C ended it. Each complete depth limit is kept in the file."""
    from syno.cli.watch_listing import watched
    from syno.space.space import Space

    if before is not None and before.complete_depth >= depth:
        return before, False
    with watched(depth, settings["max_seconds"]) as watch:

        def on_limit(space: Space) -> None:
            watch.limit_listed(space)
            if file is not None:
                space.save(file)

        space = Space.listed(
            specification,
            depth=depth,
            **settings,
            progress=watch.progress,
            on_limit=on_limit,
            before=before,
        )
    if file is not None and not file.exists():
        space.save(file)  # no depth limit was completed
    return space, watch.interrupted


def _print(
    space: Space, before: Space | None, seconds: float, drawn: list[Operator], *, stats: bool
) -> None:
    screen = output.console()
    counts = space.counts()
    known = 0 if before is None else before.complete_depth
    news = space.complete_depth > known
    if before is not None:
        had = before.counts()
        screen.print(
            f"in the file, up to depth {known}: {had['graphs']:,} graphs, "
            f"{had['operators']:,} operators"
        )
    if known and not news:
        screen.print("no further depth limit was completed" if not space.exhausted else "complete")
    _print_counts(screen, space, known if news else 0)
    screen.print(
        f"{counts['graphs']:,} graphs, {counts['structures']:,} structures (graphs with a matching"
        f" to the input), {counts['operators']:,} operators (distinct semantic keys)"
    )
    screen.print(_reached(space))
    if seconds > 0 and counts["visited"]:
        screen.print(
            f"{counts['visited']:,} partial graphs in {fmt.duration(seconds)}: "
            f"{counts['visited'] / seconds:,.0f}/s"
        )
    screen.print(f"signature {space.signature()}")
    if drawn:
        screen.print()
        listed.show(screen, drawn)
    if stats:
        screen.print()
        screen.print(refused.drawn(space.rejections()))


def _print_counts(screen: Console, space: Space, known: int) -> None:
    """Tables by depth and by primitives; depths up to `known` were printed before."""
    rows = [
        [str(row["depth"]), f"{row['graphs']:,}", f"{row['operators']:,}"]
        for row in space.by_depth()
        if row["depth"] > known
    ]
    if rows:
        kinds = [("primitives", "right"), ("graphs", "right"), ("operators", "right")]
        screen.print(output.table(kinds, rows))
    multisets = list(space.by_primitives().items())
    if not multisets:
        return
    shown = [[f"{count:,}", name] for name, count in multisets[:_MOST_MULTISETS]]
    screen.print(output.table([("operators", "right"), ("made of", "fold")], shown))
    if len(multisets) > _MOST_MULTISETS:
        rest = multisets[_MOST_MULTISETS:]
        screen.print(
            f"and {sum(count for _, count in rest):,} of {len(rest)} other multisets of primitives "
            "(--json lists them)\n"
        )


def _reached(space: Space) -> str:
    if space.exhausted:
        return f"complete up to depth {space.complete_depth}"
    why = {"stopped": "Ctrl-C"}.get(space.ended, "--" + space.ended.replace("_", "-"))
    why = why.replace(" or max-", " or --max-")
    if space.depth_limit > space.complete_depth:
        return f"found so far under depth limit {space.depth_limit}, which {why} ended unfinished"
    return f"complete up to depth {space.complete_depth}; then ended by {why}"


def _nothing(space: Space) -> str:
    most = ", ".join(f"{name} {count:,}" for name, count in list(space.rejections().items())[:5])
    return (
        f"no operator connects the shapes within depth {space.complete_depth}\n"
        f"  most frequent rejections: {most or 'none'}\n"
        "  what to do: a larger --depth, larger budgets of variables, or other limits; "
        "--stats says what refused how much"
    )
