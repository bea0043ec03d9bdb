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

    @property
    def shared_bytes(self) -> int:
        """Of shared memory, for data and weights of all stages in half precision."""
        return self.stages * (self.pixels + self.outputs) * self.terms * 2


@dataclass(frozen=True)
class Spec:
    """A call of a kernel: maps of the result are size x size, `channels` are those of the data.

    kind: of `KINDS`; or stem, whose window reads rows of eight pixels of four channels.
    """

    kind: str
    batch: int
    size: int
    channels: int
    outputs: int
    window: int = 3
    stride: int = 1
    residual: bool = False
    epilogue: int = 2

    @property
    def geometry(self) -> tuple[int, int, bool, bool]:
        """Rows and columns of the window, slices, rotated."""
        return {
            "stem": (7, 1, False, False),
            "operator-1/1": (1, 1, False, False),
            "operator-1/2": (3, 3, True, False),
            "operator-2/1": (1, 3, False, True),
            "operator-2/2": (3, 1, False, False),
        }.get(self.kind, (self.window, self.window, False, False))

    @property
    def summed(self) -> int:
        """Channels that a tap sums; 0: those of a block of a tile."""
        return {
            "stem": 32,
            "operator-1/1": 0,
            "operator-1/2": self.channels // 3,
            "operator-2/1": 0,
            "grouped-4": self.channels // 4,
        }.get(self.kind, self.channels)

    @property
    def group(self) -> int:
        """Outputs that share the channels of a tap; of Operators' first steps those of all."""
        return self.outputs // 4 if self.kind == "grouped-4" else self.outputs

    def places(self, design: str, tile: Tile) -> int:
        """How many tiles cover the pixels of all maps."""
        sides = (self.batch, self.size, self.size)
        if design == "pointers":
            return triton.cdiv(math.prod(sides), tile.pixels)
        shape = (tile.images, tile.rows, tile.columns)
        return math.prod(triton.cdiv(a, b) for a, b in zip(sides, shape, strict=True))


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
    def spec(self) -> Spec:
        """The call without bias and activation."""
        c, half = self.channels, self.channels // 2
        read, written = {
            "operator-1/1": (c, 3 * half),
            "operator-1/2": (3 * half, c),
            "operator-2/1": (c, half),
            "operator-2/2": (half, c),
        }.get(self.kind, (c, c))
        return Spec(self.kind, self.batch, self.size, read, written, epilogue=0)

    @property
    def name(self) -> str:
        return self.kind if self.design == "descriptors" else f"{self.kind} ({self.design})"


@dataclass(eq=False)
class Tensors:
    """Data, weights and results of a case, `sets` times."""

    case: Case
    sets: int
    x: list[torch.Tensor] = field(init=False)
    y: list[torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        case = self.case
        self.dtype = getattr(torch, case.dtype)
        self.random = torch.Generator(device=DEVICE).manual_seed(0)
        self.groups = min(GROUPS, case.channels // 2)
        self.between = case.channels // SHRINK  # channels of the tensor between two steps
        read, written = case.spec.channels, case.spec.outputs
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
        self.shared = Shared()

    def _draw(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        return (torch.randn(shape, generator=self.random, device=DEVICE) * scale).to(self.dtype)

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

    def packed_small(self, block: int, design: str) -> torch.Tensor:
        if (block, design) not in self._packed:
            packed = packed_blocks(self.small, self.groups, self.case.kind, block, design)
            self._packed[block, design] = packed
        return self._packed[block, design]

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


def packed_blocks(
    small: torch.Tensor, groups: int, kind: str, block: int, design: str
) -> torch.Tensor:
    """The first weight of Operator 1 or 2, [C, q, c], by blocks of channels, as a design takes it.

    Between groups are zeros. Of the designs first and fused, rows are q and C, columns the outputs
    of a block; of others, columns are all outputs, and rows the channels of a block, of Operator 2
    q and these.
    """
    channels, taps, of_group = small.shape
    inputs = channels // groups
    made = small.new_zeros(taps, channels // block, block, block // inputs * of_group)
    for c in range(channels):
        at = c % block // inputs * of_group
        made[:, c // block, c % block, at : at + of_group] = small[c]
    if design in ("first", "fused"):
        return made.reshape(taps * channels, -1).contiguous()
    if "operator-1" in kind:
        return made.permute(2, 0, 1, 3).reshape(block, -1).contiguous()
    return made.permute(0, 2, 1, 3).reshape(taps * block, -1).contiguous()


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


class Shared:
    """Room for the sums of programs that share a tile, and a bias that no call adds."""

    def __init__(self) -> None:
        self.partial = torch.empty(16 * 2**20, device=DEVICE)
        self.bias = torch.zeros(16, device=DEVICE)
        self.count = torch.zeros(4096, dtype=torch.int32, device=DEVICE)


def call(spec: Spec, design: str, tile: Tile, x, y, residual, weight, bias, shared: Shared) -> None:  # type: ignore[no-untyped-def]
    """One call; the weight is as the design takes it.

    x, y, residual: for pointers with what lies around each map, for others the maps alone.
    """
    high, wide, slices, rotate = spec.geometry
    summed = spec.summed or tile.terms
    group = spec.group if spec.summed else tile.terms // SHRINK
    period = spec.outputs // 3 if spec.kind == "operator-1/1" else spec.outputs
    options = {"num_warps": tile.warps, "num_stages": tile.stages} | (
        {"launch_pdl": True} if tile.early else {}
    )
    size, pixels = spec.size, (tile.images, tile.rows, tile.columns)
    places = spec.places(design, tile)
    if design == "pointers":
        rows, columns = x.shape[1], x.shape[2]
        halo = 0 if spec.kind == "stem" else 1
        start = (
            0 if spec.kind == "stem" else ((1 - high // 2) * columns + 1 - wide // 2) * x.shape[3]
        )
        kernels.pointers[(places * (spec.outputs // tile.outputs), tile.split)](
            x, weight, y, residual, bias, shared.partial, shared.count,
            spec.batch * size * size, size, size, rows, columns, x.shape[3], start,
            y.shape[1], y.shape[2], spec.outputs, halo * (y.shape[2] + 1) * spec.outputs, summed,
            group, period,
            KH=high, KW=wide, STRIDE=spec.stride, SLICES=slices, ROTATE=rotate,
            ALIGN=8 if spec.kind == "stem" else 16,
            RESIDUAL=spec.residual, EPILOGUE=spec.epilogue, EARLY=tile.early, SPLIT=tile.split,
            BM=tile.pixels, BN=tile.outputs, BK=tile.terms, **options,
        )  # fmt: skip
        return
    if design == "first":
        kernels.first_step[(places * (spec.channels // tile.terms),)](
            descriptor(x, *pixels, tile.terms), descriptor(weight, tile.terms, weight.shape[1]),
            descriptor(y, *pixels, weight.shape[1]), size, size, spec.channels,
            KW=3, TN=pixels[0], TH=pixels[1], TW=pixels[2], BX=tile.terms, BZ=weight.shape[1],
            **options,
        )  # fmt: skip
        return
    kernels.convolution[(places * (spec.outputs // tile.outputs), tile.split)](
        descriptor(x, *pixels, tile.terms), descriptor(weight, tile.terms, tile.outputs),
        descriptor(y, *pixels, tile.outputs), descriptor(residual, *pixels, tile.outputs), bias,
        shared.partial, shared.count, size, size, spec.outputs, summed, group, period,
        KH=high, KW=wide, SLICES=slices, ROTATE=rotate,
        RESIDUAL=spec.residual, EPILOGUE=spec.epilogue, SPLIT=tile.split, SWAP=design == "swapped",
        TN=pixels[0], TH=pixels[1], TW=pixels[2],
        BN=tile.outputs, BK=tile.terms, **options,
    )  # fmt: skip


def launch(tensors: Tensors, tile: Tile, number: int = 0) -> None:
    """One call of the kernel of a case."""
    case = tensors.case
    x, y = tensors.x[number], tensors.y[number]
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    channels, size = case.channels, case.size
    if case.kind == "depthwise":
        strips = (
            triton.cdiv(size, tile.rows)
            * triton.cdiv(size, tile.columns)
            * triton.cdiv(channels, tile.outputs)
        )
        kernels.depthwise[(case.batch * strips,)](
            x, tensors.packed_window, y, size, size, channels,
            ROWS=tile.rows, TW=tile.columns, BC=tile.outputs, **options,
        )  # fmt: skip
        return
    if case.kind.endswith("fused"):
        small = tensors.packed_small(tile.terms, "fused")
        kernel = kernels.operator_1 if "operator-1" in case.kind else kernels.operator_2
        pixels = (tile.images, tile.rows, tile.columns)
        kernel[(case.spec.places(case.design, tile) * (channels // tile.outputs),)](
            descriptor(x, *pixels, tile.terms),
            descriptor(small, tile.terms, small.shape[1]),
            descriptor(tensors.packed_large, small.shape[1], tile.outputs),
            descriptor(y, *pixels, tile.outputs), size, size, channels,
            channels, KH=3, KW=3, TN=pixels[0], TH=pixels[1], TW=pixels[2],
            BN=tile.outputs, BX=tile.terms, BZ=small.shape[1], **options,
        )  # fmt: skip
        return
    design = case.design
    if case.kind == "operator-1/1" and design == "descriptors":
        design = "first"
    if case.kind.endswith("/1"):
        weight = tensors.packed_small(tile.terms, design)
    else:
        weight = tensors.packed_large if case.kind.endswith("/2") else tensors.packed_window
    if design == "pointers":
        x, y = tensors.haloed[number], tensors.results[number]
    shared = tensors.shared
    call(case.spec, design, tile, x, y, y, weight, shared.bias, shared)
