"""Options that several commands share, and options of the library as Click has them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import click

from syno import _core
from syno._util.command_line import command_line
from syno._util.errors import UserError
from syno._util.options import Option, Options, declared, mapping, of_descriptor, option
from syno.space.options import switch

if TYPE_CHECKING:
    from syno import Operator, Rule, Specification
    from syno.train import Fidelity

_TYPES: dict[str, click.ParamType[object]] = {
    "int": click.INT,
    "float": click.FLOAT,
    "bool": click.BOOL,
    "str": click.STRING,
}
LIMITS = "Limits of an operator"


class SectionOption(click.Option):
    """An option that help lists under a heading of its own."""

    section: str = ""

    def get_help_extra(self, ctx: click.Context) -> Any:
        """What follows the words of help; those of a limit say its range."""
        extra = super().get_help_extra(ctx)
        if self.section == LIMITS:
            extra.pop("range", None)
        return extra


class _Parsed(click.ParamType[object]):
    """A value that a function makes of a text; its UserError is a mistake of the command line."""

    def __init__(self, option: Option) -> None:
        self.name = option.name
        self._option = option

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        if not isinstance(value, str) or self._option.parse is None:
            return value
        try:
            return self._option.parse(value)
        except UserError as error:
            self.fail(str(error), param, ctx)


def parameters(kind: type[Options]) -> list[click.Parameter]:
    """The parameters of a command, from the declarations of its options."""
    made: list[click.Parameter] = []
    for name, each in _flattened(kind):
        if not each.shown:
            continue
        if each.names and not each.names.startswith("-"):
            made.append(_argument(name, each))
        else:
            made.append(_option(name, each))
    return made


def _flattened(kind: type, prefix: str = "") -> Iterator[tuple[str, Option]]:
    """Options and those of groups in them, each with the name of its parameter."""
    own = {each.name: each for each in declared(kind)}
    for found in dataclasses.fields(kind):
        data = found.metadata
        if "option" in data:
            yield prefix + found.name, own[found.name]
        elif "mapping" in data:
            for descriptor in data["mapping"]():
                limit = of_descriptor(descriptor, LIMITS)
                yield f"{prefix}{found.name}__{limit.name}", limit
        elif "group" in data:
            for name, each in _flattened(data["group"], f"{prefix}{found.name}__"):
                first = name[len(prefix) :].split("__")[1]
                if first not in data["without"] and (not data["only"] or first in data["only"]):
                    yield name, each


def built(kind: type[Options], values: Mapping[str, object], prefix: str = "") -> Options:
    """The options of a command from the values of its parameters."""
    own = {each.name: each for each in declared(kind)}
    given: dict[str, object] = {}
    for found in dataclasses.fields(kind):
        data, name = found.metadata, prefix + found.name
        if "group" in data:
            given[found.name] = built(data["group"], values, f"{name}__")
        elif "mapping" in data:
            start = f"{name}__"
            chosen = {key: value for key, value in values.items() if key.startswith(start)}
            given[found.name] = {k[len(start) :]: v for k, v in chosen.items() if v is not None}
        elif name in values:
            gather, value = own[found.name].gather, values[name]
            given[found.name] = value if gather is None else gather(cast(Sequence[object], value))
    return kind(**given)


def _argument(name: str, each: Option) -> click.Argument:
    count = -1 if each.many else 1
    default = None if each.required or each.many else each.default
    return click.Argument(
        [name],
        metavar=each.names,
        nargs=count,
        default=default,
        required=each.required or (each.names.endswith("...") and not each.names.startswith("[")),
    )


def _option(name: str, each: Option) -> click.Option:
    flags = [*each.flag.split("/")]
    multiple = each.many or each.gather is not None
    is_limit = each.section == LIMITS
    is_flag = each.kind == "bool" and not is_limit
    default = each.default
    if is_flag and (each.optional or default is True):
        flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
    words = [each.doc] if not each.unset else [each.doc, f"[{each.unset}]"]
    settings: dict[str, object] = {
        "help": " ".join(part for part in words if part) or None,
        "show_default": not is_flag and default not in (None, (), ""),
        "multiple": multiple,
        "required": each.required,
        "default": None if each.required else default,
        "metavar": each.metavar or None,
    }
    if is_flag:
        settings["is_flag"] = True
    else:
        settings["type"] = _type(each)
    made = SectionOption([*flags, name], **settings)  # type: ignore[arg-type]
    made.section = each.section or "Options"
    return made


def _type(each: Option) -> click.ParamType[object]:
    if each.parse is not None:
        return _Parsed(each)
    if each.choices:
        return cast(click.ParamType[object], click.Choice(each.choices))
    low, high = each.minimum, each.maximum
    if each.kind == "int" and (low is not None or high is not None):
        whole = click.IntRange(_whole(low), _whole(high))
        return cast(click.ParamType[object], whole)
    if each.kind == "float" and (low is not None or high is not None):
        number = click.FloatRange(low, high, min_open=each.above)
        return cast(click.ParamType[object], number)
    if each.kind == "Path":
        from pathlib import Path

        return cast(click.ParamType[object], click.Path(path_type=Path))
    return _TYPES.get(each.kind, click.STRING)


def _whole(bound: float | None) -> int | None:
    return None if bound is None or math.isinf(bound) else int(bound)


# Options that several commands have, each declared once.


def store() -> str:
    """Declare where studies are kept."""
    from syno.study.search import DEFAULT_STORE

    words = "Where studies are kept: a file or a database URL."
    return option(words, DEFAULT_STORE, metavar="URL")


def study() -> str | None:
    """Declare which study of a store is meant."""
    words = "Which study of the store; needed when it holds several."
    return option(words, cast("str | None", None), metavar="NAME")


def data_dir() -> str | None:
    """Declare where data is."""
    words = "Folder that holds the data. Default: $SYNO_DATA."
    return option(words, cast("str | None", None), metavar="DIR")


def seed() -> int:
    """Declare the seed."""
    return option("The same seed gives the same result.", 0)


def model_options() -> Mapping[str, int | str]:
    """Declare the options of a model by name."""
    return option(
        "An option of the model, as width=16; repeat.",
        cast("Mapping[str, int | str]", ()),
        names="--model-option",
        metavar="NAME=NUMBER",
        gather=_numbers,
    )


_MOST_DIGITS = 18  # of an option of a model


def _numbers(pairs: Sequence[object]) -> dict[str, int | str]:
    """Options given as NAME=NUMBER, or weights=PATH. UserError for another form."""
    found: dict[str, int | str] = {}
    for pair in map(str, pairs):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if name == "weights" and value:
            found[name] = value
        elif equals and value.isdecimal() and len(value) <= _MOST_DIGITS:
            found[name] = int(value)
        else:
            raise UserError(
                f"cannot read the model option '{pair}'\n  expected: as width=16, or weights=PATH"
            )
    return found


def own_sizes() -> str | None:
    """Declare the sizes of an operator's own coefficients."""
    words = 'Sizes of an operator\'s own, as "k=3,g=2".'
    return option(words, cast("str | None", None), names="--binding", metavar="SIZES")


def stats() -> bool:
    """Declare whether rejections are printed."""
    words = "Also print what was refused, by reason, as a tree."
    return option(words, False, names="--stats/--rejections")


def rounds(default: int = 60) -> int:
    """Declare how often kernels are timed."""
    words = "How often each kernel is timed, in turns with the others."
    return option(words, default, minimum=20)


def pair(words: str, expected: str) -> Callable[[str], tuple[int, int]]:
    """What reads two numbers with a colon between them, such as `0:0`."""

    def parse(text: str) -> tuple[int, int]:
        first, colon, second = text.partition(":")
        parts = [part.strip() for part in (first, second)]
        if not colon or not all(part.isdecimal() and len(part) <= 9 for part in parts):
            raise UserError(f"'{text}' is {words}\n  expected: {expected}")
        return int(parts[0]), int(parts[1])

    return parse


@dataclass(frozen=True, kw_only=True)
class Rules(Options):
    """Rules that are switched off, and rules of the user's own."""

    rule: tuple[tuple[str, bool], ...] = option(
        "Switches a rule off, by id, name or kind; `syno rules list` names them; repeat.",
        cast(tuple[tuple[str, bool], ...], ()),
        metavar="ID=off",
        parse=switch,
    )
    rule_file: tuple[str, ...] = option(
        "A Python file with rules of your own (`@syno.rule`), asked after the others; repeat.",
        cast(tuple[str, ...], ()),
        metavar="PATH",
    )

    @cached_property
    def added(self) -> list[Rule]:
        """The rules of the files."""
        from syno.space.rules import load_rules, reported

        return [reported(rule) for path in self.rule_file for rule in load_rules(path)]

    @cached_property
    def off(self) -> list[str]:
        """The ids of the rules that are not asked; a rule of a file can be one of them."""
        from syno.space.rules import rule_set, switched_off

        added = self.added
        off = switched_off(self.rule, {name: r.id for r in added for name in (r.id, r.name)})
        rule_set(off, added)  # two rules of one name are a mistake of the command line
        return off


_PAIR = pair(
    "no pair of dimensions", "OUTPUT:INPUT, counted from 0, such as 0:0 for a batch dimension"
)


@dataclass(frozen=True, kw_only=True)
class NamedSpecification(Options):
    """A specification by name, or by its shapes and variables."""

    preset: str | None = option("A named specification: paper/resnet18, ...", None, metavar="NAME")
    input_shape: str | None = option(
        'As "[N, C_in, H, W]".', None, names="--input", metavar="SHAPE"
    )
    output_shape: str | None = option(
        'As "[N, C_out, H, W]".', None, names="--output", metavar="SHAPE"
    )
    primary: tuple[str, ...] = option(
        'A large variable with its budget, as "C_in: 2"; repeat.', (), metavar="VARIABLE"
    )
    coefficient: tuple[str, ...] = option(
        'A small variable with value and budget, as "k=3: 2"; repeat.', (), metavar="VARIABLE"
    )
    passed_through: tuple[tuple[int, int], ...] = option(
        "Dimensions that no primitive touches, counted from 0: 0:0 for the batch; repeat.",
        (),
        metavar="OUTPUT:INPUT",
        parse=_PAIR,
    )
    bindings: tuple[str, ...] = option(
        'Sizes of one layer, as "C_in=64,C_out=64,H=28"; repeat.',
        (),
        names="--binding",
        metavar="SIZES",
    )
    limits: Mapping[str, int | float | bool] = mapping(_core.option_descriptors)

    def specification(self) -> Specification | None:
        """The specification that the options name; None when they name none.

        UserError when they name two, or half a one.
        """
        from syno import Specification

        shapes = self.input_shape is not None or self.output_shape is not None
        variables = self.primary or self.coefficient
        if self.preset is not None and (shapes or variables or self.passed_through):
            raise UserError(
                "both --preset and shapes or variables are given\n"
                "  expected: either --preset, or --input, --output, --primary and --coefficient"
            )
        given: dict[str, Any] = dict(self.limits)
        if self.bindings:
            given["bindings"] = list(self.bindings)
        if self.preset is not None:
            return Specification.preset(self.preset, **given)
        if self.input_shape is None and self.output_shape is None:
            if variables or self.bindings or self.passed_through:
                raise UserError(
                    "variables, bindings or passed-through dimensions are given without a "
                    "specification\n  expected: --input and --output, or --preset, with them"
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
                f"{error}\n  what to do: declare it, as --primary 'X: 2' or --coefficient "
                "'x=3: 2', or write one that is known"
            ) from error

    def required(self) -> Specification:
        """`specification`, or UserError that says how to name one."""
        from syno import Specification

        found = self.specification()
        if found is None:
            raise UserError(
                "no specification is given\n"
                "  expected: --preset NAME, or --input, --output, --primary, --coefficient, "
                f"--binding\n  presets: {', '.join(Specification.presets())}"
            )
        return found


def checked_depth(depth: int | None, specification: Specification) -> int:
    """`--depth`, or what the specification allows. UserError when that is less."""
    most = specification.limits["max_depth"]
    if depth is not None and depth > most:
        raise UserError(
            f"--depth {depth} is more than the specification allows\n"
            f"  expected: at most max_depth={most}      got: {depth}\n"
            f"  what to do: add --max-depth {depth}"
        )
    return int(depth or most)


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
        from syno.operands import operand

        store, study = self.store, self.study
        wanted = operand.specification_of(op, preset=self.preset, store=store, study=study)
        return operand.load_operator(op, store=store, study=study, specification=wanted)

    def explained(self, op: str, named: NamedSpecification) -> tuple[Operator, Specification]:
        """The operator under the specification that the options name, or under the one that it was
        found under in a store, and that specification. UserError that says how to name one."""
        from syno.operands.operand import load_operator, specification_of

        wanted = named.specification()
        store, study = self.store, self.study
        if wanted is None and store is not None:
            wanted = specification_of(op, preset=None, store=store, study=study)
            wanted = wanted or load_operator(op, store=store, study=study).specification
        wanted = wanted or named.required()
        operator = load_operator(op, store=store, study=study, specification=wanted)
        return operator.with_specification(wanted), wanted


@dataclass(frozen=True, kw_only=True)
class FidelityArguments(Options):
    """A fidelity by name, and what is changed in it."""

    section: ClassVar[str] = "Training"
    fidelity: str | None = option(
        "How networks are trained: digits, tiny, small, medium. Default: tiny, digits for that "
        "data set, or fast/text for a text.",
        None,
        metavar="NAME",
    )
    images: int | None = option("Changes its images.", None, minimum=1)
    resolution: int | None = option("Changes its resolution.", None, minimum=1)
    epochs: int | None = option("Changes its epochs.", None, minimum=1)
    steps: int | None = option("Changes its steps (text).", None, minimum=1)
    context: int | None = option("Changes its context (text).", None, minimum=1)
    batch: int | None = option("Changes its batch.", None, minimum=1)

    @property
    def changes(self) -> dict[str, int]:
        """The fields that are changed."""
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if k != "fidelity" and v is not None}

    def found(
        self,
        data: str,
        data_dir: str | None,
        recipe: str | None = None,
        seconds: float | None = None,
    ) -> Fidelity:
        """The fidelity for some data."""
        from syno.study.evaluate.loading import fidelity_for

        more: dict[str, float] = {} if seconds is None else {"seconds": seconds}
        return fidelity_for(self.fidelity, self.changes | more, data, data_dir, recipe)
