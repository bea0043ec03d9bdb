"""Sampler: what is enumerated, drawn and counted."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from torch import nn

import syno
from syno import Sampler, Specification, UserError

from .networks import EXAMPLE, network, specification

LAYERS = [{"C_in": 8, "C_out": 8, "H": 8}, {"C_in": 8, "C_out": 16, "H": 4}]


def small(**options):
    spec = specification(bindings=LAYERS, max_depth=6)
    return Sampler.from_specification(spec, max_nodes=4000, **options)


def test_operators_have_distinct_keys_and_nothing_against_them():
    sampler = small()
    operators = sampler.operators
    assert len(operators) > 5
    assert len({operator.key for operator in operators}) == len(operators)
    for operator in operators[:30]:
        assert operator.refusals() == []
        assert operator.specification == sampler.specification
        for binding in LAYERS:
            assert operator.weight_shapes(binding)


def test_sampling_ends_when_every_operator_was_drawn():
    sampler = small(seed=1)
    drawn = [sampler.sample() for _ in sampler.operators]
    assert sorted(o.key for o in drawn) == sorted(o.key for o in sampler.operators)
    with pytest.raises(UserError, match=f"all {len(drawn)} operators have been sampled"):
        sampler.sample()


def test_several_threads_draw_every_operator_once():
    sampler = small(seed=1)
    together = threading.Barrier(8)

    def draw(_):
        together.wait()
        drawn = []
        with contextlib.suppress(UserError):
            while True:
                drawn.append(sampler.sample().key)
        return drawn

    with ThreadPoolExecutor(8) as pool:
        drawn = [key for keys in pool.map(draw, range(8)) for key in keys]
    assert sorted(drawn) == sorted(operator.key for operator in sampler.operators)


def test_statistics_count_rejections_by_reason():
    statistics = small().statistics()
    assert statistics["operators"] == len(small().operators)
    assert 0 < statistics["nodes"] <= 4000
    assert statistics["complete_depth"] >= 1
    counts = list(statistics["rejections"].values())
    assert sum(counts) > 0
    assert counts == sorted(counts, reverse=True)


def test_shapes_that_no_operator_connects_are_an_error_with_the_reasons():
    sampler = Sampler(
        "[N, A]",
        "[N, B]",
        ["N: 0", "A: 0", "B: 0"],
        bindings=[{"A": 4, "B": 6}],
        passed_through=[(0, 0)],
        max_depth=3,
    )
    with pytest.raises(UserError, match=r"no operator connects the shapes(.|\n)*rejections: "):
        sampler.sample()
    assert sampler.operators == []


def test_kernel_packs_go_where_their_sizes_fit():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=(1, 2)), EXAMPLE)
    sampler = Sampler.from_specification(specification(max_depth=6), net=net, max_nodes=3000)
    assert sampler.specification.multiplicities == [1, 1]
    operator = sampler.sample()
    packs = operator.construct_kernel_packs()
    report = sampler.replace(net, packs[::-1])
    assert len(report.replaced) == 2
    assert net(EXAMPLE).shape == (2, 10)
    for slot in syno.slots(net).values():
        assert slot.kernel.binding["H"] == slot.binding["H"]
    with pytest.raises(UserError, match="1 of 3 kernel packs are left over"):
        sampler.replace(net, [*packs, packs[0]])
    with pytest.raises(UserError, match="expected kernel packs, got Linear"):
        sampler.replace(net, [nn.Linear(2, 2)])
    partly = sampler.replace(net, packs[:1])
    assert len(partly.replaced) == 1
    assert "no kernel pack has the sizes" in str(partly)


def test_the_layers_of_a_network_are_weighed_by_their_macs():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=(1, 2)), EXAMPLE)
    sampler = Sampler.from_specification(specification(), net=net)
    macs = [row.macs for row in syno.layer_report(net).slots]
    assert sampler.specification._core.source["layer_macs"] == macs


def test_limits_about_other_layers_go_with_their_bindings():
    net = syno.substitute(network(), example_input=EXAMPLE)
    preset = Specification.preset("paper/resnet18", coefficient=["k=3: 2", "g=2: 2"])
    assert preset.limits["max_macs"] > 0
    taken = Sampler.from_specification(preset, net=net).specification
    assert taken.limits["max_macs"] == 0
    own = specification(max_macs=123, bindings=[])
    assert Sampler.from_specification(own, net=net).specification.limits["max_macs"] == 123


def test_wrong_arguments_are_named():
    arguments = ("[H]", "[H]", ["H: 1"])
    for options, message in (
        ({"seed": -1}, "'seed' is an integer of at least 0, got -1"),
        ({"seed": "a"}, "'seed' is an integer"),
        ({"max_nodes": 0}, "'max_nodes' is an integer of at least 1"),
        ({}, r"no layer to find operators for(.|\n)*values of H"),
        ({"max_dept": 3}, "unknown argument or limit 'max_dept'"),
    ):
        with pytest.raises(UserError, match=message):
            Sampler(*arguments, **options)
    with pytest.raises(UserError, match="expected a Specification, got str"):
        Sampler.from_specification("paper/resnet18")
