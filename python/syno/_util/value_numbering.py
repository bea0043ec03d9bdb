"""Whether two networks compute their results by the same calls of operators. Requires PyTorch.

Results that are close to each other do not show it: a branch of `forward` may have a small effect,
or none on the inputs of a trial. So each value gets a number, as in the value numbering of
compilers: it stands for the operator that computes the value, and for the arguments of the call, by
their numbers where they are tensors. Two networks are the same where their results have the same
numbers; what no result depends on has no part in that.

A view of a tensor is no call here: its number is that of its memory, with its place in there.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch._ops import HigherOrderOperator, OpOverload
from torch.func import functional_call
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from syno._util.trial_calls import copies, tensors_of

_aten = torch.ops.aten
_COPIES = (_aten.clone.default, _aten.lift_fresh_copy.default, _aten._to_copy.default)
# Arguments that say in which memory and type a result is; the result itself shows it.
_OF_RESULTS = ("dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking")

# What torch.compiler knows it by whether networks are exported.
_EXPORTED = ("_is_compiling_flag", "_is_exporting_flag")


def first_other_call(
    program: nn.Module, net: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> str | None:
    """The first operator that one of two networks needs for its results and the other does not.

    program: as torch.export made it from the network, whose names its parameters and buffers have.
    It stays as it is; the network may change its own buffers. None where both are the same.
    """
    # What a program does to its buffers, it does to those of the network that it was made from.
    # A deep copy: those that lie in the same memory do so in the copy.
    buffers = copy.deepcopy(dict(program.named_buffers()))

    def run(*given: torch.Tensor) -> object:
        return functional_call(program, buffers, given)

    labels = _labels(net)
    own = [(labels[name], x) for name, x in _held(net).items()]
    held = {**_held(program), **buffers}
    shared = [(labels[name], x) for name, x in held.items() if name in labels]
    numbers = _Numbers()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        right = _results(net, inputs, own, _Calls(numbers))
        made = _results(run, inputs, shared, _Calls(numbers))
    return None if made == right else numbers.first_difference(right, made)


def _results(
    run: Callable[..., object],
    inputs: tuple[torch.Tensor, ...],
    held: Sequence[tuple[str, torch.Tensor]],
    calls: _Calls,
) -> list[_Number]:
    """The numbers of what a network returns, and of what it leaves in inputs and buffers.

    held: its parameters and buffers, with the names of what is in them.
    """
    given = copies(inputs)
    named = [*held, *((f"input {number}", x) for number, x in enumerate(given))]
    for label, x in named:
        calls.begin(label, x)
    torch.manual_seed(0)
    with calls, _as_exported():
        returned = run(*given)
    results = [calls.number(each) for each in tree_leaves(returned)]
    return results + [calls.end(label, x) for label, x in named if calls.changed(label, x)]


def _held(net: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a network, each once."""
    return {**dict(net.named_parameters()), **dict(net.named_buffers())}


@contextlib.contextmanager
def _as_exported() -> Iterator[None]:
    """Functions of torch call the operators that they call while they are exported."""
    before = {name: getattr(torch.compiler, name, False) for name in _EXPORTED}
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        vars(torch.compiler).update(dict.fromkeys(_EXPORTED, True))
        torch.backends.mha.set_fastpath_enabled(False)
        yield
    finally:
        vars(torch.compiler).update(before)
        torch.backends.mha.set_fastpath_enabled(fast)


def _labels(net: nn.Module) -> dict[str, str]:
    """Of each parameter and buffer the first name of those in the same memory."""
    parameters = dict(net.named_parameters(remove_duplicate=False))
    held = parameters | dict(net.named_buffers(remove_duplicate=False))
    first: dict[int, str] = {}
    return {name: first.setdefault(_address(x), name) for name, x in held.items()}


class _Number(int):
    """The number of a value, or of a call."""


class _Numbers:
    """Numbers for networks that are compared: what is described alike has one number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], _Number] = {}

    def of(self, *description: object) -> _Number:
        """The number of what is described so; numbers in there stand for other values."""
        return self._numbers.setdefault(description, _Number(len(self._numbers)))

    def first_difference(self, right: Sequence[_Number], made: Sequence[_Number]) -> str:
        """The first operator that only one of two lists of values depends on."""
        descriptions = list(self._numbers)
        needed = [_needed(descriptions, numbers) for numbers in (right, made)]
        others = (descriptions[number] for number in sorted(needed[0] ^ needed[1]))
        return next((str(each[1]) for each in others if each[0] == "call"), "other values")


def _needed(descriptions: Sequence[tuple[object, ...]], numbers: Sequence[_Number]) -> set[_Number]:
    """The numbers of all that these values depend on."""
    found: set[_Number] = set()
    left = list(numbers)
    while left:
        if (number := left.pop()) not in found:
            found.add(number)
            left += [each for each in tree_leaves(descriptions[number]) if type(each) is _Number]
    return found


class _Calls(TorchDispatchMode):
    """Follows the values of one network through its calls."""

    supports_higher_order_operators = True

    def __init__(self, numbers: _Numbers) -> None:
        super().__init__()
        self._numbers = numbers
        # What is in a storage, by its address, which no other has while a reference to it is held.
        self._contents: dict[int, tuple[StorageWeakRef, _Number]] = {}
        self._draws = 0

    def begin(self, label: str, x: torch.Tensor) -> None:
        """Gives a name to what is in the memory of a tensor."""
        self._fill(x, self._numbers.of("named", label))

    def changed(self, label: str, x: torch.Tensor) -> bool:
        """Whether something else than in the beginning is in the memory of a tensor."""
        return self._content(x) != self._numbers.of("named", label)

    def end(self, label: str, x: torch.Tensor) -> _Number:
        """The number of what is in the memory of a tensor with a name in the end."""
        return self._numbers.of("left", label, self._content(x))

    def number(self, value: object) -> _Number:
        """The number of a tensor, or of another object that stands in arguments or results."""
        if not isinstance(value, torch.Tensor):
            return self._numbers.of("object", type(value).__name__, repr(value))
        return self._numbers.of("tensor", self._content(value), *_place(value))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        if isinstance(func, HigherOrderOperator):
            return self._part(func, args)
        arguments = _arguments(func, args, kwargs or {})
        call = self._call(func, arguments)
        changed = self._changed(func, arguments)
        known = {_address(x) for x in tensors_of(arguments)}
        returned = func(*args, **(kwargs or {}))
        for place, x in enumerate(tensors_of(returned)):
            if _address(x) not in known:
                self._fill(x, self._made(func, arguments, call, place, x))
        for name in changed:
            for place, x in enumerate(tensors_of(arguments[name])):
                self._fill(x, self._numbers.of("changed", call, name, place))
        return returned

    def _call(self, func: OpOverload, arguments: Mapping[str, object]) -> _Number:
        draws = 0
        if torch.Tag.nondeterministic_seeded in func.tags:
            self._draws += 1
            draws = self._draws
        given = (
            (name, *self._of_argument(value))
            for name, value in arguments.items()
            if name not in _OF_RESULTS
        )
        return self._numbers.of("call", str(func), draws, *given)

    def _of_argument(self, value: object) -> tuple[_Number, ...]:
        if isinstance(value, (list, tuple)):
            return tuple(self.number(each) for each in value)
        return (self.number(value),)

    def _changed(self, func: OpOverload, arguments: Mapping[str, object]) -> list[str]:
        """The arguments that a call writes into."""
        if func is _aten.copy_.default:
            # A program copies into a buffer what was computed in the buffer itself.
            kept = self.number(arguments["self"]) == self.number(arguments["src"])
            return [] if kept else ["self"]
        declared = func._schema.arguments
        return [each.name for each in declared if each.alias_info and each.alias_info.is_write]

    def _made(
        self,
        func: OpOverload,
        arguments: Mapping[str, object],
        call: _Number,
        place: int,
        x: torch.Tensor,
    ) -> _Number:
        """What is in the memory of a result, which is new."""
        of = arguments["self"] if func in _COPIES else None
        if isinstance(of, torch.Tensor) and _place(of) == _place(x) and _bytes(of) == _bytes(x):
            return self._content(of)
        return self._numbers.of("made", call, place, *_place(x))

    def _part(self, func: HigherOrderOperator, args: tuple[Any, ...]) -> object:
        """A part of `forward` in another mode, which torch.export makes a call."""
        name = func.name()
        if name == "wrap_with_set_grad_enabled":
            mode: contextlib.AbstractContextManager[object] = torch.set_grad_enabled(args[0])
            args = args[1:]
        elif name == "wrap_with_autocast":
            mode = torch.autocast(args[0], args[1], args[2], args[3])
            args = args[4:]
        else:
            raise NotImplementedError(f"calls of {name} are not followed")
        with mode, self:
            return args[0](*args[1:])

    def _content(self, x: torch.Tensor) -> _Number:
        """What is in the memory of a tensor: of one that no call made, its bytes."""
        if _address(x) not in self._contents:
            self._fill(x, self._numbers.of("constant", _hash(x)))
        return self._contents[_address(x)][1]

    def _fill(self, x: torch.Tensor, content: _Number) -> None:
        self._contents[_address(x)] = StorageWeakRef(x.untyped_storage()), content


def _arguments(
    func: OpOverload, args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """All arguments of a call by their names."""
    declared = func._schema.arguments
    given = {each.name: value for each, value in zip(declared, args, strict=False)}
    return {each.name: each.default_value for each in declared} | given | dict(kwargs)


def _address(x: torch.Tensor) -> int:
    return x.untyped_storage()._cdata


def _bytes(x: torch.Tensor) -> int:
    return x.untyped_storage().nbytes()


def _place(x: torch.Tensor) -> tuple[object, ...]:
    """Which elements of its memory a tensor has; the step along a dimension of one is of no use."""
    sizes = tuple(x.shape)
    steps = tuple(s if size > 1 else 0 for size, s in zip(sizes, x.stride(), strict=True))
    return x.dtype, x.storage_offset(), sizes, steps, x.is_conj(), x.is_neg()


def _hash(x: torch.Tensor) -> int:
    """A hash of the bytes of a tensor's memory."""
    whole = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())  # type: ignore[call-overload]
    return hash(whole.numpy().tobytes())
