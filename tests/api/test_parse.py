"""Index notation in Python: `Operator.parse`."""

import numpy as np
import pytest

import syno
from syno import Operator, UserError
from syno.operators import zoo

CONV = "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2] * w0[o,i,a,b]"


@pytest.mark.parametrize("name", zoo.names())
@pytest.mark.parametrize("stages", [False, True])
def test_the_zoo_is_read_from_what_it_prints(name, stages):
    operator = zoo.load(name)
    shapes = {
        "input": _shape(operator.to_json()["in"]),
        "output": _shape(operator.to_json()["out"]),
    }
    parsed, weights = Operator.parse_with_weights(operator.formula(stages=stages), **shapes)
    binding = zoo.binding(name)
    random = np.random.default_rng(1)
    x = random.integers(-4, 5, operator.shapes(binding).input)
    named = [random.integers(-4, 5, shape) for shape in operator.weight_shapes(binding)]
    own = [named[int(given.removeprefix("w"))].transpose(order) for given, order in weights]
    expected = operator.interpret(binding, x, named)
    assert (parsed.interpret(binding, x, own) == expected).all()


def test_shapes_come_from_a_specification():
    specification = syno.Specification.preset("paper/resnet18")
    parsed = Operator.parse(CONV.replace("W,", "H,").replace("k", "k_1"), specification)
    assert parsed.specification == specification
    assert parsed.input == ["N", "C_in", "H", "H"]
    assert parsed.output == ["N", "C_out", "H", "H"]


def test_numbers_are_variables_with_these_values():
    by_name = Operator.parse("y[h:H] = x[s*h]")
    assert Operator.parse("y[h:H] = x[2h]", sizes="s=2") == by_name
    with pytest.raises(UserError, match=r'factor 2(.|\n)*sizes="s=2"'):
        Operator.parse("y[h:H] = x[2h]")
    assert Operator.parse("y[h:H] = sum(a:3) x[h+a-1]", sizes="k=3") == Operator.parse(
        "y[h:H] = sum(a:k) x[h+a-k/2]"
    )
    with pytest.raises(UserError, match="several variables could stand for it"):
        Operator.parse("y[h:H] = x[2h]", sizes="s=2, t=2")


def test_a_formula_that_says_everything_needs_no_shapes():
    parsed = Operator.parse("y[n:N, o:C_out] = sum(i:C_in) x[n,i] * W[o,i]")
    assert (parsed.output, parsed.input) == (["N", "C_out"], ["N", "C_in"])


@pytest.mark.parametrize("text", [3, None, b"y[h] = x[h]"])
def test_a_formula_is_a_string(text):
    with pytest.raises(UserError, match="index notation is a string"):
        Operator.parse(text)


def test_the_text_format_is_not_index_notation():
    with pytest.raises(UserError, match=r"Operator\.from_text"):
        Operator.parse(zoo.load("linear").text)


def _shape(dims):
    return (
        "[" + ", ".join(d["size"] + (": unordered" if d["unordered"] else "") for d in dims) + "]"
    )
