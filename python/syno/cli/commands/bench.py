"""`syno bench`: how fast Syno is on this machine."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output
from syno.cli.commands import bench_kernels, bench_slots
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno import Specification
    from syno.space.space import Space

# What each figure is, in the order in which they are printed.
FIGURES = {
    "graphs": "complete graphs under the last complete depth limit",
    "operators": "structures among them: graphs with a matching that pass all conditions",
    "keys": "distinct semantic keys: the operators that are offered",
    "complete_depth": "the last complete depth limit",
    "exhausted": "whether that is the depth asked for",
    "seconds": "from cold start to the end of that limit",
    "distinct_per_s": "keys in these seconds",
    "yield": "admitted operators over draws, once listed; each is judged anew from its text",
    "accepted_share": "structures over structures and those refused for quality or cost",
    "duplicate_rate": "repeats among the operators that are offered, counted one by one",
    "leak_rate": "structures that only their key showed to be repeats, over structures",
    "rss_mb": "the most memory that the process held, the interpreter with it",
    "rss_before_mb": "the same before the enumeration",
    "visited": "partial graphs over all depth limits, an unfinished one too",
    "nodes_per_s": "partial graphs over the whole time",
    "time_to_first_s": "from cold start to the end of the first depth limit with an operator",
}
# The same for walks, which --walk-seconds asks for.
WALK_FIGURES = {
    "walk_operators": "distinct semantic keys that walks met, after the listing, to the full depth",
    "walk_new": "those of them that are not in the listing",
    "walk_distinct_per_s": "walk_operators a second",
    "walk_coverage": "the share of what such walks find that has been found",
    "walk_at_least": "a lower bound for the number of operators, by how often they repeat",
    "walk_structures": "an estimate of the number of structures",
    "walk_structures_error": "its standard error",
}
# Draws that are judged for the yield.
_DRAWS = 300


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
    specification = options.required_specification(**named)
    settings = {
        "depth": options.checked_depth(depth, specification),
        "max_nodes": max_nodes,
        "max_memory": max_memory,
        "threads": threads or 0,
        "bound": bound,
        "rules_off": rules_off,
    }
    timed = _run(specification, seconds, settings)
    figures = _figures(timed)
    words = dict(FIGURES)
    if walk_seconds is not None:
        words |= WALK_FIGURES
        figures |= _walk_figures(timed.space, walk_seconds, settings)
    described = settings | {"max_seconds": seconds, "walk_seconds": walk_seconds}
    found = _described(timed.space, threads) | {"settings": described}
    if as_json:
        output.print_json(figures | found)
    else:
        _print(figures, words, found)
    if not len(timed.space):
        output.say(f"no operator was found within {fmt.duration(timed.total)}")
        return framework.NEGATIVE
    return framework.OK


@dataclass
class _Timed:
    space: Space
    # Seconds from the start to the end of the last complete limit; to the end of all.
    complete: float
    total: float
    # None when no limit with an operator was completed.
    first: float | None
    before_mb: float
    peak_mb: float


@dataclass
class _Watch:
    """Notes when depth limits were completed."""

    started: float = field(default_factory=time.perf_counter)
    complete: float = 0.0
    first: float | None = None

    def limit_listed(self, space: Space) -> None:
        self.complete = time.perf_counter() - self.started
        if len(space) and self.first is None:
            self.first = self.complete


def _run(specification: Specification, seconds: float, settings: dict[str, Any]) -> _Timed:
    from syno import Specification
    from syno.space.space import Space

    before = _peak_mb()
    watch = _Watch()
    # A fresh specification: what the first one has computed is not there yet.
    cold = Specification.from_json(specification.to_json())
    space = Space.listed(cold, max_seconds=seconds, on_limit=watch.limit_listed, **settings)
    total = time.perf_counter() - watch.started
    return _Timed(space, watch.complete or total, total, watch.first, before, _peak_mb())


def _peak_mb() -> float:
    import sys

    # Bytes on macOS, KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _figures(timed: _Timed) -> dict[str, Any]:
    space, counts = timed.space, timed.space.counts()
    refused = _refused(space)
    structures, keys = counts["structures"], len(space)
    distinct = min(len({o.key for o in space}), len({o.structure for o in space}))
    return {
        "graphs": counts["graphs"],
        "operators": structures,
        "keys": keys,
        "complete_depth": space.complete_depth,
        "exhausted": space.exhausted,
        "seconds": round(timed.complete, 6),
        "distinct_per_s": round(keys / timed.complete, 1),
        "yield": _yield(space),
        "accepted_share": _share(structures, structures + refused["complete"]),
        "duplicate_rate": _share(keys - distinct, keys),
        "leak_rate": _share(refused["repeated"], structures),
        "rss_mb": round(timed.peak_mb, 1),
        "rss_before_mb": round(timed.before_mb, 1),
        "visited": counts["visited"],
        "nodes_per_s": round(counts["visited"] / timed.total, 1),
        "time_to_first_s": None if timed.first is None else round(timed.first, 6),
    }


def _yield(space: Space) -> float | None:
    from syno import Operator

    drawn = space.draw(_DRAWS)
    again = [Operator.from_text(one.text, space.specification) for one in drawn]
    return _share(sum(not one.refusals() for one in again), len(again))


def _walk_figures(space: Space, seconds: float, settings: dict[str, Any]) -> dict[str, Any]:
    """Figures of walks to the full depth; without any where that is listed already."""
    from syno.cli import beyond

    if space.exhausted:
        return dict.fromkeys(WALK_FIGURES)
    names = ("depth", "threads", "bound", "rules_off")
    walked = beyond.walk(space, None, seconds, {name: settings[name] for name in names})
    found = walked.walks.statistics()
    return {
        "walk_operators": found["operators"],
        "walk_new": len(walked.new),
        "walk_distinct_per_s": round(found["operators"] / walked.seconds, 1),
        "walk_coverage": round(found["coverage"], 4),
        "walk_at_least": found["at_least"],
        "walk_structures": round(found["structures"]),
        "walk_structures_error": round(found["structures_error"]),
    }


# A quality condition that steps are refused for already, before a graph is complete.
_OF_STEPS = "max_pooling"


def _refused(space: Space) -> dict[str, int]:
    """Structures refused by quality conditions or costs, and by a key that was there already."""
    from syno import _core

    counts = {"complete": 0, "repeated": 0}
    names = {"quality": "complete", "costs": "complete", "repeated keys": "repeated"}
    for reason, count in space.rejections().items():
        name = names.get(_core.reason_info(reason)["group"])
        if name is not None and reason != _OF_STEPS:
            counts[name] += count
    return counts


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _described(space: Space, threads: int | None) -> dict[str, Any]:
    import os

    from syno.store.environment import capture_environment

    here = capture_environment(threads=threads or os.cpu_count() or 1, rules=space.rules)
    return {
        "specification": {"key": space.specification.key, "shapes": space.shapes},
        "ended": space.ended,
        "machine": {
            "processor": here.device,
            "cores": os.cpu_count(),
            "platform": here.platform,
            "threads": here.threads,
        },
        "versions": here.libraries | {"rules": here.rules},
        "commit": here.commit,
    }


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
