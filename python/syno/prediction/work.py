"""What a compiled operator does, as additive amounts: the input of a model of its latency.

An amount is in seconds at the peak rate of a device, so that amounts of several kernels, and of
several layers of a network, are added, and a model that is fitted on one device is a start for the
next. The emitter's schedule (`_core.cpp_phases`) says what each phase of a kernel does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno.operators.operator import Operator
from syno.prediction.device import Device

# What takes time, in seconds at the peak rate of the device.
RESOURCES: Mapping[str, str] = {
    "product": "multiply-adds of matrix products, in whole vectors",
    "product_loads": "loads of matrix products, by the tiles that fit into registers",
    "product_tiles": "starts and ends of tiles of matrix products",
    "multiply": "multiply-adds of loops over rows, in whole vectors",
    "plain": "loads of neighbouring elements",
    "splat": "loads of one element for all lanes",
    "partial": "loads of neighbouring elements that are masked or rotated",
    "strided": "loads of lanes a stride apart, one by one",
    "scattered": "loads of lanes that are anywhere, one by one",
    "rows": "starts of rows and stores of their results",
    "tests": "tests and index arithmetic with quotients",
    "memory": "bytes that phases read and write, at the bandwidth of their working set",
    "weights": "bytes of weights, at the bandwidth of their size",
    "phases": "phases, at 1 us each",
    "calls": "calls, at 1 us each",
}
# Sums that describe the kernels, weighted by MACs or by steps of loops.
_SUMS = (
    "floor", "macs", "product_macs", "log_rows", "log_columns", "log_terms", "log_taps",
    "log_slices", "log_panel", "in_place", "paired", "over_columns", "private", "loop_steps",
    "log_count", "log_lane", "log_tile", "log_sums", "log_inner", "lane_use", "conditions",
    "divisions", "panel_steps", "set", "kernels", "batch",
)  # fmt: skip
AMOUNTS: tuple[str, ...] = (*RESOURCES, *_SUMS)
_PLACE = {name: place for place, name in enumerate(AMOUNTS)}
# Rows and vectors of a tile of a product, about as the runtime chooses them.
_TILE_ROWS, _TILE_VECTORS = 8, 3
_MICROSECOND = 1e-6

Array = NDArray[np.float64]


class _Operand(TypedDict):
    elements: int
    read: int
    lanes: str
    in_tile: bool
    in_inner: bool
    from_weights: bool
    conditions: int
    divisions: int


class _Loops(TypedDict):
    count: int
    lane: int
    tile: int
    sums: int
    inner: int
    macs: int
    operands: list[_Operand]


class _Product(TypedDict):
    rows: int
    columns: int
    terms: int
    taps: int
    slices: int
    width: int
    blocks: int
    panel: int
    paired: bool
    in_place: bool
    over_columns: bool
    private: bool


class _Phase(TypedDict):
    stored: int
    product: _Product | None
    loops: _Loops | None


class _Kernel(TypedDict):
    batch: int
    input: int
    output: int
    weights: int
    phases: list[_Phase]


@dataclass(frozen=True)
class Work:
    """Amounts in the order of `AMOUNTS`. Works of kernels that run one after another are added."""

    amounts: tuple[float, ...]

    def __add__(self, other: Work) -> Work:
        return Work(tuple(a + b for a, b in zip(self.amounts, other.amounts, strict=True)))

    def __mul__(self, count: float) -> Work:
        return Work(tuple(count * a for a in self.amounts))

    def __getitem__(self, name: str) -> float:
        return self.amounts[_PLACE[name]]

    @property
    def floor(self) -> float:
        """The roofline: seconds that no kernel with these MACs and bytes can be below."""
        return self["floor"]

    @property
    def resources(self) -> Array:
        """The amounts of `RESOURCES`."""
        return np.array(self.amounts[: len(RESOURCES)])


def no_work() -> Work:
    """Return the work of nothing."""
    return Work((0.0,) * len(AMOUNTS))


def kernel_work(operator: Operator, binding: Mapping[str, int] | str, device: Device) -> Work:
    """Return the work of an operator as compiled C++, with its cheapest plan.

    Args:
        operator: the operator.
        binding: values of its variables.
        device: where it runs.

    Raises:
        UserError: the operator does not fit the binding.
    """
    plan = operator.numbered_plan(binding, 1)
    kernel = cast(_Kernel, json.loads(_core.cpp_phases(plan)))
    found = _Sum(device)
    for phase in kernel["phases"]:
        found.add_phase(phase)
    batch = kernel["batch"]
    found.amounts = {name: batch * value for name, value in found.amounts.items()}
    moved = 4 * (batch * (kernel["input"] + kernel["output"]) + kernel["weights"])
    roofline = device.roofline
    found.amounts["weights"] = 4 * kernel["weights"] / roofline.bandwidth(4 * kernel["weights"])
    found.amounts["phases"] = _MICROSECOND * len(kernel["phases"])
    found.amounts["calls"] = _MICROSECOND
    found.amounts["floor"] = roofline.floor(plan.macs, moved)
    found.amounts["macs"] = float(plan.macs)
    found.amounts["set"] = math.log(moved)
    found.amounts["kernels"] = 1.0
    found.amounts["batch"] = math.log(batch)
    return Work(tuple(found.amounts.get(name, 0.0) for name in AMOUNTS))


class _Sum:
    """The amounts of the phases of one image."""

    def __init__(self, device: Device) -> None:
        self._lanes = device.lanes
        # Seconds of a vector multiply-add, of which a lane is two FLOP.
        self._step = 2 * device.lanes / device.roofline.flops
        self._device = device
        self.amounts: dict[str, float] = {}

    def add(self, name: str, value: float) -> None:
        """Add to an amount."""
        self.amounts[name] = self.amounts.get(name, 0.0) + value

    def add_phase(self, phase: _Phase) -> None:
        """Add a phase."""
        elements = phase["stored"]
        if phase["product"] is not None:
            self._add_product(phase["product"])
            elements += 2 * phase["product"]["panel"]
        if phase["loops"] is not None:
            self._add_loops(phase["loops"], is_panel=phase["product"] is not None)
            elements += sum(
                min(each["read"], each["elements"])
                for each in phase["loops"]["operands"]
                if not each["from_weights"]
            )
        moved = 4 * elements
        self.add("memory", moved / self._device.roofline.bandwidth(moved))

    def _add_product(self, product: _Product) -> None:
        rows, columns = product["rows"], product["columns"]
        terms = product["terms"] * product["taps"]
        # Vectors lie over one of the two.
        along, across = (columns, rows) if product["over_columns"] else (rows, columns)
        vectors = math.ceil(along / self._lanes)
        tile, beside = min(across, _TILE_ROWS), min(vectors, _TILE_VECTORS)
        steps = float(product["slices"] * terms * across * vectors)
        share = 2 / 3 if product["paired"] else 1.0
        self.add("product", steps * share * self._step)
        self.add("product_loads", steps * share * (1 / tile + 1 / beside) * self._step)
        tiles = product["slices"] * math.ceil(across / tile) * math.ceil(vectors / beside)
        self.add("product_tiles", tiles * tile * beside * self._step)
        macs = float(product["slices"] * rows * columns * terms)
        self.add("product_macs", macs)
        for name, value in (
            ("log_rows", math.log(rows)),
            ("log_columns", math.log(columns)),
            ("log_terms", math.log(product["terms"])),
            ("log_taps", math.log(product["taps"])),
            ("log_slices", math.log(product["slices"])),
            ("log_panel", math.log1p(product["panel"])),
            ("in_place", float(product["in_place"])),
            ("paired", float(product["paired"])),
            ("over_columns", float(product["over_columns"])),
            ("private", float(product["private"])),
        ):
            self.add(name, macs * value)

    def _add_loops(self, loops: _Loops, *, is_panel: bool) -> None:
        lane, tile = loops["lane"], loops["tile"]
        vectors = math.ceil(lane / self._lanes)
        rows = float(loops["count"] * vectors)
        outer, inner = rows * loops["sums"], rows * loops["sums"] * loops["inner"]
        self.add("rows", rows * tile * self._step)
        total = 0.0
        for operand in loops["operands"]:
            count = inner if operand["in_inner"] else outer
            count *= tile if operand["in_tile"] else 1
            total += count
            kind = "splat" if operand["lanes"] == "none" else operand["lanes"]
            lanes = min(lane, self._lanes) if kind in ("strided", "scattered") else 1
            self.add(kind, count * lanes * self._step)
            tests = operand["conditions"] + operand["divisions"]
            self.add("tests", (count if operand["in_inner"] else outer) * tests * self._step)
            self.add("conditions", count * operand["conditions"])
            self.add("divisions", count * operand["divisions"])
        if loops["macs"]:
            self.add("multiply", (outer * tile + (inner if inner > outer else 0.0)) * self._step)
        self.add("loop_steps", total)
        self.add("panel_steps", total if is_panel else 0.0)
        for name, value in (
            ("log_count", math.log(loops["count"])),
            ("log_lane", math.log(lane)),
            ("log_tile", math.log(tile)),
            ("log_sums", math.log(loops["sums"])),
            ("log_inner", math.log(loops["inner"])),
            ("lane_use", lane / (vectors * self._lanes)),
        ):
            self.add(name, total * value)


def described(work: Work) -> dict[str, float]:
    """Return the amounts by name."""
    return dict(zip(AMOUNTS, work.amounts, strict=True))
