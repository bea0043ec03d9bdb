"""Schedules of compiled kernels that were found by measurement on this machine.

A tuning is a text of choices that replace those of the emitter's rules (`emit_cpp(tuning=...)`).
It is kept by what it was measured for: the emitted code without a tuning and without an epilogue,
the processor, the compiler, and the number of threads.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from syno import _core
from syno._util.cache_folder import cache_folder
from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.private_files import check_folder, make_private_folder, read_private
from syno.codegen.native.compiler import FLAGS, find_compiler, processor

# Of the files in the cache. Another number: other content.
_FORMAT = 1


def find_tuning(
    plan: _core.Plan,
    *,
    threads: int | None = None,
    input_order: Sequence[int] | None = None,
    output_order: Sequence[int] | None = None,
    precision: str = "float32",
) -> str:
    """The tuning of a plan on this machine; empty if none is known.

    Args:
        plan: the plan.
        threads: number of threads of the calls; None if it is not known: that of the largest
            number of threads is taken.
        input_order, output_order, precision: as in `emit_cpp`.
    """
    path = _file(plan, input_order, output_order, precision)
    found = None if path is None else _read(path)
    if not found:
        return ""
    if threads is None:
        threads = max(map(int, found))
    return found.get(str(threads), "")


def keep_tuning(
    plan: _core.Plan,
    tuning: str,
    *,
    threads: int,
    input_order: Sequence[int] | None = None,
    output_order: Sequence[int] | None = None,
    precision: str = "float32",
) -> None:
    """Keep the tuning of a plan, empty if the rules are as good, for a number of threads.

    UserError if the cache cannot be written.
    """
    path = _file(plan, input_order, output_order, precision)
    if path is None:
        return
    content = {**_read(path), str(threads): tuning}
    text = json.dumps({"format": _FORMAT, "tunings": content})
    try:
        make_private_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{hashlib.sha256(text.encode()).hexdigest()[:8]}")
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o600)
        temporary.replace(path)
    except OSError as error:
        raise UserError(
            f"cannot write the tuning of a kernel to '{path.parent}': {error}\n"
            "  what to do: set SYNO_CACHE to a writable folder with enough space"
        ) from error


def _file(
    plan: _core.Plan,
    input_order: Sequence[int] | None,
    output_order: Sequence[int] | None,
    precision: str,
) -> Path | None:
    """Nothing without a compiler, which is part of what a tuning was measured for."""
    try:
        compiler = find_compiler()
    except UserError:
        return None
    source, _ = _core.emit_cpp(
        plan,
        input_order=None if input_order is None else list(input_order),
        output_order=None if output_order is None else list(output_order),
        precision=precision,
    )
    state = hashlib.sha256()
    for part in (source, processor(), compiler.path, compiler.version, *FLAGS):
        state.update(f"{len(part)}\n{part}".encode())
    return cache_folder() / "tunings" / f"{state.hexdigest()[:40]}.json"


def _read(path: Path) -> Mapping[str, str]:
    """Tunings by number of threads; none where the file is not there, or is damaged.

    UserError where somebody else could have written it.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        check_folder(path.parent)
        held = parsed_json(read_private(path).decode("utf-8"))
        found = held["tunings"]
        if held["format"] == _FORMAT and all(k.isdecimal() for k in found):
            return {k: v for k, v in found.items() if isinstance(v, str)}
    return {}
