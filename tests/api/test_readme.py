"""The example of the original's README, line by line, on tensors [H, W] without a batch."""

import torch
import torch.nn.functional as F
from torch import nn

from syno import Operator, Placeholder, Sampler, slots


class Model(nn.Module):
    def __init__(self):
        super(Model, self).__init__()  # noqa: UP008 (as in the README)
        # `Placeholder`s can provide concrete values for symbolic variables.
        self.kernel_1 = Placeholder({"H": 32, "W": 32})
        self.kernel_2 = Placeholder({"H": 16, "W": 16})
        self.kernel_3 = Placeholder({"H": 16, "W": 16})

    def forward(self, x: torch.Tensor):
        x = self.kernel_1(x)
        x = x.view(1, 1, 32, 32)
        x = F.avg_pool2d(x, 2)
        x = x.view(16, 16)
        x = self.kernel_2(x)
        return self.kernel_3(x)


def readme_sampler(net, **options):
    return Sampler(
        "[H, W]",  # Symbolic input shape of the operator
        "[H, W]",  # Symbolic output shape of the operator
        ["H: 2", "W: 2"],  # How many times a symbolic variable can be used
        ["s_1=2: 2", "s_2=3: 2"],  # Coefficients as auxiliary symbolic variables
        net=net,
        **options,
    )


def test_the_example_runs():
    net = Model()
    sampler = readme_sampler(net, max_nodes=2000)
    operator = sampler.sample()
    kernel_packs = operator.construct_kernel_packs()
    sampler.replace(net, kernel_packs)

    assert isinstance(operator, Operator)
    assert operator.input == ["H", "W"]
    assert operator.output == ["H", "W"]
    assert len(kernel_packs) == 3
    assert all(isinstance(pack, nn.Module) for pack in kernel_packs)
    assert [slot.kernel.binding["H"] for slot in slots(net).values()] == [32, 16, 16]

    x = torch.randn(32, 32)
    y = net(x)
    assert y.shape == (16, 16)
    y.square().sum().backward()
    assert all(p.grad is not None for p in net.parameters())

    # Dimension by dimension: each slot computes what the interpreter says for its sizes.
    for name, slot in slots(net).items():
        size = slot.binding["H"]
        x = torch.randn(size, size, dtype=torch.float64)
        weights = [p.detach().double().numpy() for p in slot.kernel.kernel.parameters()]
        expected = operator.interpret(slot.binding, x.numpy(), weights)
        torch.testing.assert_close(
            slot.double()(x).detach(), torch.from_numpy(expected), msg=f"slot {name}"
        )


def test_the_placeholders_give_the_bindings():
    specification = readme_sampler(Model(), max_nodes=10).specification
    assert specification.bindings == [{"H": 32, "W": 32}, {"H": 16, "W": 16}]
    assert specification.multiplicities == [1, 2]


def test_the_same_seed_gives_the_same_operators():
    net = Model()
    first = readme_sampler(net, max_nodes=1000, seed=4)
    second = readme_sampler(net, max_nodes=1000, seed=4)
    other = readme_sampler(net, max_nodes=1000, seed=5)
    drawn = [first.sample().text for _ in range(20)]
    assert drawn == [second.sample().text for _ in range(20)]
    assert drawn != [other.sample().text for _ in range(20)]
    assert len(set(drawn)) == 20
