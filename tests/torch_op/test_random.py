"""Random operators with random epilogues and orders of memory, in every way PyTorch calls them."""

from __future__ import annotations

import functools
import random
from pathlib import Path

import pytest
import torch
from torch import nn

from marks import slow_but
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.kernel import load
from syno.codegen.torch_op.record import KernelRecord
from syno.operators import zoo

from .cases import ACTIVATIONS, Call, drawn_request, random_calls, scrambled

pytestmark = pytest.mark.usefixtures("one_torch_thread")

EAGER = 300
IN_A_UNIT = 60
IN_A_GRAPH = 40


@pytest.mark.parametrize("first", slow_but(range(0, EAGER, IN_A_UNIT), 0))
def test_equals_the_interpreter_in_eager_mode(first):
    for call in random_calls(range(first, first + IN_A_UNIT)):
        with torch.inference_mode():
            call.check(call.kernel(*call.arguments()))
        out = scrambled(torch.zeros(call.expected.shape), random.Random(call.seed))
        with torch.no_grad():
            name = call.kernel.key, call.kernel.epilogue
            torch.ops.syno.apply.out(*call.arguments(), *name, out=out)
        call.check(
            out.permute(call.kernel.record.output_order)
            .contiguous()
            .permute([call.kernel.record.output_order.index(dim) for dim in range(out.dim())])
        )


@pytest.mark.parametrize("activation", sorted(set(ACTIVATIONS) - {""}))
def test_activations_are_right_to_the_digits_of_float32(activation):
    """Far below 0, too: a normalization after GELU divides by what is as small as the values."""
    values = torch.linspace(-6, 6, 6 * 4001).reshape(1, 6, 4001, 1)
    operator = zoo.load("conv1x1")
    sizes = zoo.binding("conv1x1") | {"N": 1, "C_in": 6, "C_out": 6, "H": 4001, "W": 1}
    kernel = load(KernelRecord.of(operator, sizes, channel=1), Epilogue(activation))
    found = kernel(values, kernel.pack([torch.eye(6).reshape(kernel.weight_shapes[0])]), None, None)
    expected = torch.from_numpy(ACTIVATIONS[activation](values.double().numpy()))
    torch.testing.assert_close(found.double(), expected, rtol=3e-6, atol=1e-30)


class Calls(nn.Module):
    """Many kernels, each with its own input."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self.kernels = [call.kernel for call in calls]
        for number, call in enumerate(calls):
            self.register_buffer(f"packed_{number}", call.packed)
            self.register_buffer(f"channel_{number}", call.channel)

    def forward(
        self, inputs: list[torch.Tensor], residuals: list[torch.Tensor | None]
    ) -> list[torch.Tensor]:
        results = []
        for number, kernel in enumerate(self.kernels):
            packed = getattr(self, f"packed_{number}")
            channel = getattr(self, f"channel_{number}")
            results.append(kernel(inputs[number], packed, channel, residuals[number]))
        return results


@functools.cache
def _graph_calls() -> list[Call]:
    return random_calls(range(500, 500 + IN_A_GRAPH))


def _inputs(calls: list[Call]) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    return [call.x for call in calls], [call.residual for call in calls]


@torch.no_grad()
def test_equals_the_interpreter_in_a_compiled_graph():
    compiled = torch.compile(Calls(_graph_calls()), fullgraph=True)
    for call, y in zip(_graph_calls(), compiled(*_inputs(_graph_calls())), strict=True):
        call.check(y)


@torch.no_grad()
def test_equals_the_interpreter_in_an_exported_graph(tmp_path):
    inputs = _inputs(_graph_calls())
    for call, y in zip(_graph_calls(), _loaded(_graph_calls(), tmp_path)(*inputs), strict=True):
        call.check(y)


def _loaded(calls: list[Call], folder: Path) -> nn.Module:
    program = torch.export.export(Calls(calls), _inputs(calls))
    torch.export.save(program, folder / "calls.pt2")
    found: nn.Module = torch.export.load(folder / "calls.pt2").module()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 50))
def test_equals_the_interpreter_for_thousands_in_every_form(first, tmp_path):
    """In eager mode, in a compiled graph, and in one that was exported, written and read."""
    calls = random_calls(range(first, first + 50))
    torch.compiler.reset()
    with torch.no_grad():
        inputs = _inputs(calls)
        compiled = torch.compile(Calls(calls), fullgraph=True)(*inputs)
        exported = _loaded(calls, tmp_path)(*inputs)
        for call, *results in zip(calls, compiled, exported, strict=True):
            for y in (call.kernel(*call.arguments()), *results):
                call.check(y)


def test_random_calls_have_every_epilogue_and_order():
    """What the thousands are drawn from: each part, each activation, both kinds of order."""
    requests = [drawn_request(seed, exact=False) for seed in range(1000, 1400)]
    parts = {part for _, _, epilogue in requests for part in epilogue.text.split("+")}
    assert parts == {"", "scale", "bias", "residual", *ACTIVATIONS}
    for orders in zip(*((r.input_order, r.output_order) for _, r, _ in requests), strict=True):
        kinds = {list(order) == sorted(order) for order in orders}
        assert kinds == {True, False}
