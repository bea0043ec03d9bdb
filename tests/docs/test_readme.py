"""The first example of the README runs as it stands there."""

from __future__ import annotations

import torch

from .pages import ROOT, blocks

README = ROOT / "README.md"


def example() -> str:
    return next(block.text for block in blocks(README) if block.language == "python")


def test_the_first_example_runs_and_fills_every_slot():
    import syno

    namespace: dict[str, object] = {"__name__": "readme"}
    exec(compile(example(), str(README), "exec"), namespace)
    net = namespace["net"]
    assert isinstance(net, torch.nn.Module)
    assert [slot.kernel is not None for slot in syno.slots(net).values()] == [True, True]
    y = net(torch.randn(32, 32))
    assert y.shape == (16, 16)
    y.sum().backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_the_first_example_is_short():
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) <= 24
