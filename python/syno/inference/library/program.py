"""A network as a sequence of steps on memory, for one image."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from syno._util.errors import UserError
from syno._util.tensors import dense
from syno.inference.codes import Codes
from syno.inference.layer import TracedLayer

# Floats of a cache line, which every tensor begins at, and bytes of a float.
LINE, FLOAT = 16, 4
# The greatest float, and half of the distance to what would be the next one.
_GREATEST = (2 - 2**-24) * 2.0**127
ARENA, INPUT, OUTPUT, CONSTANT = "arena", "input", "output", "constant"


@dataclass(eq=False)
class Buffer:
    """Memory of `size` elements: floats, or codes of 8 bits.

    kind: where; offset: in the arena, among the constants, or in `whole`, the buffer that this one
    is a part of; number: of an input, an output or a constant; first, last: the steps between which
    its content is needed.
    """

    size: int
    kind: str = ARENA
    offset: int = 0
    number: int = 0
    first: int = 0
    last: int = 0
    whole: Buffer | None = None
    codes: Codes | None = None

    @property
    def floats(self) -> int:
        """Its size in floats."""
        return self.size if self.codes is None else -(-self.size // FLOAT)

    @property
    def root(self) -> Buffer:
        """The buffer that is no part of another."""
        return self if self.whole is None else self.whole.root

    @property
    def place(self) -> int:
        """The offset in the root."""
        return 0 if self.whole is None else self.offset + self.whole.place

    def put_into(self, whole: Buffer, offset: int) -> None:
        """Make this, which is its own root, a part of another buffer."""
        self.whole, self.offset = whole, offset


@dataclass(frozen=True)
class Value:
    """A tensor in a buffer. view: its shape, strides and offset there, without values."""

    buffer: Buffer
    view: torch.Tensor

    @property
    def shape(self) -> list[int]:
        """Its shape, with the batch of one image."""
        return list(self.view.shape)

    @property
    def codes(self) -> Codes | None:
        """What its elements stand for, if they are codes."""
        return self.buffer.codes

    def source(self, place: str) -> str:
        """What C++ reads it by from an address in it."""
        if self.codes is None:
            return place
        return f"Codes{{{place}, {number(self.codes.zero)}, {number(self.codes.scale)}}}"

    def target(self, place: str) -> str:
        """What C++ writes it by to an address in it."""
        if self.codes is None:
            return place
        return f"CodesOut{{{place}, {number(self.codes.zero)}, {number(self.codes.factor)}}}"

    @property
    def bytes(self) -> int:
        """How many bytes its elements have."""
        return self.view.numel() * (FLOAT if self.codes is None else 1)

    def lies(self, order: Sequence[int]) -> bool:
        """Whether it is one block of memory with its dimensions in this order, outermost first."""
        return self.view.permute(*order).is_contiguous()

    @property
    def contiguous(self) -> bool:
        """Whether it lies row by row."""
        return self.view.is_contiguous()

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the memory of a step's result."""
        buffer = self.buffer
        return buffer.kind == ARENA and self.contiguous and self.view.numel() == buffer.size


Address = Callable[[Value], str]


@dataclass(frozen=True)
class TeamStep:
    """What a team does before it waits.

    code: C++ with the expressions that `Address` gives for values; about: for a comment.
    """

    code: Callable[[Address], str]
    reads: tuple[Value, ...]
    writes: Value
    about: str


@dataclass(frozen=True)
class KernelCall:
    """A call of the kernel of a layer, whose phases a team shares.

    samples: how many an image has for it, one after another, such as frames or windows.
    """

    layer: int
    x: Value
    channel: Value | None
    residual: Value | None
    writes: Value
    about: str
    samples: int = 1

    @property
    def reads(self) -> tuple[Value, ...]:
        """Its operands."""
        return tuple(v for v in (self.x, self.channel, self.residual) if v is not None)


@dataclass(frozen=True)
class CalledLayer:
    """A layer whose operands lie in memory in a certain way.

    inside: whether the channels of its maps lie side by side; codes: whether its result and its
    residual are codes.
    """

    layer: TracedLayer
    inside: bool = False
    codes: bool = False

    @property
    def formats(self) -> tuple[str, str]:
        """How its input, and its output, are stored."""
        names = "float32", "uint8"
        return names[self.layer.codes is not None], names[self.codes]

    @property
    def epilogue(self) -> str:
        """What its kernel does with a result."""
        parts = self.layer.parts
        if self.layer.codes is None:
            return parts.text
        # Sums of integers always become numbers by a scale.
        return "+".join(["scale", "bias", *(p for p in parts.text.split("+") if p not in _SUMS)])

    @property
    def key(self) -> tuple[object, ...]:
        """What layers that have a kernel in common have in common."""
        layer = self.layer
        values = None if layer.codes is None else len(layer.codes.values)
        own = (layer.computation.key, self.epilogue, layer.channel, layer.precision)
        return (*own, values, self.inside, self.codes)


# Parts of an epilogue that a layer of integers always has, and none.
_SUMS = ("scale", "bias", "")


@dataclass
class Program:
    """Steps from inputs to outputs, with the layers and constants that they name.

    shared: the numbers of the inputs that are the same for all images. tokens: by the number of an
    input of token ids, what they are below.
    """

    steps: list[TeamStep | KernelCall] = field(default_factory=list)
    layers: list[CalledLayer] = field(default_factory=list)
    constants: list[torch.Tensor] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)
    tokens: dict[int, int] = field(default_factory=dict)
    arena: int = 0
    _held: dict[tuple[object, ...], Value] = field(default_factory=dict)
    _kept: list[torch.Tensor] = field(default_factory=list)
    _constant_floats: int = 0

    def new(
        self,
        shape: Sequence[int],
        dtype: torch.dtype = torch.float32,
        *,
        codes: Codes | None = None,
        order: Sequence[int] | None = None,
    ) -> Value:
        """A tensor of the arena. Truth values are the numbers 1 and 0 there.

        order: in which its dimensions lie in memory, the outermost first; by default the first one.
        """
        places = range(len(shape)) if order is None else order
        kind = dtype if codes is None else torch.uint8
        view = torch.empty([shape[d] for d in places], dtype=kind, device="meta")
        back = [list(places).index(d) for d in range(len(shape))]
        return Value(Buffer(math.prod(shape), codes=codes), view.permute(back))

    def constant(self, tensor: torch.Tensor) -> Value:
        """A tensor of the file of weights. UserError for complex numbers."""
        tensor = dense("a tensor of the network", tensor)
        name = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        if name not in self._held:
            held = tensor.detach().float().contiguous()
            buffer = Buffer(
                held.numel(), CONSTANT, self._constant_floats, number=len(self.constants)
            )
            self._constant_floats += -(-held.numel() // LINE) * LINE
            self.constants.append(held)
            dtype = torch.bool if tensor.dtype == torch.bool else torch.float32
            view = torch.empty(list(held.shape), dtype=dtype, device="meta")
            # The tensor is kept: another one would take its address, and its name here.
            self._held[name] = Value(buffer, view)
            self._kept.append(tensor)
        return self._held[name]

    @property
    def constant_floats(self) -> int:
        """The floats of all constants, each from a cache line on."""
        return self._constant_floats

    def codes(self) -> list[Codes]:
        """What the codes that steps write stand for, in the order of the steps."""
        written = (step.writes.codes for step in self.steps)
        return [codes for codes in written if codes is not None]

    def plan_memory(self) -> None:
        """Gives every buffer of the arena a place, such that none lie over each other in use."""
        buffers: dict[Buffer, None] = {}
        for number, step in enumerate(self.steps):
            for value in (step.writes, *step.reads):
                buffer = value.buffer.root
                if buffer.kind != ARENA:
                    continue
                if buffer not in buffers:
                    buffers[buffer] = None
                    buffer.first = number
                buffer.last = number
        placed: list[Buffer] = []
        for buffer in sorted(buffers, key=lambda b: (-b.floats, b.first)):
            buffer.offset = _lowest(buffer, placed)
            placed.append(buffer)
        self.arena = max((b.offset + _rounded(b.floats) for b in placed), default=0)

    def address(self, value: Value) -> str:
        """The C++ expression of a value's first element in a library."""
        buffer = value.buffer.root
        base = {
            ARENA: "arena",
            INPUT: _numbered("x", buffer.number, len(self.inputs)),
            OUTPUT: _numbered("y", buffer.number, len(self.outputs)),
            CONSTANT: "constants",
        }[buffer.kind]
        if buffer.codes is not None:
            return _moved(f"bytes_at({_moved(base, buffer.offset)})", _place(value))
        return _moved(base, buffer.offset + _place(value))

    def hosted_address(self, value: Value) -> str:
        """The same in a program that a host calls: it has a pointer to each constant."""
        buffer = value.buffer.root
        if buffer.kind != CONSTANT:
            return self.address(value)
        return _moved(f"constants[{buffer.number}]", _place(value))


def _numbered(name: str, number_: int, count: int) -> str:
    """As network.h names inputs and outputs."""
    return name if count == 1 else f"{name}{number_}"


def _place(value: Value) -> int:
    """Where a value begins in its root."""
    return value.buffer.place + int(value.view.storage_offset())


def _moved(base: str, place: int) -> str:
    return f"({base} + {place})" if place else base


def number(value: object) -> str:
    """A float of C++. UserError for what is no real number."""
    if not isinstance(value, (int, float)):
        raise UserError(f"the network library has no code for the number {value}")
    found = float(value)
    if math.isnan(found):
        return '__builtin_nanf("")'
    if abs(found) > _GREATEST:
        return "-__builtin_inff()" if found < 0 else "__builtin_inff()"
    return f"{found!r}f"


def _rounded(size: int) -> int:
    return -(-size // LINE) * LINE


def _lowest(buffer: Buffer, placed: list[Buffer]) -> int:
    """The lowest place that no other buffer needs at the same time."""
    busy = sorted(
        (other.offset, other.offset + _rounded(other.floats))
        for other in placed
        if other.first <= buffer.last and buffer.first <= other.last
    )
    place = 0
    for begin, end in busy:
        if place + _rounded(buffer.floats) <= begin:
            break
        place = max(place, end)
    return place
