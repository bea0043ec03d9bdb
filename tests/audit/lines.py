"""Command lines: valid ones, with mutated words, run in this process."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import random
import shutil
import sys
from typing import Any

from tests.audit.mutations import mutated_text
from tests.audit.stores import small_store
from tests.audit.valid import SHAPES, operators
from tests.audit.valid import folder as own_folder

from syno import UserError

_SHAPE_OPTIONS = [
    *("--input", SHAPES[0], "--output", SHAPES[1], "--primary", "C_in: 2", "--primary", "C_out: 2"),
    *("--primary", "H: 1", "--coefficient", "k=3: 1", "--primary", "N: 0"),
    *("--passed-through", "0:0", "--binding", "C_in=4,C_out=8,H=6"),
]
_FEW = ["--max-nodes", "300", "--max-seconds", "1"]
# What stands at the end of each line whatever the mutation: the work stays small. A line is
# (mutated arguments, kept ones).
_LINES: list[tuple[list[str], list[str]]] = [
    (["--version"], []),
    (["show", "OPERATOR.txt", "--binding", "C_in=4,C_out=8,H=6,k=3"], []),
    (["show", "OPERATOR.txt", "--plans", "2", "--json", "--binding", "C_in=4,C_out=8,H=6"], []),
    (["show", "1e1e", "--store", "STORE", "--study", "digits-1"], []),
    (["show", "y[o] = sum(i:C_in) x[i] * w0[o,i]", "--preset", "paper/resnet18"], []),
    (["zoo", "show", "operator-1", "--json"], []),
    (["zoo", "list"], []),
    (["models", "show", "resnet-small", "--model-option", "width=8"], ["--help"]),
    (["models", "show", "resnet-small", "--size", "16"], []),
    (["rules", "list", "--json"], []),
    (["rules", "show", "R1a"], []),
    (["status", "STORE", "--study", "digits-1", "--operators"], []),
    (["status", "STORE", "--json"], []),
    (["store", "check", "STORE"], []),
    (["store", "recover", "STORE", "new.db", "--json"], []),
    (["report", "STORE", "--study", "digits-1", "-o", "page.html"], []),
    (["select", "--store", "STORE", "--study", "digits-1", "--top", "2", "--within", "90"], []),
    (["resume", "STORE", "--study", "digits-1", "--evaluations", "2"], ["--dry-run"]),
    (["search", "--net", "resnet-small", "--data", "digits", "--store", "new.db", "--name", "a",
      "--evaluations", "2", "--fidelity", "fast/digits", "--seed", "1"], ["--help"]),
    (["data", "list", "--data-dir", "FOLDER"], []),
    (["data", "show", "digits", "--data-dir", "FOLDER"], []),
    (["data", "show", "FOLDER"], []),
    (["enumerate", *_SHAPE_OPTIONS, "--depth", "2", "--rule", "R1a=off", "--max-memory", "100M"],
     [*_FEW, "--threads", "1"]),
    (["enumerate", "--preset", "paper/resnet18", "--max-macs", "1e9"], [*_FEW, "--threads", "1"]),
    (["explain", "OPERATOR.txt", *_SHAPE_OPTIONS], _FEW),
    (["why-not", "OPERATOR.txt", *_SHAPE_OPTIONS], _FEW),
    (["export", "OPERATOR.txt", "--binding", "C_in=4,C_out=8,H=6", "--out", "out.py"], []),
]  # fmt: skip


@functools.cache
def _line_files() -> dict[str, str]:
    """The files that command lines name, made once in the worker's folder."""
    folder = own_folder() / "line"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found = next(op for op in operators()[::-1] if "k" not in op.variables)
    (folder / "OPERATOR.txt").write_text(found.text)
    small_store(folder / "STORE")
    (folder / "FOLDER").mkdir()
    return {"folder": str(folder)}


def lines() -> list[Any]:
    return [(list(changed), list(kept)) for changed, kept in _LINES]


def mutated_line(line: tuple[list[str], list[str]], rng: random.Random) -> Any:
    changed, kept = list(line[0]), line[1]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(1 if len(changed) > 1 else 0, len(changed))
        match rng.randrange(8):
            case 0:
                del changed[at]
            case 1:
                changed.insert(at, mutated_text(rng.choice(changed), rng))
            case _:
                changed[at] = mutated_text(changed[at], rng)
        if len(changed) < 2:
            break
    return changed, kept


class _Terminal(io.TextIOWrapper):
    """Standard output and error of a command: only what UTF-8 can hold, as a terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def run_line(arguments: list[str], folder: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, in this process."""
    from syno.cli.main import cli

    out, err = _Terminal(), _Terminal()
    before = sys.stdin
    sys.stdin = io.StringIO("")
    os.environ["SYNO_DEBUG"] = "1"  # a fault is an exception here
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                cli.main(args=list(arguments), prog_name="syno")
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else 0
    finally:
        sys.stdin = before
        os.environ.pop("SYNO_DEBUG", None)
    return code, out.text(), err.text()


_ELSEWHERE = ("/", "..", "~")


def try_line(line: tuple[list[str], list[str]]) -> None:
    changed, kept = line
    if any(part.startswith(_ELSEWHERE) or ".." in part for part in changed):
        raise UserError("no files elsewhere")
    if any("://" in part and "sqlite" not in part for part in changed):
        raise UserError("no servers")
    code, out, err = run_line([*changed, *kept], _line_files()["folder"])
    assert code in (0, 1, 2), (code, err)
    assert (code == 2) == err.startswith("error: ") or code != 2, err
    for text in (out, err):
        assert not any((ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 for c in text)
