"""Searches of one space by different methods side by side, and their best operators trained again.

    python bench/search_comparison.py --search surrogate.db --search uniform.db --final final.json \
        --out bench/results/search_cifar10.json --picture docs/images/search-cifar10.png

A search is a store whose latest study is compared; `--final` is what `syno train --json` printed
for operators that the searches chose and for rivals. An operator belongs to the searches that
trained it. A speed-up is the latency of the original network divided by that of the network with
the operator, both of one measurement.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

from syno.operators.summary import identity
from syno.runs.figures import load_matplotlib, save_figure
from syno.store import Store
from syno.store.environment import capture_environment
from syno.store.summary import StudySummary

_KEPT = ("model", "model_options", "data", "objectives", "seconds", "evaluations", "seed", "space")


def search(path: str) -> dict[str, Any]:
    """What the latest study of a store found, and when."""
    with Store.open(path, create=False, read_only=True) as store:
        summary = store.summary(None)
    started = next(_seconds(e.created) for e in summary.events if e.kind == "started")
    fidelity = summary.settings["fidelity"]
    return {
        "method": summary.settings["method"],
        "settings": {name: summary.settings.get(name) for name in _KEPT}
        | {"fidelity": fidelity["name"], "preset_limits": summary.study.specification},
        "operators": _operators(summary),
        "baseline": summary.quality(summary.baseline),
        "trials": len(summary.ended),
        "failed": sum(summary.quality(e) is None for e in summary.ended),
        "hypervolume": summary.hypervolume,
        "best": _best(summary),
        "seconds": [round(_seconds(e.finished) - started, 1) for e in summary.ended],
        "progress": [None if p is None else round(p, 5) for p in summary.progress],
        "results": [
            [_rounded(summary.quality(e)), _rounded(e.latency_ratio), e.macs, e.params]
            for e in summary.ended
        ],
        "front": sorted(identity(e.text or "") for e in summary.archive),
        "all": sorted(identity(e.text or "") for e in summary.ended),
        "device": summary.ended[0].environment.device if summary.ended else None,
    }


def _operators(summary: StudySummary) -> int | None:
    space = [e.data for e in summary.events if e.kind == "space"]
    return space[-1].get("operators") if space else None


def _best(summary: StudySummary) -> float | None:
    found = [q for e in summary.compared if (q := summary.quality(e)) is not None]
    if not found:
        return None
    return (max if summary.objective.is_share else min)(found)


def _seconds(moment: str) -> float:
    return datetime.datetime.fromisoformat(moment).timestamp()


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


def tested(paths: list[str]) -> dict[str | None, float]:
    """The accuracy on the test split by the id of the operator, from `syno report --final`."""
    found: dict[str | None, float] = {}
    for path in paths:
        with Store.open(path, create=False, read_only=True) as store:
            summary = store.summary(None)
        for each in summary.final:
            value = summary.quality(each)
            if value is not None:
                found[identity(each.text) if each.text else None] = value
    return found


def final(
    path: str, searches: list[dict[str, Any]], tests: dict[str | None, float]
) -> list[dict[str, Any]]:
    """The rows of `syno train --json`, each with the searches that trained its operator."""
    rows = []
    measure = "accuracy"
    for row in json.loads(Path(path).read_text())["results"]:
        measure = "loss" if "loss" in row else "accuracy"
        values = [seed[measure] for seed in row["seeds"] if seed["status"] == "ok"]
        ratios = [s["latency_ratio"] for s in row["seeds"] if s["latency_ratio"] is not None]
        owners = [s["method"] for s in searches if row["id"] in s["all"]]
        rows.append(
            {
                "name": row["id"][:8] if owners else row["name"] if row["id"] else "original",
                "from": owners or (["original"] if row["id"] is None else ["zoo"]),
                "values": values,
                "mean": statistics.fmean(values) if values else None,
                "deviation": statistics.stdev(values) if len(values) > 1 else None,
                "test": tests.get(row["id"]),
                "speedup": 1 / statistics.median(ratios) if ratios else None,
                "speedups": [1 / ratio for ratio in ratios],
                "macs": row["macs"],
                "params": row["params"],
            }
        )
    return rows


def picture(searches: list[dict[str, Any]], rows: list[dict[str, Any]], path: Path) -> None:
    """Draw all results of the searches, their progress, and the operators trained again."""
    load_matplotlib()
    from matplotlib.figure import Figure

    several = len(searches[0]["settings"]["objectives"] or []) > 1
    is_share = searches[0]["baseline"] is not None and searches[0]["baseline"] <= 1
    scale, unit = (100, "accuracy, %") if is_share else (1, "loss, nats a token")
    figure = Figure(figsize=(13.5, 4.3))
    points, progress, last = figure.subplots(1, 3)
    colors = {each["method"]: f"C{number}" for number, each in enumerate(searches)}
    for each in searches:
        name, color = each["method"], colors[each["method"]]
        good = [(1 / r, scale * q) for q, r, *_ in each["results"] if q is not None and r]
        points.scatter(*zip(*good, strict=True), s=9, alpha=0.6, color=color, label=name)
        progress.plot(
            [s / 60 for s in each["seconds"]],
            [None if p is None else p if several or is_share else -p for p in each["progress"]],
            color=color,
            label=f"{name}: {each['trials']} operators",
        )
    points.axhline(scale * searches[0]["baseline"], color="gray", linewidth=0.8, linestyle="--")
    points.set_title(f"every operator of the searches ({searches[0]['settings']['fidelity']})")
    progress.set_xlabel("minutes")
    progress.set_ylabel("hypervolume" if several else f"best {unit}")
    progress.set_title("progress")
    for row in rows:
        if row["mean"] is None or row["speedup"] is None:
            continue
        owner = row["from"][0]
        color = colors.get(owner, "black" if owner == "original" else "tab:green")
        marker = {"original": "*", "zoo": "s"}.get(owner, "o")
        last.errorbar(
            row["speedup"],
            scale * row["mean"],
            yerr=scale * (row["deviation"] or 0),
            color=color,
            marker=marker,
            capsize=2,
        )
        if owner in ("zoo", "original"):
            last.annotate(
                row["name"],
                (row["speedup"], scale * row["mean"]),
                textcoords="offset points",
                xytext=(5, 4),
                fontsize=7,
            )
    count = max((len(row["values"]) for row in rows), default=0)
    last.set_title(f"the best ones trained again ({count} seeds each)")
    for axes in (points, last):
        axes.set_xlabel("speed-up over the original network")
        axes.set_ylabel(f"validation {unit}")
    for axes in (points, progress, last):
        axes.grid(alpha=0.3)
    points.legend(loc="best")
    progress.legend(loc="best")
    figure.tight_layout()
    save_figure(figure, path)


def main() -> None:
    """Read the stores, write the comparison and draw it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--search", action="append", required=True, help="store of a search")
    parser.add_argument("--final", action="append", default=[], help="output of syno train --json")
    parser.add_argument(
        "--tested", action="append", default=[], help="store of syno report --final"
    )
    parser.add_argument("--fidelity", default="", help="how the operators of --final were trained")
    parser.add_argument("--out", required=True)
    parser.add_argument("--picture")
    given = parser.parse_args()
    searches = [search(path) for path in given.search]
    tests = tested(given.tested)
    rows = [row for path in given.final for row in final(path, searches, tests)]
    rows.sort(key=lambda row: (row["speedup"] or 0, row["name"]))
    for each in searches:
        del each["all"]
    content = {
        "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
        "searches": searches,
        "final": {"fidelity": given.fidelity, "rows": rows},
    }
    text = json.dumps(content, indent=1)
    # One line for each result.
    Path(given.out).write_text(_flat(text) + "\n")
    if given.picture:
        picture(searches, rows, Path(given.picture))
    print(f"wrote {given.out}", file=sys.stderr)


def _flat(text: str) -> str:
    """Put lists of numbers on one line."""
    return re.sub(r"\[[^\[\]{}\"]*\]", lambda found: " ".join(found.group().split()), text)


if __name__ == "__main__":
    main()
