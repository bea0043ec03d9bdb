"""`syno bench`: how fast Syno is on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output
from syno.cli.commands import bench_kernels, bench_slots
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.space.space import Space


@framework.group(
    name="bench",
    examples=[
        (
            "operators of a setting of the paper, for ten seconds",
            "syno bench synthesis --preset paper/resnet18 --seconds 10",
        ),
        ("for programs", "syno bench synthesis --preset paper/resnet18 --seconds 10 --json"),
    ],
)
def command() -> None:
    """Measure Syno on this machine."""


@framework.command(
    name="synthesis",
    examples=[
        (
            "for programs",
            "syno bench synthesis --preset paper/resnet18 --seconds 10 --json",
        ),
        (
            "one thread against two",
            "syno bench synthesis --preset paper/resnet18 --seconds 10 --threads 1",
        ),
        (
            "what walks find beyond that",
            "syno bench synthesis --preset paper/gpt2 --seconds 10 --walk-seconds 10",
        ),
        (
            "what the completion bound is worth",
            "syno bench synthesis --preset paper/resnet18 --seconds 10 --bound none",
        ),
    ],
)
@options.specification_options
@options.bindings_option
@options.seconds_option
@click.option(
    "--walk-seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Then walk for so long to the full depth, where that was not listed.",
)
@options.listing_options(20_000_000)
@options.rule_option
@output.json_option
@options.limit_options
def synthesis(
    seconds: float,
    walk_seconds: float | None,
    depth: int | None,
    max_nodes: int,
    max_memory: int,
    threads: int | None,
    bound: str,
    rules_off: list[str],
    as_json: bool,
    **named: Any,
) -> int:
    """List operators from cold start under growing depth limits, and say how fast that was.

    The limit during which the time runs out does not count: rates are about the last complete one.
    The exit code is 1 when no operator was found.
    """
    from syno.experiments.synthesis import FIGURES, WALK_FIGURES, synthesis_rate

    specification = options.required_specification(**named)
    settings = {
        "depth": options.checked_depth(depth, specification),
        "max_nodes": max_nodes,
        "max_memory": max_memory,
        "threads": threads or 0,
        "bound": bound,
        "rules_off": rules_off,
    }
    timed = synthesis_rate(specification, seconds, settings)
    figures = timed.figures()
    words = dict(FIGURES)
    if walk_seconds is not None:
        words |= WALK_FIGURES
        figures |= _walk_figures(timed.space, walk_seconds, settings)
    described = settings | {"max_seconds": seconds, "walk_seconds": walk_seconds}
    found = timed.described(threads) | {"settings": described}
    if as_json:
        output.print_json(figures | found)
    else:
        _print(figures, words, found)
    if not len(timed.space):
        output.say(f"no operator was found within {fmt.duration(timed.total)}")
        return framework.NEGATIVE
    return framework.OK


def _walk_figures(space: Space, seconds: float, settings: dict[str, Any]) -> dict[str, Any]:
    """Figures of walks to the full depth; without any where that is listed already."""
    from syno.cli import beyond
    from syno.experiments.synthesis import WALK_FIGURES, walk_figures

    if space.exhausted:
        return dict.fromkeys(WALK_FIGURES)
    names = ("depth", "threads", "bound", "rules_off")
    walked, _ = beyond.walk(space, None, seconds, {name: settings[name] for name in names})
    return walk_figures(walked)


def _print(figures: dict[str, Any], words: dict[str, str], found: dict[str, Any]) -> None:
    screen = output.console()
    rows = [[name, _shown(figures[name]), what] for name, what in words.items()]
    screen.print(output.table([("figure", "left"), ("value", "right"), ("meaning", "fold")], rows))
    machine = found["machine"]
    screen.print(
        f"{found['specification']['shapes']}; {machine['processor']}, {machine['cores']} cores, "
        f"{machine['threads']} threads; syno {found['versions'].get('syno', '')}"
        f"{', commit ' + found['commit'][:12] if found['commit'] else ''}"
    )


def _shown(value: Any) -> str:
    if value is None:
        return fmt.MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


command.add_command(synthesis)
command.add_command(bench_kernels.command)
command.add_command(bench_slots.command)
