"""Random small networks: layers, views, slices, reductions, sums over the batch, many results."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

# Sizes of the first input [n, 4, 6, 5], and of a second one [n, 7].
SHAPE, OTHER = (4, 6, 5), (7,)
_MOST = 3000  # elements of a tensor for two samples

_EACH = (
    "torch.relu({a})",
    "torch.sigmoid({a})",
    "F.silu({a})",
    "F.gelu({a})",
    "F.gelu({a}, approximate='tanh')",
    "F.hardswish({a})",
    "F.leaky_relu({a}, 0.2)",
    "F.elu({a})",
    "F.softplus({a})",
    "torch.tanh({a})",
    "{a}.clamp(-0.5, 0.7)",
    "{a}.clamp(min=0.1)",
    "F.relu6({a})",
    "{a}.abs()",
    "-{a}",
    "{a} * 1.5",
    "2 - {a}",
    "{a} / 3",
    "torch.sub({a}, {a}, alpha=0.5)",
    "{a}.square()",
    "torch.exp(-{a}.abs())",
    "torch.rsqrt({a}.abs() + 1)",
    "{a}.masked_fill({a} > 0.3, 0.5)",
    "torch.where({a} > 0, {a}, {a} * 0.1)",
    "F.dropout({a}, 0.5, self.training)",
    "F.softshrink({a}, 0.2)",
    "torch.asinh({a})",
    "torch.atan2({a}, {a}.abs() + 0.5)",
)
_IN_PLACE = (
    "{a}.clone().relu_()",
    "{a}.clone().mul_(2)",
    "F.relu({a} + 0.1, inplace=True)",
    "zeroed({a} * 1.0, {d})",
    "raised({a} * 1.0)",
    "replaced({a} * 1.0, {a})",
)
_MAPS = (
    "F.max_pool2d({a}, 2)",
    "F.max_pool2d({a}, 3, 2, 1)",
    "F.avg_pool2d({a}, 2, ceil_mode=True)",
    "F.avg_pool2d({a}, 3, 1, 1)",
    "F.adaptive_avg_pool2d({a}, 1)",
    "F.adaptive_avg_pool2d({a}, (2, 3))",
    "F.interpolate({a}, scale_factor=2)",
    "F.pad({a}, (1, 0, 0, 2))",
    "F.pad({a}, (0, -1))",
    "F.pad({a}, (1, 0, 2, 0), value=0.7)",
    "F.pad({a}, (1, 1, 0, 1), 'reflect')",
    "F.interpolate({a}, scale_factor=1.5, mode='bilinear')",
    "F.interpolate({a}, (4, 7), mode='bicubic', align_corners=True)",
    "F.unfold({a}, 2, 1, 1, 2)",
    "F.fold(F.unfold({a}, 3, 1, 1), {a}.shape[2:], 3, 1, 1)",
    "F.pixel_shuffle({a}, 2)",
    "F.channel_shuffle({a}, 2)",
)
_VIEWS = (
    "{a}.flatten(1)",
    "{a}.flatten({d})",
    "{a}.reshape({n}, -1)",
    "{a}.reshape({n}, 4, -1)",
    "{a}.reshape(-1, {s})",
    "{a}.transpose({d}, {e})",
    "{a}.transpose(1, -1)",
    "{a}.movedim(1, -1)",
    "{a}.unsqueeze({d})",
    "{a}.squeeze({d})",
    "{a}.unflatten(1, (2, -1))",
    "{a}.unflatten(-1, (-1, 3))",
    "{a}.chunk(2, 1)[1]",
    "{a}.chunk(2, {d})[0]",
    "{a}.split(2, 1)[0]",
    "{a}.narrow(-1, 1, 2)",
    "{a}[:, 1:]",
    "{a}[..., :-1]",
    "{a}[:, :, ::2]",
    "{a}[:, 0]",
    "{a}.select({d}, 0)",
    "{a}.flip(-1)",
    "{a}.roll(1, 1)",
    "{a}.expand({n}, -1, -1)",
    "{a}.contiguous()",
    "{a}[:, [1, 0, 1]]",
    "{a}.index_select(-1, torch.tensor([1, 0, 1]))",
    "{a}.repeat_interleave(2, {d})",
    "{a}.tile(2)",
    "{a}.unfold(-1, 2, 1)",
    "{a}.diagonal(0, 1, -1)",
)
_SUMS = (
    "{a}.mean(-1)",
    "{a}.mean(1, keepdim=True)",
    "{a}.mean((-2, -1))",
    "{a}.sum(-1)",
    "{a}.sum({d}, keepdim=True)",
    "{a}.amax(-1, keepdim=True)",
    "{a}.softmax(-1)",
    "{a}.softmax(1)",
    "{a}.cumsum(-1)",
    "F.layer_norm({a}, {a}.shape[-1:])",
    "F.normalize({a}, dim=1)",
    "{a}.var(-1)",
    "{a}.logsumexp(-1)",
    "torch.var_mean({a}, -1)[1] + torch.std_mean({a}, -1)[0]",
    "{a}.norm(dim=1)",
)
_PAIRS = (
    "{a} + {b}",
    "{a} + {b}",
    "{a} * {b}",
    "{a} - {b}",
    "torch.maximum({a}, {b})",
    "torch.cat([{a}, {b}], 1)",
    "torch.cat([{a}, {b}], {d})",
    "torch.stack([{a}, {b}], 1)",
    "{a} * {a}.mean((-2, -1), keepdim=True)",
    "{a} * torch.sigmoid({b}.mean(-1, keepdim=True))",
    "{a} @ {b}",
    "{a} @ {b}.transpose(-2, -1)",
    "attended({a}, {b})",
    "torch.einsum('nab,nac->nbc', {a}, {b})",
    "torch.einsum('n...a,n...a->n...', {a}, {b})",
    "torch.einsum('nabc,nabd->nacd', {a}, {a})",
)
_BATCH = (
    "{a} - {a}.mean(0, keepdim=True)",
    "{a}.mean(0)",
    "{a} - {a}[:1]",
    "{a} / {n}",
    "{a} + torch.arange({n}, dtype=torch.float32).reshape([-1] + [1] * ({a}.dim() - 1))",
    "{a}.softmax(0)",
    "{a}.flip(0)",
    "{a}.transpose(0, 1)",
    "{a} * 2 if {n} == 1 else {a}",
    "{a} + 1 if {n} > 4 else {a}",
    "torch.cat([{a}, -{a}], 0)",
    "{a}.squeeze()",
    "{a}.reshape(-1)",
    "{a}.reshape(-1, {n})",
    "{a}.flatten(1) @ {a}.flatten(1).t()",
    "F.normalize({a}, dim=0)",
    "{a}.t()",
)


def zeroed(x: torch.Tensor, dim: int) -> torch.Tensor:
    """x, of which a slice is set to zero."""
    x.select(dim if x.dim() > 1 else 0, 0).zero_()
    return x


def raised(x: torch.Tensor) -> torch.Tensor:
    """x, changed through a view."""
    x.view(x.shape[0], -1).add_(1)
    return x


def replaced(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, all of which another tensor takes the place of, and then a part of it."""
    x[:, :] = y
    x[:, 1:] = 0.5
    return x


def attended(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Attention with as many values as keys: with others PyTorch reads what lies behind them."""
    assert x.shape[-2] == y.shape[-2]
    return F.scaled_dot_product_attention(x, x, y)


# What lines of `forward` name.
_NAMES: dict[str, Any] = {
    "torch": torch,
    "F": F,
    "attended": attended,
    "zeroed": zeroed,
    "raised": raised,
    "replaced": replaced,
}
# How modules are called that are no function of one tensor.
_CALLS: dict[type[nn.Module], str] = {
    nn.LSTM: "self.{m}({a})[0]",
    nn.GRU: "self.{m}({a})[0]",
    nn.MultiheadAttention: "self.{m}({a}, {a}, {a})[0]",
}


@dataclass
class Recipe:
    """The lines of a network's `forward`, its modules, and the names of its results."""

    lines: list[str] = field(default_factory=list)
    modules: dict[str, nn.Module] = field(default_factory=dict)
    results: str = ""
    inputs: int = 1

    @property
    def text(self) -> str:
        """The source of `forward`."""
        names = ", ".join(["x", "z"][: self.inputs])
        body = [f"n = {names[0]}.shape[0]", *self.lines, f"return {self.results}"]
        return "\n".join([f"def forward(self, {names}):", *(f"    {line}" for line in body)])


class Network(nn.Module):
    """A network made from a recipe."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe
        for name, module in recipe.modules.items():
            self.add_module(name, module)
        self.eval()

    def forward(self, *inputs: torch.Tensor) -> Any:
        return _forward(self.recipe.text)(self, *inputs)


def _forward(text: str) -> Callable[..., Any]:
    names = dict(_NAMES)
    exec(text, names)
    found: Callable[..., Any] = names["forward"]
    return found


def network(seed: int, *, one_result: bool = False) -> Network:
    """A random network that computes finite numbers for batches of two and three."""
    for attempt in range(100):
        found = _Draw(random.Random(f"{seed} {attempt}"), one_result).network()
        if found is not None:
            return found
    raise AssertionError(f"no network for the seed {seed}")


def inputs(net: Network, batch: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Random inputs of a network."""
    generator = torch.Generator().manual_seed(1000 * seed + batch)
    shapes = [SHAPE, OTHER][: net.recipe.inputs]
    return tuple(torch.randn(batch, *shape, generator=generator) for shape in shapes)


class _Draw:
    """Values of a network for batches of two and three, and random steps from there."""

    def __init__(self, choose: random.Random, one_result: bool) -> None:
        self.choose = choose
        self.one_result = one_result
        self.recipe = Recipe(inputs=1 if one_result or choose.random() < 0.8 else 2)
        self.values: dict[str, list[torch.Tensor]] = {}

    def network(self) -> Network | None:
        torch.manual_seed(self.choose.randrange(1 << 30))
        example = Network(self.recipe)
        both = [inputs(example, batch) for batch in (2, 3)]
        for number, name in enumerate(["x", "z"][: self.recipe.inputs]):
            self.values[name] = [each[number] for each in both]
        steps = self.choose.randint(2, 7)
        for _ in range(20 * steps):
            if len(self.recipe.lines) == steps:
                break
            self._step()
        made = [line.partition(" ")[0] for line in self.recipe.lines]
        if not any(name.startswith("m") for name in self.recipe.modules) or not made:
            return None
        self._choose_results(made)
        return Network(self.recipe)

    def _choose_results(self, made: list[str]) -> None:
        last = made[-1]
        if self.one_result or self.choose.random() < 0.7:
            self.recipe.results = last
            return
        other = self.choose.choice([*made, "x", f"{last}.clone()", f"{last}[:1]"])
        forms = ("{a}, {b}", "[{a}, {b}]", "{{'one': {a}, 'two': ({b},)}}", "{a}, {a}, {b}, None")
        self.recipe.results = self.choose.choice(forms).format(a=last, b=other)

    def _step(self) -> None:
        kind = self.choose.choices(
            (self._layer, self._text), weights=(0.35 + 0.6 * (not self.recipe.modules), 0.65)
        )[0]
        name, modules = f"v{len(self.recipe.lines)}", dict(self.recipe.modules)
        code = kind(modules)
        if code is None:
            return
        values = []
        for batch in range(2):
            scope = dict(_NAMES)
            scope |= {key: held[batch].clone() for key, held in self.values.items()}
            scope |= {"n": 2 + batch, "self": Network(Recipe(modules=modules))}
            try:
                with torch.no_grad():
                    value = eval(code, scope)
            except Exception:  # a step that does not go here: another one is drawn
                return
            if not isinstance(value, torch.Tensor) or not 0 < value.numel() <= _MOST:
                return
            if value.dtype != torch.float32 or not value.isfinite().all() or value.abs().max() > 99:
                return
            values.append(value)
        self.recipe.lines.append(f"{name} = {code}")
        self.recipe.modules = modules
        self.values[name] = values

    def _name(self) -> str:
        names = list(self.values)
        if self.choose.random() < 0.7:
            return names[-1]
        return self.choose.choice(names)

    def _text(self, modules: dict[str, nn.Module]) -> str:
        groups = (_EACH, _IN_PLACE, _MAPS, _VIEWS, _SUMS, _PAIRS, _BATCH)
        (group,) = self.choose.choices(groups, weights=(0.22, 0.06, 0.12, 0.26, 0.1, 0.18, 0.06))
        a, b = self._name(), self._name()
        rank = self.values[a][0].dim()
        # Dimension 0 seldom, so that not every network mixes its samples.
        first = 0 if self.choose.random() < 0.04 else 1
        d, e = (self.choose.randint(min(first, rank - 1), max(rank - 1, 0)) for _ in range(2))
        size = self.choose.choice([2, 3, 4, 5, 6, 10, 20])
        return self.choose.choice(group).format(a=a, b=b, d=d, e=e, s=size, n="n")

    def _layer(self, modules: dict[str, nn.Module]) -> str | None:
        a = self._name()
        shape = self.values[a][0].shape
        if len(shape) < 2:
            return None
        width = 4
        kinds: list[Callable[[], nn.Module]] = [lambda: nn.Linear(shape[-1], width)]
        kinds.append(lambda: nn.LayerNorm(shape[-1]))
        if len(shape) == 3:
            size = shape[2]
            kinds += [
                lambda: nn.Conv1d(shape[1], width, 3, padding=self.choose.choice([1, 2])),
                lambda: nn.Conv1d(shape[1], width, 3, stride=2, dilation=2, padding=2),
                lambda: nn.LSTM(size, 3, batch_first=True, bidirectional=True),
                lambda: nn.GRU(size, 3, batch_first=True),
                lambda: nn.MultiheadAttention(size, 1, batch_first=True),
            ]
        if len(shape) == 4:
            c = shape[1]
            kinds += [
                lambda: nn.Conv2d(c, width, 1),
                lambda: nn.Conv2d(c, width, 3, padding=1),
                lambda: nn.Conv2d(c, width, 3, padding=1),
                lambda: nn.Conv2d(c, c, 3, padding=1, groups=c),
                lambda: nn.Conv2d(c, width, 3, stride=2, padding=1),
                lambda: nn.Conv2d(c, width, 2),
                lambda: nn.Conv2d(c, width, 3, padding=2, dilation=2),
                lambda: nn.Conv2d(c, width, 3, padding=2, stride=2, dilation=(1, 2)),
                lambda: nn.ConvTranspose2d(c, width, 2, stride=2),
                lambda: nn.BatchNorm2d(c),
                lambda: nn.PReLU(c),
                lambda: nn.GroupNorm(1, c),
            ]
        name = f"m{len(modules)}"
        modules[name] = self.choose.choice(kinds)().eval()
        for tensor in modules[name].state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.1, 0.6).mul_(1.0 if "Norm" in str(modules[name]) else 0.7)
        call = _CALLS.get(type(modules[name]), "self.{m}({a})")
        return call.format(m=name, a=a)
