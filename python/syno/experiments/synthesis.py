"""How fast a space is synthesised: operators from cold start, and figures about them."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from syno import _core
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.options import EnumerationOptions
from syno.space.space import Space
from syno.space.walk_extension import WalkExtension

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
# Operators that are drawn and judged for the yield.
_DRAWS = 300


@dataclass
class SynthesisRate:
    """An enumeration from cold start.

    complete, total: seconds to the end of the last complete depth limit, and to the end of all;
    first: to the first limit with an operator, None when none was completed; before_mb, peak_mb:
    the most memory of the process, in MB, before and after.
    """

    space: Space
    complete: float
    total: float
    first: float | None
    before_mb: float
    peak_mb: float

    def figures(self) -> dict[str, object]:
        """Every figure of FIGURES, under its name."""
        space, counts = self.space, self.space.counts()
        refused = _refused(space)
        structures, keys = counts["structures"], len(space)
        distinct = min(len({o.key for o in space}), len({o.structure for o in space}))
        return {
            "graphs": counts["graphs"],
            "operators": structures,
            "keys": keys,
            "complete_depth": space.complete_depth,
            "exhausted": space.exhausted,
            "seconds": round(self.complete, 6),
            "distinct_per_s": round(keys / self.complete, 1),
            "yield": _yield(space),
            "accepted_share": _share(structures, structures + refused["complete"]),
            "duplicate_rate": _share(keys - distinct, keys),
            "leak_rate": _share(refused["repeated"], structures),
            "rss_mb": round(self.peak_mb, 1),
            "rss_before_mb": round(self.before_mb, 1),
            "visited": counts["visited"],
            "nodes_per_s": round(counts["visited"] / self.total, 1),
            "time_to_first_s": None if self.first is None else round(self.first, 6),
        }

    def described(self, threads: int | None) -> dict[str, object]:
        """What was listed, on which machine, by which versions."""
        # Not before the enumeration: the database library would count as memory that it holds.
        from syno.store.environment import capture_environment

        space = self.space
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


@dataclass
class _Watch:
    """Notes when depth limits were completed."""

    started: float = field(default_factory=time.perf_counter)
    complete: float = 0.0
    first: float | None = None

    def limit_completed(self, space: Space) -> None:
        self.complete = time.perf_counter() - self.started
        if len(space) and self.first is None:
            self.first = self.complete


def synthesis_rate(
    specification: Specification,
    seconds: float,
    options: EnumerationOptions,
    rules_off: Iterable[str] = (),
) -> SynthesisRate:
    """Lists operators for some seconds.

    The limit during which the time runs out does not count: rates are about the last complete one.
    """
    before = _peak_mb()
    watch = _Watch()
    # A fresh specification: what the first one has computed is not there yet.
    cold = Specification.from_json(specification.to_json())
    space = Space.enumerate(
        cold,
        depth=options.depth or 0,
        max_nodes=options.max_nodes,
        max_memory=options.max_memory,
        max_seconds=seconds,
        threads=options.threads or 0,
        bound=options.bound,
        rules_off=rules_off,
        on_limit=watch.limit_completed,
    )
    total = time.perf_counter() - watch.started
    return SynthesisRate(space, watch.complete or total, total, watch.first, before, _peak_mb())


def _peak_mb() -> float:
    # Bytes on macOS, KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _yield(space: Space) -> float | None:
    drawn = space.sample(_DRAWS)
    again = [Operator.from_text(one.text, space.specification) for one in drawn]
    return _share(sum(not one.refusals() for one in again), len(again))


def walk_figures(walked: WalkExtension) -> dict[str, object]:
    """Every figure of WALK_FIGURES, under its name."""
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
    counts = {"complete": 0, "repeated": 0}
    names = {"quality": "complete", "costs": "complete", "repeated keys": "repeated"}
    for reason, count in space.rejections().items():
        name = names.get(_core.reason_info(reason)["group"])
        if name is not None and reason != _OF_STEPS:
            counts[name] += count
    return counts


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None
