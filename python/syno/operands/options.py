"""Options that say where an operand is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from syno._util.command_line import DEFAULT_STORE, command_line
from syno._util.options import Options, like, option
from syno.operands.operand import load_operator, specification_of
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.specification_options import NamedSpecification
from syno.study_options import ResumeOptions


def study() -> str | None:
    """Declare which study of a store is meant."""
    return cast("str | None", like(ResumeOptions, "study"))


@dataclass(frozen=True, kw_only=True)
class Operand(Options):
    """Where an operand is found, and the specification that defines its coefficients."""

    store: str | None = option(
        "Store in which an id or key, the values of coefficients or a specification are searched.",
        None,
        metavar="URL",
        unset=f"{DEFAULT_STORE} for an id or key",
    )
    study: str | None = study()
    preset: str | None = option(
        "Specification that defines the values of coefficients.", None, metavar="NAME"
    )

    def line(self, *words: str) -> str:
        """Return the command line with these options, for messages."""
        return command_line(*words, preset=self.preset, store=self.store, study=self.study)

    def load(self, op: str) -> Operator:
        """Load the operator that `op` names."""
        wanted = self.specification(op)
        return load_operator(op, store=self.store, study=self.study, specification=wanted)

    def specification(self, op: str) -> Specification | None:
        """The specification that defines the coefficients of an operator."""
        return specification_of(op, preset=self.preset, store=self.store, study=self.study)

    def explained(self, op: str, named: NamedSpecification) -> tuple[Operator, Specification]:
        """Load an operator together with its specification.

        The specification is the one that the options name, otherwise the one under which the
        operator was found in the store.

        Raises:
            UserError: no specification is given.
        """
        wanted = named.specification()
        store, study = self.store, self.study
        if wanted is None and store is not None:
            wanted = specification_of(op, preset=None, store=store, study=study)
            wanted = wanted or load_operator(op, store=store, study=study).specification
        wanted = wanted or named.required()
        operator = load_operator(op, store=store, study=study, specification=wanted)
        return operator.with_specification(wanted), wanted
