"""Operators one move away from others."""

from __future__ import annotations

import pytest
import torch

from syno import UserError
from syno.adaptation.pipeline.kinds import kinds_of
from syno.adaptation.pipeline.mutations import mutations
from syno.adaptation.pipeline.pool import Candidate, candidates
from syno.network import models
from syno.operators import zoo
from syno.study.evaluate.network import Network

NAMES = ("conv2d", "low-rank-conv", "operator-1", "grouped", "monarch", "dilated", "shift-conv")


def candidate(name: str) -> Candidate:
    operator = zoo.load(name)
    sizes = {k: v for k, v in {"k": 3, "s": 2, "g": 2}.items() if k in operator.variables}
    return Candidate(name, "zoo", operator.text, sizes)


@pytest.mark.parametrize("name", NAMES)
def test_neighbors_are_other_operators_of_the_same_shapes(name: str) -> None:
    parent = candidate(name)
    near = mutations([parent], [parent], 100, seed=0)
    assert len(near) >= 3
    seen = {(parent.operator.canonical.structure, tuple(parent.sizes.items()))}
    for each in near:
        operator = each.operator
        assert operator.input == parent.operator.input
        assert operator.output == parent.operator.output
        identity = operator.canonical.structure, tuple(each.sizes.items())
        assert identity not in seen
        seen.add(identity)
        assert each.source == "mutation" and each.name.startswith("near-")
        coefficients = set(operator.variables) - {"N", "C_in", "C_out", "H", "W", "T"}
        assert set(each.sizes) == coefficients


def test_moves_change_sizes_indices_and_windows() -> None:
    formulas = {
        each.operator.formula() for each in mutations([candidate("conv2d")], [], 100, seed=0)
    }
    expected = (
        "sum(i:C_in, a:k) x[n,i,h,w+a-k/2] * w0[o,i,a]",  # without a window
        "sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2] * w0[o,a,b]",  # without an index
        "sum(i:C_in/s, a:k, b:k)",  # no operator: not all channels are read
    )
    assert any(expected[0] in each for each in formulas), formulas
    assert any(expected[1] in each for each in formulas), formulas
    assert not any(expected[2] in each for each in formulas)
    assert any("h+a*s-k*s/2" in each for each in formulas), formulas  # dilated
    windows = {
        each.operator.formula() for each in mutations([candidate("shift-conv")], [], 100, seed=0)
    }
    assert all("x[n,i" in each for each in windows)


def test_a_causal_window_stays_causal() -> None:
    plain = candidate("conv2d")
    text = plain.text.replace("unfold o2 r1 ->", "unfold o2 r1 causal ->")
    parent = Candidate("causal", "given", text, plain.sizes)
    formulas = {each.operator.formula() for each in mutations([parent], [parent], 100, seed=0)}
    assert any("h+a*s-k*s+1" in each for each in formulas), formulas  # dilated
    assert all("h+a" not in each or "-k+1" in each or "-k*s+1" in each for each in formulas)


def test_every_parent_gets_its_turn_and_the_draw_is_the_same() -> None:
    parents = [candidate("low-rank-conv"), candidate("operator-1")]
    first = mutations(parents, parents, 8, seed=1)
    assert len(first) == 8
    assert [each.text for each in first] == [
        each.text for each in mutations(parents, parents, 8, seed=1)
    ]
    assert [each.text for each in first] != [
        each.text for each in mutations(parents, parents, 8, seed=2)
    ]
    groups = {each.operator.formula().count("a*C_in/g") for each in first}
    assert len(groups) > 1


def test_what_is_known_is_not_wanted_again() -> None:
    parents = [candidate("low-rank-conv")]
    every = mutations(parents, parents, 100, seed=0)
    assert mutations(parents, [*parents, *every], 100, seed=3) == []


def test_neighbors_compute_in_the_slots_of_a_network() -> None:
    net = models.build("resnet-small", classes=4, channels=3, size=16, width=8)
    network = Network(models.slots(net), (3, 16, 16), 0)
    pool = candidates(network, zoo_too=True, samples=0, seed=0)
    near = mutations(pool, pool, 40, seed=0)
    kind = next(k for k in kinds_of(network.template, network.inputs(1)).values())
    computed = 0
    for each in near:
        try:
            binding = kind.binding(each)
        except UserError:  # eight channels cannot be divided so
            continue
        pack = each.operator.kernel_pack({**binding, each.operator.batch: 2})
        assert pack(torch.randn(2, 8, 16, 16)).shape == (2, 8, 16, 16)
        computed += 1
    assert computed > 20
