"""Code of a back end, compared with the interpreter."""

from __future__ import annotations

from collections.abc import Callable

from syno._util.errors import UserError
from syno.codegen import emitters
from syno.codegen.verify.check import CodeComparison, MismatchError


def verified(name: str, case: emitters.Case, function: Callable[..., object]) -> int:
    """Compares code with the interpreter; how many outputs. UserError if it is wrong."""
    comparison = CodeComparison(emitters.get(name), case, 0)
    try:
        comparison.check(function)  # type: ignore[arg-type]
    except MismatchError as mismatch:
        raise UserError(f"the code of {name} is wrong: {mismatch}") from mismatch
    return len(comparison.positions)
