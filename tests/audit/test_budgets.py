"""Operators of many steps: planned and priced in seconds, or refused with the reason."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from syno import Operator, Space, Specification, UserError, explain, walk
from syno_lab.experiments.ablation import distance_ablation

DIMS = 6
SIZES = {f"D{d}": 8 for d in range(DIMS)}
# CPU seconds; a loop of hours ends here, a machine that is busy does not.
WITHIN = 30.0


def scales(count: int, *, equal: bool) -> Operator:
    """`count` element-wise weights over all dimensions, or each over others."""
    names = ", ".join(SIZES)
    lines = ["syno operator 1", f"out [{names}]", f"in [{names}]"]
    for i in range(count):
        held = [d for d in range(DIMS) if equal or (i % (2**DIMS - 1) + 1) >> d & 1]
        lines.append("contract " + " ".join(f"o{d}:keep" for d in held))
    return Operator.from_text("\n".join([*lines, "match o0 o1 o2 o3 o4 o5", ""]))


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def test_forty_equal_weights_take_no_time() -> None:
    operator = scales(40, equal=True)
    assert seconds(lambda: operator.macs(SIZES)) < 2
    assert operator.macs(SIZES) == 40 * 8**DIMS
    assert operator.plans(SIZES, 3)[0].exact
    assert len(operator.plans(SIZES, 3)) == 1
    assert "class SynoOperator" in operator.source(SIZES)


@pytest.mark.slow
def test_many_steps_are_planned_or_refused_in_seconds() -> None:
    operator = scales(60, equal=False)
    start = time.process_time()
    assert operator.macs(SIZES) == 60 * 8**DIMS
    found = operator.plans(SIZES, 5)
    assert len(found) == 5 and not found[0].exact
    assert time.process_time() - start < WITHIN


@pytest.mark.slow
def test_too_many_plans_of_many_steps_are_refused() -> None:
    with pytest.raises(UserError) as refused:
        scales(60, equal=False).plans(SIZES, 1000)
    text = str(refused.value)
    assert "cannot enumerate 1000 plans of an operator of 60 steps" in text
    assert "hint: request fewer plans, or only the cheapest one" in text


@pytest.mark.slow
def test_a_path_among_too_many_orders_is_refused() -> None:
    specification = Specification(
        "[D0, D1, D2, D3, D4, D5]",
        "[D0, D1, D2, D3, D4, D5]",
        [f"{name}: 100" for name in SIZES],
        bindings=[SIZES],
        max_depth=30,
        max_size_variables=1,
        element_wise_weights=True,
        max_weights=8,
    )
    start = time.process_time()
    with pytest.raises(UserError, match="cannot determine how this operator of 60 steps is built"):
        explain(scales(60, equal=False), specification)
    assert time.process_time() - start < WITHIN


def test_too_many_sizes_are_refused() -> None:
    specification = Specification(
        "[D0, D1, D2, D3, D4, D5]",
        "[D0, D1, D2, D3, D4, D5]",
        [f"{name}: 100" for name in SIZES],
        bindings=[SIZES],
    )
    start = time.process_time()
    with pytest.raises(UserError, match="too many sizes to be searched") as refused:
        Space.enumerate(specification, max_nodes=10)
    assert "at most 1,000,000 sizes" in str(refused.value)
    assert "lower the budgets of the variables, or max_size_variables" in str(refused.value)
    assert time.process_time() - start < WITHIN


SMALL = Specification("[M, K]", "[M, N]", ["M: 1", "N: 1", "K: 1"], bindings=["M=2, N=3, K=4"])


@pytest.mark.parametrize(
    "call",
    [
        lambda: Space.enumerate(SMALL, threads=100_000),
        lambda: walk(SMALL, threads=100_000),
        lambda: distance_ablation(SMALL, threads=100_000),
        lambda: Space.enumerate(SMALL, max_nodes=100).sample(1, threads=100_000),
    ],
    ids=["listed", "walk", "trials", "draw"],
)
def test_threads_have_a_limit(call: Callable[[], object]) -> None:
    with pytest.raises(UserError, match="'threads' is an integer of at most 512, got 100000"):
        call()


def test_sizes_of_thirty_two_bits_are_computed_or_refused() -> None:
    linear = Operator.from_text(
        "syno operator 1\nout [M, N]\nin [M, K]\nreduce K -> r0\n"
        "contract o1:drop r0:keep\nmatch o0 r0\n"
    )
    assert linear.mean_square({"M": 1, "N": 2**32, "K": 2**32}) == 2**32
    window = Operator.from_text(
        "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\ncontract r0:keep\n"
        "unfold o0 r0 -> c0\nmatch c0\n"
    )
    with pytest.raises(UserError, match="too many terms for mean_square"):
        window.mean_square({"H": 2**32, "k": 2**32 - 1})
    repeated = Operator.from_text(
        "syno operator 1\nout [H, T]\nin [H]\nexpand o1\ncontract o0:keep\nmatch o0\n"
    )
    with pytest.raises(UserError, match="is too large to be computed"):
        repeated.interpret({"H": 2, "T": 2**32}, [1.0, 2.0], [[1.0, 2.0]])
    with pytest.raises(UserError, match=r"at most 1e\+12 terms .* hours"):
        repeated.interpret({"H": 2, "T": 2**50}, [1.0, 2.0], [[1.0, 2.0]])
