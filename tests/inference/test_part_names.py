"""Parts of a network with names that the graphs of torch.fx have themselves."""

import pytest
import torch
from torch import fx, nn

import syno
from syno._util.torch_code import exportable
from syno.codegen.export.programs import traced
from syno.codegen.export.write import network_subject
from syno.inference.trace import Outline, trace
from syno.network.substitute import replace, substitute

OPERATOR = syno.Operator.parse(
    "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * W[o,i]",
    input="[N, C_in, H, W]",
    output="[N, C_out, H, W]",
)
GRAPHS_OWN = sorted({*dir(fx.GraphModule)} - {*dir(nn.Module)})
NAMES = [name for name in GRAPHS_OWN if not name.startswith("_")] + ["meta", "graph", "shape_env"]


class Named(nn.Module):
    """A layer, a parameter and a buffer with names that depend on each other's place."""

    def __init__(self, name, what):
        super().__init__()
        self.name = name
        part = {
            "layer": nn.Linear(4, 4),
            "parameter": nn.Parameter(torch.randn(4)),
            "tensor": torch.randn(4),
        }[what]
        setattr(self, name, part)

    def forward(self, x):
        part = getattr(self, self.name)
        if isinstance(part, nn.Module):
            return nn.functional.linear(torch.relu(part(x)), part.weight.t())
        return x + part


@pytest.mark.parametrize("what", ["layer", "parameter", "tensor"])
@pytest.mark.parametrize("name", ["code", "graph", "meta", "recompile"])
def test_a_part_may_have_any_name(name, what):
    assert name in NAMES
    x = torch.randn(2, 4)
    net = Named(name, what).eval()
    found = trace(net, (x,), batch=True)
    assert found.batch
    torch.testing.assert_close(found.graph(x), net(x))
    program = traced(network_subject(net, x))
    torch.testing.assert_close(program.module()(x), net(x))


def test_other_networks_keep_their_names():
    net = Named("codes", "layer")
    assert exportable(net) is net
    assert exportable(Named("code", "layer")) is not net


def test_the_outline_of_a_network_has_the_weights_of_each_copy():
    class Coded(nn.Module):
        def __init__(self):
            super().__init__()
            self.code, self.last = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 1)

        def forward(self, x):
            return self.last(self.code(x))

    x = torch.randn(2, 8, 8, 8)
    template = substitute(Coded(), example_input=x).eval()
    outline = Outline(template, (x,))
    replace(template, OPERATOR)
    with torch.no_grad():
        template.last.weight.zero_()
    held = outline.traced(template).graph.state_dict()
    (weight,) = [value for name, value in held.items() if name.endswith("last.weight")]
    assert not weight.any()
