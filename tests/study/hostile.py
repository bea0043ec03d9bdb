"""An evaluator whose operators do what no operator should; each is named by what it does."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from syno import UserError
from syno.store import Outcome
from syno.study.observer import StudyObserver

_OF_SERVER: dict[str, str] = {}  # the environment of the process that forks


class HostileOperator:
    """A text that counts its primitives, as an operator does."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (self.text,)

    def primitives(self) -> dict[str, int]:
        return {"reduce": 1}


class Hostile:
    """Evaluates texts such as "crash"; `folder` is where it leaves notes."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self.observer = StudyObserver()

    def baseline(self) -> Outcome:
        return Outcome("ok", accuracy=0.9)

    def failure(self) -> Outcome:
        return Outcome("error", rung="fake", recipe={"epochs": 1}, seed=5)

    def evaluate(self, operator: Any) -> Outcome:
        name = operator.text if hasattr(operator, "text") else operator
        action, _, argument = name.partition(":")
        self.observer.on_step("train")
        found = getattr(self, f"_{action}", lambda _: None)(argument)
        return found or Outcome("ok", accuracy=0.5, details={"pid": os.getpid()})

    def compile_ahead(self, operator: Any) -> None:
        """As `evaluate`, and leaves a note if it comes to its end."""
        self.observer = StudyObserver()
        note = self._folder / f"ahead-{operator.replace(':', '-')}"
        note.with_suffix(".began").write_text(str(os.getpid()))
        self.evaluate(operator)
        note.write_text("done")

    def _segfault(self, _: str) -> None:
        ctypes.string_at(0)

    def _signal(self, name: str) -> None:
        os.kill(os.getpid(), getattr(signal, name))

    def _exit(self, code: str) -> None:
        os._exit(int(code))

    def _sys_exit(self, code: str) -> None:
        sys.exit(int(code))

    def _hang(self, _: str) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(3600)

    def _hang_in_c(self, _: str) -> None:
        # The interpreter's lock is never given back.
        ctypes.PyDLL(None).sleep(3600)

    def _sleep(self, seconds: str) -> None:
        time.sleep(float(seconds))

    def _stop(self, _: str) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def _eat(self, megabytes: str) -> None:
        kept = []
        for _ in range(int(megabytes)):
            kept.append(bytearray(os.urandom(1 << 10) * (1 << 10)))
            time.sleep(0.0005)
        time.sleep(0.2)

    def _eat_tensor(self, megabytes: str) -> Outcome:
        import torch

        torch.ones(int(megabytes) << 18).sum()
        return Outcome("ok")

    def _eat_in_children(self, megabytes: str) -> None:
        for _ in range(4):
            if os.fork() == 0:
                kept = bytearray(os.urandom(1 << 10) * (int(megabytes) << 10))
                time.sleep(60)
                os._exit(len(kept) % 2)
        time.sleep(60)

    def _raise(self, _: str) -> None:
        class LocalError(Exception):
            def __init__(self, message: str, lock: Any) -> None:
                super().__init__(message)
                self.lock = lock

        raise LocalError("cannot be pickled", threading.Lock())

    def _answer(self, _: str) -> Outcome:
        return Outcome("ok", details={"lock": threading.Lock()})

    def _nothing(self, _: str) -> Any:
        return 17

    def _mistake(self, _: str) -> None:
        raise UserError("the learning rate is purple\n  what to do: choose a number")

    def _nan(self, _: str) -> Outcome:
        return Outcome("ok", accuracy=float("nan"))

    def _flood(self, megabytes: str) -> None:
        line = b"nothing new here\n" * 4096
        for _ in range((int(megabytes) << 20) // len(line)):
            os.write(1, line)
        os.write(2, b"the last line\n")

    def _flood_and_crash(self, megabytes: str) -> None:
        self._flood(megabytes)
        os.abort()

    def _events(self, count: str) -> None:
        for number in range(int(count)):
            self.observer.on_epoch(number, int(count), 0.5)

    def _garbage(self, _: str) -> None:
        for descriptor in os.listdir("/proc/self/fd"):
            if int(descriptor) > 2:
                try:
                    os.write(int(descriptor), b"\xff" * 5000)
                except OSError:
                    continue
        time.sleep(60)

    def _orphan(self, _: str) -> None:
        """A grandchild in a session of its own, that ignores every signal it can, and a zombie."""
        source = (
            "import os, signal, sys, time\n"
            "for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
            "os.fork() and os._exit(0)\n"
            "os.setsid()\n"
            "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\n"
            "time.sleep(600)\n"
        )
        subprocess.run([sys.executable, "-c", source, str(self._folder / "pids")], check=True)
        if os.fork() == 0:
            os._exit(0)  # nobody waits for it
        while not (self._folder / "pids").exists():
            time.sleep(0.01)

    def _orphan_and_hang(self, argument: str) -> None:
        self._orphan(argument)
        self._hang(argument)

    def _once(self, action: str) -> Outcome | None:
        """Does `action` the first time, and is good the second."""
        note = self._folder / f"once-{action}"
        if note.exists():
            return None
        note.touch()
        getattr(self, f"_{action}")("")
        return None

    def _threads(self, _: str) -> Outcome:
        import torch

        return Outcome("ok", details={"threads": torch.get_num_threads()})

    def _gpus(self, _: str) -> Outcome:
        """What the process that forks sees of GPUs, and what its children see."""
        names = ("CUDA_VISIBLE_DEVICES", "PYTORCH_NVML_BASED_CUDA_CHECK")
        return Outcome(
            "ok",
            details={
                "server": [_OF_SERVER.get(name) for name in names],
                "child": [os.environ.get(name) for name in names],
            },
        )


def make(folder: str) -> Hostile:
    _OF_SERVER.update(os.environ)
    return Hostile(folder)


def make_broken(kind: str) -> Hostile:
    if kind == "mistake":
        raise UserError("there is no such data")
    raise ZeroDivisionError("the evaluator cannot be made")


class Patient(Hostile):
    """Its baseline takes as long as the file `seconds` in its folder says."""

    def baseline(self) -> Outcome:
        time.sleep(float((self._folder / "seconds").read_text()))
        return super().baseline()


def make_patient(folder: str) -> Patient:
    return Patient(folder)
