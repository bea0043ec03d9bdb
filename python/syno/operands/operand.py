"""What OP names: a name of the zoo, a file or folder, `-`, a text, a formula, an id or a key."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.checks import is_file, parsed_json
from syno._util.command_line import DEFAULT_STORE
from syno._util.errors import UserError, nearest
from syno.operators.summary import identity, is_named

if TYPE_CHECKING:
    from syno.operators.operator import Operator
    from syno.operators.specification import Specification

_KEY = re.compile(r"[0-9a-f]{4,32}")
# An index formula, such as y[o] = sum(i:C_in) x[i] * w0[o,i].
_FORMULA = re.compile(r"\w\s*\[[^\]]*\]\s*=|=\s*sum\s*\(")
_HEADER = re.compile(r"^\s*syno (operator|graph)", re.MULTILINE)
# The files of a folder that `syno select` writes, and how many folders a message names.
_OPERATOR_FILE = "operator.txt"
_SPECIFICATION_FILE = "specification.json"
_FACTS_FILE = "evaluation.json"
_MOST_LISTED = 8
# Characters of an operand that a message repeats.
_LONG = 100


def specification_of(
    op: str, *, preset: str | None, store: str | None, study: str | None
) -> Specification | None:
    """The specification of `preset`, else that of a study in `store` when the operand is a file.

    A key in a store brings its own: None.
    """
    from syno.operators.specification import Specification

    if preset is not None:
        return Specification.preset(preset)
    from syno.operators import zoo

    spelt = op.lstrip().startswith(("{", "syno ")) or _FORMULA.search(op) or zoo.known(op)
    named = op != "-" and not spelt and not is_file(operator_file(Path(op)))
    if store is None or named:
        return None
    from syno.operators.specification import read_specification
    from syno.store import Store

    with Store.open(store, read_only=True) as opened:
        return read_specification(opened.study(study).specification)


def load_operator(
    op: str,
    *,
    store: str | None,
    study: str | None,
    specification: Specification | None = None,
) -> Operator:
    """The operator that `op` names or spells out. UserError when it names none or several.

    An operator from a store comes with its study's specification unless another is given, which
    must know all its variables.
    """
    operator = _found(op, store=store, study=study, specification=specification)
    known = specification.variables if specification is not None else operator.variables
    unknown = [name for name in operator.variables if name not in known]
    if unknown:
        raise UserError(
            f"the operator {_short(op)} has variables that the specification does not know: "
            f"{', '.join(unknown)}\n"
            f"  known variables: {', '.join(known)}\n"
            "  what to do: give the specification of the operator, or omit it, and give sizes with "
            "--binding"
        )
    return operator


def _found(
    op: str, *, store: str | None, study: str | None, specification: Specification | None
) -> Operator:
    if op == "-":
        return _read(_standard_input(), "standard input", specification)
    if op.lstrip().startswith(("{", "syno ")):
        return _read(op, "the operator on the command line", specification)
    if _FORMULA.search(op):
        return _read(op, "the formula on the command line", specification)
    from syno.operators import zoo

    if zoo.known(op):
        return zoo.load(op, specification)
    path = operator_file(Path(op))
    if is_file(path):
        try:
            text = path.read_text(encoding="utf-8")
            _check_selected(path)
            return _read(text, str(path), specification or _specification_beside(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"cannot read the operator file '{op}'\n"
                f"  expected: readable text in UTF-8      got: {error}"
            ) from error
    if is_key(op):
        if store is None and not is_file(Path(DEFAULT_STORE)):
            raise UserError(
                f"there is no file '{op}', and no store to search for an id or a key\n"
                "  expected: a file with an operator, or the start of an id or a key together with "
                "--store URL"
            )
        return _stored(op, store or DEFAULT_STORE, study, specification)
    raise UserError(
        f"there is no operator file '{_short(op)}'{nearest(op, zoo.all_names())}\n"
        "  expected: a name of the zoo, a file with an operator's text or JSON, or its folder,\n"
        "            - for standard input, index notation, or at least 4 hexadecimal digits of an\n"
        "            id or a key with --store URL"
    )


def operator_folders(folder: Path) -> list[Path]:
    """The folders of operators in a selection, such as `syno select --out` writes, by name."""
    try:
        return sorted(path.parent for path in folder.glob(f"*/{_OPERATOR_FILE}"))
    except (OSError, ValueError):
        return []


def operator_file_in(folder: Path) -> Path | None:
    """The operator of one folder of a selection; None where there is none."""
    file = folder / _OPERATOR_FILE
    return file if is_file(file) else None


def operator_file(path: Path) -> Path:
    """The file that a path names: the operator of a folder, or the path itself.

    UserError for a selection of several operators, naming them, and for a folder without one.
    """
    try:
        if not path.is_dir():
            return path
    except (OSError, ValueError):
        return path
    if is_file(path / _OPERATOR_FILE):
        return path / _OPERATOR_FILE
    folders = operator_folders(path)
    if len(folders) == 1:
        return folders[0] / _OPERATOR_FILE
    if folders:
        listed = "\n".join(f"  {each}" for each in folders[:_MOST_LISTED])
        more = len(folders) - _MOST_LISTED
        raise UserError(
            f"the folder '{path}' contains {len(folders)} operators instead of one\n{listed}"
            + (f"\n  and {more} more" if more > 0 else "")
        )
    raise UserError(
        f"the folder '{path}' contains no operator\n"
        f"  expected: {_OPERATOR_FILE} in it, as written by `syno select --out`"
    )


def _specification_beside(path: Path) -> Specification | None:
    """What the operator was found under, where that stands beside it."""
    from syno.operators.specification import Specification

    beside = path.with_name(_SPECIFICATION_FILE)
    if path.name != _OPERATOR_FILE or not is_file(beside):
        return None
    _check_selected(beside)
    try:
        return Specification.from_json(beside.read_text(encoding="utf-8"))
    except UserError as error:
        raise UserError(f"{error}\n  in {beside}") from error


def _check_selected(path: Path) -> None:
    """UserError where a file of a selection is not the one that `syno select` wrote.

    The figures beside it have its digest; in selections of an older Syno they have none.
    """
    facts = path.with_name(_FACTS_FILE)
    if path.name not in (_OPERATOR_FILE, _SPECIFICATION_FILE) or not is_file(facts):
        return
    from syno.store.records import digest

    try:
        content = parsed_json(facts.read_text(encoding="utf-8"))
        digests = content.get("digests", {})
        expected = digests.get(path.name)
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"cannot read the results of the operator in '{facts}': {error}") from error
    if expected is not None and expected != digest(path.read_bytes().decode("utf-8")):
        raise UserError(
            f"the file '{path}' has changed since `syno select` wrote it\n"
            f"  expected: the digest {expected} in {facts.name}\n"
            "  what to do: select the operator again, or copy a changed operator to "
            "a new file"
        )


def _short(op: str) -> str:
    """The operand as messages name it: one that is spelt out, or is very long, is not repeated."""
    if op.lstrip().startswith(("{", "syno ")):
        return "on the command line"
    return op if len(op) <= _LONG else f"{op[:_LONG]}..."


def is_formula(op: str) -> bool:
    """Whether OP spells out index notation."""
    return not op.lstrip().startswith(("{", "syno ")) and bool(_FORMULA.search(op))


def is_key(op: str) -> bool:
    """Whether OP may be the start of a key."""
    return bool(_KEY.fullmatch(op))


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UserError(
            "cannot read the operator from standard input\n"
            f"  expected: text in UTF-8      got: {error}"
        ) from error


def _read(text: str, where: str, specification: Specification | None) -> Operator:
    from syno.operators.operator import Operator

    if not text.strip():
        raise UserError(f"{where} is empty\n  expected: an operator's text or JSON")
    try:
        if text.lstrip().startswith("{"):
            return Operator.from_json(text, specification=specification)
        if _FORMULA.search(text) and not _HEADER.search(text):
            return Operator.parse(text, specification)
        return Operator.from_text(text, specification=specification)
    except UserError as error:
        raise UserError(f"{error}\n  in {where}") from error


def _stored(
    prefix: str, url: str, study: str | None, specification: Specification | None
) -> Operator:
    from syno.operators.operator import Operator
    from syno.operators.specification import read_specification
    from syno.store import Store

    found: dict[str, tuple[str, object]] = {}
    with Store.open(url, read_only=True) as store:
        studies = [store.study(study)] if study is not None else store.studies()
        for record in studies:
            for proposal in store.proposals(record):
                if proposal.text and proposal.key and is_named(prefix, proposal.text, proposal.key):
                    same = identity(proposal.text) or proposal.key
                    found.setdefault(same, (proposal.text, record.specification))
        name = store.name
    if not found:
        raise UserError(
            f"no operator with an id or a key that starts with '{prefix}' in the store '{name}'\n"
            "  `syno status --store STORE --operators` lists the operators"
        )
    if len(found) > 1:
        listed = ", ".join(key[:12] for key in sorted(found)[:6])
        raise UserError(
            f"{len(found)} operators of the store '{name}' have ids or keys that start with "
            f"'{prefix}': "
            f"{listed}\n  give more digits"
        )
    ((text, content),) = found.values()
    return Operator.from_text(text, specification=specification or read_specification(content))
