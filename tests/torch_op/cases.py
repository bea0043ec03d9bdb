"""Random operators as kernels with epilogues and orders of memory, and what they should return."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from syno.codegen.native import QUICK_FLAGS
from syno.codegen.torch_op import Kernel
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.kernel import load_together
from syno.codegen.torch_op.record import KernelRecord
from syno.codegen.verify.random_cases import random_case

# The definitions, in float64 and apart from those of the package.
ACTIVATIONS = {
    "": lambda v: v,
    "relu": lambda v: np.maximum(v, 0),
    "relu6": lambda v: np.clip(v, 0, 6),
    "silu": lambda v: v / (1 + np.exp(-v)),
    "gelu": lambda v: v / 2 * torch.special.erfc(torch.from_numpy(v) / -(2**0.5)).numpy(),
    "gelu_tanh": lambda v: (
        v * torch.sigmoid(torch.from_numpy((8 / np.pi) ** 0.5 * (v + 0.044715 * v**3))).numpy()
    ),
    "hardswish": lambda v: v * np.clip(v + 3, 0, 6) / 6,
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "tanh": np.tanh,
    "hardsigmoid": lambda v: np.clip(v + 3, 0, 6) / 6,
}
BATCH = 3


@dataclass(frozen=True)
class Call:
    """A kernel with arguments, and y as the interpreter and the definitions give it.

    exact: whether every number is an integer that float32 holds.
    """

    seed: int
    kernel: Kernel
    x: torch.Tensor
    packed: torch.Tensor
    channel: torch.Tensor | None
    residual: torch.Tensor | None
    expected: np.ndarray
    exact: bool

    def check(self, y: torch.Tensor) -> None:
        """The values of y, its shape, and its order in memory."""
        said = f"seed {self.seed}, epilogue '{self.kernel.epilogue}'"
        assert tuple(y.shape) == self.expected.shape, said
        assert y.permute(self.kernel.record.output_order).is_contiguous(), said
        if self.exact:
            assert np.array_equal(y.numpy(), self.expected), said
        else:
            near = np.allclose(y.numpy(), self.expected, rtol=1e-5, atol=1e-5)
            assert near, f"{said}: {np.abs(y.numpy() - self.expected).max()}"

    def arguments(self) -> tuple[torch.Tensor | None, ...]:
        """What changes from call to call."""
        return self.x, self.packed, self.channel, self.residual


def random_calls(seeds: Iterable[int], exact: bool = False) -> list[Call]:
    """The call of each seed; all kernels from one translation unit. exact: no curved activation."""
    requests = [drawn_request(seed, exact) for seed in seeds]
    kernels = load_together([request[1:] for request in requests], QUICK_FLAGS)
    return [_call(seed, kernel) for (seed, *_), kernel in zip(requests, kernels, strict=True)]


def scrambled(tensor: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """The same numbers in memory of some order, with gaps or an offset in some."""
    order = list(range(tensor.dim()))
    rng.shuffle(order)
    back = [order.index(dim) for dim in range(tensor.dim())]
    if rng.random() < 0.3 or tensor.dim() == 0:
        return tensor
    if rng.random() < 0.5:
        room = torch.full([2 * extent + 1 for extent in tensor.shape], 7.0)
        view = room[tuple(slice(1, None, 2) for _ in tensor.shape)]
        return view.copy_(tensor)
    return tensor.permute(order).contiguous().permute(back)


def drawn_request(seed: int, exact: bool) -> tuple[int, KernelRecord, Epilogue]:
    rng = random.Random(seed)
    case = random_case(seed).case
    ranks = len(case.operator.input), len(case.operator.output)
    batched = case.operator.input[:1] == case.operator.output[:1]  # or it might be
    orders = []
    for rank in ranks:
        order = list(range(rank))
        if rng.random() < 0.5:
            rest = order[1:] if batched else order
            rng.shuffle(rest)
            order = [0, *rest] if batched else rest
        orders.append(order)
    channels = list(range(1 if batched else 0, ranks[1]))
    parts = [part for part in ("scale", "bias", "residual") if rng.random() < 0.4]
    if not channels:
        parts = [part for part in parts if part == "residual"]
    names = ("", "relu", "relu6") if exact else tuple(ACTIVATIONS)
    activation = rng.choice(names)
    record = KernelRecord.of(
        case.operator,
        case.binding,
        channel=rng.choice(channels) if channels else 0,
        input_order=orders[0],
        output_order=orders[1],
        fold_weights=rng.random() < 0.5,
    )
    return seed, record, Epilogue("+".join([*parts, *([activation] if activation else [])]))


def _call(seed: int, kernel: Kernel) -> Call:
    rng, random_state = random.Random(seed), np.random.default_rng(seed)
    record, parts = kernel.record, kernel.epilogue.split("+")

    def drawn(shape: Iterable[int]) -> np.ndarray:
        return random_state.integers(-2, 3, tuple(shape)).astype(np.float64)

    operator, shapes = record.operator, record.shapes
    values = dict(record.binding)
    if operator.batch is not None:
        values[operator.batch] = BATCH
    x_shape, y_shape = operator.shapes(values).input, operator.shapes(values).output
    x, weights = drawn(x_shape), [drawn(shape) for shape in shapes.weights]
    y = operator.interpret(values, x, weights)
    exact = np.abs(y).max(initial=0) < 2**22
    channel = residual = None
    if "scale" in parts or "bias" in parts:
        channels = shapes.output[record.channel]
        broadcast = [-1 if d == record.channel else 1 for d in range(len(y_shape))]
        bias = drawn([channels]) if "bias" in parts else np.zeros(channels)
        scale = drawn([channels]) if "scale" in parts else np.zeros(0)
        channel = torch.from_numpy(np.concatenate([bias, scale])).float()
        y = y * (scale.reshape(broadcast) if "scale" in parts else 1) + bias.reshape(broadcast)
    if "residual" in parts:
        added = drawn(y_shape)
        y = y + added
        residual = scrambled(torch.from_numpy(added).float(), rng)
    activation = parts[-1] if parts[-1] in ACTIVATIONS else ""
    packed = kernel.pack([torch.from_numpy(weight).float() for weight in weights])
    exact = exact and activation in ("", "relu", "relu6")
    data = scrambled(torch.from_numpy(x).float(), rng)
    expected = ACTIVATIONS[activation](y)
    return Call(seed, kernel, data, packed, channel, residual, expected, exact)
