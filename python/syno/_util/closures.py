"""Copies of functions with what they hold, which `copy.deepcopy` leaves as they are."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

_CONTAINERS = (list, tuple, set, frozenset, deque)
# What stands in a copy for an object, by the object's id, as `copy.deepcopy` notes it.
Copies: TypeAlias = dict[int, Any]
# Containers within containers, as deep as a network may hide a function or a function an object.
_DEPTH = 4


class OwnClosures:
    """Copies of the functions within some objects, each with variables of its own.

    A function that is made within another one may hold layers of a network, or a list that it adds
    to. Its copy holds the copies of the layers, and another list. Functions that a module of Python
    has by their names stay.

    memo: copies by the ids of objects, as of `copy.deepcopy`. It gets the copies of the functions
    before a `deepcopy` of the objects; `fill` gives them what they hold after it.
    """

    def __init__(self, objects: Iterable[object], memo: Copies) -> None:
        self._memo = memo
        self._cells: dict[int, tuple[types.CellType, types.CellType]] = {}
        self._copies: list[tuple[types.FunctionType, types.FunctionType]] = []
        for each in objects:
            for function in _functions(each, _DEPTH):
                self._copy(function)

    def _copy(self, function: types.FunctionType) -> None:
        if id(function) in self._memo:
            return
        cells = []
        for cell in function.__closure__ or ():
            cells.append(self._cells.setdefault(id(cell), (cell, types.CellType()))[1])
        made = types.FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            tuple(cells) or None,
        )
        made.__kwdefaults__ = function.__kwdefaults__
        made.__qualname__ = function.__qualname__
        made.__dict__.update(function.__dict__)
        self._memo[id(function)] = made
        self._copies.append((function, made))
        for value in _held(function):
            for inner in _functions(value, _DEPTH):
                self._copy(inner)

    def fill(self) -> None:
        """Give the copies what their functions hold."""
        for cell, made in self._cells.values():
            if (held := _contents(cell)) is not _EMPTY:
                made.cell_contents = self._own(held, _DEPTH)
        for function, copied in self._copies:
            if function.__defaults__:
                copied.__defaults__ = self._own(function.__defaults__, _DEPTH)
            if function.__kwdefaults__:
                copied.__kwdefaults__ = self._own(function.__kwdefaults__, _DEPTH)

    def _own(self, value: Any, depth: int) -> Any:
        """What a copy has for an object; the object itself if it is no part of what was copied."""
        if id(value) in self._memo:
            return self._memo[id(value)]
        if isinstance(value, types.MethodType) and id(value.__self__) in self._memo:
            return types.MethodType(value.__func__, self._memo[id(value.__self__)])
        if depth == 0:
            return value
        if type(value) is functools.partial:
            own = [self._own(part, depth - 1) for part in (value.func, value.args, value.keywords)]
            return functools.partial(own[0], *own[1], **own[2])
        if type(value) is dict:
            made: Any = {key: self._own(each, depth - 1) for key, each in value.items()}
        elif type(value) in _CONTAINERS:
            made = type(value)(self._own(each, depth - 1) for each in value)
        else:
            return value
        if not isinstance(value, (tuple, frozenset)):
            self._memo[id(value)] = made  # which another function may hold, too
        return made


_EMPTY = object()


def _contents(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a variable without a value yet
        return _EMPTY


def _held(function: types.FunctionType) -> Iterator[object]:
    yield from (_contents(cell) for cell in function.__closure__ or ())
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _functions(value: object, depth: int) -> Iterator[types.FunctionType]:
    """The functions within an object that hold something of their own."""
    if isinstance(value, types.FunctionType):
        if any(True for _ in _held(value)) and not _has_a_place(value):
            yield value
    elif depth == 0:
        return
    elif isinstance(value, functools.partial):
        for part in (value.func, value.args, value.keywords):
            yield from _functions(part, depth - 1)
    elif isinstance(value, (dict, *_CONTAINERS)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _functions(each, depth - 1)


def _has_a_place(function: types.FunctionType) -> bool:
    """Whether a module of Python has the function by its name."""
    found: object = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


__all__ = ["Copies", "OwnClosures"]
