"""Weights under the names and in the order of index notation: never silently reordered."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

from syno import Operator, UserError
from syno.codegen import native
from syno.codegen.export import export
from syno.codegen.torch_op import Kernel
from syno.codegen.verify import verify

# All sizes are equal, so that no shape can tell weights or their dimensions apart.
TEXT = "y[n:N,t:T] = sum(s:S,e:E) x[n,e] * a[t,s] * v[e,s]"
BINDING = {"N": 1, "T": 4, "S": 4, "E": 4}


@pytest.fixture(scope="module")
def weights():
    random = np.random.default_rng(0)
    return {name: random.standard_normal((4, 4)).astype(np.float32) for name in "av"}


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal((1, 4)).astype(np.float32)


def expected(x, weights):
    return np.einsum("ne,ts,es->nt", x, weights["a"], weights["v"])


REFUSED = r"another order than in its notation.*\n.*by name: \{.*\}      got: a list"


def test_weights_by_name_are_those_of_the_text(x, weights):
    operator = Operator.parse(TEXT)
    assert operator.weight_names.reordered  # the case that was silently wrong
    y = operator.interpret(BINDING, x, weights)
    np.testing.assert_allclose(y, expected(x, weights), rtol=1e-5)
    with pytest.raises(UserError, match=REFUSED):
        operator.interpret(BINDING, x, [weights["a"], weights["v"]])
    at = operator.interpret_at(BINDING, x, weights, [2])
    np.testing.assert_allclose(at, expected(x, weights)[0, 2:3], rtol=1e-5)


def test_gradients_of_named_weights_have_names_and_their_order(x, weights):
    operator = Operator.parse(TEXT)
    dy = np.ones((1, 4))
    dx, found = operator.gradients(BINDING, x, weights, dy)
    np.testing.assert_allclose(found["a"], np.einsum("nt,ne,es->ts", dy, x, weights["v"]), 1e-5)
    np.testing.assert_allclose(found["v"], np.einsum("nt,ne,ts->es", dy, x, weights["a"]), 1e-5)
    assert dx.shape == (1, 4)


def test_compiled_functions_and_kernels_take_weights_by_name(x, weights):
    operator = Operator.parse(TEXT)
    function = native.compile_operator(operator, BINDING)
    function.pack(a=weights["a"], v=weights["v"])
    np.testing.assert_allclose(function(x), expected(x, weights), rtol=1e-5)
    with pytest.raises(UserError, match=REFUSED):
        function.pack([weights["a"], weights["v"]])
    kernel = Kernel.of(operator, BINDING)
    tensors = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    y = kernel(torch.from_numpy(x), kernel.pack(**tensors))
    np.testing.assert_allclose(y.numpy(), expected(x, weights), rtol=1e-5)
    with pytest.raises(UserError, match=REFUSED):
        kernel.pack([tensors["a"], tensors["v"]])


def test_a_module_has_its_weights_by_name(x, weights):
    pack = Operator.parse(TEXT).kernel_pack(BINDING)
    with torch.no_grad():
        for name, weight in weights.items():
            pack.named_weights[name].copy_(torch.from_numpy(weight))
        y = pack(torch.from_numpy(x))
    np.testing.assert_allclose(y.numpy(), expected(x, weights), rtol=1e-5)


def test_names_survive_a_pickle_and_another_specification(x, weights):
    operator = Operator.parse(TEXT)
    for other in (pickle.loads(pickle.dumps(operator)), operator.with_specification(None)):
        assert other == operator
        assert other.weight_names == operator.weight_names


def test_wrong_names_are_refused(x, weights):
    with pytest.raises(UserError, match=r"expected: [av], [av]      got: a, b"):
        Operator.parse(TEXT).interpret(BINDING, x, {"a": weights["a"], "b": weights["v"]})


def test_a_list_is_taken_where_the_text_has_the_canonical_order(x, weights):
    operator = Operator.parse("y[n:N,t:T] = sum(e:E) x[n,e] * v[t,e]")
    assert not operator.weight_names.reordered
    y = operator.interpret(BINDING, x, [weights["v"]])
    np.testing.assert_allclose(y, x @ weights["v"].T, rtol=1e-5)
    named = operator.canonical.interpret(BINDING, x, {"w0": weights["v"]})
    np.testing.assert_array_equal(y, named)


def test_generated_code_of_a_parsed_operator_is_verified_and_exported(tmp_path):
    operator = Operator.parse(TEXT)
    assert verify(operator, BINDING).passed
    export(operator.kernel_pack(BINDING), tmp_path / "op.py")
    assert (tmp_path / "op.py").exists()
