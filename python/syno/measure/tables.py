"""Measurements as tables of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.tables import Table

if TYPE_CHECKING:
    from syno.measure.layer_costs import LayerCosts
    from syno.measure.roofline import Roofline


def layers_table(layers: Sequence[LayerCosts]) -> Table:
    """Return a table of the costs of an operator in each layer."""
    return Table.of(
        layers,
        ("layer~", lambda layer: " ".join(f"{k}={v}" for k, v in layer["binding"].items())),
        ("times>", lambda layer: str(layer["multiplicity"])),
        ("MACs>", lambda layer: fmt.count(layer["macs"]) if _fits(layer) else "does not fit"),
        ("params>", lambda layer: fmt.count(layer["params"]) if _fits(layer) else ""),
        (
            "weights~",
            lambda layer: "  ".join("x".join(map(str, s)) for s in layer.get("weights", ())),
        ),
    )


def _fits(layer: LayerCosts) -> bool:
    return "does_not_fit" not in layer


def plans_table(layer: LayerCosts) -> Table:
    """Return a table of the costs and times of the plans of a layer."""
    measured = layer["measured"]

    def time(name: str) -> Callable[[tuple[int, LayerCosts]], str]:
        unit = "x" if name == "speedup" else ""
        places = 2 if name == "speedup" else 3

        def shown(row: tuple[int, LayerCosts]) -> str:
            times = row[1]["measured"]
            return "" if times is None else f"{times[name]:.{places}f}{unit}"

        return shown

    def remark(row: tuple[int, LayerCosts]) -> str:
        number, times = row[0], row[1]["measured"]
        if times is None:
            return "exceeds the memory for a measurement"
        if times["same_as"] is not None:
            return f"same code as plan {times['same_as']}"
        return "selected" if number == measured["number"] else ""

    return Table.of(
        enumerate(layer["plans"], 1),
        ("plan>", lambda row: str(row[0])),
        ("MACs>", lambda row: fmt.count(row[1]["macs"])),
        ("bytes moved>", lambda row: fmt.count(row[1]["bytes_moved"])),
        ("median ms>", time("median_ms")),
        ("best ms>", time("best_ms")),
        ("over plan 1>", time("speedup")),
        ("", remark),
    )


def roofline_table(measured: Sequence[Roofline]) -> Table:
    """Return a table of the peak throughput and bandwidths by number of threads."""
    return Table.of(
        measured,
        ("threads>", lambda m: str(m.threads)),
        ("GFLOP/s>", lambda m: f"{m.flops / 1e9:,.0f}"),
        *(
            (f"GB/s in {level.bytes >> 10:,} KiB>", _bandwidth(index))
            for index, level in enumerate(measured[0].levels)
        ),
    )


def _bandwidth(level: int) -> Callable[[Roofline], str]:
    return lambda measured: f"{measured.levels[level].bytes_per_s / 1e9:,.0f}"


def selection_in_words(measured: LayerCosts) -> str:
    """Describe the selected plan of a layer."""
    count = measured["threads"]
    return (
        f"Plan {measured['number']} is selected: {measured['emitter']}, {count} "
        f"thread{'' if count == 1 else 's'}"
        + (", measured earlier" if measured["from_cache"] else "")
        + (f" {fmt.NOISY}" if measured["noisy"] else "")
    )
