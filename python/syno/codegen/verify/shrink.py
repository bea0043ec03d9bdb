"""A failing case made small: fewer steps, weights and dimensions, smaller sizes; it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from syno import _core
from syno._util.errors import UserError
from syno.codegen.emitters import Case
from syno.codegen.verify.random_cases import is_legal
from syno.operators.operator import Operator
from syno.operators.steps import Dimension, Step, steps_of

_SECONDS = 30.0


def shrink(case: Case, fails: Callable[[Case], bool], *, seconds: float = _SECONDS) -> Case:
    """The smallest case that greedy steps lead to, each of which `fails`.

    Tried in this order, again and again until nothing helps: an output dimension away, a step away
    (with what cannot be without it), a dimension of a weight away, a plainer size, a plainer step,
    a smaller value of a variable. Gives up after some seconds with what it has by then.
    """
    until = time.monotonic() + seconds
    sketch, found = _sketch(case), case
    again = True
    while again:
        again = False
        for smaller in _smaller(sketch):
            if time.monotonic() > until:
                return found
            built = smaller.build()
            if built is None or not _is_smaller(built, found) or not fails(built):
                continue
            # Back from the operator: canonical, without what the step left behind.
            sketch, found, again = _sketch(built), built, True
            break
    return found


def _weight(case: Case) -> tuple[int, ...]:
    """What gets smaller: steps, dimensions, the text, the sizes."""
    operator, binding = case
    steps = operator._core.steps
    dims = sum(len(step.dims) for step in steps)
    plain = sum(abs(step.amount) + step.causal for step in steps)
    text = len(operator.text)
    return len(steps), len(operator.output), dims, plain, len(binding), text, sum(binding.values())


def _is_smaller(case: Case, than: Case) -> bool:
    return _weight(case) < _weight(than)


@dataclass(frozen=True)
class _Sketch:
    """A case that can be changed: whatever is left out, the rest makes an operator again.

    The input is what the steps leave over, in the order of `match` as far as that names it.
    """

    output: tuple[tuple[str, Dimension], ...]
    steps: tuple[Step, ...]
    match: tuple[str, ...]
    binding: tuple[tuple[str, int], ...]

    def build(self) -> Case | None:
        """The case; None where these steps make no operator, or not under this binding."""
        binding = dict(self.binding)
        try:
            core = _rebuild(self, binding)
        except UserError:
            return None
        operator = Operator(core)
        values = {name: binding[name] for name in operator.variables}
        legal = is_legal(operator, values, max_terms=10**9)
        return Case(operator, values) if legal else None


def _sketch(case: Case) -> _Sketch:
    core = case.operator._core
    output = tuple((f"o{d}", dim) for d, dim in enumerate(core.output))
    return _Sketch(output, steps_of(core), tuple(core.match), tuple(sorted(case.binding.items())))


def _rebuild(sketch: _Sketch, binding: dict[str, int]) -> _core.Operator:
    """Replays the steps; what reads a coordinate that is gone does without it.

    A Split or an Unfold of one coordinate alone is that coordinate, a weight loses the dimension,
    and any other step is gone, too.
    """
    graph = _core.Graph(sorted(binding), [dim for _, dim in sketch.output])
    at: dict[str, int | None] = {name: d for d, (name, _) in enumerate(sketch.output)}
    held: set[int] = set()
    for step in sketch.steps:
        ins = [i for i in (at.get(name) for name in step.inputs) if i is not None]
        if step.dims:
            dims = []
            for name, role in step.dims:
                i = at.get(name)
                if i is not None:  # what leaves the data joins the weights that hold it
                    dims.append((i, role if role == "keep" else "join" if i in held else "drop"))
            held |= {i for i, _ in dims}
            if dims:
                graph.apply(step.op, [], dims=dims)
        elif len(ins) < len(step.inputs):
            at.update(dict.fromkeys(step.out))
            if ins and step.out:
                at[step.out[0]] = ins[0]
        else:
            made = graph.apply(step.op, ins, step.size, step.amount, step.causal)
            at.update(zip(step.out, made, strict=True))
    frontier = list(graph.frontier)
    order = [i for i in (at.get(name) for name in sketch.match) if i in frontier]
    kept = list(dict.fromkeys(i for i in order if i is not None))
    match = [*kept, *(i for i in frontier if i not in kept)]
    return _core.Operator(graph, [(graph.extent(i), False, False) for i in match], match)


def _smaller(sketch: _Sketch) -> Iterator[_Sketch]:
    """Sketches that are a bit smaller, the largest steps first."""
    for d in range(len(sketch.output)):
        yield replace(sketch, output=sketch.output[:d] + sketch.output[d + 1 :])
    for s, step in enumerate(sketch.steps):
        yield replace(sketch, steps=sketch.steps[:s] + sketch.steps[s + 1 :])
        if len(step.inputs) == 1 and step.out:  # without it, what it made is what it took
            yield _bypass(sketch, s, step.out[0], step.inputs[0])
        if len(step.inputs) == 2:
            yield _bypass(sketch, s, step.out[0], step.inputs[0])
            yield _bypass(sketch, s, step.out[0], step.inputs[1])
    for s, step in enumerate(sketch.steps):
        for d in range(len(step.dims)):
            yield _with(sketch, s, replace(step, dims=step.dims[:d] + step.dims[d + 1 :]))
    names = [name for name, _ in sketch.binding]
    for d, (name, (size, *_)) in enumerate(sketch.output):
        if size not in names:
            for plain in names:
                dims = [*sketch.output]
                dims[d] = (name, (plain, False, False))
                yield replace(sketch, output=tuple(dims))
    for s, step in enumerate(sketch.steps):
        if step.size and step.size not in names:
            for plain in names:
                yield _with(sketch, s, replace(step, size=plain))
        if step.causal:
            yield _with(sketch, s, replace(step, causal=False))
        if step.amount not in (0, 1):
            nearer = -1 if step.amount < 0 else 1
            yield _with(sketch, s, replace(step, amount=1))
            yield _with(sketch, s, replace(step, amount=step.amount - nearer))
    for v, (name, value) in enumerate(sketch.binding):
        for less in range(1, value):
            values = (*sketch.binding[:v], (name, less), *sketch.binding[v + 1 :])
            yield replace(sketch, binding=values)


def _with(sketch: _Sketch, s: int, step: Step) -> _Sketch:
    return replace(sketch, steps=(*sketch.steps[:s], step, *sketch.steps[s + 1 :]))


def _bypass(sketch: _Sketch, s: int, made: str, taken: str) -> _Sketch:
    """Without a step, everything later reading `taken` where it read `made`."""
    names = {made: taken}
    later = (step.renamed(names) for step in sketch.steps[s + 1 :])
    return replace(
        sketch,
        steps=(*sketch.steps[:s], *later),
        match=tuple(names.get(name, name) for name in sketch.match),
    )
