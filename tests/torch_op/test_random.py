"""Random operators with random epilogues and orders of memory, in every way PyTorch calls them."""

from __future__ import annotations

import functools
import random

import pytest
import torch
from torch import nn

from .cases import Call, random_calls, scrambled

pytestmark = pytest.mark.usefixtures("one_torch_thread")

EAGER = 300
IN_A_UNIT = 60
IN_A_GRAPH = 40


@pytest.mark.parametrize("first", range(0, EAGER, IN_A_UNIT))
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


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_equals_the_interpreter_for_thousands(first):
    for call in random_calls(range(first, first + 100)):
        with torch.inference_mode():
            call.check(call.kernel(*call.arguments()))


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


def _inputs() -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    calls = _graph_calls()
    return [call.x for call in calls], [call.residual for call in calls]


@torch.no_grad()
def test_equals_the_interpreter_in_a_compiled_graph():
    compiled = torch.compile(Calls(_graph_calls()), fullgraph=True)
    for call, y in zip(_graph_calls(), compiled(*_inputs()), strict=True):
        call.check(y)


@torch.no_grad()
def test_equals_the_interpreter_in_an_exported_graph(tmp_path):
    program = torch.export.export(Calls(_graph_calls()), _inputs())
    torch.export.save(program, tmp_path / "calls.pt2")
    loaded = torch.export.load(tmp_path / "calls.pt2").module()
    for call, y in zip(_graph_calls(), loaded(*_inputs()), strict=True):
        call.check(y)
