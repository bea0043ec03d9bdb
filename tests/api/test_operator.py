"""Operator: text and JSON round trips, identity, bindings, costs."""

import copy
import json
import pickle

import numpy as np
import pytest

import syno
from syno import Operator, Specification, UserError, _core
from syno.operators import zoo

# Names as another program may choose them; zoo's conv2d on square maps.
CONV = {
    "out": [{"size": "N"}, {"size": "C_out", "unordered": True}, {"size": "H"}, {"size": "H"}],
    "in": [{"size": "N"}, {"size": "C_in", "unordered": True}, {"size": "H"}, {"size": "H"}],
    "steps": [
        {"op": "reduce", "size": "k", "out": "row tap"},
        {"op": "reduce", "size": "k", "out": "b"},
        {"op": "reduce", "size": "C_in", "out": "channel"},
        {"op": "unfold", "in": ["o2", "row tap"], "out": "rows", "causal": False},
        {"op": "unfold", "in": ["o3", "b"], "out": "columns"},
    ],
    "match": ["o0", "channel", "rows", "columns"],
}
SHARED = ["b", "channel", "row tap"]
CONTRACT = {"op": "contract", "dims": [*([name, "keep"] for name in SHARED), ["o1", "drop"]]}
CONV["steps"].insert(3, CONTRACT)
SIZES = {"N": 2, "C_in": 3, "C_out": 4, "H": 5, "k": 3}


def random_operators(count, **options):
    for seed in range(count):
        core, binding = _core.random_operator(seed, **options)
        yield Operator(core), binding


def operators():
    for name in zoo.names():
        yield zoo.load(name), zoo.binding(name)
    yield from random_operators(150, batch=True, unordered=0.3, causal_windows=0.3)


def test_json_and_text_round_trip():
    for operator, _ in operators():
        data = operator.to_json()
        assert Operator.from_json(data) == operator
        assert Operator.from_json(json.dumps(data)).text == operator.text
        assert Operator.from_json(json.dumps(data).encode()).to_json() == data
        assert Operator.from_text(operator.text).to_json() == data
        assert set(data) == {"out", "in", "steps", "match"}


def test_json_takes_any_names_and_gives_canonical_ones():
    operator = Operator.from_json(CONV)
    data = operator.to_json()
    assert Operator.from_json(data) == operator
    made = [step["out"] for step in data["steps"] if "out" in step]
    assert sorted(made) == ["c0", "c1", "r0", "r1", "r2"]
    assert {dim["size"]: dim["unordered"] for dim in data["in"]} == {
        "N": False,
        "C_in": True,
        "H": False,
    }


def test_every_step_of_the_json_form():
    sizes = [{"size": size, "unordered": False} for size in ("a*b", "a", "b", "a", "c")]
    data = {
        "out": [*sizes, {"size": "b", "unordered": False, "causal": True}],
        "in": [],
        "steps": [
            {"op": "merge", "in": "o0", "block": "b", "out": ["q", "m"]},
            {"op": "split", "in": ["q", "m"], "out": "whole"},
            {"op": "shift", "in": "o1", "d": -2, "out": "turned"},
            {"op": "expand", "in": "o2"},
            {"op": "reduce", "size": "k", "out": "tap"},
            {"op": "unfold", "in": ["o5", "tap"], "causal": True, "out": "past"},
            {"op": "stride", "in": "o3", "S": "s", "out": "every"},
            {"op": "contract", "dims": [["o4", "drop"], ["turned", "keep"]]},
        ],
        "match": ["whole", "turned", "past", "every"],
    }
    data["in"] = [{"size": size, "unordered": False} for size in ("a*b", "a", "b", "s*a")]
    operator = Operator.from_json(data)
    ops = {step["op"]: step for step in operator.to_json()["steps"]}
    assert set(ops) == {step["op"] for step in data["steps"]}
    assert ops["merge"]["block"] == "b"
    assert ops["shift"]["d"] == -2
    assert ops["stride"]["S"] == "s"
    assert ops["unfold"]["causal"] is True
    assert Operator.from_json(operator.to_json()) == operator


def test_equality_and_hash_are_by_content():
    conv = Operator.from_json(CONV)
    renamed = json.loads(json.dumps(CONV).replace("channel", "i").replace("row tap", "zz"))
    assert Operator.from_json(renamed) == conv
    assert len({conv, Operator.from_json(renamed), zoo.load("conv2d")}) == 2
    assert conv != conv.text
    assert copy.deepcopy(conv) == conv


def test_pickling_goes_through_text():
    spec = Specification.preset("paper/resnet18")
    operator = zoo.load("conv1x1")
    twin = pickle.loads(pickle.dumps(operator))
    assert twin == operator
    assert twin.specification is None
    under = pickle.loads(pickle.dumps(operator.with_specification(spec)))
    assert under.specification == spec
    assert operator.text.encode() in pickle.dumps(operator)


def spec_of_conv(**changes):
    arguments = {
        "input": "[N, C_in: unordered, H, H]",
        "output": "[N, C_out: unordered, H, H]",
        "primary": ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
        "coefficient": ["k=3: 2"],
        "bindings": [{"C_in": 4, "C_out": 6, "H": 8}, {"C_in": 6, "C_out": 6, "H": 7}],
        "multiplicities": [2, 1],
        "passed_through": [(0, 0)],
        "max_shifts": 0,
    }
    return Specification(**arguments | changes)


def test_the_key_is_semantic_under_a_specification():
    conv = Operator.from_json(CONV)
    spec = spec_of_conv()
    assert conv.key == conv.structure
    under = conv.with_specification(spec)
    assert len(under.key) == 32
    assert under.key != conv.structure
    # Rotating the index of an unordered dimension gives the same set of linear maps.
    data = copy.deepcopy(CONV)
    data["steps"].append({"op": "shift", "in": "channel", "d": 1, "out": "turned"})
    data["match"][1] = "turned"
    turned = Operator.from_json(data, spec)
    assert turned != under
    assert turned.key == under.key
    # A different order of the maps is a different operator.
    data["match"][2:] = ["columns", "rows"]
    assert Operator.from_json(data, spec).key != under.key


def test_the_key_does_not_depend_on_how_the_operator_was_made():
    spec = spec_of_conv(max_depth=5)
    for operator in syno.Sampler.from_specification(spec, max_nodes=3000).operators[:50]:
        assert Operator.from_text(operator.text, spec).key == operator.key
        assert pickle.loads(pickle.dumps(operator)).key == operator.key


def test_costs_under_a_binding_and_over_all_layers():
    conv = Operator.from_json(CONV)
    assert conv.params(SIZES) == 4 * 3 * 3 * 3
    assert conv.macs(SIZES) == 2 * 4 * 5 * 5 * 3 * 9
    spec = spec_of_conv()
    under = conv.with_specification(spec)
    both = [under.macs(b) for b in spec.bindings]
    assert under.macs() == 2 * both[0] + both[1]
    assert under.params() == 2 * under.params(spec.bindings[0]) + under.params(spec.bindings[1])
    assert f"{conv.macs(SIZES):,} MACs" in conv.plan(SIZES)


def test_plans_are_the_cheapest_and_begin_with_the_usual_one():
    conv = Operator.from_json(CONV)
    plans = conv.plans(SIZES, 5)
    assert 1 < len(plans) <= 5
    assert str(plans[0]) == conv.plan(SIZES)
    assert [plan.macs for plan in plans] == sorted(plan.macs for plan in plans)
    assert len({plan.text for plan in plans}) == len(plans)
    assert all(plan.bytes_moved >= plan.peak_bytes > 0 for plan in plans)
    assert all(plan.fold_macs == 0 for plan in plans)
    for limit in (0, True, "3"):
        with pytest.raises(UserError, match="'limit' is an integer of at least 1"):
            conv.plans(SIZES, limit)
    with pytest.raises(UserError, match="a limit of 1 to 1000"):
        conv.plans(SIZES, 1001)


def test_weights_are_folded_only_where_it_is_asked_for_and_pays():
    low_rank = Operator.from_text(
        "syno operator 1\nout [N, D]\nin [N, C]\nreduce C -> r0\nreduce R -> r1\n"
        "contract o1:drop r1:keep\ncontract r1:join r0:keep\nmatch o0 r0\n"
    )
    for rank, pays in ((2, False), (60, True)):
        sizes = f"N=1, C=64, D=64, R={rank}"
        (plan,) = low_rank.plans(sizes, 1, fold_weights=True)
        assert (plan.fold_macs > 0) == pays
        assert plan.macs == (64 * 64 if pays else low_rank.macs(sizes))
        folded = low_rank.source(sizes, fold_weights=True)
        assert (folded != low_rank.source(sizes)) == pays


def test_a_binding_is_completed_from_the_specification():
    under = Operator.from_json(CONV, spec_of_conv())
    shape = under.weight_shapes({"C_in": 4, "C_out": 6, "H": 8})
    assert sorted(shape[0]) == [3, 3, 4, 6]
    assert under.weight_shapes("C_in=4, C_out=6, H=8") == shape
    with pytest.raises(UserError, match="no value to C_out, k"):
        Operator.from_json(CONV).weight_shapes({"C_in": 4, "H": 8})


def test_refusals_name_their_reasons():
    spec = spec_of_conv()
    reasons = dict(Operator.from_json(CONV).refusals(spec))
    assert reasons == {}
    assert "max_depth" in dict(Operator.from_json(CONV).refusals(spec_of_conv(max_depth=3)))
    assert "unknown_variable" in dict(zoo.load("linear").refusals(spec))
    assert "shape" in dict(Operator.from_json(CONV).refusals(spec_of_conv(input="[N, C_in, H]")))
    costly = dict(Operator.from_json(CONV).refusals(spec_of_conv(max_macs=10)))
    assert "macs are" in costly["max_macs"]


def test_printing():
    conv = zoo.load("conv2d")
    assert str(conv) == conv.formula()
    assert conv.formula().startswith("y[n,o,h,w] = sum(")
    assert "contract" in repr(conv)
    assert conv.dot().startswith("digraph")
    assert conv.primitives() == {"contract": 1, "reduce": 3, "unfold": 2}


def test_random_operators_compute_what_their_source_says():
    import torch

    from syno.operators.emitted import load_module

    for operator, binding in random_operators(10, min_weights=1):
        kernel = load_module(operator.source(binding))().double()
        x = np.random.default_rng(0).standard_normal(operator.shapes(binding).input)
        weights = [p.detach().numpy() for p in kernel.parameters()]
        y = kernel(torch.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(y, operator.interpret(binding, x, weights), atol=1e-9)
