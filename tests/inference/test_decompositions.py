"""Operators of PyTorch in whose place a traced network has simpler ones."""

import random

import pytest
import torch
from torch import nn

from syno import UserError
from syno.codegen.export import export_network
from syno.inference import decompositions, load
from syno.inference.decompositions import SIMPLER, check_steps
from syno.inference.library.lower import lower
from syno.inference.prepare import prepare_sample

pytestmark = pytest.mark.usefixtures("one_torch_thread")

aten = torch.ops.aten


def rand(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


EQUATIONS = (
    "bhqd,bhkd->bhqk",
    "...ij,...jk->...ik",
    "bij,j->bi",
    "ii->i",
    "ij->",
    "bi,bj->bij",
    "...a,ab",
    "ij,jk,kl->il",
    "ijk,jil->kl",
    "nchw,cd->ndhw",
    "b i j, b i j -> b i",
    "...,...",
    "aab,ab->b",
    "abc->cab",
    "ba",
)


def operands(equation, choose):
    """Random tensors for an equation: each letter has one size, or now and then one."""
    sizes = {letter: choose.randint(2, 5) for letter in "abcdefghijklmnopqrstuvwxyz"}
    dots = [choose.randint(2, 3) for _ in range(choose.randint(0, 2))]
    found = []
    for part in equation.replace(" ", "").partition("->")[0].split(","):
        letters = part.replace("...", "")
        single = choose.choice(letters) if choose.random() < 0.2 and len(letters) > 2 else ""
        shape = [1 if letter == single else sizes[letter] for letter in letters]
        place = part.find("...")
        found.append(rand(*shape) if place < 0 else rand(*shape[:place], *dots, *shape[place:]))
    return found


@pytest.mark.parametrize("equation", EQUATIONS)
def test_an_einsum_is_products_of_two(equation):
    choose = random.Random(equation)
    for _ in range(5):
        tensors = operands(equation, choose)
        try:
            expected = torch.einsum(equation, *tensors)
        except RuntimeError:  # sizes that do not go together
            continue
        found = SIMPLER[aten.einsum.default](equation, tensors)
        torch.testing.assert_close(found, expected)


X = rand(3, 4, 5)
CALLS = {
    "tile": (aten.tile.default, X, [2, 1]),
    "variance": (aten.var_mean.default, X, False),
    "variance of rows": (aten.var_mean.dim, X, [1], False, True),
    "variance, correction": (aten.var_mean.correction, X, [0, 2]),
    "variance, all": (aten.var_mean.correction, X),
    "deviation": (aten.std_mean.default, X),
    "deviation of rows": (aten.std_mean.dim, X, [-1]),
    "deviation, correction": (aten.std_mean.correction, X, [0]),
    "norm": (aten.norm.ScalarOpt_dim, X, None, [1]),
    "norm, kept": (aten.norm.ScalarOpt_dim, X, 1, [1, 2], True),
    "norm of all": (aten.norm.ScalarOpt_dim, X, 2, []),
    "logarithm": (aten.logsumexp.default, X, [1]),
    "logarithm, kept": (aten.logsumexp.default, X * 100, [0, -1], True),
    "logarithm, infinite": (
        aten.logsumexp.default,
        torch.tensor([[torch.inf, 1], [-torch.inf, -torch.inf]]),
        [1],
    ),
    "zeros": (aten.new_zeros.default, X, [2, 3]),
    "zeros of a type": (aten.new_zeros.default, X.int(), [0]),
    "ones": (aten.new_ones.default, X, []),
    "one number": (aten.new_full.default, X, [4], 0.5),
    "einsum": (aten.einsum.default, "aab,ab->b", [rand(3, 3, 4), rand(3, 4)]),
}
NUMBERS = ("absolute", "negative", "fix")
PAIRS = ("multiply", "divide", "true_divide", "subtract")
ORDER = ("greater", "greater_equal", "less", "less_equal", "not_equal")
ALIASES = {
    **{name: (getattr(aten, name).default, X) for name in NUMBERS},
    **{
        f"{name} {variant}": (getattr(getattr(aten, name), variant), X, other)
        for name in (*PAIRS, *ORDER)
        for variant, other in (("Tensor", X.flip(0)), ("Scalar", 0.5))
    },
}


def test_each_operator_has_a_case():
    assert {target for target, *_ in [*CALLS.values(), *ALIASES.values()]} == set(SIMPLER)


@pytest.mark.parametrize("name", CALLS | ALIASES)
def test_what_takes_the_place_of_an_operator_computes_the_same(name):
    target, *arguments = (CALLS | ALIASES)[name]
    torch.testing.assert_close(SIMPLER[target](*arguments), target(*arguments))


class Recurrent(nn.Module):
    """Recurrent layers and cells of all kinds."""

    def __init__(self):
        super().__init__()
        options = {"batch_first": True}
        self.first = nn.LSTM(5, 6, 2, bidirectional=True, dropout=0.5, **options)
        self.second = nn.GRU(12, 4, bidirectional=True, **options)
        self.small = nn.LSTM(8, 6, proj_size=3, bias=False, **options)
        self.plain = nn.RNN(3, 3, nonlinearity="relu", **options)
        self.bounded = nn.RNN(3, 4)
        self.cells = nn.ModuleList([nn.GRUCell(4, 3), nn.LSTMCell(3, 3), nn.RNNCell(3, 2)])

    def forward(self, x):
        y, (h, c) = self.first(x)
        y, last = self.second(y)
        y = self.plain(self.small(y)[0])[0]
        y, _ = self.bounded(y.transpose(0, 1))
        z = self.cells[0](y[-1])
        z, own = self.cells[1](z, (z, z))
        z = torch.cat([self.cells[2](z), own], 1)
        return torch.cat([y.sum(0), z, h[1], c[2], last[0]], 1)


@torch.no_grad()
def test_recurrent_layers_are_loops_of_one_library(tmp_path):
    torch.manual_seed(0)
    net, x = Recurrent().eval(), rand(3, 4, 5)
    expected = net(x)
    program = lower(prepare_sample(net, x[:1]).graph)
    # Each weight is there once: 19 of layers and 6 of cells, but for two whose states are zeros.
    assert len(program.layers) == 23
    library = load(export_network(net, tmp_path / "net", x[:1], format="cpp-network").code)
    for threads in (1, 2):
        found = torch.from_numpy(library(x.numpy(), threads=threads))
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_recurrent_layers_of_many_steps_are_named(monkeypatch):
    monkeypatch.setattr(decompositions, "_MOST_STEPS", 6)
    net = nn.GRU(2, 2, 2, batch_first=True).eval()
    graphs = [
        torch.export.export(net, (rand(3, length, 2),), strict=False).graph for length in (3, 4)
    ]
    check_steps(graphs[0])
    with pytest.raises(UserError, match=r"have 8 steps\n  expected: at most 6 in the network lib"):
        check_steps(graphs[1])


class Masked(nn.Module):
    """A mask that is made as that of shifted windows is: with the type of a map, region by region.

    rows: whether it has a row for each sample.
    """

    def __init__(self, rows):
        super().__init__()
        self.layer, self.rows = nn.Linear(6, 6), rows

    def forward(self, x):
        mask = x.new_zeros((x.shape[0], 6) if self.rows else (6,))
        mask[..., :2] = 1.0
        mask[..., 4:] = 2.0
        ones = x.new_ones(6) * x.new_full((6,), 0.5)
        return self.layer(x).masked_fill(mask == 1.0, 0.0) + ones


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("rows", [False, True])
def test_tensors_like_another_one_are_constants(rows, mode, tmp_path):
    net, x = Masked(rows).eval(), rand(2, 6)
    with mode():
        traced = prepare_sample(net, x).graph
    assert not any("new_" in str(node.target) for node in traced.graph.nodes)
    library = load(export_network(net, tmp_path / "net", x, format="cpp-network").code)
    torch.testing.assert_close(torch.from_numpy(library(x.numpy())), net(x).detach())


def test_tensors_of_which_each_sample_has_another_part_are_refused():
    with pytest.raises(UserError, match="a constant depends on the sample"):
        prepare_sample(Ranks().eval(), rand(2, 6))


class Ranks(nn.Module):
    """Adds its number to each sample."""

    def forward(self, x):
        return x + x.new_ones((x.shape[0], 6)).cumsum(0)
