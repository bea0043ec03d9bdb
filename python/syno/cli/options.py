"""Options that several commands share, and those that come from the C++ descriptors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import click

from syno._util.errors import UserError
from syno._util.threads import MOST_THREADS
from syno.cli.framework import SectionOption

if TYPE_CHECKING:
    from syno import Specification
    from syno._core import LimitDescriptor

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
data_dir_option = click.option(
    "--data-dir", metavar="DIR", help="Folder that holds the data. Default: $SYNO_DATA."
)
model_option_option = click.option(
    "--model-option",
    "model_options",
    multiple=True,
    metavar="NAME=NUMBER",
    help="An option of the model, as width=16; repeat.",
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same result."
)


class _Switch(click.ParamType[tuple[str, bool]]):
    """A rule and whether it is on, as `R6a=off`."""

    name = "switch"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, bool]:
        if isinstance(value, tuple):
            return value
        rule, equals, state = (part.strip() for part in value.partition("="))
        if not rule or not equals or state not in ("on", "off"):
            self.fail(
                f"'{value}' does not switch a rule\n"
                "  expected: ID=off or ID=on, such as R6a=off\n"
                "  what to do: `syno rules list` names the rules",
                param,
                ctx,
            )
        return rule, state == "on"


def rule_option(function: Function) -> Function:
    """Add `--rule ID=off`; the function receives `rules_off`, the rules that are not asked."""

    @functools.wraps(function)
    def gathered(*args: Any, rule: Sequence[tuple[str, bool]], **given: Any) -> Any:
        from syno.space.rules import switched_off

        return function(*args, rules_off=switched_off(rule), **given)

    option = click.option(
        "--rule",
        multiple=True,
        type=_Switch(),
        metavar="ID=off",
        help="Switches a rule off, by id, name or kind; `syno rules list` names them; repeat.",
    )
    return cast(Function, option(gathered))


def rule_options(function: Function) -> Function:
    """Add `--rule ID=off` and `--rule-file PATH`.

    The function receives `rules_off`, the rules that are not asked, and `rules`, those of the
    files. A rule of a file can be switched off as well.
    """

    @functools.wraps(function)
    def gathered(
        *args: Any, rule: Sequence[tuple[str, bool]], rule_file: Sequence[str], **given: Any
    ) -> Any:
        from syno.space.rules import load_rules, reported, rule_set, switched_off

        rules = [reported(rule) for path in rule_file for rule in load_rules(path)]
        off = switched_off(rule, {name: r.id for r in rules for name in (r.id, r.name)})
        rule_set(off, rules)  # two rules of one name are a mistake of the command line
        return function(*args, rules_off=off, rules=rules, **given)

    added = _stacked(
        click.option(
            "--rule",
            multiple=True,
            type=_Switch(),
            metavar="ID=off",
            help="Switches a rule off, by id, name or kind; `syno rules list` names them; repeat.",
        ),
        rule_file_option,
    )
    return cast(Function, added(gathered))


rule_file_option = click.option(
    "--rule-file",
    multiple=True,
    metavar="PATH",
    help="A Python file with rules of your own (`@syno.rule`), asked after the others; repeat.",
)


class _Bytes(click.ParamType[int]):
    """An amount of memory, as `500M` or `2G`."""

    name = "memory"
    _UNITS: ClassVar = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,18})\s*([kmg]?)b?", value.strip().lower())
        if found is None or int(found[1]) == 0 or int(found[1]) >= 2**32:
            self.fail(
                f"'{value}' is no amount of memory\n"
                "  expected: bytes, with a unit if you like, such as 500M or 2G",
                param,
                ctx,
            )
        return int(found[1]) * self._UNITS[found[2]]


def listing_options(nodes: int) -> Callable[[Function], Function]:
    """Options of an enumeration but for its time; `nodes` are the graphs it visits by default."""
    return _stacked(
        click.option(
            "--depth",
            type=click.IntRange(min=1),
            help="Primitives in an operator, at most. [--max-depth]",
        ),
        click.option(
            "--max-nodes",
            type=click.IntRange(min=1),
            default=nodes,
            show_default=True,
            help="Partial graphs to visit, over all depth limits.",
        ),
        click.option(
            "--max-memory", type=_Bytes(), default=0, metavar="BYTES", help="As 500M. [no limit]"
        ),
        click.option(
            "--threads",
            type=click.IntRange(min=1),
            help="The operators do not depend on it. [as many as there are cores]",
        ),
        click.option(
            "--bound",
            type=click.Choice(["full", "loose", "none"]),
            default="full",
            show_default=True,
            help="The completion bound: saves time; the operators are the same.",
        ),
    )


max_seconds_option = click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time. The result depends on the machine then. [no limit]",
)
seconds_option = click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="How long to go on.",
)


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


stats_option = click.option(
    "--stats",
    "--rejections",
    "stats",
    is_flag=True,
    help="Also print what was refused, by reason, as a tree.",
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


def _stacked(*added: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """One decorator for several options, listed by help in the order in which they stand here."""

    def decorate(function: Function) -> Function:
        for option in reversed(added):
            function = option(function)
        return function

    return decorate


def limit_options(function: Function) -> Function:
    """Add an option for each limit of a specification; the command gets the given ones only.

    Name, type, default and words come from one descriptor, the same that names the limit in
    Python and in files: `--max-reductions` is `max_reductions`. The function receives them as the
    dict `limits`.
    """
    from syno import _core

    descriptors = _core.option_descriptors()

    @functools.wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        values = {d["name"]: given.pop(d["name"]) for d in descriptors}
        limits = {name: value for name, value in values.items() if value is not None}
        return function(*args, limits=limits, **given)

    return cast(Function, _stacked(*map(_limit_option, descriptors))(gathered))


def _limit_option(descriptor: LimitDescriptor) -> Callable[[Any], Any]:
    kind, least = descriptor["type"], descriptor["minimum"]
    type_: click.ParamType = _TYPES[kind]
    if kind == "int" and least is not None:
        type_ = click.IntRange(min=int(least))
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


SPECIFICATION_NAMES = (
    "preset",
    "input_shape",
    "output_shape",
    "primary",
    "coefficient",
    "passed_through",
    "limits",
)


class _Pair(click.ParamType[tuple[int, int]]):
    """Two dimensions, as `0:0`."""

    name = "pair"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        output, colon, input_ = value.partition(":")
        parts = [part.strip() for part in (output, input_)]
        if not colon or not all(part.isdecimal() and len(part) <= 9 for part in parts):
            self.fail(
                f"'{value}' is no pair of dimensions\n"
                "  expected: OUTPUT:INPUT, counted from 0, such as 0:0 for a batch dimension",
                param,
                ctx,
            )
        return int(output), int(input_)


specification_options = _stacked(
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
        "--passed-through",
        multiple=True,
        type=_Pair(),
        metavar="OUTPUT:INPUT",
        help="Dimensions that no primitive touches, counted from 0: 0:0 for the batch; repeat.",
    ),
)

own_sizes_option = click.option(
    "--binding", metavar="SIZES", help='Sizes of an operator\'s own, as "k=3,g=2".'
)

kernel_rounds_option = click.option(
    "--rounds",
    type=click.IntRange(min=20),
    default=60,
    show_default=True,
    help="How often each kernel is timed, in turns with the others.",
)

operand_options = _stacked(
    click.option("--store", metavar="URL", help="Where to look for a key, or for the values of k."),
    study_option,
    click.option(
        "--preset", metavar="NAME", help="A specification that gives coefficients their values."
    ),
)

found_options = _stacked(
    click.option("--store", metavar="URL", help="Where to look for a key, or for a specification."),
    study_option,
)

bindings_option = click.option(
    "--binding",
    "bindings",
    multiple=True,
    metavar="SIZES",
    help='Sizes of one layer, as "C_in=64,C_out=64,H=28"; repeat.',
)

timing_options = _stacked(
    click.option(
        "--repeats",
        type=click.IntRange(min=20),
        default=30,
        show_default=True,
        help="Timed runs of a network.",
    ),
    click.option(
        "--warmup",
        type=click.IntRange(min=1),
        default=5,
        show_default=True,
        help="Runs before those.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1, MOST_THREADS),
        default=1,
        show_default=True,
        help="Threads of training and timing.",
    ),
)

isolation_options = _stacked(
    click.option(
        "--isolate/--no-isolate",
        default=None,
        help="Each evaluation in a process of its own: what crashes, hangs or eats memory is a "
        "failure, and the search goes on. [on where it is possible: Linux]",
    ),
    click.option(
        "--memory-limit",
        type=_Bytes(),
        metavar="BYTES",
        help="What an isolated evaluation may hold, as 4G. [three quarters of the machine's]",
    ),
)

max_attempts_option = click.option(
    "--max-attempts",
    type=click.IntRange(min=1),
    metavar="N",
    help="Without isolation, an operator is given up after N attempts that ended the process of "
    "the search. The end of the search never counts with isolation, nor against the baseline. [5]",
)

deadline_option = click.option(
    "--deadline-s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Wall-clock limit of one training; an isolated evaluation is killed after twice that and "
    "30 s more. [killed after 8 times what the baseline took and 30 s more]",
)

# Fields of a fidelity that the command line can change.
_FIDELITY_FIELDS = ("images", "resolution", "epochs", "steps", "context", "batch")
_OF_TEXT = ("steps", "context")


def fidelity_options(function: Function) -> Function:
    """Add `--fidelity` and options for its fields; the given ones arrive as `fidelity_changes`."""

    @functools.wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        values = {name: given.pop(name) for name in _FIDELITY_FIELDS}
        changes = {name: value for name, value in values.items() if value is not None}
        return function(*args, fidelity_changes=changes, **given)

    added = _stacked(
        click.option(
            "--fidelity",
            metavar="NAME",
            help="How networks are trained: digits, tiny, small, medium. Default: tiny, digits "
            "for that data set, or fast/text for a text.",
        ),
        *(
            click.option(
                f"--{name}",
                type=click.IntRange(min=1),
                help=f"Changes its {name}{' (text)' if name in _OF_TEXT else ''}.",
            )
            for name in _FIDELITY_FIELDS
        ),
    )
    return cast(Function, added(gathered))


ladder_options = _stacked(
    click.option(
        "--ladder",
        metavar="NAME",
        help="Rungs in place of one fidelity: each operator is trained at the lowest, the best of "
        "a rung go on to the next. fast/cifar, fast/digits, fast/steady, or a .toml file.",
    ),
    click.option(
        "--eta",
        type=int,
        metavar="N",
        help="The best 1/N of a rung go on. [that of the ladder]",
    ),
)


tokenizer_option = click.option(
    "--tokenizer",
    type=click.Choice(["bytes", "byte-pair"]),
    default="bytes",
    show_default=True,
    help="Of text.",
)


def named_specification(
    *,
    preset: str | None,
    input_shape: str | None,
    output_shape: str | None,
    primary: Sequence[str],
    coefficient: Sequence[str],
    bindings: Sequence[str],
    limits: dict[str, Any],
    passed_through: Sequence[tuple[int, int]] = (),
) -> Specification | None:
    """The specification the options name; None when they name none.

    UserError when they name two, or half a one.
    """
    from syno import Specification

    shapes = input_shape is not None or output_shape is not None
    if preset is not None and (shapes or primary or coefficient or passed_through):
        raise UserError(
            "both --preset and shapes or variables are given\n"
            "  expected: either --preset, or --input, --output, --primary and --coefficient"
        )
    given: dict[str, Any] = {"bindings": list(bindings)} if bindings else {}
    if preset is not None:
        return Specification.preset(preset, **given, **limits)
    if input_shape is None and output_shape is None:
        if primary or coefficient or bindings or passed_through:
            raise UserError(
                "variables, bindings or passed-through dimensions are given without a specification"
                "\n  expected: --input and --output, or --preset, with them"
            )
        return None
    if input_shape is None or output_shape is None:
        missing = "--output" if output_shape is None else "--input"
        raise UserError(
            f"{missing} is missing: a specification needs both shapes\n"
            "  expected: --input and --output, such as '[C_in, H]' and '[C_out, H]'"
        )
    given |= {"passed_through": list(passed_through)} | limits
    try:
        return Specification(input_shape, output_shape, list(primary), list(coefficient), **given)
    except UserError as error:
        if not str(error).startswith("unknown variable"):
            raise
        raise UserError(
            f"{error}\n  what to do: declare it, as --primary 'X: 2' or --coefficient 'x=3: 2', or "
            "write one that is known"
        ) from error


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
