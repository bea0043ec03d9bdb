"""What an operator's results vary by, counted, and as the emitted code has it."""

from __future__ import annotations

import pytest

from syno.operators import zoo


@pytest.mark.parametrize("name", zoo.names())
def test_emitted_code_varies_as_counted(name):
    import torch

    torch.manual_seed(0)
    operator, binding = zoo.load(name), zoo.binding(name)
    squares = []
    for _ in range(60):
        pack = operator.kernel_pack(binding)
        with torch.no_grad():
            for weight in pack.kernel.parameters():
                weight.copy_(torch.randn_like(weight))
            shape = operator.shapes(binding).input
            x = torch.randn(16, *shape[1:]) if "N" in binding else torch.randn(shape)
            squares.append(float(pack(x).square().mean()))
    assert operator.mean_square(binding) == pytest.approx(sum(squares) / len(squares), rel=0.25)


def test_a_draw_is_the_same_for_the_same_seed():
    operator = zoo.load("operator-1")
    binding = {"N": 1, "C_in": 64, "C_out": 64, "H": 14, "W": 14, "k": 3, "g": 32, "s": 2}
    whole = operator.mean_square({k: binding[k] for k in operator.variables})
    assert whole == operator.mean_square({k: binding[k] for k in operator.variables}, seed=0)
    assert whole > 0
