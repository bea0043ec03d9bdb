"""INT8: operators as layers, accuracy of trained networks, weights, calibration, and refusals."""

from __future__ import annotations

import copy
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import fx, nn
from torch.utils._pytree import tree_leaves, tree_map

from marks import slow_but, with_slow
from syno import UserError
from syno.codegen.verify.random_cases import random_case
from syno.data import DataSet, load, load_text
from syno.network.placeholder import Placeholder
from syno.operands.layers import fit_to_network
from syno.operands.lookup import NamedOperator
from syno.operators import zoo
from syno.operators.layer import Layer
from syno.operators.operator import Operator
from syno.study.evaluate.evaluator import make_evaluator
from syno.study.evaluate.network import Network
from syno.torch_int8 import Quantized, engines, network, quantize
from syno.torch_int8.contractions import MOVES, as_layers
from syno.torch_int8.fx_mode import fx_mode
from syno.train import Fidelity, fidelity, train, training_images, validation_accuracy

pytestmark = pytest.mark.usefixtures("one_torch_thread")

MODEL = {"width": 8, "stages": 2}
# Moves that hardly an operator has, with arguments.
RARE = {torch.ops.aten.movedim.int: (1, -1), torch.ops.aten.contiguous.default: ()}


@pytest.fixture(scope="module")
def digits() -> DataSet:
    """1,797 images of 8 px."""
    return load("digits")


@pytest.fixture(scope="module")
def few() -> Fidelity:
    """Enough to learn most of the digits."""
    return fidelity("digits").changed(epochs=3)


def filled(name: str, digits: DataSet) -> nn.Module:
    """A small network with an operator of the zoo in its slots."""
    net = Network.named("resnet-small", MODEL, digits, 0)
    if name == "baseline":
        return net.original()
    operator = fit_to_network(
        NamedOperator(name, zoo.load(name), zoo.binding(name)), net.template, {}
    )
    return net.with_operator(operator)[0]


def batch(count: int = 4, size: int = 8) -> torch.Tensor:
    """Images of one channel."""
    return torch.randn(count, 1, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "name",
    with_slow(["baseline", "operator-1", "depthwise-separable"], "baseline", "depthwise-separable"),
)
def test_a_trained_network_is_about_as_good_in_int8(name, digits, few) -> None:
    net = filled(name, digits)
    outcome = train(net, digits, few, 0)
    assert outcome.accuracy is not None
    assert outcome.accuracy > 0.6
    assert validation_accuracy(net, digits, few) == outcome.accuracy
    made = quantize(net, training_images(digits, few, 128, 0))
    assert isinstance(made, Quantized)
    assert (made.images, made.engine) == (128, engines()[0])
    assert made.macs == made.int8_macs > 0
    assert made.float_parts == {}
    assert abs(validation_accuracy(made.net, digits, few) - outcome.accuracy) <= 0.02
    # It is the trained network and no other.
    assert validation_accuracy(filled(name, digits), digits, few) < outcome.accuracy - 0.1


def weights(net: nn.Module) -> dict[str, torch.Tensor]:
    """Of layers in INT8."""
    found = {}
    for name, layer in net.named_modules():
        weight = getattr(layer, "weight", None)
        if callable(weight):
            found[name] = weight()
    return found


def test_weights_are_eight_bits_with_a_scale_for_each_channel(digits) -> None:
    net = filled("operator-1", digits)
    before = copy.deepcopy(net.state_dict())
    made = quantize(net, [batch()])
    found = weights(made.net)
    packs = [m for m in net.modules() if isinstance(m, Layer)]
    # Two contractions in each operator, the stem, the shortcut, the head.
    assert len(found) == 2 * len(packs) + 3
    for weight in found.values():
        assert weight.dtype is torch.qint8
        assert weight.int_repr().abs().max() == 127 or weight.int_repr().min() == -128
    convolutions = [w for w in found.values() if w.dim() == 4]
    assert {w.qscheme() for w in convolutions} == {torch.per_channel_affine}
    assert not [n for n, p in made.net.named_parameters() if p.dtype is torch.float32]
    # What was given stays as it was.
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    # From the first layer to the last nothing goes through float32.
    targets = [node.target for node in made.net.graph.nodes]  # type: ignore[union-attr, operator]
    assert targets.count(torch.quantize_per_tensor) == 1
    assert targets.count("dequantize") == 1


def test_int8_gives_any_batch_what_it_gives_one(digits) -> None:
    made = quantize(filled("operator-2", digits), [batch()])
    images = batch(5)
    with torch.no_grad():
        whole = made.net(images)
        apart = torch.cat([made.net(image[None]) for image in images])
    assert torch.equal(whole, apart)


FITTING = [
    "conv1d-swapped",
    "conv1x1",
    "conv2d",
    "depthwise",
    "dilated",
    "grouped",
    "grouped-shared",
    "operator-07720",
    "operator-07795",
    "operator-07821",
    "operator-2",
    "pooled-conv",
    "shift-conv",
    "stacked-conv",
    "window-by-rotation",
]


@pytest.mark.parametrize(
    "name", slow_but(FITTING, "conv2d", "grouped", "pooled-conv", "shift-conv")
)
def test_operators_of_the_zoo_lose_little(name, digits) -> None:
    net = filled(name, digits).eval()
    images = batch(64)
    made = quantize(net, [images])
    with torch.no_grad():
        wanted, found = net(images), made.net(images)
    error = (found - wanted).abs().mean() / wanted.std()
    assert error < 0.1
    assert made.macs == made.int8_macs
    assert set(made.float_parts) == ({"sum"} if name == "pooled-conv" else set())


def _pack(seed: int) -> Layer | None:
    case = random_case(seed).case
    return None if case.operator.batch is None else Layer(case.operator, case.binding)


@pytest.mark.slow
def test_random_operators_as_layers_compute_the_same() -> None:
    seen, layers, left = 0, 0, 0
    for seed in range(70):
        pack = _pack(seed)
        if pack is None:
            continue
        plain = as_layers(pack)
        x = torch.randn(2, *network_input(pack), generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            wanted, found = pack(x), plain(x)
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4, msg=f"seed {seed}")
        assert not list(plain.parameters()) or all(
            isinstance(m, nn.Conv1d | nn.Conv2d | nn.Conv3d) for m in plain.children()
        )
        seen += 1
        layers += len(list(plain.children()))
        left += sum("einsum" in str(node.target) for node in plain.graph.nodes)
    assert seen > 25
    assert layers > 4 * left


def network_input(pack: Layer) -> list[int]:
    """The sizes of a sample."""
    return pack.operator.shapes(pack.binding).input[1:]


class Moving(fx.Interpreter):
    """Runs a graph, and every move of it once more on INT8 numbers."""

    def __init__(self, module: fx.GraphModule, seen: set[str]) -> None:
        super().__init__(module)
        self.seen = seen

    def run_node(self, node: fx.Node) -> Any:
        """Compares the two where both give a tensor."""
        if node.op == "call_function" and node.target in MOVES:
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            whole = tree_map(integers, args)
            found = node.target(*whole, **kwargs)  # type: ignore[operator]
            wanted = node.target(*tree_map(values, whole), **kwargs)  # type: ignore[operator]
            for one, other in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
                assert one.is_quantized
                assert torch.equal(one.dequantize(), other), node.target
            self.seen.add(str(node.target))
        return super().run_node(node)


def integers(value: Any) -> Any:
    """A tensor in INT8; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.quantize_per_tensor(value, 0.05, 60, torch.quint8)


def values(value: Any) -> Any:
    """The inverse, but for what was rounded."""
    return value.dequantize() if isinstance(value, torch.Tensor) else value


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_moves_are_the_same_in_int8() -> None:
    seen: set[str] = set()
    for seed in range(70):
        pack = _pack(seed)
        if pack is not None:
            with torch.no_grad():
                Moving(as_layers(pack), seen).run(torch.randn(2, *network_input(pack)))
    x = integers(torch.randn(2, 3, 4))
    for move, arguments in RARE.items():
        assert torch.equal(move(x, *arguments).dequantize(), move(x.dequantize(), *arguments))
    assert seen | set(map(str, RARE)) == set(map(str, MOVES))


class Biased(nn.Module):
    """A slot whose layer had a bias; BatchNorm and ReLU behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.slot = Placeholder(original=nn.Conv2d(4, 4, 3, padding=1))
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.slot(x))).mean((2, 3))


@pytest.mark.parametrize("name", ["conv2d", "pooled-conv"])
def test_the_bias_of_a_replaced_layer_stays(name: str) -> None:
    torch.manual_seed(0)
    net = Biased().eval()
    x = torch.randn(16, 4, 8, 8)
    net(x)
    sizes = {"N": 1, "C_in": 4, "C_out": 4, "H": 8, "W": 8, "k": 3, "s": 2}
    operator = zoo.load(name)
    net.slot.replace(
        operator.kernel_pack({key: sizes[key] for key in operator.variables if key in sizes})
    )
    nn.init.constant_(net.slot.bias, 3.0)
    made = quantize(net, [x])
    with torch.no_grad():
        torch.testing.assert_close(made.net(x), net(x), rtol=0.05, atol=0.05)


def test_calibration_reads_no_held_out_image(digits, few, monkeypatch) -> None:
    fit, held = digits.validation_indices(few.holdout, few.split_seed)
    read: list[np.ndarray] = []
    fetch = type(digits.train).fetch

    def watched(split: Any, index: np.ndarray, *rest: Any) -> np.ndarray:
        read.append(np.asarray(index))
        return fetch(split, index, *rest)

    monkeypatch.setattr(type(digits.train), "fetch", watched)
    images = torch.cat(list(training_images(digits, few, 200, 3)))
    numbers = np.concatenate(read)
    assert len(images) == len(set(numbers)) == 200
    assert set(numbers) <= set(fit)
    assert not set(numbers) & set(held)
    # Other held-out images change nothing.
    pixels = digits.train.images.copy()
    pixels[held] = 255
    other = replace(digits, train=replace(digits.train, images=pixels))
    assert torch.equal(torch.cat(list(training_images(other, few, 200, 3))), images)


def test_calibration_images_depend_on_the_seed_alone(digits, few) -> None:
    first, again, other = (torch.cat(list(training_images(digits, few, 50, s))) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    small = few.changed(images=40)
    assert len(torch.cat(list(training_images(digits, small, 50, 1)))) == 40
    large = few.changed(resolution=12, augmented_at=8)
    assert next(training_images(digits, large, 5, 1)).shape == (5, 1, 12, 12)
    with pytest.raises(UserError, match="cannot sample 0 training images"):
        next(training_images(digits, few, 0, 0))


def test_text_is_refused(tmp_path, few) -> None:
    (tmp_path / "words.txt").write_text("".join(f"{n} words\n" for n in range(3000)))
    text = load_text(str(tmp_path / "words.txt"), cache=False, progress=False)
    with pytest.raises(UserError, match=r"'.*words.*' is text\n  expected: images"):
        next(training_images(text, few, 5, 0))  # type: ignore[arg-type]


def test_an_engine_that_is_not_there_is_refused(digits, monkeypatch) -> None:
    net = filled("baseline", digits)
    with pytest.raises(UserError, match=r"in INT8 with engine 'tensorrt' here\n  expected: fbgemm"):
        quantize(net, [batch()], engine="tensorrt")
    monkeypatch.setattr(network, "engines", list)
    with pytest.raises(UserError, match="with engine 'any' here\n  expected: another processor"):
        quantize(net, [batch()])


def test_each_engine_of_this_processor_computes(digits) -> None:
    before = torch.backends.quantized.engine
    net = filled("operator-2", digits).eval()
    with torch.no_grad():
        wanted = net(batch(32))
    for engine in engines():
        made = quantize(net, [batch(32)], engine=engine)
        assert made.engine == engine
        assert (made.net(batch(32)) - wanted).abs().mean() / wanted.std() < 0.15
        assert torch.backends.quantized.engine == before


def test_a_network_without_layers_to_quantise_is_refused() -> None:
    with pytest.raises(UserError, match=r"Sequential has no layer to quantize\n.*got: Flatten"):
        quantize(nn.Sequential(nn.Flatten()), [batch()])


class Deciding(nn.Module):
    """Goes one of two ways by the values of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) if x.sum() > 0 else self.layer(-x)


def test_a_network_that_cannot_be_followed_is_refused() -> None:
    with pytest.raises(UserError, match=r"Deciding cannot be quantized: torch.fx cannot follow"):
        quantize(Deciding(), [batch()])


def test_what_stays_in_float32_is_named(digits) -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(1, 4, 3, padding=1)
            self.mix = nn.Parameter(torch.randn(8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.einsum("nchw,wv->nchv", self.layer(x).exp(), self.mix).mean((2, 3))

    made = quantize(Both(), [batch()])
    assert made.int8_macs == 4 * 9 * 64
    assert made.macs == made.int8_macs + 4 * 8 * 8 * 8
    assert {"einsum", "exp"} <= set(made.float_parts)


def test_an_operator_is_found_in_a_network_without_slots() -> None:
    operator: Operator = zoo.load("conv2d")
    pack = operator.kernel_pack({"N": 1, "C_in": 1, "C_out": 4, "H": 8, "W": 8, "k": 3})
    made = quantize(nn.Sequential(pack, nn.ReLU()), [batch()])
    assert made.int8_macs == made.macs == 4 * 9 * 64


def test_torch_still_has_what_quantisation_needs() -> None:
    """The pinned torch; docs/inference.md has the plan for one that lacks it."""
    settings, mode = fx_mode()
    assert callable(settings.get_default_qconfig_mapping)
    assert callable(mode.prepare_fx) and callable(mode.convert_fx)
    with pytest.warns(DeprecationWarning, match=r"torch\.ao\.quantization is deprecated"):
        mode.prepare_fx(
            nn.Sequential(nn.Conv2d(1, 1, 1)).eval(),
            settings.get_default_qconfig_mapping(engines()[0]),
            (torch.zeros(1, 1, 2, 2),),
        )


def test_a_torch_without_it_is_named_before_anything_is_trained(digits, monkeypatch) -> None:
    for name in ("torch.ao.quantization", "torch.ao.quantization.quantize_fx"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it could not be found
    wanted = (
        r"torch 2\.\S+ cannot quantize in the way that Syno needs: (?s:.*)pip install 'torch==2\.13"
    )
    with pytest.raises(UserError, match=wanted):
        quantize(filled("baseline", digits), [batch()])
    with pytest.raises(UserError, match=wanted):
        make_evaluator(None, "digits", None, "", quantization=object())  # type: ignore[arg-type]
