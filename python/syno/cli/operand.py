"""What `OP` on a command line means: a file, `-`, or the start of a key in a store."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syno._errors import UserError

if TYPE_CHECKING:
    from syno import Operator, Specification

_KEY = re.compile(r"[0-9a-f]{4,32}")


def load_operator(
    op: str, *, store: str | None, study: str | None, specification: Specification | None
) -> Operator:
    """The operator that `op` names. UserError when it names none or several.

    An operator from a store comes with its study's specification unless another is given.
    """
    if op == "-":
        return _read(sys.stdin.read(), "standard input", specification)
    path = Path(op)
    if path.is_file():
        try:
            return _read(path.read_text(encoding="utf-8"), str(path), specification)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read the operator file '{op}': {error}") from error
    if store is not None and _KEY.fullmatch(op):
        return _stored(op, store, study, specification)
    if _KEY.fullmatch(op):
        raise UserError(
            f"there is no file '{op}', and no store to look for a key in\n"
            "  expected: a file with an operator, or a key's start together with --store URL"
        )
    raise UserError(
        f"there is no operator file '{op}'\n"
        "  expected: a file with an operator's text or JSON, - for standard input,\n"
        "            or at least 4 hexadecimal digits of a key together with --store URL"
    )


def _read(text: str, where: str, specification: Specification | None) -> Operator:
    from syno import Operator

    if not text.strip():
        raise UserError(f"{where} is empty\n  expected: an operator's text or JSON")
    try:
        if text.lstrip().startswith("{"):
            return Operator.from_json(text, specification=specification)
        return Operator.from_text(text, specification=specification)
    except UserError as error:
        raise UserError(f"{error}\n  in {where}") from error


def _stored(
    prefix: str, url: str, study: str | None, specification: Specification | None
) -> Operator:
    from syno import Operator
    from syno.report.asked import read_specification
    from syno.store import Store

    found: dict[str, tuple[str, Any]] = {}
    with Store.open(url, read_only=True) as store:
        studies = [store.study(study)] if study is not None else store.studies()
        for record in studies:
            for proposal in store.proposals(record):
                if proposal.text and proposal.key and proposal.key.startswith(prefix):
                    found.setdefault(proposal.key, (proposal.text, record.specification))
        name = store.name
    if not found:
        raise UserError(
            f"no operator with a key that starts with '{prefix}' in the store '{name}'\n"
            "  `syno status STORE --operators` lists what is there"
        )
    if len(found) > 1:
        listed = ", ".join(key[:12] for key in sorted(found)[:6])
        raise UserError(
            f"{len(found)} operators of the store '{name}' have keys that start with '{prefix}': "
            f"{listed}\n  give more digits"
        )
    ((text, content),) = found.values()
    return Operator.from_text(text, specification=specification or read_specification(content))
