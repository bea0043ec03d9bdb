"""The operators of the paper's artifact: against definitions in numpy, and against its table.

The table has the primitives from the output to the input, and the shapes of the weights. Operators
that are in the zoo under another name are compared with their definitions in test_zoo.py.
"""

from __future__ import annotations

import csv
import re
from fractions import Fraction
from functools import cache
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from syno.operators import zoo

from .test_zoo import DEFINITIONS as WELL_KNOWN
from .test_zoo import check_definition

ROWS = list(
    csv.DictReader((files("syno_lab.published") / "operators.csv").read_text("utf-8").splitlines())
)
# The step of an operator's text for each name of the table.
STEPS = {"R": "reduce", "Sp": "split", "M": "merge", "Sh": "shift", "U": "unfold", "C": "contract"}


def summed(x, out, sums, read, weights, factors):
    """y[n,o,h,w] = sum of x at `read` times the weights at `factors`, zero outside of x.

    read and factors get the indices as broadcastable arrays. read returns channel, row, column and
    whether the element is read at all; factors an index for each weight.
    """
    extents = {"n": x.shape[0], **out, **sums}
    grid = np.meshgrid(*map(np.arange, extents.values()), indexing="ij", sparse=True)
    v = SimpleNamespace(**dict(zip(extents, grid, strict=True)))
    channel, row, column, inside = read(v)
    size = x.shape[2]
    inside = inside & (row >= 0) & (row < size) & (column >= 0) & (column < size)
    values = np.where(inside, x[v.n, channel, row.clip(0, size - 1), column.clip(0, size - 1)], 0)
    for weight, factor in zip(weights, factors(v), strict=True):
        values = values * weight[factor]
    return np.broadcast_to(values, tuple(extents.values())).sum(tuple(range(4, len(extents))))


def definition(out, sums, read, factors):
    """A function of x and the weights as tensors."""
    o, size = out
    extents = {"o": o, "h": size, "w": size}

    def compute(x, *weights):
        arrays = [weight.numpy() for weight in weights]
        return torch.from_numpy(summed(x.numpy(), extents, sums, read, arrays, factors))

    return compute


def turned(v):
    """Row and remainder of the position h*2+q, turned by one among 2*H positions; H is 5 or 10."""
    t = (v.h * 2 + v.q + 1) % (2 * max(v.h.shape))
    return t // 2, t % 2


def next_(i):
    """The position behind i, and the first behind the last."""
    return (i + 1) % max(i.shape)


def bounded(i, size=5):
    """Where a window's position is inside of the map, and what a cyclic shift makes of it."""
    return (i >= 0) & (i < size), (i + 1) % size


ALL = np.True_


def three_weights_of_rows(v):
    return [(v.o, v.c, v.a, v.b)]


def read_07773(v):
    row, p = turned(v)
    return v.c * 2 + p, row + v.a - 1, next_(v.w) + v.b - 1, ALL


def read_07802(v):
    row, p = turned(v)
    inside, row = bounded(row + v.a - 1)
    return v.c * 2 + p, row, v.w + v.b - 1, inside


def read_07826(v):
    row, p = turned(v)
    return v.c * 2 + p, row + v.a - 1, v.w + v.b - 1, ALL


def read_07750(v):
    row, p = turned(v)
    inside, column = bounded(v.w + v.a - 1)
    return v.c * 2 + p, row, column, inside


def read_grouped(*, turn_columns):
    """Rows bounded and turned; columns too if asked for. Groups are g = 2 of four channels."""

    def read(v):
        inside, row = bounded(v.h + v.a - 1)
        column = v.w + v.q - 1
        if turn_columns:
            within, column = bounded(column)
            inside = inside & within
        return v.G * 4 + v.r, row, column, inside

    return read


def grouped_factors(v):
    return [(v.o, v.a, v.q, v.G, v.c), (v.c, v.q, v.G * 4 + v.r)]


def dense(read):
    """One of DenseNet-121: the quotient of C_out and g is 1, so o is its remainder."""
    return (
        definition((32, 5), {"i": 4, "a": 3}, read, lambda v: [(v.o, v.i, v.a)]),
        [(32, 4, 3)],
    )


def halves(read, *, c_in, c_out, size=5, window=3):
    """Channels whose remainders by two agree, and a window: the weight has half of each."""
    sums = {"i": c_in // 2, "a": window}
    return (
        definition((c_out, size), sums, read, lambda v: [(v.o // 2, v.i, v.a)]),
        [(c_out // 2, c_in // 2, window)],
    )


def read_halves(v):
    inside, column = bounded(v.w + v.a - 1)
    return v.i * 2 + v.o % 2, next_(v.h), column, inside


RESNET = {"c": 2, "q": 2}
GROUPS = {"G": 2, "a": 3, "q": 3, "c": 3, "r": 4}
PARTS = {"i": 2, "t": 4, "a": 3, "b": 3}  # of ResNeXt-29 with g = s = 2 and C_in = 8
ROW_WINDOW = [(6, 2, 3, 3)]
GROUPED = [(12, 3, 3, 2, 3), (3, 3, 8)]


def read_parts(v):
    return v.i * 4 + v.t, v.h + v.a - 1, v.w + v.b - 1, ALL


def read_07897(v):
    return v.i * 4 + v.t, next_(v.h) + v.a - 1, v.w + v.b - 1, ALL


def read_07947(v):
    return v.i * 4 + v.t, v.h + v.a - 1, next_(v.w) + v.b - 1, ALL


def read_07931(v):
    inside, column = bounded(v.w + v.b - 1)
    return (v.i * 2 + v.j) * 2 + v.o % 2, next_(v.h) + v.a - 1, column, inside


def row_of_stride(v, *, turn=False):
    """Row h of a window over the rows with the same remainder by two, and whether it is inside."""
    place = v.h // 2 + v.a - 1
    inside = (place >= 0) & (place < 5)
    return ((place + 1) % 5 if turn else place) * 2 + v.h % 2, inside


def read_08006(v):
    row, inside = row_of_stride(v, turn=True)
    return v.i, row, next_(v.w), inside


def read_08003(v):
    row, inside = row_of_stride(v)
    return v.i, row, v.w, inside


def read_07984_2(v):
    row, inside = row_of_stride(v)
    return v.i, row, next_(v.w), inside


def read_08001(v):
    return v.i, turned(v)[0], v.w + v.b - 4, ALL


def read_08064(v):
    inside, row = bounded(v.h + v.a - 1, 10)
    return v.i * 2 + v.j, row, v.w + v.b - 3, inside


def read_08048(v):
    inside, column = bounded(v.w + v.a - 3, 10)
    return v.i * 2 + v.o % 2, next_(v.h), column, inside


# Of each operator: its definition, and the shapes of the weights that the definition takes.
DEFINITIONS = {
    "operator-07747": (
        definition(
            (6, 5),
            {"i": 4, "a": 3, "q": 2},
            lambda v: (v.i, turned(v)[0], next_(v.w) + v.a - 1, ALL),
            lambda v: [(v.o, turned(v)[1]), (v.o, v.i, v.a)],
        ),
        [(6, 2), (6, 4, 3)],
    ),
    "operator-07750": (
        definition((6, 5), RESNET | {"a": 3}, read_07750, lambda v: [(v.o, v.c, v.q, v.a)]),
        [(6, 2, 2, 3)],
    ),
    "operator-07773": (
        definition((6, 5), RESNET | {"a": 3, "b": 3}, read_07773, three_weights_of_rows),
        ROW_WINDOW,
    ),
    "operator-07802": (
        definition((6, 5), RESNET | {"a": 3, "b": 3}, read_07802, three_weights_of_rows),
        ROW_WINDOW,
    ),
    "operator-07826": (
        definition((6, 5), RESNET | {"a": 3, "b": 3}, read_07826, three_weights_of_rows),
        ROW_WINDOW,
    ),
    "operator-07835": (
        definition((12, 5), GROUPS, read_grouped(turn_columns=True), grouped_factors),
        GROUPED,
    ),
    "operator-07883": (
        definition((12, 5), GROUPS, read_grouped(turn_columns=False), grouped_factors),
        GROUPED,
    ),
    "operator-07961": dense(lambda v: (v.i, next_(v.h), v.w + v.a - 1, ALL)),
    "operator-07963": halves(read_halves, c_in=4, c_out=32),
    "operator-07964": dense(lambda v: (v.i, next_(v.h) + v.a - 1, next_(v.w), ALL)),
    "operator-07966": (
        definition(
            (32, 5),
            {"i": 2, "j": 2, "a": 3},
            lambda v: (v.i * 2 + v.j, next_(v.h), v.w + v.a - 1, ALL),
            lambda v: [(v.o, v.i, v.a)],
        ),
        [(32, 2, 3)],
    ),
    "operator-07994": dense(
        lambda v: (v.i, next_(v.h), *bounded(v.w + v.a - 1)[::-1]),
    ),
    "operator-08016": halves(read_halves, c_in=4, c_out=32),
    "operator-07897": (
        definition(
            (6, 5), PARTS, read_07897, lambda v: [(v.i, v.a, v.b, v.o % 2), (v.t, v.o // 2)]
        ),
        [(2, 3, 3, 2), (4, 3)],
    ),
    "operator-07914": halves(read_halves, c_in=8, c_out=6),
    "operator-07931": (
        definition(
            (6, 5),
            {"i": 2, "j": 2, "a": 3, "b": 3},
            read_07931,
            lambda v: [(v.i, v.a, v.b, v.o // 2, v.o % 2)],
        ),
        [(2, 3, 3, 3, 2)],
    ),
    "operator-07947": (
        definition(
            (6, 5), PARTS, read_07947, lambda v: [(v.i, v.b, v.o % 2), (v.t, v.a, v.o // 2)]
        ),
        [(2, 3, 2), (4, 3, 3)],
    ),
    "operator-07970": (
        definition(
            (6, 5), PARTS, read_parts, lambda v: [(v.i, v.a, v.b, v.o % 2), (v.t, v.a, v.o // 2)]
        ),
        [(2, 3, 3, 2), (4, 3, 3)],
    ),
    "operator-07971": (
        definition(
            (6, 10),
            {"i": 4, "q": 2, "c": 18},
            lambda v: (v.i, turned(v)[0], v.w, ALL),
            lambda v: [(v.o, v.q, v.c), (v.i, turned(v)[1], v.c)],
        ),
        [(6, 2, 18), (4, 2, 18)],
    ),
    "operator-07984": (
        definition(
            (6, 10),
            {"i": 2, "c": 9},
            lambda v: (v.i * 2 + v.o % 2, v.h, v.w, ALL),
            lambda v: [(v.o // 2, v.c), (v.i * 2 + v.o % 2, v.c)],
        ),
        [(3, 9), (4, 9)],
    ),
    "operator-07984-2": (
        definition(
            (6, 10),
            {"i": 4, "a": 3, "c": 14},
            read_07984_2,
            lambda v: [(v.o, v.a, v.c), (v.i, v.c)],
        ),
        [(6, 3, 14), (4, 14)],
    ),
    "operator-08001": (
        definition(
            (6, 10),
            {"i": 4, "q": 2, "b": 9, "c": 14},
            read_08001,
            lambda v: [(v.o, v.b, v.c), (v.i, turned(v)[1], v.c)],
        ),
        [(6, 9, 14), (4, 2, 14)],
    ),
    "operator-08003": (
        definition((6, 10), {"i": 4, "a": 3}, read_08003, lambda v: [(v.o, v.i, v.a)]),
        [(6, 4, 3)],
    ),
    "operator-08006": (
        definition((6, 10), {"i": 4, "a": 3}, read_08006, lambda v: [(v.o, v.i, v.a)]),
        [(6, 4, 3)],
    ),
    "operator-08010": (
        definition(
            (6, 10),
            {"i": 2, "a": 7, "c": 9},
            lambda v: (v.i * 2 + v.o % 2, next_(v.h), v.w + v.a - 3, ALL),
            lambda v: [(v.o // 2, v.c), (v.i, v.a, v.c)],
        ),
        [(3, 9), (2, 7, 9)],
    ),
    "operator-08048": (
        definition(
            (6, 10),
            {"i": 2, "a": 7, "c": 9},
            read_08048,
            lambda v: [(v.o // 2, v.a, v.c), (v.i, v.c)],
        ),
        [(3, 7, 9), (2, 9)],
    ),
    "operator-08064": (
        definition(
            (6, 10),
            {"i": 2, "j": 2, "a": 3, "b": 7, "c": 21},
            read_08064,
            lambda v: [(v.o, v.a, v.c), (v.i, v.b, v.c)],
        ),
        [(6, 3, 21), (2, 7, 21)],
    ),
    "operator-08072": halves(
        lambda v: (v.i * 2 + v.o % 2, next_(v.h), v.w + v.a - 3, ALL),
        c_in=4,
        c_out=6,
        size=10,
        window=7,
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_operator_is_its_definition(name):
    check_definition(name, *DEFINITIONS[name])


@cache
def named() -> dict[tuple[str, str, str], str]:
    """The name for each description of the table; a second one of a number ends in -2."""
    found: dict[tuple[str, str, str], str] = {}
    for row in ROWS:
        described = row["operator"], row["primitives_output_to_input"], row["weights"]
        if described not in found:
            name = f"operator-{row['operator']}"
            found[described] = f"{name}-2" if name in found.values() else name
    return found


def test_every_published_operator_has_a_name_and_a_definition():
    assert sorted(named().values()) == zoo.published_names()
    assert len({number for number, _, _ in named()}) == 32
    elsewhere = {"operator-07754", "operator-07889"} | set(WELL_KNOWN)
    assert sorted(set(zoo.published_names()) - elsewhere) == sorted(DEFINITIONS)
    assert zoo.load("operator-07889") == zoo.load("operator-1")
    assert zoo.load("operator-07754") == zoo.load("operator-2")


def test_published_operators_differ_where_their_numbers_do():
    keys = {name: zoo.load(name).key for name in zoo.published_names()}
    assert len(set(keys.values())) == len(keys)


# Under these sizes each of the table's sizes is another number.
SIZES = {"N": 1, "C_in": 1100, "C_out": 1300, "H": 60, "k": 3, "k_2": 7, "s": 2, "g": 5}


def number(size: str) -> int:
    """A size of the table under SIZES."""
    value = Fraction(1)
    for factor in size.split("*"):
        name, _, power = factor.strip().partition("^")
        value *= Fraction(SIZES["k" if name == "k_1" else name]) ** int(power or 1)
    assert value.denominator == 1
    return int(value)


def steps_of(text: str) -> list[tuple[str, set[str], set[str]]]:
    """Of each step: its kind, and the coordinates that it takes and makes."""
    found = []
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind in STEPS.values():
            before, _, after = rest.partition("->")
            taken = {name.partition(":")[0] for name in before.split()}
            found.append(
                (kind, {t for t in taken if re.fullmatch(r"[orc]\d+", t)}, {*after.split()})
            )
    return found


def can_run_in(order: list[str], steps: list[tuple[str, set[str], set[str]]]) -> bool:
    """Whether the steps can stand in an order of kinds, each behind those that it needs."""

    @cache
    def ends(done: frozenset[int]) -> bool:
        if len(done) == len(steps):
            return True
        for i, (kind, taken, _) in enumerate(steps):
            if i in done or kind != order[len(done)]:
                continue
            # What a step needs: the makers of its coordinates, and earlier readers of them.
            before = {
                j
                for j, (_, others, made) in enumerate(steps)
                if made & taken or (j < i and others & taken)
            }
            if before <= done and ends(done | {i}):
                return True
        return False

    return len(order) == len(steps) and ends(frozenset())


@pytest.mark.parametrize("described", named(), ids=lambda each: each[0])
def test_primitives_and_weights_are_those_of_the_table(described):
    _, primitives, weights = described
    operator = zoo.load(named()[described])
    order = [STEPS[each] for each in primitives.split() if each != "F"]
    assert can_run_in(order, steps_of(operator.text))
    shapes = [
        sorted(number(size) for size in each.split(","))
        for each in re.findall(r"\[(.*?)\]", weights)
    ]
    binding = {name: SIZES[name] for name in operator.variables}
    assert sorted(sorted(each) for each in operator.weight_shapes(binding)) == sorted(shapes)


def test_an_order_in_which_a_step_comes_too_early_is_noticed():
    steps = steps_of(zoo.load("operator-07750").text)
    assert can_run_in(
        [STEPS[p] for p in ["R", "R", "R", "C", "Sp", "U", "Sh", "Sh", "M", "Sp"]], steps
    )
    assert not can_run_in(
        [STEPS[p] for p in ["R", "R", "R", "C", "M", "U", "Sh", "Sh", "Sp", "Sp"]], steps
    )
