"""Where an operand is looked for, as options say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from syno._util.command_line import command_line
from syno._util.options import Options, option
from syno.operands.operand import load_operator, specification_of
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.specification_options import NamedSpecification


def study() -> str | None:
    """Declare which study of a store is meant."""
    words = "Which study of the store; needed when it holds several."
    return option(words, cast("str | None", None), metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class Operand(Options):
    """Where an operand is looked for, and what gives its coefficients their values."""

    store: str | None = option(
        "Where to look for a key, for the values of k, or for a specification.",
        None,
        metavar="URL",
    )
    study: str | None = study()
    preset: str | None = option(
        "A specification that gives coefficients their values.", None, metavar="NAME"
    )

    def line(self, *words: str) -> str:
        """The command that was given, as far as messages repeat it."""
        return command_line(*words, preset=self.preset, store=self.store, study=self.study)

    def load(self, op: str) -> Operator:
        """The operator that is meant by `op`."""
        store, study = self.store, self.study
        wanted = specification_of(op, preset=self.preset, store=store, study=study)
        return load_operator(op, store=store, study=study, specification=wanted)

    def explained(self, op: str, named: NamedSpecification) -> tuple[Operator, Specification]:
        """The operator under the specification that the options name, or under the one that it was
        found under in a store, and that specification. UserError that says how to name one."""
        wanted = named.specification()
        store, study = self.store, self.study
        if wanted is None and store is not None:
            wanted = specification_of(op, preset=None, store=store, study=study)
            wanted = wanted or load_operator(op, store=store, study=study).specification
        wanted = wanted or named.required()
        operator = load_operator(op, store=store, study=study, specification=wanted)
        return operator.with_specification(wanted), wanted
