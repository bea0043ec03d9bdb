"""Options as dataclasses: their checks, what they refuse, and what names a group of them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import syno
from syno import _core
from syno._util.options import Options, grouped, memory_size, option
from syno.network.sampler import MAX_NODES
from syno.space.options import TRIAL_BUDGETS, WALK_BUDGETS


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (syno.SpaceOptions, {"max_nodes": 0}, "'max_nodes' is an integer of at least 1, got 0"),
        (syno.SpaceOptions, {"max_nodes": True}, "'max_nodes' is an integer"),
        (syno.SpaceOptions, {"rules_off": "R6a"}, "'rules_off' is no list"),
        (syno.TrainOptions, {"max_slowdown": 0.0}, "'max_slowdown' is a number above 0, got 0"),
        (syno.TrainOptions, {"max_slowdown": math.nan}, "'max_slowdown' is a number above 0"),
        (syno.TrainOptions, {"deadline_s": "1 h"}, "'deadline_s' is a number, got '1 h'"),
        (syno.TrainOptions, {"tokenizer": "words"}, "'tokenizer' is one of bytes, byte-pair"),
        (syno.TimingOptions, {"repeats": 3}, "'repeats' is an integer of at least 20, got 3"),
        (syno.IsolationOptions, {"isolate": 1}, "'isolate' is True or False"),
        (syno.IsolationOptions, {"memory_limit": 0}, "'memory_limit' is an integer of at least 1"),
        (syno.IsolationOptions, {"max_attempts": 0}, "'max_attempts' is an integer of at least 1"),
    ],
)
def test_a_value_out_of_its_range_is_a_mistake(
    kind: type[Options], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(syno.UserError, match=message):
        kind(**given)


def test_values_have_their_type_afterwards() -> None:
    space = syno.SpaceOptions(max_nodes=np.int64(7), rules_off=["R6a"])
    assert (space.max_nodes, type(space.max_nodes)) == (7, int)
    assert space.rules_off == ("R6a",)
    assert syno.TrainOptions(max_slowdown=2).max_slowdown == 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        space.max_nodes = 3  # type: ignore[misc]


def test_budgets_have_the_defaults_of_c() -> None:
    (nodes,) = (d for d in _core.enumerate_options() if d["name"] == "max_nodes")
    assert syno.SpaceOptions().max_nodes == nodes["default"] == MAX_NODES
    assert {d["name"] for d in WALK_BUDGETS} == {"count", "width", "max_operators", "seconds"}
    assert {d["name"] for d in TRIAL_BUDGETS} == {"trials", "depth", "max_seconds"}
    for descriptor in (*_core.enumerate_options(), *WALK_BUDGETS, *TRIAL_BUDGETS):
        assert descriptor["doc"]
        assert descriptor["minimum"] <= descriptor["default"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shade(Options):
    """For tests."""

    depth: int = option("How dark.", 3, minimum=1)


def test_an_unknown_argument_names_its_group() -> None:
    @grouped(shade=Shade)
    def paint(colour: str, *, shade: Shade | None = None) -> str:
        return f"{colour} {(shade or Shade()).depth}"

    assert paint("red", shade=Shade(depth=5)) == "red 5"
    wrong: Any = paint
    with pytest.raises(syno.UserError, match=r"no argument 'depth'\n.*shade=syno.Shade\(depth="):
        wrong("red", depth=5)
    with pytest.raises(
        syno.UserError, match="no argument 'size'\n  expected: one of colour, shade"
    ):
        wrong("red", size=5)


def test_what_has_no_effect_is_refused() -> None:
    Shade().refuse("it is night", "depth")
    with pytest.raises(syno.UserError, match="'depth' of Shade has no effect here: it is night"):
        Shade(depth=5).refuse("it is night", "depth")


def test_amounts_of_memory() -> None:
    assert [memory_size(text) for text in ("1", "500M", "2 GB", "3k")] == [
        1,
        500 << 20,
        2 << 30,
        3 << 10,
    ]
    for text in ("", "0", "M", "-1", "2T"):
        with pytest.raises(syno.UserError, match="is not an amount of memory"):
            memory_size(text)
