"""Known bugs, injected into emitted code: the verification must catch every one.

A mutation is a bug by name, an operator whose code can have it, and what changes the source text.
An emitter adds its own list to MUTATIONS, with each bug of BUGS at least once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from syno import Operator
from syno.codegen import emitters
from syno.codegen.emitters import Case
from syno.codegen.verify import Verification, verify

# What lowerings get wrong, each in its own way.
BUGS = (
    "bound of the window instead of the place",
    "padding on the wrong side",
    "padding shifted by one",
    "extent off by one",
    "causal window taken as centred",
    "window read backwards",
    "windows of two axes swapped",
    "guard of a weight's window dropped",
    "guard dropped after a rotation",
    "roll before pad",
    "roll after pad",
    "rotation the other way",
    "rotation of another dimension",
    "rotation left out",
    "stride begins one later",
    "stride left out",
    "parts of a split swapped",
    "quotient and remainder swapped",
    "weight dimensions swapped",
    "groups of a weight swapped",
    "reduction missing",
    "reduction one too short",
    "mean instead of a sum",
    "repeat counted as a sum",
    "weight left out",
)

# Small operators with one thing to get wrong each.
OPERATORS = {
    "window": (
        "out [C, H]\nin [C, H]\nreduce k -> r0\nunfold o1 r0 -> c0\nmatch o0 c0",
        {"C": 3, "H": 5, "k": 3},
    ),
    "even window": (
        "out [C, H]\nin [C, H]\nreduce k -> r0\ncontract r0:keep o0:keep\nunfold o1 r0 -> c0\n"
        "match o0 c0",
        {"C": 3, "H": 5, "k": 4},
    ),
    "causal window": (
        "out [C, H]\nin [C, H]\nreduce k -> r0\ncontract r0:keep o0:keep\n"
        "unfold o1 r0 causal -> c0\nmatch o0 c0",
        {"C": 3, "H": 5, "k": 3},
    ),
    "two windows": (
        "out [C, H, W]\nin [C, H, W]\nreduce k -> r0\nreduce k -> r1\n"
        "contract o0:keep r0:keep r1:keep\nunfold o1 r0 -> c0\nunfold o2 r1 -> c1\nmatch o0 c0 c1",
        {"C": 3, "H": 5, "W": 6, "k": 3},
    ),
    "window of a weight": (
        "out [C, H]\nin [C]\nreduce k -> r0\nunfold o1 r0 -> c0\ncontract o0:keep c0:drop\n"
        "match o0",
        {"C": 5, "H": 5, "k": 3},
    ),
    # The data is rotated, then the window is taken: what is read outside is zero.
    "rotated window": (
        "out [C, H]\nin [C, H]\nreduce k -> r0\ncontract r0:keep\nunfold o1 r0 -> c0\n"
        "shift c0 1 -> c1\nmatch o0 c1",
        {"C": 5, "H": 5, "k": 3},
    ),
    # The window is taken first; the rotation brings border values inside.
    "window of a rotation": (
        "out [C, H]\nin [C, H]\nreduce k -> r0\ncontract r0:keep\nshift o1 1 -> c0\n"
        "unfold c0 r0 -> c1\nmatch o0 c1",
        {"C": 5, "H": 5, "k": 3},
    ),
    "rotation": (
        "out [H, W]\nin [H, W]\nshift o0 1 -> c0\nmatch c0 o1",
        {"H": 5, "W": 5},
    ),
    "stride": (
        "out [C, H]\nin [C, s*H]\nstride o1 s -> c0\nmatch o0 c0",
        {"C": 5, "H": 4, "s": 3},
    ),
    "split": ("out [H, W]\nin [H*W]\nsplit o0 o1 -> c0\nmatch c0", {"H": 4, "W": 4}),
    "merge": (
        "out [s^2*H]\nin [s*H, s]\nmerge o0 s -> c0 c1\nmatch c0 c1",
        {"H": 2, "s": 4},
    ),
    "sum": ("out [H]\nin [H, W]\nreduce W -> r0\nmatch o0 r0", {"H": 4, "W": 4}),
    "expand": ("out [C, H]\nin [H]\nexpand o0\nmatch o1", {"C": 4, "H": 4}),
    "two weights": (
        "out [C, H]\nin [C, H]\nreduce C -> r0\ncontract o0:drop r0:keep\n"
        "contract r0:keep o1:keep\nmatch r0 o1",
        {"C": 4, "H": 4},
    ),
    "groups": (
        "out [g*C, H]\nin [g*C, H]\nreduce C -> r0\nmerge o0 C -> c0 c1\n"
        "contract r0:keep c1:drop c0:keep\nsplit c0 r0 -> c2\nmatch c2 o1",
        {"g": 3, "C": 3, "H": 4},
    ),
}


@dataclass(frozen=True)
class Mutation:
    """A bug in the code of one operator: (pattern, replacement) applied in order."""

    bug: str
    operator: str
    changes: tuple[tuple[str, str], ...]

    @property
    def case(self) -> Case:
        text, binding = OPERATORS[self.operator]
        return Case(Operator.from_text(f"syno operator 1\n{text}\n"), binding)

    def mutant(self, source: str) -> str:
        """The source with the bug. Fails when the source has no place for it any more."""
        for pattern, replacement in self.changes:
            source, count = re.subn(pattern, lambda _, to=replacement: to, source)
            assert count == 1, f"{self.bug}: {pattern} stands {count} times in\n{source}"
        return source


def mutated(emitter: str, mutation: Mutation) -> Verification:
    """What the verification says of the code with the bug."""
    source = emitters.get(emitter).source(mutation.case)
    operator, binding = mutation.case
    return verify(operator, binding, emitter=emitter, source=mutation.mutant(source))


def _one(bug: str, operator: str, pattern: str, replacement: str) -> Mutation:
    return Mutation(bug, operator, ((pattern, replacement),))


_WINDOW = r"F\.pad\(x, \(1, 1\)\)"

MUTATIONS: dict[str, tuple[Mutation, ...]] = {
    "pytorch": (
        _one(BUGS[0], "window", _WINDOW, "F.pad(x[:, :3], (1, 3))"),
        _one("padding on the wrong side", "even window", r"\(2, 1\)", "(1, 2)"),
        _one("padding shifted by one", "window", _WINDOW, "F.pad(x, (2, 0))"),
        _one("extent off by one", "window", _WINDOW, "F.pad(x[:, :4], (1, 2))"),
        _one("causal window taken as centred", "causal window", r"\(2, 0\)", "(1, 1)"),
        _one("window read backwards", "even window", r"= self\.w0", "= self.w0.flip(1)"),
        _one("windows of two axes swapped", "two windows", r"= self\.w0", "= self.w0.mT"),
        _one(
            "guard of a weight's window dropped",
            "window of a weight",
            r"F\.pad\(self\.w0, \(1, 1\)\)",
            'F.pad(self.w0, (1, 1), mode="circular")',
        ),
        _one(
            "guard dropped after a rotation",
            "window of a rotation",
            r"conv1d\(x, w0, padding=1\)",
            'conv1d(F.pad(x, (1, 1), mode="circular"), w0)',
        ),
        Mutation(
            "roll before pad",
            "window of a rotation",
            ((r"return x\.roll\(-1, 1\)", "return x"), (r"x = x\.uns", "x = x.roll(-1, 1).uns")),
        ),
        Mutation(
            "roll after pad",
            "rotated window",
            (
                (r"x = x\.roll\(-1, 1\)", "x = F.pad(x, (1, 1)).roll(-1, 1)"),
                (r"w0, padding=1", "w0"),
            ),
        ),
        _one("rotation the other way", "rotation", r"roll\(-1", "roll(1"),
        _one("rotation of another dimension", "rotation", r"roll\(-1, 0", "roll(-1, 1"),
        _one("rotation left out", "rotation", r"roll\(-1", "roll(0"),
        _one("stride begins one later", "stride", r"::3", "1::3"),
        _one("stride left out", "stride", r"::3", ":4"),
        _one("parts of a split swapped", "split", r"\(4, 4\)\)", "(4, 4)).mT"),
        _one("quotient and remainder swapped", "merge", r"x\.flatten", "x.mT.flatten"),
        _one("weight dimensions swapped", "two weights", r"cd->ch", "dc->ch"),
        _one("groups of a weight swapped", "groups", r"self\.w0\)", "self.w0.transpose(1, 2))"),
        _one("reduction missing", "window", r"x\.sum\(2\)", "x[:, :, 1]"),
        _one("reduction one too short", "sum", r"x\.sum\(1\)", "x[:, 1:].sum(1)"),
        _one("mean instead of a sum", "sum", r"x\.sum\(1\)", "x.mean(1)"),
        _one("repeat counted as a sum", "expand", r"expand\(4, -1\)", "expand(4, -1) * 4"),
        _one(
            "weight left out",
            "two weights",
            r'torch\.einsum\("dh,hd->hd", x, self\.w1\)',
            "x.transpose(0, 1)",
        ),
        # Values are right; only the gradient is not.
        _one("gradient cut off", "two weights", r"x, self\.w1\)", "x, self.w1.detach())"),
        _one("gradient scaled", "rotation", r"return x", "return x + (x - x.detach())"),
    ),
}
