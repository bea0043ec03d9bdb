"""Ctrl-C after a network ran in an inference engine."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys

import pytest

from syno._util.signal_stack import _DISABLE, _Stack, kept_signal_stack
from syno.engines import engine

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

# Two models at a time, of which the first one goes first: what OpenVINO keeps of the thread's
# signal stack is that of a model that is gone.
INTERRUPTED = """
import gc, os, signal, sys, time
import torch
from torch import nn
from syno.engines import engine

name, net, x = sys.argv[1], nn.Conv2d(3, 8, 3).eval(), torch.randn(1, 3, 16, 16)
calls = []
for _ in range(2):
    calls.append(engine.get(name).calibrated([x]).prepare(net, x, 1))
    calls[-1]()
del calls[0]
gc.collect()
calls.clear()
gc.collect()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("handler", [(), ("-X", "faulthandler")])
@pytest.mark.parametrize("name", ["openvino", "openvino-int8"])
def test_an_interruption_is_one(name: str, handler: tuple[str, ...]) -> None:
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    ran = subprocess.run(
        [sys.executable, *handler, "-c", INTERRUPTED, name],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, ["interrupted"]), ran.stderr


def now() -> _Stack:
    found = _Stack()
    assert ctypes.CDLL(None).sigaltstack(None, ctypes.byref(found)) == 0
    return found


def changed(size: int) -> mmap.mmap:
    """Gives this thread another stack."""
    memory = mmap.mmap(-1, size)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    given = _Stack(place, 0, size)
    assert ctypes.CDLL(None).sigaltstack(ctypes.byref(given), None) == 0
    assert now().place == place
    return memory


def test_the_stack_stays_as_it_was() -> None:
    before = now()
    try:
        with pytest.raises(ValueError, match="within"), kept_signal_stack():
            changed(1 << 16)
            raise ValueError("within")
        after = now()
        assert (after.place, after.flags, after.size) == (before.place, before.flags, before.size)
        ctypes.CDLL(None).sigaltstack(ctypes.byref(_Stack(None, _DISABLE, 0)), None)
        with kept_signal_stack():
            changed(1 << 16)
        assert now().flags == _DISABLE
    finally:
        assert ctypes.CDLL(None).sigaltstack(ctypes.byref(before), None) == 0
