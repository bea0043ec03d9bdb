"""A trained network in INT8: post-training quantization by torch's FX graph mode. Needs torch."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import fx, nn
from torch.nn import functional

from syno._util.arguments import checked, optional, text
from syno._util.errors import InternalError, UserError, first_line
from syno._util.network_copy import copy_network
from syno._util.tensors import check_network
from syno.network.calibration import checked_batches, scores_of
from syno.network.exchange import exchange
from syno.network.placeholder import Placeholder
from syno.network.trace import trace
from syno.operators.layer import Layer
from syno.torch_int8.contractions import MOVES, as_layers
from syno.torch_int8.fx_mode import fx_mode

# Tried in this order. FBGEMM is the fastest of them for small maps (docs/inference.md).
_ENGINES = ("fbgemm", "x86", "onednn", "qnnpack")
# Layers with MACs that torch has in INT8.
_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
# The greatest difference, as a share of the greatest score, that other sums make in float32.
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Quantized:
    """A network in INT8.

    net: [N, C, H, W] -> [N, classes], float32 outside; its weights and the numbers between its
        layers are 8-bit integers.
    engine: of torch, that runs it.    images: on how many the ranges were calibrated.
    macs: of the whole network for one sample; int8_macs: of them in INT8.
    float_parts: operations that compute in float32 -> how many there are.
    """

    net: nn.Module
    engine: str
    images: int
    macs: int
    int8_macs: int
    float_parts: dict[str, int]


def engines() -> list[str]:
    """What torch can compute in INT8 with on this processor, the default first."""
    found = torch.backends.quantized.supported_engines
    return [name for name in _ENGINES if name in found]


def checked_engine(engine: str | None) -> str:
    """The engine, or the default one. UserError where torch does not have it on this processor."""
    found = engines()
    if engine is None and found:
        return found[0]
    if engine not in found:
        raise UserError(
            f"torch {torch.__version__} cannot compute in INT8 with engine '{engine or 'any'}' here"
            f"\n  expected: {', '.join(found) or 'another processor, or another build of torch'}"
        )
    return engine


@checked(engine=optional(text))
def quantize(
    net: nn.Module, calibration: Iterable[torch.Tensor], *, engine: str | None = None
) -> Quantized:
    """The network in INT8; `net` stays as it is.

    net: trained, with operators in its slots or its own layers.
    calibration: batches [n, C, H, W] as the network sees them; the ranges of all numbers between
        layers are taken from them.
    engine: of `engines()`.

    Convolutions and linear layers get 8-bit weights, a scale for each output channel; the
    contractions of an operator become convolutions first (contractions.py). Batch normalization and
    ReLU go into the layer before them. What only moves numbers moves 8-bit ones. The rest stays in
    float32.

    UserError for an unknown engine, calibration data that is no batches of finite numbers, a
    network that torch.fx cannot follow, and one without a layer to quantize.
    """
    engine = checked_engine(engine)
    check_network(net)
    batches = checked_batches(calibration)
    first = next(batches)
    flat = _as_layers(net, first)
    name = type(net).__name__
    with _engine(engine), warnings.catch_warnings(), torch.no_grad(), _in_int8(name):
        warnings.simplefilter("ignore")  # torch warns in every call that this is to leave it
        prepared = _prepared(flat, engine, first)
        images = len(first)
        prepared(first)
        for batch in batches:
            scores_of(prepared, batch, name)
            images += len(batch)
        made = _converted(prepared)
        macs, int8_macs = _macs(flat, made, first)
        if not int8_macs:
            raise UserError(
                f"the network {name} has no layer to quantize\n"
                "  expected: a convolution or a linear layer that torch has in INT8      got: "
                f"{', '.join(sorted({type(m).__name__ for m in net.children()})) or 'no layers'}"
            )
        return Quantized(made, engine, images, macs, int8_macs, _float_parts(made, first))


def _as_layers(net: nn.Module, x: torch.Tensor) -> nn.Module:
    """A copy without slots: torch.fx follows it, and every contraction is a layer."""
    with torch.no_grad():
        wanted = scores_of(copy_network(net).eval(), x)
    flat = copy_network(net).eval()
    for slot in [module for module in flat.modules() if isinstance(module, Placeholder)]:
        if slot.layer is not None:  # an empty one that runs is an error above
            _put(flat, slot, _of_slot(slot) if slot.kernel is not None else slot.layer)
    for pack in [module for module in flat.modules() if isinstance(module, Layer)]:
        _put(flat, pack, as_layers(pack))
    with torch.no_grad():
        found = flat(x)
    error, most = (found - wanted).abs().max(), wanted.abs().max()
    if not error <= _TOLERANCE * (most + 1):
        raise InternalError(
            f"the operators as layers give different scores: {error:.3g} apart, of at most "
            f"{most:.3g}"
        )
    return flat


def _put(net: nn.Module, place: nn.Module, module: nn.Module) -> None:
    if place is net:
        raise UserError(
            "the network is a single slot\n  expected: a network with slots in it, or a layer"
        )
    exchange(place, module)


class _Bias(nn.Module):
    """Adds the bias of the layer that an operator replaced."""

    def __init__(self, bias: torch.Tensor) -> None:
        super().__init__()
        self.bias = nn.Parameter(bias.detach().clone())

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        """y: [N, C, ...] for a map, else [..., C]."""
        return y + self.bias


def _of_slot(slot: Placeholder) -> nn.Module:
    """A filled slot as layers one after the other."""
    layers: list[nn.Module] = [] if slot.pool is None else [slot.pool]
    assert slot.kernel is not None
    kernel = as_layers(slot.kernel) if isinstance(slot.kernel, Layer) else slot.kernel
    layers.append(kernel)
    if slot.bias is not None:
        if isinstance(kernel, fx.GraphModule) and (last := _last_layer(kernel)) is not None:
            last.bias = nn.Parameter(slot.bias.detach().clone())
        else:
            layers.append(_Bias(slot.spread(slot.bias)))
    return layers[0] if len(layers) == 1 else nn.Sequential(*layers)


def _last_layer(kernel: fx.GraphModule) -> nn.Conv2d | None:
    """The convolution of two dimensions that gives the result, if one does."""
    (node,) = (n for n in kernel.graph.nodes if n.op == "output")
    result = node.args[0]
    if isinstance(result, fx.Node) and result.op == "call_module":
        layer = kernel.get_submodule(str(result.target))
        return layer if isinstance(layer, nn.Conv2d) else None
    return None


def _prepared(flat: nn.Module, engine: str, x: torch.Tensor) -> fx.GraphModule:
    settings, mode = fx_mode()
    chosen = settings.get_default_qconfig_mapping(engine)
    for kind in (nn.PReLU, functional.prelu, torch.prelu):  # torch 2.13 computes it wrong in INT8
        chosen.set_object_type(kind, None)
    for name in _without_int8(flat):
        chosen.set_module_name(name, None)
    try:
        prepared: fx.GraphModule = mode.prepare_fx(flat, chosen, (x,))
        return prepared
    except (fx.proxy.TraceError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise UserError(
            f"the network {type(flat).__name__} cannot be quantized: torch.fx cannot follow it\n"
            f"  {first_line(error)}\n"
            "  expected: a network of images whose forward does not decide by values or sizes"
        ) from error


def _without_int8(flat: nn.Module) -> list[str]:
    """The names of convolutions whose padding torch does not have in INT8."""
    return [
        name
        for name, layer in flat.named_modules()
        if isinstance(layer, (nn.Conv1d, nn.Conv2d, nn.Conv3d))
        and (isinstance(layer.padding, str) or layer.padding_mode not in ("zeros", "reflect"))
    ]


def _converted(prepared: fx.GraphModule) -> fx.GraphModule:
    made: fx.GraphModule = fx_mode()[1].convert_fx(prepared)
    _keep_integers(made)
    for node in made.graph.nodes:
        # INT8 layers give maps in the order channels-last, which `view` does not take.
        if node.op == "call_method" and node.target == "view":
            node.target = "reshape"
    made.recompile()
    return made


@contextmanager
def _in_int8(name: str) -> Iterator[None]:
    """Turns what torch says while it makes or runs INT8 code into a UserError."""
    try:
        yield
    except (UserError, InternalError):
        raise
    except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise UserError(
            f"the network {name} cannot be quantized: torch cannot compute it in INT8\n"
            f"  {first_line(error)}\n"
            "  expected: layers and functions that torch has in INT8"
        ) from error


def _keep_integers(made: fx.GraphModule) -> None:
    """Leaves out dequantize and quantize around what only moves numbers.

    FX graph mode puts a dequantize behind each layer that is followed by an operation which it does
    not know, such as `unfold`. Moved INT8 numbers keep the scale that they have.
    """
    graph = made.graph
    plain: dict[fx.Node, fx.Node] = {}  # a moved float value -> the same as integers
    source: dict[fx.Node, fx.Node] = {}  # -> the integers that it comes from
    for node in list(graph.nodes):
        if node.op == "call_method" and node.target == "dequantize":
            plain[node] = source[node] = node.args[0]
        elif node.op == "call_function" and node.target in MOVES:
            moved = [n for n in node.all_input_nodes if not _is_size(n)]
            origins = {source.get(n) for n in moved}
            if len(origins) == 1 and None not in origins:
                with graph.inserting_after(node):
                    twin = graph.node_copy(node, lambda n: plain.get(n, n))
                plain[node], source[node] = twin, origins.pop()  # type: ignore[assignment]
        elif node.op == "call_function" and node.target is torch.quantize_per_tensor:
            value = node.args[0]
            if value in plain:
                node.replace_all_uses_with(plain[value])
                graph.erase_node(node)
    graph.eliminate_dead_code()
    made.recompile()


def _is_size(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is torch.ops.aten.sym_size.int


def _macs(flat: nn.Module, made: fx.GraphModule, x: torch.Tensor) -> tuple[int, int]:
    """Count the MACs for one sample: of all layers, and of layers in INT8."""
    layers = {name: m for name, m in flat.named_modules() if isinstance(m, _LAYERS)}
    seen = trace(flat, list(layers.values()), x[:1])
    total = 0
    for name, layer in layers.items():
        if _is_int8(made, name):
            for _, outside in seen.calls.get(id(layer), []):
                total += outside.numel() * layer.weight[0].numel()
    return seen.macs, total


def _is_int8(made: fx.GraphModule, name: str) -> bool:
    try:
        layer = made.get_submodule(name)
    except AttributeError:
        return False
    weight = getattr(layer, "weight", None)
    if not callable(weight):  # a float layer's is a parameter, an INT8 layer's unpacks
        return False
    found = weight()
    return isinstance(found, torch.Tensor) and found.dtype is torch.qint8


def _float_parts(made: fx.GraphModule, x: torch.Tensor) -> dict[str, int]:
    """What computes in float32, and how often; what only moves numbers does not compute."""
    found: Counter[str] = Counter()

    class Watching(fx.Interpreter):
        def run_node(self, node: fx.Node) -> object:
            result = super().run_node(node)
            if not isinstance(result, torch.Tensor) or result.is_quantized:
                return result
            if node.op == "call_module":
                found[type(self.module.get_submodule(str(node.target))).__name__] += 1
            elif node.op in ("call_function", "call_method") and not _only_moves(node):
                target = node.target
                found[target if isinstance(target, str) else _name_of(target)] += 1
            return result

    Watching(made).run(x[:1])
    found.pop("Identity", None)
    found.pop("Dropout", None)
    return dict(sorted(found.items()))


def _only_moves(node: fx.Node) -> bool:
    moves = ("dequantize", "flatten", "permute", "view", "reshape", "contiguous", "transpose")
    return node.target in MOVES or node.target in moves or node.target is torch.flatten


def _name_of(target: object) -> str:
    name = getattr(target, "_overloadpacket", None) or getattr(target, "__name__", target)
    return str(name).rpartition(".")[2]


@contextmanager
def _engine(name: str) -> Iterator[None]:
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = name
    try:
        yield
    finally:
        torch.backends.quantized.engine = before
