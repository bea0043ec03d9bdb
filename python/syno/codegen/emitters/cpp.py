"""C++: emitted code, compiled for this machine. Needs a C++ compiler."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from syno import _core
from syno.codegen.emitters.protocol import Array, Case, Code, Emitter
from syno.codegen.native import QUICK_FLAGS, Function, compile_functions, no_compiler
from syno.codegen.native.function import Manifest

_NAME = "syno_operator"


class CppEmitter(Emitter):
    """Translation units as `emit_cpp` writes them; all cases of a build in one.

    options: of `emit_cpp`, such as `cache_floats`.
    """

    name = "cpp"
    _emit_plan: Callable[..., tuple[str, str]] = staticmethod(_core.emit_cpp)

    def __init__(self, **options: int) -> None:
        self._options = options

    def available(self) -> str | None:
        """Not without a compiler."""
        return no_compiler()

    def source(self, case: Case) -> str:
        """The translation unit without the part that is the same in all of them."""
        return self._emit(case)[0]

    def build(self, cases: Sequence[Case], sources: Sequence[str] | None = None) -> Sequence[Code]:
        """Functions for all cases from one translation unit."""
        emitted = [self._emit(case) for case in cases]
        texts = [text for text, _ in emitted] if sources is None else sources
        named = []
        for number, (text, (_, manifest)) in enumerate(zip(texts, emitted, strict=True)):
            name = f"{_NAME}_{number}"
            named.append((name, text.replace(_NAME, name), json.loads(manifest)))
        return self._compiled(named)

    def _compiled(self, named: Sequence[tuple[str, str, Manifest]]) -> Sequence[Code]:
        return [_Checked(native) for native in compile_functions(named, flags=QUICK_FLAGS)]

    def _emit(self, case: Case) -> tuple[str, str]:
        plan, formula = case.operator.plans(case.binding, 1)[0], case.operator.formula()
        options = {"name": _NAME, "formula": formula, "with_runtime": False}
        return self._emit_plan(plan, **options, **self._options)


class _Checked:
    """A function that is given its weights with every call, on one thread and on two."""

    def __init__(self, native: Function) -> None:
        self._native = native

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        native = self._native.with_weights(weights)
        one = native(x, threads=1)
        two = native(x, threads=2)
        if not (one == two).all():
            raise ValueError("two threads give another result than one")
        return one


EMITTER = CppEmitter()
