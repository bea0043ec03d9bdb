"""The arguments of an operator's call, by their names in ATen."""

from __future__ import annotations

from typing import Any

from torch import fx


class NodeArguments:
    """The arguments of a node, with the defaults of those that are not given.

    Whoever computes the node reads what it heeds. `unread` then names what would be ignored: the
    arguments that differ from their defaults and were not read.
    """

    def __init__(self, node: fx.Node) -> None:
        self._values: dict[str, object] = {}
        self._unread: dict[str, None] = {}
        for place, argument in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
            value = argument.default_value
            if place < len(node.args):
                value = node.args[place]
            elif argument.name in node.kwargs:
                value = node.kwargs[argument.name]
            self._values[argument.name] = value
            if not argument.has_default_value() or not _alike(value, argument.default_value):
                self._unread[argument.name] = None

    def __getitem__(self, name: str) -> Any:
        self._unread.pop(name, None)
        return self._values[name]

    def get(self, name: str, default: object) -> Any:
        """An argument that not all overloads have."""
        return self[name] if name in self._values else default

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def first(self, *names: str) -> Any:
        """The argument that has one of these names, which differ between overloads."""
        return self[next(name for name in names if name in self._values)]

    def without_effect(self, *names: str) -> None:
        """Count arguments as read that do not change what is computed at inference."""
        for name in names:
            self._unread.pop(name, None)

    @property
    def unread(self) -> tuple[str, ...]:
        """The arguments that are not the default and were not read."""
        return tuple(self._unread)


def _alike(value: object, default: object) -> bool:
    """Whether two values are equal; one number stands for a list of it."""
    if isinstance(value, (list, tuple)) or isinstance(default, (list, tuple)):
        mine, its = _listed(value), _listed(default)
        if 1 in (len(mine), len(its)) and mine and its:
            return len({*mine, *its}) == 1
        return mine == its
    if isinstance(value, (int, float)) and isinstance(default, (int, float)):
        return value == default
    return type(value) is type(default) and value == default


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
