"""Every malformed operator JSON: what is wrong, where, what was expected and found."""

import copy
import json

import pytest

from syno import Operator, UserError

GOOD = {
    "out": [{"size": "C_out", "unordered": True}, {"size": "s*H", "unordered": False}],
    "in": [{"size": "C_in", "unordered": True}, {"size": "H", "unordered": False}],
    "steps": [
        {"op": "reduce", "size": "s^-1*C_in", "out": "i"},
        {"op": "reduce", "size": "k", "out": "t"},
        {"op": "merge", "in": "o1", "block": "s", "out": ["h", "p"]},
        {"op": "split", "in": ["i", "p"], "out": "c"},
        {"op": "unfold", "in": ["h", "t"], "out": "u"},
        {"op": "shift", "in": "u", "d": 1, "out": "v"},
        {"op": "contract", "dims": [["o0", "drop"], ["c", "keep"]]},
    ],
    "match": ["c", "v"],
}


def test_the_form_without_mistakes_is_read():
    operator = Operator.from_json(GOOD)
    assert Operator.from_json(operator.to_json()) == operator
    assert len(operator.to_json()["steps"]) == len(GOOD["steps"])


def step(number, **changes):
    """A copy in which fields of a step are changed, or removed where None."""
    data = copy.deepcopy(GOOD)
    for field, value in changes.items():
        if value is None:
            del data["steps"][number][field]
        else:
            data["steps"][number][field] = value
    return data


def top(**changes):
    data = copy.deepcopy(GOOD) | changes
    return {field: value for field, value in data.items() if value is not None}


def dims(*values):
    return top(out=list(values))


CASES = {
    "not JSON": ("{", "not valid JSON: Expecting property name", "line 1, column 2"),
    "not UTF-8": (b"\xff\xfe{", "not valid JSON", ""),
    "nested too deep": ("[" * 100_000, "not valid JSON", ""),
    "a field twice": ('{"out": [], "out": []}', "gives the field 'out' twice", ""),
    "not an object": ([1], "this is not an object", "expected: an object      got: a list of 1"),
    "null": ("null", "this is not an object", "got: null"),
    "no match": (top(match=None), "the field 'match' is missing", "the operator's JSON"),
    "no out": (top(out=None), "the field 'out' is missing", ""),
    "another field": (top(weights=[]), "the field 'weights' is not known", "out, in, steps, match"),
    "steps no list": (top(steps={}), "the field 'steps' is not a list", "got: an object"),
    "match no list": (top(match="c"), "the field 'match' is not a list", 'got: the string "c"'),
    "dim no object": (dims("H"), "this is not an object", "dimension 0 of 'out'"),
    "dim without size": (dims({}), "the field 'size' is missing", "dimension 0 of 'out'"),
    "dim with more": (dims({"size": "H", "flag": 1}), "the field 'flag' is not known", "unordered"),
    "size a number": (dims({"size": 3}), "the field 'size' is malformed", "got: the number 3"),
    "flag no bool": (
        dims({"size": "H", "unordered": 1}),
        "the field 'unordered' is malformed",
        "expected: true or false      got: the number 1",
    ),
    "both flags": (
        dims({"size": "H", "unordered": True, "causal": True}),
        "unordered and causal at once",
        "dimension 0 of 'out'",
    ),
    "size one": (dims({"size": "1"}), "a dimension of size 1 is not used", ""),
    "size of numbers": (dims({"size": "3*H"}), "give the number a name", "column 1"),
    "size cut off": (step(0, size="s^-1*"), "expected", 'in size "s^-1*", column 6'),
    "power zero": (step(0, size="s^0"), "the power of 's' must be a non-zero integer", "column 3"),
    "size empty": (step(0, size=""), "expected", "column 1"),
    "size one in reduce": (step(0, size="1"), "a size of 1 does nothing here", "step 1 (reduce)"),
    "no op": (step(0, op=None), "the field 'op' is missing", "step 1 of"),
    "unknown op": (
        step(0, op="conv"),
        "the step's 'op' is not known",
        "one of split, merge, shift",
    ),
    "op a number": (step(0, op=3), "the step's 'op' is not known", "got: the number 3"),
    "op a list": (step(0, op=["reduce"]), "the step's 'op' is not known", "got: a list of 1"),
    "step no object": (top(steps=["reduce"]), "this is not an object", "step 1 of"),
    "field missing": (step(2, block=None), "the field 'block' is missing", "step 3 (merge)"),
    "field too many": (step(0, d=1), "the field 'd' is not known", "op, size, out"),
    "in no pair": (step(3, **{"in": ["i"]}), "the field 'in' is malformed", "a list of two names"),
    "in a string": (step(3, **{"in": "i"}), "the field 'in' is malformed", 'the string "i"'),
    "in a number": (step(5, **{"in": 2}), "the field 'in' is malformed", "the name of a coord"),
    "out a list": (step(0, out=["i"]), "the field 'out' is malformed", "a name for the new"),
    "out empty": (step(0, out=""), "the field 'out' is malformed", 'got: the string ""'),
    "out one": (step(2, out="h"), "the field 'out' is malformed", "a list of two names"),
    "shift zero": (step(5, d=0), "the field 'd' is malformed", "a non-zero integer"),
    "shift real": (step(5, d=1.5), "the field 'd' is malformed", "got: the number 1.5"),
    "shift true": (step(5, d=True), "the field 'd' is malformed", "got: true"),
    "shift huge": (step(5, d=10**12), "the field 'd' is malformed", "within 1000000"),
    "causal text": (step(4, causal="yes"), "the field 'causal' is malformed", "true or false"),
    "no dims": (step(6, dims=[]), "the field 'dims' is malformed", "got: a list of 0"),
    "dims flat": (step(6, dims=["c", "keep"]), "the field 'dims' is malformed", "[name, role]"),
    "unknown role": (step(6, dims=[["c", "hold"]]), "the field 'dims' is malformed", "keep, drop"),
    "second role": (
        step(6, dims=[["o0", "drop"], ["c", "hold"]]),
        "the field 'dims' is malformed: the role in entry 2 is not known",
        'got: the string "hold"',
    ),
    "name of a dim": (
        step(6, dims=[["o0", "drop"], [3, "keep"]]),
        "the field 'dims' is malformed: the name in entry 2 is not a string",
        "got: the number 3",
    ),
    "dim of three": (
        step(6, dims=[["o0", "drop", "keep"]]),
        "the field 'dims' is malformed: entry 1 is not a pair of a name and a role",
        "got: a list of 3",
    ),
    "second of a pair": (
        step(3, **{"in": ["i", 4]}),
        "the field 'in' is malformed: entry 2 is not a name",
        "expected: a list of two names      got: the number 4",
    ),
    "second of two new": (
        step(2, out=["h", ""]),
        "the field 'out' is malformed: entry 2 is not a name",
        'got: the string ""',
    ),
    "a quotient": (step(0, size="C_in/s"), "write s^-1*C_in", "step 1"),
    "a square": (step(0, size="k**2"), "write k^2", "step 1"),
    "a sum": (step(0, size="k+1"), "sizes are products of variables", "step 1"),
    "unknown name": (
        step(5, **{"in": "z"}),
        "unknown coordinate 'z'",
        "in step 6 (shift) of the operator's JSON\n  expected: one of o0, o1, i, t, h, p, c, u",
    ),
    "used too early": (step(2, **{"in": "c"}), "unknown coordinate 'c'", "step 3 (merge)"),
    "made twice": (step(1, out="i"), "the coordinate 'i' is made twice", "step 2 (reduce)"),
    "made as iterator": (step(1, out="o0"), "the coordinate 'o0' is made twice", ""),
    "consumed twice": (step(5, **{"in": "h"}), "not in the frontier", "step 6 (shift)"),
    "with itself": (step(3, **{"in": ["i", "i"]}), "not in the frontier", "step 4 (split)"),
    "drop of held": (
        step(6, dims=[["o0", "join"], ["c", "keep"]]),
        "in no earlier weight: its role is 'drop'",
        "step 7 (contract)",
    ),
    "match unknown": (top(match=["c", "z"]), "unknown coordinate 'z'", "in 'match'"),
    "match a number": (top(match=["c", 1]), "not the name of a coordinate", "in 'match'"),
    "match too short": (top(match=["c"]), "the matching names 1 coordinates for 2", "'match'"),
    "match twice": (top(match=["c", "c"]), "must use each coordinate of the frontier once", ""),
    "match of another size": (top(match=["v", "c"]), "cannot be matched with", "extent C_in"),
}


@pytest.mark.parametrize("case", CASES)
def test_malformed_json_is_a_user_error_that_says_where(case):
    data, message, place = CASES[case]
    with pytest.raises(UserError) as error:
        Operator.from_json(data)
    text = str(error.value)
    assert message in text.splitlines()[0]
    assert place in text
    if isinstance(data, dict):
        with pytest.raises(UserError) as same:
            Operator.from_json(json.dumps(data))
        assert str(same.value) == text


def test_too_many_variables_are_refused():
    data = {
        "out": [{"size": f"v{n}"} for n in range(20)],
        "in": [{"size": f"v{n}"} for n in range(20)],
        "steps": [],
        "match": [f"o{n}" for n in range(20)],
    }
    with pytest.raises(UserError, match="at most 16 are supported, got 20"):
        Operator.from_json(data)
