"""Locks of files: the kernel frees them when the process that holds them ends in any way."""

from __future__ import annotations

import fcntl
import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from syno._util.checks import from_file
from syno._util.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made; another process that wants it waits."""
    descriptor = opened(path, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_now(path: Path, what: str, advice: str) -> Iterator[None]:
    """Hold the lock of a file, which is made, or refuse.

    Args:
        path: the file.
        what: what another process does at the moment, if it holds the lock, in words.
        advice: what to do then.

    Raises:
        UserError: another process holds it.
    """
    try:
        descriptor = opened(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"another process {what}\n  what to do: {advice}") from None
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def written_by_one(path: Path) -> Iterator[None]:
    """Hold the lock of a file of results, which one process at a time continues, or refuse.

    Raises:
        UserError: another process writes it, or nothing can be written beside it.
    """
    with from_file("cannot write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.lock")
        advice = "wait for it, and run the same command again; or name another file"
        lock = locked_now(beside, f"writes '{path}'", advice)
        lock.__enter__()
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def one_writer(function: Callable[P, R]) -> Callable[P, R]:
    """Let one process at a time run a function that continues the file of its argument `path`."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def alone(*args: P.args, **named: P.kwargs) -> R:
        with written_by_one(Path(signature.bind(*args, **named).arguments["path"])):
            return function(*args, **named)

    return alone


def opened(path: Path, kind: int, mode: int = 0o666) -> int:
    """The descriptor of a file that is locked and still has its name: it may have been deleted by
    who held the lock before. mode: the permissions of a file that is made."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            fcntl.flock(descriptor, kind)
            if os.path.exists(path) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
