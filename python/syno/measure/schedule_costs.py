"""The schedules that a kernel may have, and a model of what each costs.

The model counts the cycles of the micro-kernels, the filling of panels and what threads wait for
each other. It is corrected by what was measured: a linear regression of the logarithm of measured
over predicted times on the choices.
"""

from __future__ import annotations

import collections
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno.codegen.native import processor

# Cycles of a MAC until its result can be used, and how many begin in a cycle.
_LATENCY, _PORTS = 4, 2
# Cycles to write an element of a panel, and to begin a tile.
_FILL, _TILE = 0.25, 20.0
# By the size of what is read again, the cycles of a byte beyond those of the nearest cache.
_CACHES = ((1 << 15, 0.0), (1 << 19, 1 / 128), (math.inf, 1 / 32))
# What more accumulators than registers cost.
_SPILL = 2.0
# Nests with a smaller share of the MACs are left to the rules.
_LEAST_SHARE = 0.03
# Of the sizes of blocks, so many nearest to that of the rules are tried.
_MOST_BLOCKS = 8
# So many choices with the same tile are measured together.
_ALIKE = 2
# Of the regression: how much its coefficients are held at zero.
_RIDGE = 1.0

# Rows and columns of a tile, one of them in vectors. Those that do not fit into registers are left
# out.
_TILES = (
    *((2, 6), (3, 7), (4, 2), (4, 5), (4, 6), (5, 2), (5, 4), (5, 5), (6, 2), (6, 3), (6, 4)),
    *((7, 3), (8, 2), (8, 3), (9, 3), (10, 2), (12, 1), (12, 2), (13, 2), (14, 1), (14, 2)),
)
_TURNED_TILES = (
    *((1, 8), (1, 13), (1, 16), (2, 6), (2, 8), (2, 10), (2, 13), (2, 14), (3, 6), (3, 9)),
    *((4, 4), (4, 6)),
)

Choice = Mapping[str, str]


class Nest(TypedDict, total=False):
    """A nest of a plan as `_core.cpp_choices` describes it."""

    nest: int
    macs: int
    form: str
    forms: list[str]
    rows: int
    terms: int
    taps: int
    columns: int
    slices: int
    width: int
    block: int
    blocks: list[int]
    paired: bool
    can_pair: bool
    over_columns: bool
    in_place: bool


@dataclass(frozen=True)
class Machine:
    """What the model knows of a processor: floats of a vector, vector registers, threads."""

    lanes: int
    registers: int
    threads: int

    @classmethod
    def here(cls, threads: int) -> Machine:
        """This machine."""
        flags = processor()
        if "avx512f" in flags:
            return cls(16, 32, threads)
        if "avx" in flags:
            return cls(8, 16, threads)
        return cls(4, 32 if "asimd" in flags else 16, threads)


def nests_of(plan: _core.Plan) -> list[Nest]:
    """The nests of a plan that are worth tuning, those with the most MACs first."""
    found: list[Nest] = json.loads(_core.cpp_choices(plan))
    total = sum(nest["macs"] for nest in found) or 1
    worth = [n for n in found if len(n["forms"]) > 1 and n["macs"] >= _LEAST_SHARE * total]
    return sorted(worth, key=lambda nest: -nest["macs"])


def tuning_text(choices: Mapping[int, Choice]) -> str:
    """The choices of nests as `emit_cpp` reads them."""
    return "; ".join(
        f"{nest}: {' '.join(f'{name}={value}' for name, value in choice.items())}"
        for nest, choice in sorted(choices.items())
        if choice
    )


def choices_of(nest: Nest, machine: Machine) -> list[dict[str, str]]:
    """All choices for a nest, those of the rules as an empty one first."""
    found: list[dict[str, str]] = [{}]
    if nest["form"] == "product":
        found.append({"form": "rows"})
    for over, paired in itertools.product((True, False), (True, False)):
        if (over and not nest["over_columns"]) or (paired and not (over and nest["can_pair"])):
            continue
        for (rows, width), block, outside in itertools.product(
            _fitting(over, machine), _blocks(nest), ("rows", "columns")
        ):
            if paired and block not in ("whole", "") and int(block) % 2:
                continue
            choice = {"form": "product", "over": "columns" if over else "rows"}
            choice |= {"rows": str(rows), "width": str(width), "order": outside}
            choice |= {"block": block} if block else {}
            choice |= {"pairs": "on" if paired else "off"} if nest["can_pair"] else {}
            found.append(choice)
    return found


def _fitting(over_columns: bool, machine: Machine) -> Iterator[tuple[int, int]]:
    for rows, width in _TILES if over_columns else _TURNED_TILES:
        vectors = width if over_columns else rows
        if rows * width + vectors + 1 <= machine.registers:
            yield rows, width


def _blocks(nest: Nest) -> list[str]:
    possible = nest["blocks"]
    if not possible:
        return [""]
    near = nest["block"] or max(possible)
    nearest = sorted(possible, key=lambda size: abs(math.log(size / near)))[:_MOST_BLOCKS]
    return ["whole", *map(str, nearest)]


def predicted(nest: Nest, choice: Choice, machine: Machine) -> float:
    """Cycles of a nest as a matrix product, on the thread that takes longest."""
    over, paired = choice["over"] == "columns", choice.get("pairs") == "on"
    block = choice.get("block", "whole")
    height = max(1, nest["columns"] // nest["width"])
    size = height if block == "whole" else int(block)
    columns = (math.ceil(size / 2) if paired else size) * nest["width"]
    # Rows and columns in the units of a tile, one of them in vectors.
    tall, wide = nest["rows"], columns
    if over:
        wide = math.ceil(wide / machine.lanes)
    else:
        tall = math.ceil(tall / machine.lanes)
    down, across = math.ceil(tall / int(choice["rows"])), math.ceil(wide / int(choice["width"]))
    # Tiles are balanced: some have a column less.
    rows, width = math.ceil(tall / down), wide / across
    accumulators = rows * width
    step = max(accumulators, rows + width, _LATENCY * _PORTS) / _PORTS
    if accumulators + min(rows, width) + 1 > machine.registers:
        step *= _SPILL
    steps = nest["terms"] * (4 if paired else nest["taps"])
    tiles = down * across
    elements = nest["terms"] * nest["width"] * (size + nest["taps"] - 1)
    weights = nest["rows"] * steps
    # What is outside is read once, the other for each of its tiles.
    rows_outside = choice["order"] == "rows"
    again, times = (elements, down) if rows_outside else (weights, across)
    cycles = tiles * (steps * step + _TILE) + _read(4 * again) * (times - 1)
    filling = 0.0 if nest["in_place"] else _FILL * elements
    if block == "whole":
        most = math.ceil(nest["slices"] * tiles / machine.threads)
        return cycles / tiles * most + filling * nest["slices"] / machine.threads
    units = height // size * nest["slices"]
    return math.ceil(units / machine.threads) * (cycles + filling)


def _read(size: int) -> float:
    """Cycles more than from the nearest cache to read so many bytes."""
    return size * next(cycles for most, cycles in _CACHES if size <= most)


class CostModel:
    """Ranks the choices of a nest, and learns from times."""

    def __init__(self, nest: Nest, machine: Machine) -> None:
        self.choices = [
            choice for choice in choices_of(nest, machine) if choice.get("over") is not None
        ]
        names = sorted({f"{k}={v}" for choice in self.choices for k, v in choice.items()})
        self._places = {name: place for place, name in enumerate(names)}
        self._base = np.log([predicted(nest, choice, machine) for choice in self.choices])
        self._features = np.array([self._row(choice) for choice in self.choices])
        self._measured: dict[int, float] = {}

    def _row(self, choice: Choice) -> NDArray[np.float64]:
        row = np.zeros(len(self._places))
        for name, value in choice.items():
            row[self._places[f"{name}={value}"]] = 1.0
        return row

    def best(self, count: int) -> list[Choice]:
        """The choices that are expected to be the fastest of those that were not measured."""
        found: list[Choice] = []
        tiles: collections.Counter[tuple[str, ...]] = collections.Counter()
        for place in np.argsort(self.expected(), kind="stable"):
            if len(found) >= count:
                break
            choice = self.choices[place]
            tile = choice["over"], choice["rows"], choice["width"], choice.get("pairs", "")
            if int(place) not in self._measured and tiles[tile] < _ALIKE:
                tiles[tile] += 1
                found.append(choice)
        return found

    def learn(self, times: Sequence[tuple[Choice, float]]) -> None:
        """Take times, in any unit, of choices."""
        places = {tuple(choice.items()): place for place, choice in enumerate(self.choices)}
        for choice, seconds in times:
            place = places.get(tuple(choice.items()))
            if place is not None:
                self._measured[place] = math.log(seconds)

    def expected(self) -> NDArray[np.float64]:
        """Logarithms of the expected times of all choices, up to a constant."""
        if not self._measured:
            return self._base
        places = list(self._measured)
        found = np.array([self._measured[place] for place in places])
        rest = found - self._base[places]
        mean = rest.mean()
        given = self._features[places]
        square = given.T @ given + _RIDGE * np.eye(given.shape[1])
        weights = np.linalg.solve(square, given.T @ (rest - mean))
        corrected: NDArray[np.float64] = self._base + self._features @ weights
        return corrected
