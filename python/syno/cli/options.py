"""Options that several commands share, and conversion of declared options to Click."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from syno._util.errors import UserError
from syno._util.options import Option, Options, declared, like, of_descriptor, option, required
from syno._util.threads import MOST_THREADS
from syno.study_options import StudyOptions

T = TypeVar("T")

_TYPES: dict[str, click.ParamType[object]] = {
    "int": click.INT,
    "float": click.FLOAT,
    "bool": click.BOOL,
    "str": click.STRING,
}
LIMITS = "Constraints on operators"


class SectionOption(click.Option):
    """An option that the help lists in a named section."""

    section: str = ""
    former: str = ""  # an earlier name, which is accepted but not shown

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Register the option, and its earlier name."""
        super().add_to_parser(parser, ctx)
        if self.former.startswith("-"):
            parser.add_option(obj=self, opts=[self.former], dest=self.name)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what follows the help text; constraints state their range in the text."""
        extra = super().get_help_extra(ctx)
        if self.section == LIMITS:
            extra.pop("range", None)
        return extra


class _Parsed(click.ParamType[object]):
    """A value that a function parses from text; its UserError becomes a usage error."""

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
    """Create the parameters of a command from the declarations of its options."""
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
    """Yield all options, including those of groups, each with the name of its parameter."""
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
    """Build the options of a command from the values of its parameters."""
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
    needed = each.required or (each.many and not each.names.startswith("["))
    settings: dict[str, Any] = {"metavar": each.names, "required": needed}
    if each.many:
        settings["nargs"] = -1
    elif not each.required:
        settings["default"] = each.default
    return click.Argument([name], **settings)


def _option(name: str, each: Option) -> click.Option:
    flags = [*each.flag.split("/")]
    multiple = each.many or each.gather is not None
    is_limit = each.section == LIMITS
    is_flag = each.kind == "bool" and not is_limit
    default = each.default
    if is_flag and (each.optional or default is True):
        flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
    words = [each.doc] if not each.unset else [each.doc, f"[{each.unset}]"]
    settings: dict[str, Any] = {
        "help": " ".join(part for part in words if part) or None,
        "show_default": not is_flag and default not in (None, (), ""),
        "multiple": multiple,
        "required": each.required,
        "metavar": each.metavar or None,
    }
    if not each.required:
        settings["default"] = default
    if is_flag:
        settings["is_flag"] = True
    else:
        settings["type"] = _type(each)
    made = SectionOption([*flags, name], **settings)
    made.section = each.section or "Options"
    made.former = each.former
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
        folder = each.metavar == "DIRECTORY"
        either = each.metavar == "FILE_OR_DIRECTORY"
        path = click.Path(path_type=Path, file_okay=either or not folder, dir_okay=either or folder)
        return cast(click.ParamType[object], path)
    return _TYPES.get(each.kind, click.STRING)


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


# Options that several commands have, each declared once.


def store() -> str:
    """Declare the store of the studies."""
    return cast(str, like(StudyOptions, "store"))


def model(default: T, unset: str = "") -> T:
    """Declare a field for the name of a model."""
    return option("Model, as printed by `syno models`.", default, unset=unset, metavar="NAME")


_DATA = "Data set: digits, cifar10, a folder of images, or text."


def data() -> str:
    """Declare a field for the data set."""
    return cast(str, required(_DATA, metavar="NAME"))


def optional_data(unset: str) -> str | None:
    """Declare a field for the data set, which need not be given."""
    return option(_DATA, cast("str | None", None), metavar="NAME", unset=unset)


def data_dir() -> str | None:
    """Declare the folder of the data."""
    return cast("str | None", like(StudyOptions, "data_dir"))


def seed() -> int:
    """Declare the seed."""
    return cast(int, like(StudyOptions, "seed", minimum=None))


def model_options() -> Mapping[str, int | str]:
    """Declare the options of a model by name."""
    return cast("Mapping[str, int | str]", like(StudyOptions, "model_options"))


def image_size() -> int | None:
    """Declare the size of the images of a model."""
    words = "Height and width of the images in pixels."
    return option(words, None, minimum=1, unset="that of the model")


def weights() -> str | None:
    """Declare the trained weights that a model starts from."""
    return option(
        "Trained weights that the model starts from: a state dict, as torch.save or safetensors "
        "write it.",
        None,
        metavar="FILE",
        unset="random initial weights",
    )


def with_weights(given: Mapping[str, int | str], weights: str | None) -> dict[str, int | str]:
    """Return the options of a model with the file of its weights."""
    if weights is not None and "weights" in given:
        raise UserError("--weights and --model-option weights=... name the weights twice")
    return {**given, **({} if weights is None else {"weights": weights})}


def operator_sizes() -> str | None:
    """Declare the values of variables that the layers do not have."""
    words = 'Values of variables that the layers do not have, such as "k=3,g=2".'
    return option(words, cast("str | None", None), names="--binding", metavar="SIZES")


def threads(default: int) -> int:
    """Declare the number of threads of measurements."""
    return option("Number of threads.", default, minimum=1, maximum=MOST_THREADS)


def batch() -> int:
    """Declare the batch size of measurements."""
    return option("Batch size.", 1, minimum=1)


def stats() -> bool:
    """Declare whether rejections are printed."""
    words = "Also print the number of rejections by reason, as a tree."
    return option(words, False, names="--stats/--rejections")


def rounds(default: int = 60) -> int:
    """Declare the number of measurements of each kernel."""
    words = "Number of times that each kernel is timed, alternately with the others."
    return option(words, default, minimum=20)


def names(text: str) -> list[str]:
    """Return the names in a text, which commas separate."""
    return [name.strip() for name in text.split(",") if name.strip()]


def engine_names(text: str) -> list[str]:
    """Return the names of inference engines in a text.

    `all` means all that are installed; without any name, it is the float32 engines that are.

    Raises:
        UserError: if an engine is unknown or not installed.
    """
    from syno.engines import engine

    given = names(text)
    if given == ["all"]:
        return list(engine.available(engine.names()))
    for name in given:
        engine.get(name)
    return given or list(engine.available())
