"""What a network does for a batch of one alone: torch.export does not see it, tracing does."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import syno
from syno import UserError
from syno._util.network_copy import copy_network
from syno._util.value_numbering import first_other_call
from syno.codegen.export import export_network
from syno.inference.trace import trace

pytestmark = pytest.mark.usefixtures("one_torch_thread")

ROWS, SIZE = 4, 6
LARGE = 1e6  # no input of a trial is as large


class Part(nn.Module):
    """A function of its modules and of an input."""

    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)
        self.register_buffer("table", torch.linspace(-1, 1, 2 * ROWS * SIZE).view(-1, SIZE))
        self.register_buffer("rows", self.table[2:6])
        self.token = nn.Parameter(torch.ones(1, 1, SIZE) / 3)
        self.eval()

    def forward(self, x):
        """What the function makes of it."""
        return self.function(self, x)


def linear(out=SIZE):
    return nn.Linear(SIZE, out)


def one(x):
    return x.shape[0] == 1


def shifts(y):
    return (torch.arange(2 if one(y) else y.shape[0])[: y.shape[0]] * 1e-9)[:, None, None]


def changes_input(net, x):
    return net.parts[0](x.clamp_(max=LARGE) if one(x) else x.clamp(max=LARGE))


# Branches on a batch of one with an effect that is small, or that the trial does not reach.
BRANCHES = {
    "before a normalization": lambda net, x: F.layer_norm(x * 2 if one(x) else x, (SIZE,)),
    "a factor near one": lambda net, x: net.parts[0](x) * (1 + 1e-6 if one(x) else 1.0),
    "a clamp": lambda net, x: net.parts[0](x).clamp(max=LARGE) if one(x) else net.parts[0](x),
    "a dropout": lambda net, x: F.dropout(net.parts[0](x), 1e-9, training=one(x)),
    "a range": lambda net, x: net.parts[0](x) + shifts(x),
    "another weight": lambda net, x: net.parts[1 if one(x) else 2](x),
    "a mask": lambda net, x: x.masked_fill(x > LARGE, 0.0) if one(x) else net.parts[1](x) * 0 + x,
    "its input": changes_input,
    "a number": lambda net, x: (x, 2 if one(x) else 3),
}


def branching(function):
    torch.manual_seed(0)
    return Part(function, linear(), *(nn.LayerNorm(SIZE) for _ in range(2)))


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_on_a_batch_of_one_fixes_the_batch(name):
    net = branching(BRANCHES[name])
    assert not trace(net, (torch.randn(2, ROWS, SIZE),), batch=True).batch


@pytest.mark.parametrize("name", ["before a normalization", "a clamp"])
@torch.no_grad()
def test_a_compiled_branch_is_right_or_refused(name):
    net = branching(BRANCHES[name])
    for batch in (1, 2):
        compiled = syno.compile(net, torch.randn(batch, ROWS, SIZE))
        for other in (1, 2, 5):
            x = torch.randn(other, ROWS, SIZE) * 2 * LARGE
            if other == batch:
                torch.testing.assert_close(compiled(x), net(x), rtol=1e-5, atol=1e-6)
            else:
                with pytest.raises(UserError, match="compiled for another shape"):
                    compiled(x)


def test_a_program_with_a_branch_is_refused(tmp_path):
    net = branching(BRANCHES["before a normalization"])
    with pytest.raises(UserError, match="computes a batch of one sample in another way than"):
        export_network(net, tmp_path / "net", torch.randn(2, ROWS, SIZE))
    assert not list(tmp_path.iterdir())


def with_dead_code(net, x):
    if one(x):
        net.parts[0](x).exp()
    assert x.shape[0] >= 1
    return net.parts[0](x)


def in_place(net, x):
    y = torch.zeros(x.shape[0], ROWS, SIZE)
    y[:, 0] = x[:, 1]
    y[:, 2:] += x[:, 2:]
    return F.relu_(net.parts[0](y)).add_(1)


def with_token(net, x):
    return net.parts[0](torch.cat([net.token.expand(x.shape[0], -1, -1), x], 1))


def positions(net, x):
    return x + net.parts[0](torch.arange(x.shape[1]).unsqueeze(0).expand(x.shape[0], -1))


def attention(net, x):
    later = torch.ones(ROWS, ROWS).triu(1).bool()
    return net.parts[0](x, x, x, attn_mask=later, need_weights=False)[0]


def tied():
    first, second = linear(), linear()
    second.weight = first.weight
    return first, second


def transformer(**options):
    layer = nn.TransformerEncoderLayer(SIZE, 2, 8, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


# One way for all sizes of the batch, though the size of the batch occurs.
HARMLESS = {
    "view": lambda: Part(lambda net, x: net.parts[0](x).view(x.shape[0], ROWS * SIZE), linear()),
    "reshape": lambda: Part(
        lambda net, x: net.parts[0](x.reshape(-1, SIZE)).reshape(x.shape[0], ROWS, -1), linear()
    ),
    "flatten": lambda: Part(lambda net, x: net.parts[0](x.flatten(1)), nn.Linear(24, 3)),
    "samples first": lambda: Part(
        lambda net, x: net.parts[0](x.transpose(0, 1).contiguous()).transpose(0, 1), linear()
    ),
    "expand": lambda: Part(with_token, linear()),
    "the first sample": lambda: Part(lambda net, x: net.parts[0](x) + x[:1], linear()),
    "a size as a number": lambda: Part(
        lambda net, x: x.sum(0, True) / x.shape[0] + x.shape[0] ** 0.5
    ),
    "dead code": lambda: Part(with_dead_code, linear()),
    "in place": lambda: Part(in_place, linear()),
    "constants": lambda: Part(
        lambda net, x: x * torch.tensor([1.0, 2, 3, 4, 5, 6]) + x.new_ones(x.shape[0], 1, SIZE)
    ),
    "buffers": lambda: Part(lambda net, x: x * net.table[: x.shape[1]] + net.rows),
    "positions": lambda: Part(positions, nn.Embedding(9, SIZE)),
    "a range of samples": lambda: Part(lambda net, x: x[torch.arange(x.shape[0]), 1]),
    "tied weights": lambda: Part(lambda net, x: net.parts[1](net.parts[0](x)), *tied()),
    "attention": lambda: Part(attention, nn.MultiheadAttention(SIZE, 2, batch_first=True)),
    "transformer": lambda: Part(lambda net, x: net.parts[0](x), transformer()),
    "transformer, first normalized": lambda: Part(
        lambda net, x: net.parts[0](x), transformer(norm_first=True)
    ),
    "LSTM": lambda: Part(lambda net, x: net.parts[0](x)[0], nn.LSTM(SIZE, 5, batch_first=True)),
    "GRU": lambda: Part(lambda net, x: net.parts[0](x)[1], nn.GRU(SIZE, 5, batch_first=True)),
    "dropout": lambda: Part(lambda net, x: net.parts[0](x), nn.Dropout()),
    "squeeze": lambda: Part(lambda net, x: x.mean(1, keepdim=True).squeeze(1)),
}


class Side(nn.Module):
    """The results of several networks."""

    def __init__(self, parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.eval()

    def forward(self, x):
        """One for each of them."""
        return [part(x) for part in self.parts]


def harmless():
    torch.manual_seed(0)
    return Side([make() for make in HARMLESS.values()])


@torch.no_grad()
def compare(found, net):
    for batch in (1, 2, 5):
        x = torch.randn(batch, ROWS, SIZE)
        for y, right in zip(found(x), net(x), strict=True):
            torch.testing.assert_close(y, right, rtol=1e-4, atol=1e-5)


def test_harmless_uses_of_the_batch_take_any_size():
    net = harmless()
    traced = trace(net, (torch.randn(2, ROWS, SIZE),), batch=True)
    assert traced.batch
    compare(traced.graph, net)


@pytest.mark.slow
def test_harmless_uses_of_the_batch_are_compiled_for_any_size():
    net = harmless()
    compare(syno.compile(net, torch.randn(2, ROWS, SIZE)), net)


def exported(net, x):
    return torch.export.export(net, (x,), strict=False).module(check_guards=False)


def modes(net, x):
    with torch.no_grad():
        y = net.parts[0](x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return net.parts[0](y).float()


@pytest.mark.parametrize("function", [modes, lambda net, x: torch.rand_like(net.parts[0](x))])
def test_a_program_calls_what_its_network_does(function):
    net, x = Part(function, linear()), torch.randn(2, ROWS, SIZE)
    assert first_other_call(exported(net, x), net, (x,)) is None


def test_the_first_other_call_is_named():
    first = Part(lambda net, x: net.parts[0](x.exp()).relu(), linear())
    x = torch.randn(2, ROWS, SIZE)
    second = copy_network(first)
    second.function = lambda net, x: net.parts[0](x.exp() + 0).relu()
    assert first_other_call(exported(first, x), second, (x,)) == "aten.add.Tensor"


def test_nothing_stays_changed():
    def counts(net, x):
        net.table += 1
        return x.mul_(2) + net.table[0]

    net, x = Part(counts), torch.ones(2, ROWS, SIZE)
    before, state = net.table.clone(), torch.get_rng_state()
    assert first_other_call(exported(net, x), copy_network(net), (x,)) is None
    assert torch.equal(net.table, before) and torch.equal(x, torch.ones_like(x))
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.compiler.is_compiling() and torch.backends.mha.get_fastpath_enabled()
