"""The weights of an operator under the names and in the order of its index notation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syno._util.errors import UserError, first_line


@dataclass(frozen=True)
class WeightNames:
    """What index notation calls the weights of an operator, in the operator's canonical order.

    names: the name of each weight.
    orders: an array that is indexed as in the notation is passed as `array.transpose(order)`.
    reordered: whether a list of arrays in the order of the notation would be misread: weights or
        their indices have another order there.
    """

    names: tuple[str, ...]
    orders: tuple[tuple[int, ...], ...]
    reordered: bool

    @classmethod
    def of(cls, text: str, weights: Iterable[tuple[str, Sequence[int]]]) -> WeightNames:
        """Return the names of the weights of a notation, which are given in canonical order."""
        found = [(name, tuple(order)) for name, order in weights]
        places = []
        for name, _ in found:
            place = re.search(rf"(?<!\w){re.escape(name)}\s*\[", text)
            places.append(-1 if place is None else place.start())
        turned = any(order != tuple(range(len(order))) for _, order in found)
        names, orders = tuple(n for n, _ in found), tuple(o for _, o in found)
        return cls(names, orders, turned or places != sorted(places))

    @classmethod
    def canonical(cls, count: int) -> WeightNames:
        """Return the names w0, w1, ... in the canonical order."""
        return cls(tuple(f"w{t}" for t in range(count)), ((),) * count, False)

    def arranged(self, given: Sequence[Any] | Mapping[str, Any] | None) -> list[Any]:
        """Return arrays in canonical order.

        Args:
            given: arrays by name, indexed as in the notation; or a list in canonical order, which
                only an operator takes whose notation has the same order.

        Raises:
            UserError: a name is missing or unknown, or a list could be misread.
        """
        if isinstance(given, np.ndarray) or not isinstance(given, (Mapping, Sequence)):
            raise UserError(
                "'weights' is a list with one array for each weight, or the arrays by name\n"
                f"  expected: a list or a dict      got: {type(given).__name__}"
            )
        if not isinstance(given, Mapping):
            if self.reordered:
                raise UserError(
                    "the weights of this operator have another order than in its notation, so that "
                    f"a list could be misread: {self._order()}\n"
                    f"  expected: the weights by name: {self._example()}      got: a list"
                )
            return list(given)
        if set(given) != set(self.names):
            raise UserError(
                "the weights by name are not those of the operator\n"
                f"  expected: {', '.join(self.names)}      got: {', '.join(map(str, given))}"
            )
        pairs = zip(self.names, self.orders, strict=True)
        return [_turned(_array(name, given[name]), order) for name, order in pairs]

    def named(self, weights: Sequence[Any]) -> dict[str, Any]:
        """Return canonical arrays by name, each as a view that is indexed as in the notation."""
        found = {}
        for name, order, weight in zip(self.names, self.orders, weights, strict=True):
            back = sorted(range(len(order)), key=order.__getitem__)
            found[name] = _turned(weight, back)
        return found

    def _example(self) -> str:
        return "{" + ", ".join(f'"{name}": ...' for name in self.names) + "}"

    def _order(self) -> str:
        parts = []
        for number, (name, order) in enumerate(zip(self.names, self.orders, strict=True)):
            dims = ", ".join(map(str, order))
            turned = f".transpose({dims})" if list(order) != sorted(order) else ""
            parts.append(f"weight {number} is {name}{turned}")
        return ", ".join(parts)


def number_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """Convert `value` to an array of integers or floats; a UserError names other values."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise UserError(
            f"{name} is a masked array\n"
            f"  expected: an array with all of its values      what to do: use {name}.filled(0)"
        )
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        raise UserError(
            f"{name} is not an array: {first_line(error)}\n"
            "  expected: integers or floats in an array of numpy, or in a tensor of a type that "
            "numpy has, on the CPU"
        ) from error
    if array.dtype.kind not in "biuf":
        raise UserError(
            f"{name} does not contain numbers\n"
            f"  expected: integers or floats      got: {array.dtype}"
        )
    return array


def _array(name: str, value: Any) -> Any:
    """An array of numpy, a tensor, or anything that numpy takes for an array."""
    return value if hasattr(value, "permute") else number_array(f"weight '{name}'", value)


def _turned(array: Any, order: Sequence[int]) -> Any:
    """The array with its dimensions in another order; another rank is left to the checks."""
    if array.ndim != len(order) or list(order) == sorted(order):
        return array
    permute = getattr(array, "permute", None)
    return array.transpose(*order) if permute is None else permute(*order)
