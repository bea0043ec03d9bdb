"""Operators under the names that they were given: of the zoo, of files, folders and stores."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.checks import is_file, is_folder
from syno._util.errors import UserError
from syno.operands import operand
from syno.operators.operator import Operator

if TYPE_CHECKING:
    from syno.operators.specification import Specification


@dataclass(frozen=True)
class NamedOperator:
    """An operator under the name it was given, with sizes that it comes with."""

    name: str
    operator: Operator
    sizes: Mapping[str, int]


def named_operators(
    ops: Sequence[str | Operator],
    *,
    store: str | None = None,
    study: str | None = None,
    specification: Specification | None = None,
    layers: Specification | None = None,
) -> list[NamedOperator]:
    """The operators of all operands, in order, each once.

    An operand is a name of the zoo, what `operand.load_operator` takes, a folder with operators
    (files `operator.txt` in folders of it, or .txt and .json files), or a file with an operand in
    each line (`#` begins a remark). It is named by its file, its folder or the key as typed.
    An operator that is given as it is has the first eight digits of its id for a name. `layers`
    gives a formula its shapes where there is no specification.
    """
    found: dict[str, NamedOperator] = {}
    names: set[str] = set()
    for op in ops:
        if isinstance(op, Operator):
            several = [NamedOperator(op.structure[:8], op, {})]
        else:
            several = _of(op, store, study, specification, layers)
        for named in several:
            if named.operator.text not in found:
                name = _free(named.name, names)
                names.add(name)
                found[named.operator.text] = replace(named, name=name)
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
) -> list[NamedOperator]:
    from syno.operators import zoo

    if zoo.known(op):
        return [NamedOperator(op, zoo.load(op, specification), zoo.binding(op))]
    path = Path(op)
    if is_file(path) and _is_list(path):
        lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
        return [
            found
            for line in lines
            if line
            for found in _of(line, store, study, specification, layers)
        ]
    if is_folder(path):
        return [
            NamedOperator(_shown(file, path), _loaded(str(file), store, study, specification), {})
            for file in _operator_files(path)
        ]
    formula = operand.is_formula(op)
    wanted = layers if formula and specification is None else specification
    operator = _loaded(op, store, study, wanted)
    if is_file(path):
        name = _shown(path, path.parent)
    elif operand.is_key(op):  # that of its study; another specification gives another one
        name = op
    else:
        name = "formula" if formula else "operator"
    return [NamedOperator(name, operator, {})]


def _loaded(
    op: str, store: str | None, study: str | None, specification: Specification | None
) -> Operator:
    return operand.load_operator(op, store=store, study=study, specification=specification)


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
            f"the folder '{folder}' contains no operators\n"
            "  expected: folders with an operator.txt, or .txt and .json files"
        )
    return files


def _shown(file: Path, folder: Path) -> str:
    named = file.parent != folder or file == operand.operator_file_in(folder)
    return file.resolve().parent.name if named else file.stem
