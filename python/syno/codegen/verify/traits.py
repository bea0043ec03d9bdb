"""What a random case has in it: the mix that a differential test states and counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from syno import _core
from syno.codegen.emitters import Case

# Every trait, in the order in which a mix is listed, and what it says of a case.
TRAITS = {
    "window": "has a window (Unfold)",
    "nested windows": "a window slides over what another one made, or ranges over it",
    "even window": "has a window of even size",
    "wide window": "has a window wider than what it slides over",
    "window of 1": "has a window of size 1",
    "causal window": "has a window that ends at its position",
    "strided window": "a window slides over a Stride's result, or a Stride takes from a window's",
    "cutting mask": "a border really cuts terms off under the binding",
    "rotation": "has a Shift",
    "rotation after a window": "rotates what a window made, where masked values may come back",
    "stride": "has a Stride",
    "split": "has a Split",
    "merge": "has a Merge",
    "expand": "has an Expand",
    "no weight": "has no weight",
    "one weight": "has one weight",
    "two weights": "has two weights",
    "three weights": "has three weights",
    "derived weight coordinate": "a weight is read at what a Split, Merge, Shift, ... made",
    "masked weight coordinate": "a weight is read at what a window made",
    "batch": "has a dimension that passes through untouched",
    "extent 1": "a dimension or reduction has extent 1",
    "extent 2": "... extent 2",
    "extent 3": "... extent 3",
    "extent 7": "... extent 7",
    "non-square": "two dimensions of the output have different extents above 1",
}
_WEIGHTS = ("no weight", "one weight", "two weights", "three weights")


def traits(case: Case) -> set[str]:
    """The traits of one case."""
    return _Walk(case).found


@dataclass(frozen=True)
class _Coordinate:
    """A coordinate: its extent, the primitive that made it, and all that it is made of."""

    extent: int
    maker: str = ""
    history: frozenset[str] = field(default_factory=frozenset)


class _Walk:
    """A walk over the steps of a case, from the output to the input."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.found: set[str] = set()
        self._known: dict[str, _Coordinate] = {}
        operator, binding = case
        for d, size in enumerate(operator.output):
            self._known[f"o{d}"] = _Coordinate(_core.evaluate_size(size, binding))
        weights = 0
        for step in operator._core.steps:
            if step.op == "contract":
                weights += 1
            for name, made in zip(step.out, self._take(step), strict=True):
                self._known[name] = made
        self.found.add(_WEIGHTS[min(weights, 3)])
        self._of_data()

    def _size(self, step: _core.Step) -> int:
        return _core.evaluate_size(step.size, self._case.binding)

    def _take(self, step: _core.Step) -> Iterator[_Coordinate]:
        """Notes the traits of one step and gives the coordinates it makes."""
        ins = [self._known[name] for name in step.inputs]
        history = frozenset[str]().union(*(i.history for i in ins)) | {step.op}

        def made(extent: int) -> _Coordinate:
            return _Coordinate(extent, step.op, history)

        if step.op in ("split", "merge", "expand", "stride"):
            self.found.add(step.op)
        if step.op == "split":
            yield made(ins[0].extent * ins[1].extent)
        elif step.op == "merge":
            block = self._size(step)
            yield made(ins[0].extent // block)
            yield made(block)
        elif step.op == "shift":
            self.found.add("rotation")
            if "unfold" in ins[0].history:
                self.found.add("rotation after a window")
            yield made(ins[0].extent)
        elif step.op == "stride":
            if "unfold" in ins[0].history:
                self.found.add("strided window")
            yield made(ins[0].extent * self._size(step))
        elif step.op == "unfold":
            self._window(step, *ins)
            yield made(ins[0].extent)
        elif step.op == "reduce":
            yield _Coordinate(self._size(step), "reduce")
        elif step.op == "contract":
            for name, _ in step.dims:
                maker = self._known[name].maker
                if maker not in ("", "reduce"):
                    self.found.add("derived weight coordinate")
                if "unfold" in self._known[name].history:
                    self.found.add("masked weight coordinate")

    def _window(self, step: _core.Step, place: _Coordinate, window: _Coordinate) -> None:
        self.found.add("window")
        past = place.history | window.history
        for trait, holds in (
            ("nested windows", "unfold" in past),
            ("strided window", "stride" in past),
            ("causal window", step.causal),
            ("even window", window.extent % 2 == 0),
            ("wide window", window.extent > place.extent),
            ("window of 1", window.extent == 1),
        ):
            if holds:
                self.found.add(trait)

    def _of_data(self) -> None:
        operator, binding = self._case
        extents = {coordinate.extent for coordinate in self._known.values()}
        self.found |= {f"extent {n}" for n in (1, 2, 3, 7) if n in extents}
        shapes = operator.shapes(binding)
        if len({extent for extent in shapes.output if extent > 1}) > 1:
            self.found.add("non-square")
        if operator.batch is not None:
            self.found.add("batch")
        if "window" in self.found:
            # With ones everywhere, the outputs add up to the terms that no mask cuts off.
            x, *weights = (np.ones(s, np.int64) for s in (shapes.input, *shapes.weights))
            if operator.interpret(binding, x, weights).sum() < operator.term_count(binding):
                self.found.add("cutting mask")
