"""The rate of synthesis: an enumeration from a cold start, and its figures."""

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

# The meaning of each figure, in the order of the output.
FIGURES = {
    "graphs": "complete graphs under the last complete depth limit",
    "operators": "structures: those graphs with a matching that pass all conditions",
    "keys": "operators: distinct semantic keys",
    "complete_depth": "the last complete depth limit",
    "exhausted": "whether this is the requested depth",
    "seconds": "time from the cold start to the end of this limit",
    "distinct_per_s": "keys per second of this time",
    "yield": "fraction of sampled operators that are admitted when checked again from their text",
    "accepted_share": "structures over structures before the checks of quality and cost",
    "duplicate_rate": "fraction of repeated operators among the results, counted individually",
    "leak_rate": "fraction of structures that only the key identifies as repeated",
    "rss_mb": "peak memory of the process, including the interpreter",
    "rss_before_mb": "the same before the enumeration",
    "visited": "partial graphs over all depth limits, including an incomplete one",
    "nodes_per_s": "partial graphs per second of the whole time",
    "time_to_first_s": "time from cold start to the first complete depth limit with an operator",
}
# The same for random walks (--walk-seconds).
WALK_FIGURES = {
    "walk_operators": "distinct semantic keys that random walks to the full depth found",
    "walk_new": "those that the enumeration did not find",
    "walk_distinct_per_s": "walk_operators per second",
    "walk_coverage": "fraction of what such walks can find that was found",
    "walk_at_least": "lower bound for the number of operators, estimated from repetitions",
    "walk_structures": "estimate of the number of structures",
    "walk_structures_error": "its standard error",
}
# Number of operators that are sampled for the yield.
_SAMPLES = 300


@dataclass
class SynthesisRate:
    """An enumeration from a cold start.

    complete, total: seconds to the end of the last complete depth limit, and to the end; first:
    seconds to the end of the first limit with an operator, None if there is none; before_mb,
    peak_mb: peak memory of the process in MB before and after the enumeration.
    """

    space: Space
    complete: float
    total: float
    first: float | None
    before_mb: float
    peak_mb: float

    def figures(self) -> dict[str, object]:
        """Return the figures of FIGURES by name."""
        space, counts = self.space, self.space.counts()
        rejected = _rejected(space)
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
            "accepted_share": _share(structures, structures + rejected["complete"]),
            "duplicate_rate": _share(keys - distinct, keys),
            "leak_rate": _share(rejected["repeated"], structures),
            "rss_mb": round(self.peak_mb, 1),
            "rss_before_mb": round(self.before_mb, 1),
            "visited": counts["visited"],
            "nodes_per_s": round(counts["visited"] / self.total, 1),
            "time_to_first_s": None if self.first is None else round(self.first, 6),
        }

    def described(self, threads: int | None) -> dict[str, object]:
        """Return the specification, the machine and the versions."""
        # Imported after the enumeration, so that the database library does not count as its memory.
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
    """Records the times at which depth limits are completed."""

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
    """Enumerate operators for a given time.

    The rates are those of the last depth limit that was completed.
    """
    before = _peak_mb()
    watch = _Watch()
    # A new specification, without the cached results of the given one.
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
    sampled = space.sample(_SAMPLES)
    again = [Operator.from_text(one.text, space.specification) for one in sampled]
    return _share(sum(not one.refusals() for one in again), len(again))


def walk_figures(walked: WalkExtension) -> dict[str, object]:
    """Return the figures of WALK_FIGURES by name."""
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


# A quality condition that already rejects steps, before a graph is complete.
_OF_STEPS = "max_pooling"


def _rejected(space: Space) -> dict[str, int]:
    """Count the structures rejected by quality conditions or costs, and by repeated keys."""
    counts = {"complete": 0, "repeated": 0}
    names = {"quality": "complete", "costs": "complete", "repeated keys": "repeated"}
    for reason, count in space.rejections().items():
        name = names.get(_core.reason_info(reason)["group"])
        if name is not None and reason != _OF_STEPS:
            counts[name] += count
    return counts


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None
