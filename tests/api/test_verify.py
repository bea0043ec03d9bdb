"""verify: right code passes, wrong code fails with its case."""

import dataclasses
import json
import re

import pytest

from syno import Operator, UserError, _core
from syno.codegen.verify import verify
from syno.codegen.verify.points import batch_variables, output_positions
from syno.operators import zoo
from syno.operators.emitted import source_hash


def test_the_zoo_passes():
    for name in zoo.names():
        operator, binding = zoo.load(name), zoo.binding(name)
        result = verify(operator, binding)
        assert result.passed, result.failure
        assert result.max_error < 1e-6
        assert result.binding == binding
        assert result.source_hash == source_hash(operator.source(binding))
        assert result.emitter == "pytorch"
        assert json.loads(json.dumps(dataclasses.asdict(result)))["failure"] == ""


def test_random_operators_pass():
    for seed in range(60):
        core, binding = _core.random_operator(seed, batch=seed % 2 == 0)
        result = verify(Operator(core), binding, seed=seed)
        assert result.passed, result.failure


def broken(operator, binding, result="y", init="pass"):
    """The operator's source, and a subclass of the same name that does something else."""
    return (
        operator.source(binding)
        + f"""

class SynoOperator(SynoOperator):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        y = super().forward(x)
        return {result}
"""
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"result": "y + (y != 0) * 1e-9"}, r"y\[0, 0, 0, 0\] differs"),
        ({"result": "y.flip(3)"}, r"y\[.*\] differs"),
        ({"result": "y[:1]"}, r"y has shape .* instead of"),
        ({"result": "y.detach() + 0 * y"}, "the gradient of x"),
        ({"result": "y.half().to(y.dtype)"}, "in float32 is off by .* expected: .* got: "),
        ({"result": "y.double()"}, "turns float32 into float64"),
        ({"result": "y * float('nan')"}, "differs"),
        ({"result": "[y]"}, "returns a list, not a tensor"),
        ({"result": "y.nothing"}, "running the code fails: AttributeError"),
        ({"init": "self.w0 = nn.Parameter(torch.zeros(5))"}, r"weights are \[\(5,\)\]"),
        ({"init": "raise RuntimeError('no')"}, "building the code fails: RuntimeError: no"),
    ],
)
def test_wrong_code_fails_with_its_case(change, message):
    conv, binding = zoo.load("conv2d"), zoo.binding("conv2d")
    assert verify(conv, binding, source=broken(conv, binding)).passed
    result = verify(conv, binding, source=broken(conv, binding, **change))
    assert not result.passed
    assert re.search(message, result.failure.replace("\n", " "))
    assert f"in binding {binding}, seed 0" in result.failure
    assert conv.text in result.failure


def test_a_batch_of_two_is_checked_where_the_binding_says_one():
    conv = zoo.load("conv2d")
    binding = zoo.binding("conv2d") | {"N": 1}
    assert batch_variables(conv) == ["N"]
    result = verify(conv, binding, source=broken(conv, binding, result="y[:1]"))
    assert not result.passed
    assert result.binding["N"] == 1


def test_an_error_at_the_border_of_a_large_operator_is_found():
    conv = zoo.load("conv2d")
    binding = {"N": 1, "C_in": 32, "C_out": 32, "H": 48, "W": 48, "k": 3}
    assert verify(conv, binding).outputs < 32 * 48 * 48
    corner = "y + (torch.arange(y.numel()) % (48 * 48) == 48 * 48 - 1).view(y.shape)"
    result = verify(conv, binding, source=broken(conv, binding, result=corner))
    assert not result.passed
    assert "47, 47] differs" in result.failure


def test_positions_cover_the_borders():
    import numpy as np

    shape = [4, 30, 30]
    chosen = output_positions(shape, 10**9, 10**7, np.random.default_rng(0))
    indices = {tuple(map(int, np.unravel_index(p, shape))) for p in chosen}
    assert len(chosen) == len(set(chosen)) < 4 * 30 * 30
    for corner in ((0, 0, 0), (3, 29, 29), (0, 29, 0), (3, 0, 1), (2, 15, 28)):
        assert corner in indices
    assert output_positions(shape, 100, 1000, np.random.default_rng(0)) == list(range(3600))
    assert output_positions([], 1, 10, np.random.default_rng(0)) == [0]


def test_mistakes_are_user_errors():
    with pytest.raises(UserError, match="no value to C_in"):
        verify(zoo.load("conv2d"), {"N": 1, "C_out": 2, "H": 2, "W": 2, "k": 3})
    with pytest.raises(UserError, match="'seed' is an integer of at least 0"):
        verify(zoo.load("conv2d"), zoo.binding("conv2d"), seed=-1)
    with pytest.raises(UserError, match="not a positive integer"):
        verify(zoo.load("grouped"), zoo.binding("grouped") | {"g": 3})
