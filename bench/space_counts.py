"""Counts of enumerated spaces that docs/search.md prints: no times, the same on every machine.

    python bench/space_counts.py --out bench/results/space_counts.json

`deepening` enumerates as `syno enumerate` does, with every smaller depth limit first; so do the
presets. The other parts enumerate once, under one depth limit. A quarter of an hour on one core.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from syno import Space, Specification, _core
from syno.space.rules import rule_set
from syno.store.environment import capture_environment

PRESET = "paper/resnet18"
# Limits that are wider than the preset's, with the depths at which they are counted.
WIDER: tuple[tuple[str, dict[str, Any], tuple[int, ...]], ...] = (
    ("as it is", {}, (8, 9)),
    ("max_merges=2", {"max_merges": 2}, (8,)),
    ("element_wise_weights", {"element_wise_weights": True}, (8,)),
    ("max_weights=3", {"max_weights": 3}, (8,)),
)
# Presets whose bindings come from a network get these.
BINDINGS = {
    "paper/resnext29_2x64d": (
        "C_in=128,C_out=128,H=32",
        "C_in=256,C_out=256,H=16",
        "C_in=512,C_out=512,H=8",
    ),
    "paper/gcn": ("N=100,H_in=30,H_out=60",),
    "paper/readme": ("H=36,W=24",),
}
DEPTHS = {
    "paper/resnet18": 8,
    "paper/resnet34": 8,
    "paper/resnext29_2x64d": 6,
    "paper/efficientnet_v2_s": 6,
    "paper/densenet121": 6,
    "paper/gpt2": 5,
    "paper/vit": 6,
    "paper/gcn": 7,
    "paper/readme": 8,
}
MACS_SHARES = (1.0, 0.3, 0.1)
_MOST = 100_000_000


def listed(specification: Specification, depth: int, *, first: int = 1) -> Any:
    """The space of at most `depth` primitives, by depth limits from `first` on."""
    space = _core.enumerate_space(
        specification._core,
        rule_set(()),
        max_depth=depth,
        max_nodes=_MOST,
        threads=1,
        first_depth=first,
    )
    if not space.complete_depth == depth:
        raise SystemExit(f"the enumeration ended at depth {space.complete_depth} of {depth}")
    return space


def counts(space: Any) -> dict[str, int]:
    """visited counts partial graphs over all depth limits, partial_graphs those of the last."""
    return {
        "visited": space.visited,
        "partial_graphs": space.node_count,
        "graphs": space.graph_count,
        "structures": space.structures,
        "operators": len(space),
    }


def deepening(depth: int) -> dict[str, Any]:
    """Every limit up to `depth`, and what the last one holds."""
    space = Space.enumerate(Specification.preset(PRESET), depth=depth, max_nodes=_MOST, threads=1)
    return {
        "depth": depth,
        **space.counts(),
        "complete_depth": space.complete_depth,
        "by_depth": space.by_depth(),
        "by_primitives": space.by_primitives(),
        "signature": space.signature(),
    }


def with_macs_bound(depth: int) -> list[dict[str, Any]]:
    """Partial graphs with the bound on MACs, and without it, which is without `max_macs`."""
    whole = Specification.preset(PRESET)
    most = whole.limits["max_macs"]
    free = listed(Specification.preset(PRESET, max_macs=0), depth, first=depth)
    rows = []
    for share in MACS_SHARES:
        changes: dict[str, Any] = {} if share == 1 else {"max_macs": round(share * most)}
        changes |= {} if share == 1 else {"min_macs": 0}
        found = listed(Specification.preset(PRESET, **changes), depth, first=depth)
        rows.append(
            {"depth": depth, "share": share, "without": free.visited, "with": found.visited}
            | {"operators": len(found)}
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    found: dict[str, Any] = {"what": "python bench/space_counts.py", "preset": PRESET}
    found["deepening"] = [told(f"deepening {depth}", deepening(depth)) for depth in (7, 8, 9, 12)]
    found["macs_bound"] = [
        told(f"macs bound {row['share']}", row)
        for depth in (7, 8)
        for row in with_macs_bound(depth)
    ]
    found["wider"] = [
        told(name, {"setting": name, "depth": depth} | counts(wide(changes, depth)))
        for name, changes, depths in WIDER
        for depth in depths
    ]
    found["presets"] = [
        told(name, {"preset": name, "depth": depth} | counts(listed(preset(name), depth)))
        for name, depth in DEPTHS.items()
    ]
    here = dataclasses.asdict(capture_environment(threads=1, rules=rule_set(()).version))
    out.write_text(json.dumps(found | {"environment": here}, indent=1) + "\n", encoding="utf-8")
    return 0


def wide(changes: dict[str, Any], depth: int) -> Any:
    return listed(Specification.preset(PRESET, **changes), depth, first=depth)


def preset(name: str) -> Specification:
    changes: dict[str, Any] = {"bindings": BINDINGS[name]} if name in BINDINGS else {}
    return Specification.preset(name, **changes)


def told(what: str, value: dict[str, Any]) -> dict[str, Any]:
    print(what, {k: v for k, v in value.items() if isinstance(v, int)}, file=sys.stderr, flush=True)
    return value


if __name__ == "__main__":
    sys.exit(main())
