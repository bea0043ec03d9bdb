"""Operators that are named on a command line, and how they come to fit a network's layers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError, nearest
from syno.cli import operand

if TYPE_CHECKING:
    from torch import nn

    from syno import Operator, Specification
    from syno.network.placeholder import Placeholder

_BUDGET = 8  # of a variable; nothing is synthesised under it
_OUTSIDE = {"C_in": "C_out", "H_in": "H_out"}
_CHANNELS = {*_OUTSIDE, *_OUTSIDE.values()}
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Chosen:
    """An operator under the name it was given, with sizes that it comes with."""

    name: str
    operator: Operator
    sizes: Mapping[str, int]


def gathered(
    ops: Sequence[str],
    *,
    store: str | None = None,
    study: str | None = None,
    specification: Specification | None = None,
    layers: Specification | None = None,
) -> list[Chosen]:
    """The operators of all operands, in order, each once.

    An operand is a name of the zoo, what `operand.load_operator` takes, a folder with operators
    (files `operator.txt` in folders of it, or .txt and .json files), or a file with an operand in
    each line (`#` begins a remark). It is named by its file, its folder or the key as typed.
    `layers` gives a formula its shapes where there is no specification.
    """
    found: dict[str, Chosen] = {}
    names: set[str] = set()
    for op in ops:
        for chosen in _of(op, store, study, specification, layers):
            if chosen.operator.text not in found:
                name = _free(chosen.name, names)
                names.add(name)
                found[chosen.operator.text] = replace(chosen, name=name)
    return list(found.values())


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number behind it where another operator has it."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in taken)


def _of(
    op: str,
    store: str | None,
    study: str | None,
    specification: Specification | None,
    layers: Specification | None,
) -> list[Chosen]:
    from syno.operators import zoo

    if op in zoo.names():
        return [Chosen(op, zoo.load(op, specification), zoo.binding(op))]
    path = Path(op)
    if operand.is_file(path) and _is_list(path):
        lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
        return [
            found
            for line in lines
            if line
            for found in _of(line, store, study, specification, layers)
        ]
    if _is_folder(path):
        return [
            Chosen(_shown(file, path), _loaded(str(file), store, study, specification), {})
            for file in _operator_files(path)
        ]
    formula = operand.is_formula(op)
    try:
        operator = _loaded(
            op, store, study, layers if formula and specification is None else specification
        )
    except UserError as error:
        if not str(error).startswith("there is no"):
            raise
        raise UserError(f"{error}\n  or a name of the zoo{nearest(op, zoo.names())}") from error
    if operand.is_file(path):
        name = _shown(path, path.parent)
    elif operand.is_key(op):  # that of its study; another specification gives another one
        name = op
    else:
        name = "formula" if formula else "operator"
    return [Chosen(name, operator, {})]


def _loaded(
    op: str, store: str | None, study: str | None, specification: Specification | None
) -> Operator:
    return operand.load_operator(op, store=store, study=study, specification=specification)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _is_list(path: Path) -> bool:
    """Whether a file has operands in its lines, rather than an operator's text, JSON or formula."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    header = any(line.startswith("syno ") for line in lines)
    return bool(lines) and not header and not lines[0].lstrip().startswith(("{", "y["))


def _operator_files(folder: Path) -> list[Path]:
    alone = operand.operator_file_in(folder)
    if alone is not None:
        return [alone]
    files = [operand.operator_file(each) for each in operand.operator_folders(folder)]
    if not files:
        files = sorted(file for end in ("txt", "json") for file in folder.glob(f"*.{end}"))
    if not files:
        raise UserError(
            f"the folder '{folder}' holds no operators\n"
            "  expected: folders with an operator.txt each, or .txt and .json files"
        )
    return files


def _shown(file: Path, folder: Path) -> str:
    named = file.parent != folder or file == operand.operator_file_in(folder)
    return file.resolve().parent.name if named else file.stem


def layer_specification(template: nn.Module, sizes: Mapping[str, int]) -> Specification:
    """The shapes of the network's layers, for formulas; `sizes` are its coefficients."""
    from syno import Specification
    from syno.network.placeholder import slots

    slot = next(iter(slots(template).values()))
    inside = [name or "" for name in slot.input_names][1:]
    outside = [_OUTSIDE.get(name, name) for name in inside]
    known = ["N", *inside, *outside]

    def shape(names: Sequence[str]) -> str:
        return f"[{', '.join(f'{n}: unordered' if n in _CHANNELS else n for n in ['N', *names])}]"

    return Specification(
        shape(inside),
        shape(outside),
        [f"{name}: {_BUDGET}" for name in dict.fromkeys(known)],
        [f"{name}={value}: {_BUDGET}" for name, value in sizes.items()],
        passed_through=[(0, 0)],
    )


def adopted(chosen: Chosen, template: nn.Module, sizes: Mapping[str, int]) -> Operator:
    """The operator under a specification with the layers of the network.

    One that was found under a specification keeps its variables. For another, variables get the
    names that the network's slots have, by where they stand in the shapes, and what is left is a
    coefficient, with its value from `sizes`, or from what the operator came with.

    UserError for a coefficient without a value, and where no slot fits.
    """
    from syno.network.surgery import slot_bindings
    from syno.operators.specification import NO_TOTALS

    operator = chosen.operator
    specification = operator.specification
    if specification is None:
        operator, specification = _specified(chosen, template, sizes)
    bound = specification.with_changes(
        bindings=[], multiplicities=None, layer_macs=None, **NO_TOTALS
    ).with_changes(**slot_bindings(template, specification))
    return operator.with_specification(bound)


def _specified(
    chosen: Chosen, template: nn.Module, sizes: Mapping[str, int]
) -> tuple[Operator, Specification]:
    from syno import Operator, Specification
    from syno.network.placeholder import slots

    found = chosen.operator
    slot = next(iter(slots(template).values()))
    renamed = _names_of(found, slot)
    text = _NAME.sub(lambda match: renamed.get(match.group(), match.group()), found.text)
    operator = Operator.from_text(text)
    primary = [
        name for name in operator.variables if name in slot.binding or name == operator.batch
    ]
    values = {**chosen.sizes, **sizes}
    coefficients = [name for name in operator.variables if name not in primary]
    missing = [name for name in coefficients if name not in values]
    if missing:
        given = ",".join(f"{name}={value}" for name, value in sizes.items()) or "none"
        raise UserError(
            f"operator '{chosen.name}' needs a size for {', '.join(missing)}\n"
            f"  expected: --binding with these variables, such as "
            f"{','.join(f'{name}=2' for name in missing)}      got: {given}"
        )
    shapes = dict(
        line.split(" ", 1) for line in text.splitlines() if line.startswith(("in", "out"))
    )
    specification = Specification(
        shapes["in"],
        shapes["out"],
        [f"{name}: {_BUDGET}" for name in primary],
        [f"{name}={values[name]}: {_BUDGET}" for name in coefficients],
        passed_through=[(0, 0)],
    )
    return operator, specification


def _names_of(operator: Operator, slot: Placeholder) -> dict[str, str]:
    """The slot's name of each variable that stands alone in the operator's shapes."""
    names = [name or "" for name in slot.input_names]
    inside = names[1:]
    outside = [_OUTSIDE.get(name, name) for name in inside]
    renamed: dict[str, str] = {}
    for shape, known in ((operator.input, inside), (operator.output, outside)):
        if len(shape) - 1 != len(known):
            raise UserError(
                f"the operator maps [{', '.join(operator.input)}] to "
                f"[{', '.join(operator.output)}], and the layers of the network have inputs "
                f"[N, {', '.join(inside)}]\n  expected: as many dimensions"
            )
        for size, name in zip(shape[1:], known, strict=True):
            if _NAME.fullmatch(size):
                renamed.setdefault(size, name)
    taken = set(renamed.values())
    # A variable of another meaning that has a slot's name gives way.
    for name in operator.variables:
        if name not in renamed and name in taken:
            renamed[name] = f"{name}_"
    return renamed
