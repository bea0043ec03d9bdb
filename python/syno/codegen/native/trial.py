"""Compiled code in a process of its own, between pages that kill it: wrong code may write anywhere.

The process: `main`, with a JSON object on standard input: the operator's text and what `trial` was
given. It prints the number of each plan that came through.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import subprocess
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError
from syno.codegen.native import function as native_function
from syno.codegen.native.function import compile_operator
from syno.operators.operator import Operator
from syno.runs import helper_process

_SECONDS = 300.0


def trial(
    operator: Operator,
    binding: Mapping[str, int],
    plans: Sequence[int],
    *,
    threads: int = 1,
    fold_weights: bool = False,
    tuning: str = "",
) -> None:
    """Runs the code of each plan once with nothing but its own memory at hand.

    UserError names the first plan whose code reads or writes elsewhere, or does not come to an end.
    """
    asked = {
        "operator": operator.text,
        "binding": dict(binding),
        "plans": list(plans),
        "threads": threads,
        "fold_weights": fold_weights,
        "tuning": tuning,
    }
    try:
        done = subprocess.run(
            helper_process.command("syno.codegen.native.trial"),
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            env=helper_process.environment(),
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"compiled code did not finish within {_SECONDS:.0f} s") from error
    if done.returncode == 0:
        return
    if done.returncode > 0:  # it did not get as far as the code
        raise UserError(done.stderr.strip().rpartition("\n")[2] or "a process failed")
    came_through = {int(line) for line in done.stdout.split()}
    wrong = next(number for number in plans if number not in came_through)
    raise UserError(
        f"the compiled code of plan {wrong} accesses memory of others\n"
        f"  in binding {dict(binding)}, {threads} threads\n"
        f"  of operator\n{operator.text}\n"
        "  what to do: please report it; other plans of the operator may work"
    )


def guarded(count: int, end: bool) -> NDArray[np.float32]:
    """Floats that end, or begin, at a page that must not be touched."""
    page = mmap.PAGESIZE
    size = -(-max(1, count) * 4 // page) * page
    room = mmap.mmap(-1, size + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(room))
    libc = ctypes.CDLL(None, use_errno=True)
    for guard in (start, start + page + size):
        if libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = page + (size - count * 4 if end else 0)
    return np.frombuffer(room, np.float32, count, offset)


def main() -> None:
    """Runs what standard input asks for, in a process of its own."""
    asked = json.load(sys.stdin)
    operator = Operator.from_text(asked["operator"])
    random = np.random.default_rng(0)
    for number in asked["plans"]:
        for end in (True, False):

            def drawn(shape: Sequence[int], end: bool = end) -> NDArray[np.float32]:
                array = guarded(math.prod(shape), end).reshape(shape)
                array[...] = random.integers(-3, 4, shape)
                return array

            def aligned(count: int, end: bool = end) -> NDArray[np.float32]:
                return guarded(-(-count // 16) * 16, end)

            native_function._aligned = aligned
            function = compile_operator(
                operator,
                asked["binding"],
                plan=number,
                fold_weights=asked["fold_weights"],
                variant=native_function.Variant(tuning=asked["tuning"]),
            )
            function.pack([drawn(shape) for shape in function.weight_shapes])
            x, y = drawn(function.input_shape), drawn(function.output_shape)
            function.run_into(x, y, asked["threads"])
        print(number, flush=True)
