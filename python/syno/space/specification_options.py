"""Options that name a specification and rules: a preset, shapes and variables, or files."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from syno import _core
from syno._util.errors import UserError
from syno._util.options import Options, mapping, option, pair
from syno.operators.specification import Specification
from syno.space.options import switch, symmetry
from syno.space.rules import Rule, load_rules, reported, rule_set, switched_off

# Layers for the presets that otherwise take them from a network.
EXAMPLE_LAYERS = {
    "paper/gcn": ("N=100,H_in=60,H_out=30",),
    "paper/readme": ("H=36,W=24",),
}


@dataclass(frozen=True, kw_only=True)
class Rules(Options):
    """Rules that are switched off, and custom rules."""

    rule: tuple[tuple[str, bool], ...] = option(
        "Switch a rule off, by id, name or kind (`syno rules list`); can be repeated.",
        cast(tuple[tuple[str, bool], ...], ()),
        metavar="ID=off",
        parse=switch,
    )
    rule_file: tuple[str, ...] = option(
        "Python file with custom rules (`@syno.rule`), applied after the others; can be repeated.",
        cast(tuple[str, ...], ()),
        metavar="PATH",
    )

    @cached_property
    def added(self) -> list[Rule]:
        """The custom rules of the files."""
        return [reported(rule) for path in self.rule_file for rule in load_rules(path)]

    @cached_property
    def off(self) -> list[str]:
        """The ids of the rules that are switched off, which may be custom rules."""
        added = self.added
        off = switched_off(self.rule, {name: r.id for r in added for name in (r.id, r.name)})
        rule_set(off, added)  # raises a UserError for two rules of the same name
        return off


_PAIR = pair(
    "not a pair of dimensions", "OUTPUT:INPUT, counted from 0, such as 0:0 for a batch dimension"
)


@dataclass(frozen=True, kw_only=True)
class NamedSpecification(Options):
    """A specification, given by name or by its shapes and variables."""

    preset: str | None = option("Specification by name: paper/resnet18, ...", None, metavar="NAME")
    input_shape: str | None = option(
        'Shape of the input, such as "[N, C_in, H, W]".', None, names="--input", metavar="SHAPE"
    )
    output_shape: str | None = option(
        'Shape of the output, such as "[N, C_out, H, W]".', None, names="--output", metavar="SHAPE"
    )
    primary: tuple[str, ...] = option(
        'Large variable with its budget, such as "C_in: 2"; can be repeated.',
        (),
        metavar="VARIABLE",
    )
    coefficient: tuple[str, ...] = option(
        'Small variable with its value and budget, such as "k=3: 2"; can be repeated. With '
        '--preset, another value of one of its variables, such as "g=4".',
        (),
        metavar="VARIABLE",
    )
    passed_through: tuple[tuple[int, int], ...] = option(
        "Dimensions that no primitive touches, counted from 0, such as 0:0 for the batch; can be "
        "repeated.",
        (),
        metavar="OUTPUT:INPUT",
        parse=_PAIR,
    )
    bindings: tuple[str, ...] = option(
        'Sizes of one layer, such as "C_in=64,C_out=64,H=28"; can be repeated.',
        (),
        names="--binding",
        metavar="SIZES",
    )
    symmetry: tuple[str, ...] = symmetry()
    limits: Mapping[str, int | float | bool] = mapping(_core.option_descriptors)

    def specification(self) -> Specification | None:
        """Return the specification that the options name, None if they name none.

        Raises:
            UserError: the options name two specifications, or an incomplete one.
        """
        shapes = self.input_shape is not None or self.output_shape is not None
        variables = self.primary or self.coefficient
        if self.preset is not None and (shapes or self.primary or self.passed_through):
            raise UserError(
                "both --preset and shapes or variables are given\n"
                "  expected: either --preset, possibly with other values of its coefficients such "
                "as --coefficient g=4, or --input, --output, --primary and --coefficient"
            )
        given: dict[str, Any] = dict(self.limits)
        if self.bindings:
            given["bindings"] = list(self.bindings)
        if self.symmetry:
            given["symmetries"] = list(self.symmetry)
        if self.preset is not None:
            if self.coefficient:
                preset = Specification.preset(self.preset)
                given["coefficient"] = preset.changed_coefficients(self.coefficient)
            return Specification.preset(self.preset, **given)
        if self.input_shape is None and self.output_shape is None:
            if variables or self.bindings or self.passed_through or self.symmetry:
                raise UserError(
                    "variables, bindings, passed-through dimensions or symmetries are given "
                    "without a specification\n  expected: also --input and --output, or --preset"
                )
            return None
        if self.input_shape is None or self.output_shape is None:
            missing = "--output" if self.output_shape is None else "--input"
            raise UserError(
                f"{missing} is missing: a specification needs both shapes\n"
                "  expected: --input and --output, such as '[C_in, H]' and '[C_out, H]'"
            )
        try:
            return Specification(
                self.input_shape,
                self.output_shape,
                list(self.primary),
                list(self.coefficient),
                passed_through=list(self.passed_through),
                **given,
            )
        except UserError as error:
            if not str(error).startswith("unknown variable"):
                raise
            raise UserError(
                f"{error}\n  what to do: declare it, such as --primary 'X: 2' or --coefficient "
                "'x=3: 2', or use a declared variable"
            ) from error

    def example_layers(self) -> list[str]:
        """Return the layers that `with_layers` adds to a preset without layers of its own."""
        return [] if self.bindings else list(EXAMPLE_LAYERS.get(self.preset or "", ()))

    def with_layers(self) -> Specification:
        """Return the specification; a preset without layers of its own gets example layers."""
        return dataclasses.replace(
            self, bindings=(*self.bindings, *self.example_layers())
        ).required()

    def required(self) -> Specification:
        """Return the specification; raise a UserError if the options name none."""
        found = self.specification()
        if found is None:
            raise UserError(
                "no specification is given\n"
                "  expected: --preset NAME, or --input, --output, --primary, --coefficient, "
                f"--binding\n  presets: {', '.join(Specification.presets())}"
            )
        return found


def checked_depth(depth: int | None, specification: Specification) -> int:
    """Return `--depth`, or the `max_depth` of the specification, which is its upper limit."""
    most = specification.limits["max_depth"]
    if depth is not None and depth > most:
        raise UserError(
            f"--depth {depth} is more than the specification allows\n"
            f"  expected: at most max_depth={most}      got: {depth}\n"
            f"  what to do: add --max-depth {depth}"
        )
    return int(depth or most)
