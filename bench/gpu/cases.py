"""Cases of layers on a GPU: tensors, weights as kernels take them, calls, and right results."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import cached_property

import kernels
import torch
import torch.nn.functional as F
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
LAYERS = {"64x56": (64, 56), "128x28": (128, 28), "256x14": (256, 14), "512x7": (512, 7)}
KINDS = (
    "dense",
    "grouped-4",
    "depthwise",
    "operator-1/1",
    "operator-1/2",
    "operator-1/fused",
    "operator-2/1",
    "operator-2/2",
    "operator-2/fused",
)
DESIGNS = ("descriptors", "swapped", "pointers")
GROUPS, SHRINK = 32, 2  # g and s of Operators 1 and 2
# Of the difference to float32, relative to the result, both as Euclidean norms.
LARGEST_ERROR = 3e-3


@dataclass(frozen=True)
class Case:
    """kind: of `KINDS`, with the step of an operator in two kernels. design: of `DESIGNS`."""

    kind: str
    design: str
    channels: int
    size: int
    batch: int
    dtype: str = "float16"

    @property
    def name(self) -> str:
        return self.kind if self.design == "descriptors" else f"{self.kind} ({self.design})"


@dataclass(frozen=True)
class Tile:
    images: int
    rows: int
    columns: int
    outputs: int
    terms: int
    split: int
    warps: int
    stages: int
    early: bool = False

    @property
    def pixels(self) -> int:
        return self.images * self.rows * self.columns


@dataclass(eq=False)
class Tensors:
    """Data, weights and results of a case, `sets` times."""

    case: Case
    sets: int
    seed: int = 0
    x: list[torch.Tensor] = field(init=False)
    y: list[torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        case = self.case
        self.dtype = getattr(torch, case.dtype)
        self.random = torch.Generator(device=DEVICE).manual_seed(self.seed)
        self.groups = min(GROUPS, case.channels // 2)
        self.between = case.channels // SHRINK  # channels of the tensor between two steps
        read, written = {
            "operator-1/1": (case.channels, 3 * self.between),
            "operator-1/2": (3 * self.between, case.channels),
            "operator-2/1": (case.channels, self.between),
            "operator-2/2": (self.between, case.channels),
        }.get(case.kind, (case.channels, case.channels))
        shape = (case.batch, case.size, case.size)
        self.x = [self._draw(*shape, read) for _ in range(self.sets)]
        self.y = [
            torch.full((*shape, written), 7.0, dtype=self.dtype, device=DEVICE)
            for _ in range(self.sets)
        ]
        if case.design == "pointers":  # with a halo of zeros; `x` and `y` are what is inside
            self.haloed = [F.pad(x, (0, 0, 1, 1, 1, 1)).contiguous() for x in self.x]
            self.results = [F.pad(y, (0, 0, 1, 1, 1, 1)).contiguous() for y in self.y]
            self.x = [x[:, 1:-1, 1:-1] for x in self.haloed]
            self.y = [y[:, 1:-1, 1:-1] for y in self.results]
        self._packed: dict[tuple[int, str], torch.Tensor] = {}
        self.bias = torch.randn(max(written, 16), generator=self.random, device=DEVICE)
        self.count = torch.zeros(4096, dtype=torch.int32, device=DEVICE)

    def _draw(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        return (torch.randn(shape, generator=self.random, device=DEVICE) * scale).to(self.dtype)

    @cached_property
    def partial(self) -> torch.Tensor:
        return torch.empty(64 * 2**20 // 4, device=DEVICE)

    # Weights as a network has them.

    @cached_property
    def window(self) -> torch.Tensor:
        """[O, C, 3, 3] of a convolution, whose groups `kind` names."""
        groups = {"grouped-4": 4, "depthwise": self.case.channels}.get(self.case.kind, 1)
        fan = self.case.channels // groups
        return self._draw(self.case.channels, fan, 3, 3, scale=(9 * fan) ** -0.5)

    @cached_property
    def small(self) -> torch.Tensor:
        """[C, q, c]: the first weight of Operators 1 and 2."""
        of_group = self.between // self.groups
        return self._draw(
            self.case.channels, 3, of_group, scale=(self.case.channels // self.groups) ** -0.5
        )

    @cached_property
    def large(self) -> torch.Tensor:
        """[a, q, Z, O] of Operator 1, [a, 1, Z, O] of Operator 2."""
        across = 3 if "operator-1" in self.case.kind else 1
        terms = 3 * across * self.between
        return self._draw(3, across, self.between, self.case.channels, scale=terms**-0.5)

    # Weights as the kernels take them.

    @cached_property
    def packed_window(self) -> torch.Tensor:
        return self.window.permute(2, 3, 1, 0).reshape(-1, self.case.channels).contiguous()

    def blocks(self, block: int) -> torch.Tensor:
        """The first weight as [q, blocks, channels of a block, outputs of a block].

        Between groups are zeros.
        """
        channels, _, of_group = self.small.shape
        inputs = channels // self.groups
        outputs = block // inputs * of_group
        made = torch.zeros(3, channels // block, block, outputs, dtype=self.dtype, device=DEVICE)
        for c in range(channels):
            at = c % block // inputs * of_group
            made[:, c // block, c % block, at : at + of_group] = self.small[c]
        return made

    def packed_small(self, block: int, form: str) -> torch.Tensor:
        if (block, form) not in self._packed:
            self._packed[block, form] = self._pack(block, form)
        return self._packed[block, form]

    def _pack(self, block: int, form: str) -> torch.Tensor:
        made = self.blocks(block)
        q, many, inputs, outputs = made.shape
        if form == "fused":  # rows q c, columns the outputs of the block of c
            return made.reshape(q * many * inputs, outputs).contiguous()
        if form == "pointwise":  # rows the channels of a block, columns q and all outputs
            return made.permute(2, 0, 1, 3).reshape(inputs, q * many * outputs).contiguous()
        return (
            made.permute(0, 2, 1, 3).reshape(q * inputs, many * outputs).contiguous()
        )  # rows q and channels of a block

    @cached_property
    def packed_large(self) -> torch.Tensor:
        return self.large.reshape(-1, self.case.channels).contiguous()

    # The result, in float32.

    def expected(self, number: int = 0) -> torch.Tensor:
        x = self.x[number].float().permute(0, 3, 1, 2)
        kind = self.case.kind
        if kind in ("dense", "grouped-4", "depthwise"):
            groups = self.case.channels // self.window.shape[1]
            return F.conv2d(x, self.window.float(), padding=1, groups=groups).permute(0, 2, 3, 1)
        if kind.endswith("/2"):
            return self._second(x).permute(0, 2, 3, 1)
        first = self._first(x)
        if kind.endswith("/1"):
            return first.permute(0, 2, 3, 1)
        return self._second(first).permute(0, 2, 3, 1)

    def _first(self, x: torch.Tensor) -> torch.Tensor:
        return first_of(x, self.small.float(), self.groups, self.case.kind)

    def _second(self, z: torch.Tensor) -> torch.Tensor:
        return second_of(z, self.large.float(), self.case.kind)


def first_of(x: torch.Tensor, small: torch.Tensor, groups: int, kind: str) -> torch.Tensor:
    """The first step of Operator 1 or 2 on [n, C, h, w]; small: [C, q, c]."""
    channels, taps, of_group = small.shape
    by_group = small.reshape(groups, channels // groups, taps, of_group)
    if "operator-1" in kind:  # [q, G, c] outputs, no window
        w = by_group.permute(2, 0, 3, 1)[..., None, None]  # q G c r 1 1
        parts = [
            F.conv2d(x, w[q].reshape(-1, channels // groups, 1, 1), groups=groups)
            for q in range(taps)
        ]
        return torch.cat(parts, 1)
    w = by_group.permute(0, 3, 1, 2).reshape(-1, channels // groups, 1, taps)
    # The second window is bound first, then rotated: its row p is row p + 1 of this tensor.
    return torch.roll(F.conv2d(x, w, padding=(0, 1), groups=groups), -1, 2)


def second_of(z: torch.Tensor, large: torch.Tensor, kind: str) -> torch.Tensor:
    """The second step of Operator 1 or 2; large: [a, q, Z, O]."""
    if "operator-1" not in kind:
        return F.conv2d(z, large[:, 0].permute(2, 1, 0)[..., None], padding=(1, 0))
    weight = large.permute(3, 1, 2, 0)[..., None]  # O q Z a 1
    parts = z.split(large.shape[2], 1)
    found = []
    for q, part in enumerate(parts):  # column q of the window reads one column to the side
        moved = F.pad(part, (1, 1))[..., q : q + part.shape[3]]
        found.append(F.conv2d(moved, weight[:, q], padding=(1, 0)))
    return torch.stack(found).sum(0)


def descriptor(tensor: torch.Tensor, *block: int) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(tensor, list(block))


def launch(tensors: Tensors, tile: Tile, number: int = 0, epilogue: int = 0) -> None:
    """One call of the kernel of a case."""
    case = tensors.case
    x, y = tensors.x[number], tensors.y[number]
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    pixels = (tile.images, tile.rows, tile.columns)
    channels, size = case.channels, case.size
    places = math.prod(
        triton.cdiv(a, b) for a, b in zip((case.batch, size, size), pixels, strict=True)
    )
    if case.kind == "depthwise":
        strips = (
            triton.cdiv(size, tile.rows)
            * triton.cdiv(size, tile.columns)
            * triton.cdiv(channels, tile.outputs)
        )
        kernels.depthwise[(case.batch * strips,)](
            x, tensors.packed_window, y, tensors.bias, size, size, channels,
            EPILOGUE=epilogue, ROWS=tile.rows, TW=tile.columns, BC=tile.outputs, **options,
        )  # fmt: skip
        return
    if case.kind == "operator-1/1" and case.design == "descriptors":
        small = tensors.packed_small(tile.terms, "fused")
        kernels.first_step[(places * (channels // tile.terms),)](
            descriptor(x, *pixels, tile.terms), descriptor(small, tile.terms, small.shape[1]),
            descriptor(y, *pixels, small.shape[1]), size, size, channels,
            KW=3, TN=pixels[0], TH=pixels[1], TW=pixels[2], BX=tile.terms, BZ=small.shape[1],
            **options,
        )  # fmt: skip
        return
    if case.kind.endswith("fused"):
        small = tensors.packed_small(tile.terms, "fused")
        kernel = kernels.operator_1 if "operator-1" in case.kind else kernels.operator_2
        kernel[(places * (channels // tile.outputs),)](
            descriptor(x, *pixels, tile.terms),
            descriptor(small, tile.terms, small.shape[1]),
            descriptor(tensors.packed_large, small.shape[1], tile.outputs),
            descriptor(y, *pixels, tile.outputs), tensors.bias, size, size, channels, channels,
            KH=3, KW=3, EPILOGUE=epilogue, TN=pixels[0], TH=pixels[1], TW=pixels[2],
            BN=tile.outputs, BX=tile.terms, BZ=small.shape[1], **options,
        )  # fmt: skip
        return
    between = tensors.between
    high, wide, slices, rotate = 3, 3, False, False
    written, of_group, outputs_of_group, period = channels, channels, channels, channels
    weight = None
    if case.kind == "grouped-4":
        of_group = outputs_of_group = channels // 4
    elif case.kind == "operator-1/1":
        weight = tensors.packed_small(tile.terms, "pointwise")
        high, wide, of_group, written, period = 1, 1, tile.terms, 3 * between, between
        outputs_of_group = tile.terms // SHRINK
    elif case.kind == "operator-2/1":
        weight = tensors.packed_small(tile.terms, "window")
        high, of_group, written, period, rotate = 1, tile.terms, between, between, True
        outputs_of_group = tile.terms // SHRINK
    elif case.kind == "operator-1/2":
        weight, slices, of_group = tensors.packed_large, True, between
    elif case.kind == "operator-2/2":
        weight, wide, of_group = tensors.packed_large, 1, between
    weight = tensors.packed_window if weight is None else weight
    if case.design == "pointers":
        many = case.batch * size * size
        if tile.early:
            options["launch_pdl"] = True
        kernels.pointers[(triton.cdiv(many, tile.pixels) * (written // tile.outputs), tile.split)](
            tensors.haloed[number], weight, tensors.results[number], tensors.results[number],
            tensors.bias,
            tensors.partial if tile.split > 1 else tensors.bias, tensors.count, many, size, size,
            size + 2, size + 2,
            x.shape[3], ((1 - high // 2) * (size + 2) + 1 - wide // 2) * x.shape[3], size + 2,
            size + 2, written,
            (size + 3) * written, of_group, outputs_of_group, period, KH=high, KW=wide, STRIDE=1,
            SLICES=slices,
            ROTATE=rotate, ALIGN=16, RESIDUAL=False, EPILOGUE=epilogue, EARLY=tile.early,
            SPLIT=tile.split,
            BM=tile.pixels, BN=tile.outputs, BK=tile.terms, **options,
        )  # fmt: skip
        return
    kernels.convolution[(places * (written // tile.outputs), tile.split)](
        descriptor(x, *pixels, tile.terms), descriptor(weight, tile.terms, tile.outputs),
        descriptor(y, *pixels, tile.outputs), descriptor(y, *pixels, tile.outputs), tensors.bias,
        tensors.partial if tile.split > 1 else tensors.bias, tensors.count,
        size, size, written, of_group, outputs_of_group, period,
        KH=high, KW=wide, SLICES=slices, ROTATE=rotate, RESIDUAL=False, EPILOGUE=epilogue,
        SPLIT=tile.split,
        SWAP=case.design == "swapped", TN=pixels[0], TH=pixels[1], TW=pixels[2], BN=tile.outputs,
        BK=tile.terms, **options,
    )  # fmt: skip
