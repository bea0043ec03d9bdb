"""Operators one move away from others: the neighbors of good candidates.

A move changes one size, adds or removes an index of a weight, or adds, removes or dilates a window.
It works on the steps of an operator. Of the results, those are kept that are legal operators of the
same shapes; whether one is any good is for the fit to say.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from syno import _core
from syno._util.errors import UserError
from syno.adaptation.pipeline.pool import WINDOW, Candidate, name_with_sizes
from syno.operators.operator import Operator
from syno.operators.steps import Dimension, Step, operator_of, steps_of

_USUAL = {WINDOW: 3}
_FACTOR = "s"
_SMALLEST, _LARGEST = 2, 64
# Names of coordinates that no operator has.
_NEW_REDUCTION, _NEW = "r90", "c90"


@dataclass(frozen=True)
class _Parts:
    """An operator that can be changed: its reductions, its other steps, and the match."""

    output: tuple[Dimension, ...]
    input: tuple[Dimension, ...]
    reductions: tuple[Step, ...]
    steps: tuple[Step, ...]
    match: tuple[str, ...]

    @classmethod
    def of(cls, operator: Operator) -> _Parts:
        core = operator._core
        steps = steps_of(core)
        return cls(
            tuple(core.output),
            tuple(core.input),
            tuple(step for step in steps if step.op == "reduce"),
            tuple(step for step in steps if step.op != "reduce"),
            tuple(core.match),
        )

    def operator(self) -> Operator:
        """The operator. UserError where these parts make none."""
        steps = (*self.reductions, *self.steps)
        return Operator(operator_of(self.output, self.input, steps, self.match))

    def with_steps(self, place: int, *steps: Step) -> _Parts:
        """With other steps in place of one."""
        return replace(self, steps=(*self.steps[:place], *steps, *self.steps[place + 1 :]))

    def bypassing(self, place: int) -> _Parts:
        """Without a step: what it made is the first coordinate that it took."""
        step = self.steps[place]
        names = {step.out[0]: step.inputs[0]}
        return replace(
            self,
            steps=(*self.steps[:place], *(s.renamed(names) for s in self.steps[place + 1 :])),
            match=tuple(names.get(name, name) for name in self.match),
        )


def mutations(
    parents: Sequence[Candidate], known: Sequence[Candidate], count: int, seed: int
) -> list[Candidate]:
    """So many neighbors of candidates, drawn at random, each parent's turn after the other's.

    A coefficient that a move adds has the value 2, and a window 3.

    Args:
        parents: the candidates, operators all of them.
        known: candidates that are not wanted again.
        count: the largest number of neighbors.
        seed: of the draw.
    """
    draw = random.Random(seed)
    done = {_identity(each) for each in known}
    lists = []
    for parent in parents:
        near = list(_neighbors(parent))
        draw.shuffle(near)
        lists.append(near)
    found: list[Candidate] = []
    for one in itertools.chain.from_iterable(itertools.zip_longest(*lists)):
        if len(found) == count:
            break
        if one is not None and _identity(one) not in done:
            done.add(_identity(one))
            found.append(one)
    return found


def _identity(candidate: Candidate) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Equal for the same operator with the same sizes."""
    return candidate.operator.canonical.structure, tuple(sorted(candidate.sizes.items()))


def _neighbors(parent: Candidate) -> Iterator[Candidate]:
    for sizes in _other_sizes(parent.sizes):
        yield _mutation(parent.operator.canonical, sizes)
    parts = _Parts.of(parent.operator)
    for changed in itertools.chain(
        _indices(parts), _coefficients(parts, parent.sizes), _windows(parts), _dilations(parts)
    ):
        try:
            operator = changed.operator()
        except UserError:  # the move leads to no operator
            continue
        known = {_FACTOR: _SMALLEST, **_USUAL, **parent.sizes}
        yield _mutation(
            operator, {name: known[name] for name in known if name in operator.variables}
        )


def _mutation(operator: Operator, sizes: Mapping[str, int]) -> Candidate:
    name = name_with_sizes(f"near-{operator.structure[:8]}", sizes)
    return Candidate(name, "mutation", operator.text, dict(sizes))


def _other_sizes(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """One size twice or half as large; a window 5 or 3."""
    for name, value in sizes.items():
        others = [5, 3] if name == WINDOW else [2 * value, value // 2]
        for other in others:
            if other != value and _SMALLEST <= other <= _LARGEST:
                yield {**sizes, name: other}


def _indices(parts: _Parts) -> Iterator[_Parts]:
    """An index of a weight more, or less."""
    # Of the output's dimensions, those that a weight has: others are positions.
    there = {name for step in parts.steps for name, _ in step.dims if name.startswith("o")}
    there |= {step.out[0] for step in parts.reductions}
    for place, step in enumerate(parts.steps):
        if step.op != "contract":
            there = (there - set(step.inputs)) | set(step.out)
            continue
        for name, role in step.dims:
            if role == "keep" and len(step.dims) > 1:
                fewer = parts.with_steps(place, replace(step, dims=_without(step, name)))
                if not any((name, "keep") in each.dims for each in parts.steps[:place]):
                    fewer = replace(fewer, steps=tuple(_dropping(s, name) for s in fewer.steps))
                yield fewer
        for name in sorted(there - {name for name, _ in step.dims}):
            yield parts.with_steps(place, _keeping(step, name))
        there -= {name for name, role in step.dims if role != "keep"}


def _without(step: Step, name: str) -> tuple[tuple[str, str], ...]:
    """The dimensions of a weight but one."""
    return tuple(dim for dim in step.dims if dim[0] != name)


def _keeping(step: Step, name: str) -> Step:
    """A contraction with one more index, in the order of their names."""
    dims = sorted(
        (*step.dims, (name, "keep")), key=lambda dim: ("orc".index(dim[0][0]), int(dim[0][1:]))
    )
    return replace(step, dims=tuple(dims))


def _dropping(step: Step, name: str) -> Step:
    """A step whose weight is the first that has this index, if it has it and keeps it not."""
    roles = {(name, "join"): (name, "drop")}
    return replace(step, dims=tuple(roles.get(dim, dim) for dim in step.dims))


def _coefficients(parts: _Parts, sizes: Mapping[str, int]) -> Iterator[_Parts]:
    """A reduction that is divided by a coefficient more, or less."""
    known = sorted({_FACTOR, *sizes} - {WINDOW})
    for place, step in enumerate(parts.reductions):
        if step.size in (WINDOW, *sizes):  # a window or a rank, which another size changes as well
            continue
        factors, names = step.size.split("*"), _core.size_names(step.size)
        others = ["*".join(part for part in factors if part != one) for one in factors]
        others += ["*".join([f"{name}^-1", *factors]) for name in known if name not in names]
        for other in others:
            if other and other != step.size:
                before, after = parts.reductions[:place], parts.reductions[place + 1 :]
                yield replace(parts, reductions=(*before, replace(step, size=other), *after))


def _windows(parts: _Parts) -> Iterator[_Parts]:
    """Without one of the windows, and with one more along a dimension of the map."""
    for place, step in enumerate(parts.steps):
        if step.op != "unfold" or not step.inputs[1].startswith("r"):
            continue
        window = step.inputs[1]
        fewer = parts.bypassing(place)
        yield replace(
            fewer,
            reductions=tuple(each for each in parts.reductions if each.out[0] != window),
            steps=tuple(replace(s, dims=_without(s, window)) for s in fewer.steps),
        )
    whole = [name for name in parts.match if name.startswith("o") and name != "o0"]
    for axis, (place, step) in itertools.product(whole, enumerate(parts.steps)):
        if step.op != "contract":
            continue
        more = parts.with_steps(place, _keeping(step, _NEW_REDUCTION))
        yield replace(
            more,
            reductions=(*parts.reductions, Step("reduce", (), (_NEW_REDUCTION,), WINDOW)),
            steps=(*more.steps, Step("unfold", (axis, _NEW_REDUCTION), (_NEW,))),
            match=tuple(_NEW if name == axis else name for name in parts.match),
        )


def _dilations(parts: _Parts) -> Iterator[_Parts]:
    """All windows dilated by a coefficient, or a window that is not dilated any more."""
    for place, step in enumerate(parts.steps):
        if step.op == "unfold" and step.inputs[1].startswith("r"):
            axis, window = step.inputs
            stride = Step("stride", (window,), (_NEW,), _FACTOR)
            yield parts.with_steps(place, stride, replace(step, inputs=(axis, _NEW)))
        if step.op == "stride":
            yield parts.bypassing(place)
