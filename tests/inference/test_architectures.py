"""Language models, a vision transformer and a U-Net, compiled and as C++ libraries."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import syno
from syno import UserError, models
from syno.codegen.export import export_network, formats
from syno.codegen.export.write import network_subject
from syno.inference import load
from syno.inference.library.lower import lower
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import prepare
from syno.operands.layers import fit_to_network, layer_specification
from syno.operands.lookup import NamedOperator
from syno.operators import zoo

pytestmark = pytest.mark.usefixtures("one_torch_thread")

# The largest difference, relative to the largest output.
TOLERANCE = 1e-4


def library(net, x, folder):
    return load(export_network(net, folder / "net", x, format="cpp-network").code)


def assert_close(found, expected):
    assert found.shape == expected.shape
    assert (torch.from_numpy(found) - expected).abs().max() <= TOLERANCE * expected.abs().max()


# --- language models -----------------------------------------------------------------------------


def gpt2(**options):
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocabulary": 50, "context": 12, "layers": 2, "heads": 2, "width": 16}
    net = models.build("gpt2-small", **sizes | options).eval()
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, std=0.1)  # they begin as zeros
    return net


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(50, (3, 12), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_gpt2_is_one_library(tokens, tmp_path):
    net = gpt2()
    network = library(net, tokens[:1], tmp_path)
    assert network.input_types == (np.int64,)
    assert network.input_shapes == ((12,),)
    expected = net(tokens)
    for threads in (1, 2):
        assert_close(network(tokens.numpy(), threads=threads), expected)
    assert_close(network(tokens.numpy().astype(np.int32)), expected)


@pytest.mark.slow
@torch.no_grad()
def test_gpt2_with_operators_is_one_library(tokens, tmp_path):
    net = models.slots(gpt2(), example=tokens[:1])
    sizes = zoo.binding("gpt2-projection") | {"g": 2}
    named = NamedOperator("gpt2-projection", zoo.load("gpt2-projection"), sizes)
    report = syno.replace(net, fit_to_network(named, net, sizes))
    assert len([row for row in report.rows if row.status == "replaced"]) == 2
    assert_close(library(net, tokens[:1], tmp_path)(tokens.numpy()), net(tokens))


def test_what_stands_around_the_layers_of_gpt2_is_part_of_them(tokens):
    net = gpt2(layers=1)
    prepared = prepare(net, (tokens[:1],), batch=False)
    parts = {
        layer.name.split(".")[-1]: layer.parts.text for layer in layers_of(prepared.graph).values()
    }
    assert parts == {
        "c_attn": "bias",
        "c_proj": "bias+residual",  # of both
        "c_fc": "bias+gelu_tanh",
        "lm_head": "",
    }
    # Two embeddings and their sum, three norms, attention without a copy, and the layers.
    assert len(lower(prepared.graph).steps) == 2 + 3 + 1 + 5


@pytest.mark.slow
@torch.no_grad()
def test_gpt2_is_compiled_for_any_batch(tokens):
    net = gpt2()
    compiled = syno.compile(net, tokens[:1])
    assert torch.allclose(compiled(tokens), net(tokens), atol=1e-5)
    # A row of a matrix is no batch of its own: the twelve rows of a text are one call.
    layers = layers_of(prepare(net, (tokens[:1],), batch=True).graph).values()
    assert {layer.computation.binding.get("T") for layer in layers} == {12}


def test_token_ids_are_checked(tokens, tmp_path):
    net = gpt2(layers=1)
    network = library(net, tokens[:1], tmp_path)
    for wrong in (50, -1, 2**40):
        other = tokens.numpy().copy()
        other[2, 11] = wrong
        with pytest.raises(UserError, match=f"the token id {wrong} is not below 50"):
            network(other)
    with pytest.raises(UserError, match="token ids, which are whole numbers"):
        network(tokens.numpy().astype(np.float32))
    assert network(tokens.numpy()[:0]).shape == (0, 12, 50)


@pytest.mark.slow
def test_the_format_checks_a_language_model(tokens, tmp_path):
    net = gpt2(layers=1)
    chosen = formats.get("cpp-network", networks=True)
    subject = network_subject(net, tokens[:1])
    run = chosen.check(chosen.write(subject, tmp_path / "net"), subject)
    assert run.passed, run.output


# --- a vision transformer ------------------------------------------------------------------------


class Attention(nn.Module):
    """Attention of several heads. fused: by PyTorch's function, or by products."""

    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            scores = q @ k.transpose(2, 3) * (c // self.heads) ** -0.5
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Vit(nn.Module):
    """Patches, a class token, positions, and blocks of attention and MLP."""

    def __init__(self, fused, width=16):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 17, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.attention = nn.ModuleList(Attention(width, 2, fused) for _ in range(2))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 40), nn.GELU(), nn.Linear(40, width)) for _ in range(2)
        )
        self.head = nn.Linear(width, 7)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for i in range(2):
            x = x + self.attention[i](self.norms[2 * i](x))
            x = x + self.mlp[i](self.norms[2 * i + 1](x))
        return self.head(self.norms[4](x)[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("fused", [True, False])
@torch.no_grad()
def test_a_vision_transformer_is_one_library(fused, tmp_path):
    torch.manual_seed(0)
    net, x = Vit(fused).eval(), torch.randn(3, 3, 16, 16)
    network = library(net, x[:1], tmp_path)
    for threads in (1, 2):
        assert_close(network(x.numpy(), threads=threads), net(x))
    assert torch.allclose(syno.compile(net, x[:1])(x), net(x), atol=1e-5)


# --- a U-Net -------------------------------------------------------------------------------------


def block(channels, out):
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, padding=1), nn.GroupNorm(2, out), nn.LeakyReLU(0.1)
    )


class Unet(nn.Module):
    """Maps that are halved and doubled again. up: makes the layer that doubles a map."""

    def __init__(self, up):
        super().__init__()
        self.down = nn.ModuleList([block(3, 8), block(8, 12), block(12, 16)])
        self.up = nn.ModuleList([up(16, 12), up(12, 8)])
        self.join = nn.ModuleList([block(24, 12), block(16, 8)])
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](F.max_pool2d(a, 2))
        y = self.down[2](F.max_pool2d(b, 2))
        for up, join, other in zip(self.up, self.join, (b, a), strict=True):
            y = join(torch.cat([up(y), other], 1))
        return self.head(y)


UPS = {
    "transposed": lambda i, o: nn.ConvTranspose2d(i, o, 2, stride=2),
    "bilinear": lambda i, o: nn.Sequential(
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(i, o, 1)
    ),
    "nearest": lambda i, o: nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(i, o, 1)),
}


@pytest.mark.parametrize(
    "up", [pytest.param(up, marks=() if up == "nearest" else pytest.mark.slow) for up in UPS]
)
@torch.no_grad()
def test_a_unet_is_one_library(up, tmp_path):
    torch.manual_seed(0)
    net, x = Unet(UPS[up]).eval(), torch.randn(3, 3, 16, 12)
    network = library(net, x[:1], tmp_path)
    for threads in (1, 2):
        assert_close(network(x.numpy(), threads=threads), net(x))
    compiled = syno.compile(net, x[:1])
    assert torch.allclose(compiled(x), net(x), atol=1e-5)
    assert all(row.kernel for row in compiled.rows if row.kind == "convolution")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transposed-conv", "sub-pixel-conv"])
@torch.no_grad()
def test_a_unet_with_operators_that_enlarge_maps_is_one_library(name, tmp_path):
    torch.manual_seed(0)
    net, x = Unet(UPS["transposed"]).eval(), torch.randn(3, 3, 16, 20)
    net = syno.substitute(net, syno.conv_transpose2d(), x[:1])
    operator = fit_to_network(NamedOperator(name, zoo.load(name), zoo.binding(name)), net, {})
    assert len(syno.replace(net, operator).replaced) == 2
    assert_close(library(net, x[:1], tmp_path)(x.numpy()), net(x))
    compiled = syno.compile(net, x[:1])
    assert torch.allclose(compiled(x), net(x), atol=1e-5)
    rows = [row for row in compiled.rows if row.kind == "operator"]
    assert [(row.kernel, row.epilogue) for row in rows] == [(True, "bias")] * 2


class Deep(nn.Module):
    """Layers of signals or volumes, with a BatchNorm and a pooling."""

    def __init__(self, dimensions):
        super().__init__()
        of = {
            1: (nn.Conv1d, nn.BatchNorm1d, nn.AvgPool1d, nn.ConvTranspose1d),
            3: (nn.Conv3d, nn.BatchNorm3d, nn.AvgPool3d, nn.ConvTranspose3d),
        }[dimensions]
        conv, norm, pool, up = of
        self.down = nn.Sequential(conv(4, 8, 3, padding=1), norm(8), nn.ReLU(), pool(2))
        self.up = nn.Sequential(up(8, 8, 4, stride=2, padding=1), norm(8), nn.ReLU())
        self.head = conv(8, 4, 1)
        for each in (self.down[1], self.up[1]):
            each.running_mean.normal_()
            nn.init.normal_(each.weight)

    def forward(self, x):
        return self.head(self.up(self.down(x)))


@pytest.mark.slow
@pytest.mark.parametrize(("dimensions", "size"), [(1, (8,)), (3, (4, 6, 8))])
@torch.no_grad()
def test_signals_and_volumes_are_one_library_with_operators_and_without(dimensions, size, tmp_path):
    torch.manual_seed(0)
    net, x = Deep(dimensions).eval(), torch.randn(3, 4, *size)
    assert_close(library(net, x[:1], tmp_path)(x.numpy()), net(x))
    where = getattr(syno, f"conv{dimensions}d")(kernel=3)
    net = syno.substitute(net, where, x[:1]).eval()
    (slot,) = syno.slots(net).values()
    places = [name.lower() for name in slot.input_names[2:]]
    reads = ",".join([f"{places[0]}+a-k/2", *places[1:]])
    operator = syno.Operator.parse(
        f"y[n,o,{','.join(places)}] = sum(i,a:k) x[n,i,{reads}] * w0[o,i,a]",
        layer_specification(net, {"k": 3}),
    )
    assert syno.replace(net, operator).replaced
    folder = tmp_path / "operators"
    folder.mkdir()
    assert_close(library(net, x[:1], folder)(x.numpy()), net(x))
    compiled = syno.compile(net, x[:1])
    assert torch.allclose(compiled(x), net(x), atol=1e-5)
    (row,) = [row for row in compiled.rows if row.kind == "operator"]
    assert (row.kernel, row.epilogue) == (True, "bias+relu")


@torch.no_grad()
def test_a_transposed_convolution_of_two_kernels_computes_the_same(tmp_path):
    torch.manual_seed(0)
    net = nn.Sequential(nn.ConvTranspose2d(3, 5, (2, 3), stride=(2, 3)), nn.ReLU()).eval()
    x = torch.randn(2, 3, 4, 5)
    assert_close(library(net, x[:1], tmp_path)(x.numpy()), net(x))


class Activated(nn.Module):
    """Activations one after the other, of the same map."""

    def __init__(self):
        super().__init__()
        self.each = nn.ModuleList(
            [
                *(nn.ELU(), nn.ELU(0.5), nn.CELU(2.0), nn.SELU(), nn.Mish(), nn.PReLU(3, 0.1)),
                *(nn.Hardtanh(-0.5, 0.75), nn.LeakyReLU(0.3), nn.PReLU()),
                *(nn.Softplus(), nn.Softplus(beta=2.0, threshold=5.0)),
            ]
        )

    def forward(self, x):
        found = [each(x) for each in self.each]
        clamped = [x.clamp(min=-0.2), x.clamp(max=0.3), x.clamp(-1, 2), x.clamp(1, -1), x.abs(), -x]
        sums = x.clamp(-1, 1).sum(3, keepdim=True).expand(x.shape)
        return torch.cat([*found, *clamped, x.clamp(-9, 9).exp(), sums], 1)


@torch.no_grad()
def test_activations_are_plain_code(tmp_path):
    net = Activated().eval()
    x = torch.linspace(-12, 12, 3 * 5 * 9).reshape(1, 3, 5, 9)
    found = torch.from_numpy(library(net, x, tmp_path)(x.numpy()))
    torch.testing.assert_close(found, net(x), atol=3e-6, rtol=3e-6)
    special = torch.tensor([torch.inf, torch.nan, 0.0]).repeat(45).reshape(1, 3, 5, 9)
    found = torch.from_numpy(load(tmp_path / "net.cpp")(special.numpy()))
    torch.testing.assert_close(found, net(special), equal_nan=True, atol=2e-6, rtol=2e-6)


class Causal(nn.Module):
    """A network of signals that sees the past alone."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(2, 8, 4)
        self.layers = nn.ModuleList(nn.Conv1d(8, 8, 3, dilation=d) for d in (1, 2, 4))
        self.gates = nn.ModuleList(nn.Conv1d(8, 8, 3, dilation=d) for d in (1, 2, 4))
        self.down = nn.Sequential(nn.ConstantPad1d((3, 0), 0.0), nn.Conv1d(8, 8, 5, stride=2))
        self.head = nn.Conv1d(8, 3, 1)

    def forward(self, x):
        x = self.first(F.pad(x, (3, 0)))
        for layer, gate in zip(self.layers, self.gates, strict=True):
            before = F.pad(x, (2 * layer.dilation[0], 0))
            x = x + torch.tanh(layer(before)) * torch.sigmoid(gate(before))
        return self.head(F.relu(self.down(x)))


@pytest.mark.slow
@torch.no_grad()
def test_a_causal_network_is_one_library(tmp_path):
    torch.manual_seed(0)
    net, x = Causal().eval(), torch.randn(3, 2, 21)
    network = library(net, x[:1], tmp_path)
    for threads in (1, 2):
        assert_close(network(x.numpy(), threads=threads), net(x))
    compiled = syno.compile(net, x[:1])
    assert torch.allclose(compiled(x), net(x), atol=1e-5)
    rows = {row.name: row for row in compiled.rows}
    assert all(row.kernel for row in rows.values() if row.kind == "convolution")
    assert (rows["layers.0"].epilogue, rows["gates.2"].epilogue) == ("bias+tanh", "bias+sigmoid")
    assert rows["down.1"].epilogue == "bias+relu"


class Dilated(nn.Module):
    """Layers of several dilations."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(8, 8, 3, padding=2, dilation=2), nn.BatchNorm2d(8), nn.ReLU()),
            *(nn.Conv2d(8, 8, 3, padding=3, dilation=3), nn.ReLU()),
        )
        nn.init.normal_(self.layers[3].running_mean)

    def forward(self, x):
        return self.layers(x).mean((2, 3))


@pytest.mark.slow
@torch.no_grad()
def test_operators_in_dilated_slots_are_one_library(tmp_path):
    torch.manual_seed(0)
    net, x = Dilated().eval(), torch.randn(3, 4, 16, 16)
    net = syno.substitute(net, example_input=x[:1]).eval()
    operator = fit_to_network(
        NamedOperator("conv2d", zoo.load("conv2d"), zoo.binding("conv2d")), net, {}
    )
    assert len(syno.replace(net, operator).replaced) == 3
    network = library(net, x[:1], tmp_path)
    for threads in (1, 2):
        assert_close(network(x.numpy(), threads=threads), net(x))
    compiled = syno.compile(net, x[:1])
    assert torch.allclose(compiled(x), net(x), atol=1e-5)
    found = [(row.kernel, row.epilogue) for row in compiled.rows if row.kind == "operator"]
    assert found == [(True, "bias+relu"), (True, "bias"), (True, "bias+relu")]


class Frames(nn.Module):
    """Layers that run on each frame of a sample."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.again = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        nn.init.normal_(self.norm.running_mean)

    def forward(self, x):
        y = torch.relu(self.conv(x.flatten(0, 1)))
        y = torch.relu(self.norm(self.again(y)) + y)
        return y.unflatten(0, x.shape[:2]).mean((1, 3, 4))


@torch.no_grad()
def test_layers_that_run_on_frames_compute_all_of_them(tmp_path):
    torch.manual_seed(0)
    net, x = Frames().eval(), torch.randn(3, 5, 3, 8, 8)
    network = library(net, x[:1], tmp_path)
    for threads in (1, 2):
        assert_close(network(x.numpy(), threads=threads), net(x))
    assert torch.allclose(syno.compile(net, x[:1])(x), net(x), atol=1e-5)


class Inner(nn.Module):
    """A layer with a name."""

    def __init__(self, layer):
        super().__init__()
        self.inner = layer

    def forward(self, x):
        return self.inner(x)


class Smoothed(nn.Module):
    """A map made smaller, without what it cannot show."""

    def forward(self, x):
        return F.interpolate(x, (4, 4), mode="bicubic", antialias=True)


class Cumulative(nn.Module):
    """A function without code."""

    def forward(self, x):
        return x.cumsum(1)


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (Smoothed(), "aten._upsample_bicubic2d_aa.vec"),
        (Cumulative(), "aten.cumsum.default"),
        (nn.MaxPool2d(2, dilation=2), "aten.max_pool2d.default"),
    ],
)
def test_what_is_not_covered_is_named(layer, name, tmp_path):
    net = Inner(layer).eval()
    with pytest.raises(UserError, match=rf"no code for .*\n  in the module inner, at {name}"):
        library(net, torch.zeros(1, 3, 6, 6), tmp_path)


def test_token_ids_are_for_embeddings_alone(tmp_path):
    class Sum(nn.Module):
        def forward(self, x):
            return x + 1

    with pytest.raises(UserError, match=r"computes nothing of token ids\n.*aten\.add\.Tensor"):
        library(Sum().eval(), torch.zeros(1, 5, dtype=torch.long), tmp_path)
