"""Runs a long call of the public interface in a process of its own and interrupts it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import NamedTuple

# What the calls share. A call prints nothing; `started` says that everything before it is done.
_PRELUDE = """
import sys, time
import numpy as np
import syno
from syno import Operator, Specification

def started():
    print("started", flush=True)

def scales(count, dims=6):
    "`count` element-wise weights, each over other dimensions: no order of them is like another."
    names = [f"D{d}" for d in range(dims)]
    lines = ["syno operator 1", f"out [{', '.join(names)}]", f"in [{', '.join(names)}]"]
    for i in range(count):
        held = [d for d in range(dims) if (i % (2**dims - 1) + 1) >> d & 1]
        lines.append("contract " + " ".join(f"o{d}:keep" for d in held))
    lines.append("match " + " ".join(f"o{d}" for d in range(dims)))
    return Operator.from_text("\\n".join(lines) + "\\n")

MATRIX = "syno operator 1\\nout [M, N]\\nin [M, K]\\nreduce K -> r0\\n"
MATRIX += "contract o1:drop r0:keep\\nmatch o0 r0\\n"
PAPER = Specification.preset("paper/resnet18")
"""

_AROUND = """
{prelude}
{before}
started()
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
else:
    print("ended", flush=True)
"""


class Interrupted(NamedTuple):
    """What became of the call: `interrupted` or `ended`, and seconds from the signal to that."""

    how: str
    seconds: float
    output: str


def interrupt(call: str, before: str = "", *, after: float = 0.5, limit: float = 60) -> Interrupted:
    """Starts `call`, a statement, sends SIGINT after some seconds, and waits for its end.

    Raises AssertionError where the process hangs or ends in another way.
    """
    code = _AROUND.format(prelude=_PRELUDE, before=before, call=call)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            assert first == "started\n", first + process.communicate()[1]
            time.sleep(after)
            sent = time.time()
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no answer to SIGINT within {limit} s: {call}") from None
        finally:
            process.kill()
    words = output.split()
    assert process.returncode == 0 and words, (call, process.returncode, errors[-2000:])
    return Interrupted(words[0], float(words[1]) - sent if len(words) > 1 else 0.0, output)
