"""Operators one move away from others: the neighbors of good candidates.

A move changes one size, adds or removes an index of a weight, or adds, removes or dilates a window.
It works on the text of an operator. Of the results, those are kept that are legal operators of the
same shapes; whether one is any good is for the fit to say.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from syno._util.errors import UserError
from syno.adaptation.pipeline.pool import Candidate
from syno.operators.operator import Operator

_WINDOW = "k"
_USUAL = {_WINDOW: 3}
_FACTOR = "s"
_SMALLEST, _LARGEST = 2, 64
_NAME = re.compile(r"\b[rc]\d+\b")


@dataclass(frozen=True)
class _Lines:
    """The text of an operator: its head, its reductions, its steps, and the match at the end."""

    head: tuple[str, ...]
    reductions: tuple[str, ...]
    steps: tuple[str, ...]
    match: str

    @classmethod
    def of(cls, text: str) -> _Lines:
        lines = text.strip().splitlines()
        reductions = [line for line in lines[3:-1] if line.startswith("reduce ")]
        steps = [line for line in lines[3:-1] if not line.startswith("reduce ")]
        return cls(tuple(lines[:3]), tuple(reductions), tuple(steps), lines[-1])

    def text(
        self,
        reductions: Sequence[str] | None = None,
        steps: Sequence[str] | None = None,
        match: str | None = None,
    ) -> str:
        """The text with other parts, and with names of coordinates in the order of their steps."""
        body = [
            *(self.reductions if reductions is None else reductions),
            *(self.steps if steps is None else steps),
        ]
        names: dict[str, str] = {}
        for line in body:
            _, arrow, made = line.partition(" -> ")
            for name in made.split() if arrow else []:
                kind = name[0]
                names[name] = f"{kind}{sum(each.startswith(kind) for each in names.values())}"
        lines = [*body, self.match if match is None else match]
        renamed = [_NAME.sub(lambda found: names[found.group()], line) for line in lines]
        return "\n".join([*self.head, *renamed, ""])


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
        yield _named(parent.operator.canonical, sizes)
    lines = _Lines.of(parent.text)
    for text in itertools.chain(
        _indices(lines), _coefficients(lines, parent.sizes), _windows(lines), _dilations(lines)
    ):
        with contextlib.suppress(UserError):  # the move leads to no operator
            operator = Operator.from_text(text).canonical
            known = {_FACTOR: _SMALLEST, **_USUAL, **parent.sizes}
            sizes = {name: known[name] for name in known if name in operator.variables}
            yield _named(operator, sizes)


def _named(operator: Operator, sizes: Mapping[str, int]) -> Candidate:
    shown = ",".join(f"{key}={value}" for key, value in sizes.items() if key != _WINDOW)
    name = f"near-{operator.structure[:8]}" + (f"[{shown}]" if shown else "")
    return Candidate(name, "mutation", operator.text, dict(sizes))


def _other_sizes(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """One size twice or half as large; a window 5 or 3."""
    for name, value in sizes.items():
        others = [5, 3] if name == _WINDOW else [2 * value, value // 2]
        for other in others:
            if other != value and _SMALLEST <= other <= _LARGEST:
                yield {**sizes, name: other}


def _indices(lines: _Lines) -> Iterator[str]:
    """An index of a weight more, or less."""
    # Of the output's dimensions, those that a weight has: others are positions.
    there = {word for line in lines.steps for word in re.findall(r"\b(o\d+):", line)}
    there |= {line.split()[-1] for line in lines.reductions}
    for place, line in enumerate(lines.steps):
        kind, *words = line.split()
        if kind != "contract":
            inside, _, made = line.partition(" -> ")
            there = (there - set(inside.split()[1:])) | set(made.split())
            continue
        for word in words:
            if word.endswith(":keep") and len(words) > 1:
                fewer = [each for each in words if each != word]
                steps = _replaced(lines.steps, place, fewer)
                name = word.partition(":")[0]
                if not any(f"{name}:keep" in each for each in steps[:place]):
                    steps = [each.replace(f"{name}:join", f"{name}:drop") for each in steps]
                yield lines.text(steps=steps)
        own = {word.partition(":")[0] for word in words}
        for name in sorted(there - own):
            more = [*words, f"{name}:keep"]
            yield lines.text(steps=_replaced(lines.steps, place, more))
        there -= {word.partition(":")[0] for word in words if not word.endswith(":keep")}


def _replaced(steps: Sequence[str], place: int, words: Sequence[str]) -> list[str]:
    """The steps with other indices of a contraction, in the order of their names."""
    ordered = sorted(words, key=lambda word: ("orc".index(word[0]), int(word.split(":")[0][1:])))
    return [*steps[:place], " ".join(["contract", *ordered]), *steps[place + 1 :]]


def _coefficients(lines: _Lines, sizes: Mapping[str, int]) -> Iterator[str]:
    """A reduction that is divided by a coefficient more, or less."""
    known = sorted({_FACTOR, *sizes} - {_WINDOW})
    for place, line in enumerate(lines.reductions):
        size = line.split()[1]
        if size in (_WINDOW, *sizes):  # a window or a rank, which another size changes as well
            continue
        factors = size.split("*")
        others = ["*".join(part for part in factors if part != one) for one in factors]
        others += ["*".join([f"{name}^-1", *factors]) for name in known if name not in size]
        for other in others:
            if other and other != size:
                changed = f"reduce {other} -> {line.split()[-1]}"
                yield lines.text(
                    reductions=[*lines.reductions[:place], changed, *lines.reductions[place + 1 :]]
                )


def _windows(lines: _Lines) -> Iterator[str]:
    """Without one of the windows, and with one more along a dimension of the map."""
    for place, line in enumerate(lines.steps):
        kind, *words = line.split()
        if kind != "unfold" or not words[1].startswith("r"):
            continue
        axis, window, _, made = words
        reductions = [each for each in lines.reductions if each.split()[-1] != window]
        steps = [each for number, each in enumerate(lines.steps) if number != place]
        steps = [_without(each, window) for each in steps]
        steps = [re.sub(rf"\b{made}\b", axis, each) for each in steps]
        yield lines.text(reductions, steps, re.sub(rf"\b{made}\b", axis, lines.match))
    whole = [word for word in lines.match.split()[1:] if word.startswith("o") and word != "o0"]
    for axis, (place, line) in itertools.product(whole, enumerate(lines.steps)):
        if not line.startswith("contract "):
            continue
        steps = _replaced(lines.steps, place, [*line.split()[1:], "r90:keep"])
        yield lines.text(
            [*lines.reductions, f"reduce {_WINDOW} -> r90"],
            [*steps, f"unfold {axis} r90 -> c90"],
            re.sub(rf"\b{axis}\b", "c90", lines.match),
        )


def _without(step: str, name: str) -> str:
    """A contraction without an index."""
    if not step.startswith("contract "):
        return step
    return " ".join(word for word in step.split() if word.partition(":")[0] != name)


def _dilations(lines: _Lines) -> Iterator[str]:
    """All windows dilated by a coefficient, or a window that is not dilated any more."""
    for place, line in enumerate(lines.steps):
        kind, *words = line.split()
        if kind == "unfold" and words[1].startswith("r"):
            axis, window, _, made = words
            two = [f"stride {window} {_FACTOR} -> c91", f"unfold {axis} c91 -> {made}"]
            yield lines.text(steps=[*lines.steps[:place], *two, *lines.steps[place + 1 :]])
        if kind == "stride":
            steps = [each for number, each in enumerate(lines.steps) if number != place]
            steps = [re.sub(rf"\b{words[-1]}\b", words[0], each) for each in steps]
            yield lines.text(steps=steps)
