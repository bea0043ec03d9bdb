"""An operand with the options around it: the specification they name, the line they stand on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syno import Operator, Specification


def explained_operator(
    op: str, *, store: str | None, study: str | None, **named: Any
) -> tuple[Operator, Specification]:
    """The operator under the specification that the options name, or under the one that it was
    found under in a store, and that specification. UserError that says how to name one."""
    from syno.operands.operand import load_operator

    wanted = _specification(op, store, study, named)
    operator = load_operator(op, store=store, study=study, specification=wanted)
    return operator.with_specification(wanted), wanted


def _specification(
    op: str, store: str | None, study: str | None, named: dict[str, Any]
) -> Specification:
    from syno.cli import options
    from syno.operands.operand import load_operator, specification_of

    given = options.named_specification(**named)
    if given is not None:
        return given
    if store is not None:
        found = specification_of(op, preset=None, store=store, study=study)
        found = found or load_operator(op, store=store, study=study).specification
        if found is not None:
            return found
    return options.required_specification(**named)


def command_line(*words: str, **options: str | None) -> str:
    """The command that was given, as far as messages repeat it: "syno show op.txt --store s.db"."""
    given = [part for name, value in options.items() if value for part in (f"--{name}", value)]
    return shlex.join(["syno", *words, *given])
