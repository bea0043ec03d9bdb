"""The processes that Syno starts, and what they may take from the current folder: nothing.

A file `ctypes.py` in the current folder must not be run because Syno starts a process there. So:

- A Python process of Syno's starts with `-P` and without PYTHONPATH, and then finds modules where
  this process finds them (`search_path`). An entry of `sys.path` that means the current folder, as
  `python -c`, an interactive session and a notebook have one, stands for the folder in which this
  process was when it imported Syno, and never for another one that it has changed to since. The
  folder of a script is no such entry: it is where the script lies.
- A program is looked for in those folders of PATH that are absolute.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TextIO


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


# This module is imported with the package, before anything can change to another folder.
_START_FOLDER = _current_folder()
_PACKAGE_FOLDER = str(Path(__file__).resolve().parents[2])
_SAFE_PATH, _PATH = "PYTHONSAFEPATH", "PYTHONPATH"
# Lists of folders in which an empty or a relative entry means the current folder.
_FOLDER_LISTS = ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH")
# What the interpreter's own options are in a process that it starts.
_FLAGS = (("no_site", "-S"), ("no_user_site", "-s"), ("ignore_environment", "-E"))
_PROGRAM = """\
import sys
import json
sys.path[:] = json.loads(sys.argv[1])
module, sys.argv[1:] = sys.argv[2], sys.argv[3:]
import importlib
importlib.import_module(module).main()
"""


def search_path() -> list[str]:
    """Where this process finds modules, as absolute paths that mean the same in any folder."""
    found = [entry for entry in map(_absolute, sys.path) if entry]
    if _PACKAGE_FOLDER not in map(os.path.realpath, found):
        found.append(_PACKAGE_FOLDER)  # an editable install may be found in another way
    return found


def _absolute(entry: str) -> str:
    """An entry of a path of modules for any folder; empty where that cannot be said."""
    if os.path.isabs(entry) or _START_FOLDER is None:
        return entry if os.path.isabs(entry) else ""
    return os.path.normpath(os.path.join(_START_FOLDER, entry))


def command(module: str, *arguments: str) -> list[str]:
    """The command line of a Python process that runs `main()` of a module of Syno.

    It is run with `environment()`. arguments: what the module finds in `sys.argv[1:]`.
    """
    flags = [option for name, option in _FLAGS if getattr(sys.flags, name)]
    program = ["-P", "-c", _PROGRAM, json.dumps(search_path())]
    return [sys.executable, *flags, *program, module, *arguments]


def start(
    module: str,
    orders: Mapping[str, object],
    *,
    stderr: int | IO[str] | None = None,
    folder: str | None = None,
    own_session: bool = True,
    changes: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start a process that runs `main()` of a module of Syno, and tell it what to do.

    It reads its orders from its standard input (`read_orders`): so that a password is neither in
    its command line nor in its environment. The input stays open as long as this process lives.

    Args:
        module: the module.
        orders: what it is told, as JSON can hold it.
        stderr: where its standard error goes, as for `subprocess.Popen`.
        folder: its current folder. Default: that of this process.
        own_session: whether Ctrl-C is for this process alone.
        changes: of its environment.
    """
    process = subprocess.Popen(
        command(module),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        errors="replace",
        env=environment(**(changes or {})),
        cwd=folder,
        start_new_session=own_session,
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # its exit code says how it ended
        process.stdin.write(json.dumps(orders) + "\n")
        process.stdin.flush()
    return process


def read_orders() -> Any:
    """What the process that started this one tells it to do."""
    return json.loads(sys.stdin.readline())


def answers() -> TextIO:
    """Where answers to the process that started this one go; what libraries print from now on goes
    to standard error."""
    found = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return found


def at_the_end_of_input(act: Callable[[], object]) -> None:
    """Call a function, in a thread of its own, when the process that started this one has ended or
    closes the input of this one."""

    def wait() -> None:
        while sys.stdin.readline():
            pass
        act()

    threading.Thread(target=wait, daemon=True, name="syno-parent").start()


def isolated_command(program: str, *arguments: str) -> list[str]:
    """The command line of a Python process that runs source text with nothing but what is
    installed: no PYTHONPATH, no folder of a user."""
    return [sys.executable, "-I", "-c", program, *arguments]


def environment(**changes: str) -> dict[str, str]:
    """The environment of a process of Syno's: without PYTHONPATH, whose relative entries could mean
    another folder there, with `changes`."""
    return {k: v for k, v in os.environ.items() if k != _PATH} | changes


class _Spawning:
    """How many blocks are running, and what the variables were before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.before: dict[str, str | None] = {}


_spawning = _Spawning()


@contextlib.contextmanager
def safe_spawning() -> Iterator[None]:
    """Lets processes that `multiprocessing` starts within this block import nothing from the
    current folder.

    `multiprocessing` offers no option for that: as long as any such block is running, the
    environment has PYTHONSAFEPATH, and PYTHONPATH in it has absolute entries alone. The processes
    find modules where this process finds them.
    """
    with _spawning.lock:
        if _spawning.count == 0:
            _spawning.before = {name: os.environ.get(name) for name in (_SAFE_PATH, _PATH)}
            _protect_children()
        _spawning.count += 1
    try:
        yield
    finally:
        with _spawning.lock:
            _spawning.count -= 1
            if _spawning.count == 0:
                for name, value in _spawning.before.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value


def _protect_children() -> None:
    os.environ[_SAFE_PATH] = "1"
    if folders := os.environ.get(_PATH):
        os.environ[_PATH] = os.pathsep.join(filter(None, map(_absolute, folders.split(os.pathsep))))


def find_program(name: str) -> str | None:
    """The absolute path of a program, None where there is none.

    name: an absolute path, or what is looked for in the absolute folders of PATH. Another path
    would mean whatever lies in the current folder: there is nothing for it.
    """
    if os.sep in name:
        return shutil.which(name) if os.path.isabs(name) else None
    return shutil.which(name, path=_absolute_entries(os.environ.get("PATH", os.defpath)))


def protect_command_line() -> None:
    """Makes the environment of this process safe for whatever libraries start in it.

    For the command `syno` alone: a program that uses the package keeps its environment.
    """
    _protect_children()
    for name in _FOLDER_LISTS:
        if name in os.environ:
            os.environ[name] = _absolute_entries(os.environ[name])


def _absolute_entries(folders: str) -> str:
    return os.pathsep.join(entry for entry in folders.split(os.pathsep) if os.path.isabs(entry))
