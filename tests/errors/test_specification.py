"""Specification: what it refuses, and what its text and values are."""

import pickle

import numpy as np
import pytest

from syno import Specification, UserError

GOOD = {
    "input": "[N, C_in: unordered, H]",
    "output": "[N, C_out: unordered, H]",
    "primary": ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
    "coefficient": ["k=3: 2"],
    "bindings": [{"C_in": 4, "C_out": 8, "H": 6}],
    "passed_through": [(0, 0)],
}


def make(**changes):
    return Specification(**GOOD | changes)


CASES = {
    "shape cut off": ({"input": "[N, C_in"}, "expected ']' at the end of a shape", "column 9"),
    "unknown variable": ({"input": "[N, X, H]"}, "unknown variable 'X'", "column 5"),
    "unknown flag": ({"input": "[N: wide, C_in, H]"}, "unknown flag 'wide'", "unordered, causal"),
    "shape no string": ({"input": 3}, "'input' is not a string", "got: 3"),
    "size a number": ({"input": "[3, C_in, H]"}, "give the number a name", "column 2"),
    "primary below": (
        {"input": "[N, C_in*H^-1, H]"},
        "dimension 1 has the primary variable 'H' in a denominator",
        'in shape "[N, C_in*H^-1, H]"',
    ),
    "budget missing": ({"primary": ["N"]}, "and a budget", "column 2"),
    "budget negative": ({"primary": ["N: -1"]}, "must be within 0..100", "column 4"),
    "value zero": ({"coefficient": ["k=0: 2"]}, "must be a positive integer, got 0", "column 3"),
    "declared twice": ({"coefficient": ["N=2: 1"]}, "variable 'N' is declared twice", ""),
    "one string": ({"primary": "N: 0"}, "'primary' is one string", "a list of variables"),
    "primary of numbers": ({"primary": [1]}, "'primary' is not a string", ""),
    "size zero": ({"bindings": [{"C_in": 0}]}, "variable 'C_in' cannot be bound to 0", ""),
    "size negative": ({"bindings": [{"C_in": -3}]}, "cannot be bound to -3", "positive integer"),
    "size of text": ({"bindings": [{"C_in": "4"}]}, "cannot be bound to '4'", ""),
    "size too large": ({"bindings": [{"C_in": 2**70}]}, "cannot be bound to", "positive integer"),
    "binding of text": ({"bindings": ["C_in=0"]}, "must be a positive integer, got 0", "column 6"),
    "binding short": ({"bindings": [{"C_in": 4}]}, "gives no value to", "C_out, H"),
    "binding unknown": (
        {"bindings": [{"C_in": 4, "C_out": 8, "H": 6, "Q": 2}]},
        "unknown variable 'Q'",
        "in binding",
    ),
    "bindings one dict": ({"bindings": {"C_in": 4}}, "'bindings' is not a list", ""),
    "multiplicities": ({"multiplicities": [1, 2]}, "one positive integer a binding", "2"),
    "multiplicity": ({"multiplicities": [1.5]}, "'multiplicities' has 1.5", "integers"),
    "layer_macs": ({"layer_macs": [1, 2]}, "layer_macs must be one number a binding", ""),
    "pair outside": ({"passed_through": [(0, 7)]}, "names a dimension that does not exist", "7"),
    "pair of sizes": ({"passed_through": [(1, 1)]}, "joins dimensions of different sizes", ""),
    "pair of three": ({"passed_through": [(0, 0, 0)]}, "holds pairs", "got: (0, 0, 0)"),
    "unknown limit": ({"max_dept": 3}, "unknown argument or limit 'max_dept'", "max_depth"),
    "limit negative": ({"max_depth": -1}, "limit 'max_depth' cannot be -1", "at least 1"),
    "limit a fraction": ({"max_depth": 2.5}, "limit 'max_depth' cannot be 2.5", "an integer of"),
    "real of text": ({"min_fit": "1"}, "limit 'min_fit' cannot be '1'", "expected: a number of"),
    "fit above 1": ({"min_fit": 1.5}, "limit 'min_fit' cannot be 1.5", "at least 0 and at most 1"),
    "no steps": (
        {"max_depth": 0},
        "limit 'max_depth' cannot be 0",
        "an integer of at least 1      got: 0",
    ),
    "no weights": ({"max_weights": 0}, "limit 'max_weights' cannot be 0", "at least 1"),
    "no parameters": (
        {"min_params": 200, "max_params": 100},
        "min_params=200 is above max_params=100: no operator is within both limits",
        "hint: raise max_params, lower min_params, or give max_params=0, which means no limit",
    ),
    "no MACs": (
        {"min_macs": 3, "max_macs": 2},
        "min_macs=3 is above max_macs=2",
        "expected: min_macs of at most 2      got: min_macs=3",
    ),
    "weights too large": (
        {"min_weight_params": 1000, "max_params": 100},
        "min_weight_params=1000 is above max_params=100",
        "hint: raise max_params",
    ),
    "coefficient of 1": (
        {"coefficient": ["k=1: 2"]},
        "coefficient 'k' is 1 under every binding",
        "hint: leave 'k' out of the specification, or give it another value",
    ),
    "coefficient bound to 1": (
        {"bindings": [{"C_in": 4, "C_out": 8, "H": 6, "k": 1}]},
        "coefficient 'k' is 1",
        "expected: a coefficient of at least 2      got: k=1",
    ),
    "coefficient of 1 unbound": (
        {"coefficient": ["k=1: 2"], "bindings": ()},
        "coefficient 'k' is 1",
        "of at least 2",
    ),
    "quotient": ({"input": "[N, C_in, H/k]"}, "write k^-1*H", "column 12"),
    "sum": ({"input": "[N, C_in, H+1]"}, "sizes are products of variables", "column 12"),
    "square": ({"input": "[N, C_in, H**2]"}, "write H^2", "column 12"),
    "below one": (
        {"input": "[N, k^-1, H]"},
        "dimension 1 is an integer under no binding, as all of its powers are negative: k^-1",
        'in shape "[N, k^-1, H]"',
    ),
    "not whole": (
        {"input": "[N, C_in, k^-1*H]", "bindings": [{"C_in": 4, "C_out": 8, "H": 7}]},
        "dimension k^-1*H is not a positive integer under the binding",
        "expected: a positive integer      got: 7/3",
    ),
    "entry of primary": ({"primary": ["N: 0", 7]}, "'primary' is not a string", "in entry 2 of"),
    "entry of bindings": (
        {"bindings": [{"C_in": 4, "C_out": 8, "H": 6}, {"C_in": 0}]},
        "cannot be bound to 0",
        "in entry 2 of 'bindings'",
    ),
    "limit of text": (
        {"max_depth": "3"},
        "limit 'max_depth' cannot be '3'",
        "an integer of at least 1",
    ),
    "flag a number": ({"even_windows": 1}, "limit 'even_windows' cannot be 1", "true or false"),
    "limit not finite": ({"min_fit": float("nan")}, "limit 'min_fit' cannot be nan", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_mistakes_are_user_errors_that_say_where(case):
    changes, message, more = CASES[case]
    with pytest.raises(UserError) as error:
        make(**changes)
    text = str(error.value)
    assert message in text.splitlines()[0]
    assert more in text


def test_json_round_trip_and_its_errors():
    spec = make(max_depth=5, even_windows=True)
    assert Specification.from_json(spec.to_json()) == spec
    assert Specification.from_json(spec.to_json()).limits["even_windows"] is True
    assert pickle.loads(pickle.dumps(spec)).to_json() == spec.to_json()
    for text, message in (
        ("{", "not valid JSON"),
        ("[]", "is not an object"),
        ("{}", "has no field 'input'"),
        ('{"input": "[H]", "output": "[H]", "primary": [], "more": 1}', "unknown field 'more'"),
        ('{"input": "[H]", "output": "[H]", "primary": ["H: 1"], "limits": 3}', "not an object"),
    ):
        with pytest.raises(UserError, match=message):
            Specification.from_json(text)


def test_an_entry_of_json_is_named():
    text = make().to_json().replace('"H": 6', '"H": "6"')
    with pytest.raises(UserError) as error:
        Specification.from_json(text)
    assert "variable 'H' cannot be bound to '6'" in str(error.value)
    assert str(error.value).endswith("in entry 1 of 'bindings'\n  in the specification's JSON")


def test_content_alone_decides_equality():
    spec = make()
    assert make(primary=GOOD["primary"][::-1]) == spec
    assert hash(make()) == hash(spec)
    assert make(max_depth=5) != spec
    assert make(bindings=["C_in=4, C_out=8, H=6"]) == spec
    assert make(bindings=[{"C_in": np.int64(4), "C_out": 8, "H": 6}]) == spec
    assert spec != spec.key


def test_bindings_are_completed():
    spec = make()
    assert spec.bindings == GOOD["bindings"]
    assert spec.full_bindings == [{"C_in": 4, "C_out": 8, "H": 6, "N": 1, "k": 3}]
    assert spec.complete({"C_in": 5}) == {"C_in": 5, "N": 1, "k": 3}
    assert spec.multiplicities == [1]
    assert spec.passed_through == [(0, 0)]


def test_presets_can_be_changed():
    preset = Specification.preset("paper/resnet18")
    assert sum(preset.multiplicities) == 19
    small = Specification.preset("paper/resnet18", bindings=GOOD["bindings"], max_depth=6)
    assert small.limits["max_depth"] == 6
    assert small.limits["max_macs"] == 0
    assert small.multiplicities == [1]
    assert preset.with_changes(max_depth=4).limits["max_macs"] == preset.limits["max_macs"]
    assert "paper/readme" in Specification.presets()
    with pytest.raises(UserError, match="unknown preset 'paper'"):
        Specification.preset("paper")
