"""Options that several commands share, and those that come from the C++ descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from syno._errors import UserError
from syno.cli.framework import SectionOption

if TYPE_CHECKING:
    from syno import Specification

Function = TypeVar("Function", bound=Callable[..., Any])

store_option = click.option(
    "--store",
    metavar="URL",
    default="sqlite:///runs.db",
    show_default=True,
    help="Where studies are kept: a file or a database URL.",
)
study_option = click.option(
    "--study", metavar="NAME", help="Which study of the store; needed when it holds several."
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same result."
)

nodes_option = click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    default=30_000,
    show_default=True,
    help="How many partial graphs the enumeration visits: more reach deeper operators.",
)

_TYPES: dict[str, click.ParamType[Any]] = {
    "int": click.INT,
    "float": click.FLOAT,
    "bool": click.BOOL,
    "str": click.STRING,
}
_NAMES = {"bool": "yes|no"}


def limit_options(function: Function) -> Function:
    """Add an option for each limit of a specification; the command gets the given ones only.

    Name, type, default and words come from one descriptor, the same that names the limit in
    Python and in files: `--max-reductions` is `max_reductions`. The function receives them as the
    dict `limits`.
    """
    from syno import _core

    descriptors = _core.option_descriptors()

    def gathered(*args: Any, **given: Any) -> Any:
        values = {d["name"]: given.pop(d["name"]) for d in descriptors}
        limits = {name: value for name, value in values.items() if value is not None}
        return function(*args, limits=limits, **given)

    gathered.__name__ = function.__name__
    gathered.__doc__ = function.__doc__
    gathered.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for descriptor in reversed(descriptors):
        gathered = _limit_option(descriptor)(gathered)
    return gathered  # type: ignore[return-value]


def _limit_option(descriptor: dict[str, Any]) -> Callable[[Any], Any]:
    kind, least = descriptor["type"], descriptor.get("minimum")
    type_: click.ParamType = _TYPES[kind]
    if kind == "int" and least is not None:
        type_ = click.IntRange(min=least)
    elif kind == "float" and least is not None:
        type_ = click.FloatRange(min=least)
    return click.option(
        f"--{descriptor['name'].replace('_', '-')}",
        descriptor["name"],
        cls=SectionOption,
        section="Limits of an operator",
        type=type_,
        default=None,
        metavar=_NAMES.get(kind, kind.upper()),
        help=f"{descriptor['doc']} [{_shown(descriptor['default'])}]",
    )


def _shown(default: Any) -> str:
    if default is None:
        return "none"
    if isinstance(default, bool):
        return "yes" if default else "no"
    return str(default)


def specification_options(function: Function) -> Function:
    """Add `--preset`, or shapes and variables, as ways to name a specification."""
    added: Sequence[Callable[[Any], Any]] = (
        click.option("--preset", metavar="NAME", help="A named specification: paper/resnet18, ..."),
        click.option("--input", "input_shape", metavar="SHAPE", help='As "[N, C_in, H, W]".'),
        click.option("--output", "output_shape", metavar="SHAPE", help='As "[N, C_out, H, W]".'),
        click.option(
            "--primary",
            multiple=True,
            metavar="VARIABLE",
            help='A large variable with its budget, as "C_in: 2"; repeat.',
        ),
        click.option(
            "--coefficient",
            multiple=True,
            metavar="VARIABLE",
            help='A small variable with value and budget, as "k=3: 2"; repeat.',
        ),
        click.option(
            "--binding",
            "bindings",
            multiple=True,
            metavar="SIZES",
            help='Sizes of one layer, as "C_in=64,C_out=64,H=28,W=28"; repeat.',
        ),
    )
    for option in reversed(added):
        function = option(function)
    return function


def named_specification(
    *,
    preset: str | None,
    input_shape: str | None,
    output_shape: str | None,
    primary: Sequence[str],
    coefficient: Sequence[str],
    bindings: Sequence[str],
    limits: dict[str, Any],
) -> Specification | None:
    """The specification the options name; None when they name none.

    UserError when they name two, or half a one.
    """
    from syno import Specification

    shapes = input_shape is not None or output_shape is not None
    if preset is not None and (shapes or primary or coefficient):
        raise UserError(
            "both --preset and shapes or variables are given\n"
            "  expected: either --preset, or --input, --output, --primary and --coefficient"
        )
    given: dict[str, Any] = {"bindings": list(bindings)} if bindings else {}
    if preset is not None:
        return Specification.preset(preset, **given, **limits)
    if input_shape is None and output_shape is None:
        if primary or coefficient or bindings:
            raise UserError("variables or bindings are given without --preset, --input, --output")
        return None
    if input_shape is None or output_shape is None:
        missing = "--output" if output_shape is None else "--input"
        raise UserError(f"{missing} is missing: a specification needs both shapes")
    return Specification(
        input_shape, output_shape, list(primary), list(coefficient), **given, **limits
    )


def required_specification(**named: Any) -> Specification:
    """`named_specification`, or UserError that says how to name one."""
    specification = named_specification(**named)
    if specification is None:
        raise UserError(
            "no specification is given\n"
            "  expected: --preset NAME, or --input, --output, --primary, --coefficient, --binding\n"
            f"  presets: {', '.join(_presets())}"
        )
    return specification


def _presets() -> list[str]:
    from syno import Specification

    return list(Specification.presets())
