"""The configuration of a table: what is trained, on what, and how often."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno.operators.specification import Specification
from syno.train.fidelities import Fidelity, fidelity


@dataclass(frozen=True)
class Configuration:
    """What a table holds. A file `NAME.toml` gives these fields.

    summary: one line.
    data, tokenizer: the data set, as in `syno.data.load` and `syno.data.load_text`.
    model, model_options: the network. Operators replace the layers in all of its slots.
    specification: the arguments of a `Specification` without bindings, which are those of the
        network. All its operators with distinct semantic keys form the space.
    least_macs, most_macs: the range of the MACs of an operator, as shares of the MACs of the layers
        that it replaces.
    fidelity: the name of a fidelity, and the fields that differ from it, with those of its recipe.
    symmetries: of the data, as those of a `Specification`. They say which operators are one orbit,
        and change nothing else.
    operators: the number of operators, sampled uniformly; None for all.
    order_seed: of the random order in which operators are trained.
    repeated, repeats: so many operators at the start of this order are trained with so many seeds.
    best, best_repeats: so many of the best operators are trained with so many seeds.
    deadline_s: limit of a training in seconds of processor time, which does not depend on what else
        runs on the machine.
    """

    name: str
    summary: str
    data: str
    model: str
    specification: Mapping[str, Any]
    fidelity: Mapping[str, Any]
    model_options: Mapping[str, int] = field(default_factory=dict)
    tokenizer: str = "bytes"
    least_macs: float = 0.05
    most_macs: float = 1.1
    symmetries: Sequence[str] = ()
    operators: int | None = None
    order_seed: int = 0
    repeated: int = 100
    repeats: int = 2
    best: int = 200
    best_repeats: int = 3
    deadline_s: float = 900.0

    def __post_init__(self) -> None:
        for name in ("name", "summary", "data", "model", "tokenizer"):
            checks.text(f"'{name}' of a table", getattr(self, name))
        for name, least in (("order_seed", 0), ("repeated", 0), ("best", 0)):
            checks.whole(f"'{name}'", getattr(self, name), least)
        for name in ("repeats", "best_repeats"):
            checks.whole(f"'{name}'", getattr(self, name), 1)
        if self.operators is not None:
            checks.whole("'operators'", self.operators, 1)
        if not 0 <= self.least_macs < self.most_macs:
            raise UserError(
                f"least_macs = {self.least_macs:g} and most_macs = {self.most_macs:g} leave no "
                "operator\n  expected: two shares, the first below the second"
            )

    @staticmethod
    def read(path: str | Path) -> Configuration:
        """Read a TOML file; the name is that of the file.

        Raises:
            UserError: for a file that cannot be read, an unknown entry, and a missing one.
        """
        path = Path(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read '{path}': {error}\n  expected: TOML") from error
        return Configuration.from_json({"name": path.stem, **content})

    @staticmethod
    def from_json(content: object) -> Configuration:
        """Make a configuration from its fields."""
        given = checks.fields("the configuration of a table", content)
        known = [each.name for each in fields(Configuration)]
        for name in given:
            if name not in known:
                raise UserError(
                    f"the configuration of a table has no '{checks.short(name)}'\n"
                    f"  expected: {', '.join(known)}{nearest(name, known)}"
                )
        try:
            return Configuration(**given)
        except TypeError as error:
            raise UserError(f"the configuration of a table is not complete: {error}") from error

    def to_json(self) -> dict[str, Any]:
        """Return the fields, as `from_json` reads them."""
        content = asdict(self)
        if not self.symmetries:  # as files of earlier versions
            del content["symmetries"]
        return content

    def made_fidelity(self) -> Fidelity:
        """Return the fidelity, which has the name of the table."""
        changes = {key: _frozen(value) for key, value in self.fidelity.items()}
        base = changes.pop("name", None)
        if base is None:
            raise UserError(
                "the table [fidelity] has no name\n  expected: name = 'tiny', for example"
            )
        return fidelity(base).changed(name=f"table-{self.name}", **changes)

    def specification_for(self, layers: Mapping[str, Any], macs: int) -> Specification:
        """Return the specification of the space.

        Args:
            layers: bindings, multiplicities and layer_macs of the slots.
            macs: of these layers together.
        """
        limits = {"min_macs": int(self.least_macs * macs), "max_macs": int(self.most_macs * macs)}
        return Specification(**self.specification).with_changes(**{**layers, **limits})


def _frozen(value: object) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
