"""Schedules of compiled kernels that were found by measurement on this machine.

A tuning is a text of choices that replace those of the emitter's rules (`emit_cpp(tuning=...)`).
It is kept by what it was measured for: the emitted code without a tuning and without an epilogue,
the processor, the compiler, and the number of threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from syno import _core
from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno.codegen.native.compiler import FLAGS, find_compiler, processor
from syno.runs.cache_folder import cache_folder, write_cached
from syno.runs.private_files import check_folder, read_private

# Of the files in the cache. Another number: other content.
_FORMAT = 1


@dataclass(frozen=True)
class Tuning:
    """What a search found for a number of threads.

    text: the choices, empty if the rules are as good; speedup: how many times as fast as the rules'
    code; trials: how many choices were measured.
    """

    text: str
    speedup: float
    trials: int


def find_tuning(
    plan: _core.Plan,
    *,
    threads: int | None = None,
    precision: str = "float32",
) -> str:
    """The tuning of a plan on this machine; empty if none is known.

    Args:
        plan: the plan.
        threads: number of threads of the calls; None if it is not known: that of the largest
            number of threads is taken.
        precision: as in `emit_cpp`.
    """
    if not _folder().is_dir():
        return ""
    path = _file(plan, precision)
    found = None if path is None else _read(path)
    if not found:
        return ""
    held = found.get(max(found) if threads is None else threads)
    return "" if held is None else held.text


def held_tuning(plan: _core.Plan, threads: int) -> Tuning | None:
    """What a search found for a plan in row-major float32; None where there was none."""
    path = _file(plan)
    return None if path is None else _read(path).get(threads)


def keep_tuning(plan: _core.Plan, tuning: Tuning, threads: int) -> None:
    """Keep what a search found for a plan in row-major float32.

    UserError if the cache cannot be written.
    """
    path = _file(plan)
    if path is None:
        return
    content = {**_read(path), threads: tuning}
    tunings = {str(count): asdict(each) for count, each in content.items()}
    text = json.dumps({"format": _FORMAT, "tunings": tunings})
    write_cached(path, text, "the tuning of a kernel")


def _folder() -> Path:
    return cache_folder() / "tunings"


def _file(plan: _core.Plan, precision: str = "float32") -> Path | None:
    """Nothing without a compiler, which is part of what a tuning was measured for."""
    try:
        compiler = find_compiler()
    except UserError:
        return None
    source, _ = _core.emit_cpp(plan, precision=precision)
    code = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("//"))
    state = hashlib.sha256()
    for part in (code, processor(), compiler.path, compiler.version, *FLAGS):
        state.update(f"{len(part)}\n{part}".encode())
    return _folder() / f"{state.hexdigest()[:40]}.json"


def _read(path: Path) -> dict[int, Tuning]:
    """Tunings by number of threads; none where the file is not there, or is damaged.

    UserError where somebody else could have written it.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        check_folder(path.parent)
        held = parsed_json(read_private(path).decode("utf-8"))
        if held["format"] == _FORMAT:
            return {int(count): Tuning(**each) for count, each in held["tunings"].items()}
    return {}
