"""A folder full of files that must be neither run nor read, and a watch that says whether one was.

Each module writes a line to the witness file when it is run, and every opening of a planted file is
seen by inotify: files of settings leave no other trace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

# Modules that are tried but need not be there, and those that Python itself looks for.
OPTIONAL = (
    "sitecustomize",
    "usercustomize",
    "opt_einsum",
    "pandas",
    "cupy",
    "yaml",
    "triton",
    "tvm",
    "ray",
    "torchao",
    "tokenizers",
    "operator_file",
)
# Files that libraries take settings from.
SETTINGS = {
    "matplotlibrc": "figure.facecolor: red\nno.such.setting: 1\n",
    "pyvenv.cfg": "home = .\n",
    "setup.cfg": "[options]\n",
    "pyproject.toml": "[tool]\n",
    ".env": "SYNO_CACHE=elsewhere\n",
    "hostile.pth": "import ctypes\n",
    "pip.conf": "[global]\nindex-url = nowhere\n",
    "python311._pth": ".\n",
    "triton.cfg": "\n",
    ".numpy-site.cfg": "\n",
    ".gitconfig": "[core]\nfsmonitor = ./git\n",
}
PROGRAMS = ("g++", "c++", "clang++", "cc1plus", "as", "ld", "collect2", "dot", "git", "python3")
_PROGRAM = "#!/bin/sh\necho {name} >> '{witness}'\nexit 1\n"
_MODULE = "with open({witness!r}, 'a') as file: file.write({name!r} + '\\n')\n"

_IN_ACCESS, _IN_OPEN, _NONBLOCK = 0x1, 0x20, 0o4000
_EVENT = struct.Struct("iIII")


@dataclass
class Watched:
    """Names of the files that were opened or read in a folder."""

    opened: set[str] = field(default_factory=set)


def plant(folder: Path, witness: Path) -> set[str]:
    """Fills the folder; the names of what lies there."""
    # `syno` itself last: where it is found there, nothing else is needed.
    installed = {name for name in metadata.packages_distributions() if name.isidentifier()}
    for name in {*sys.stdlib_module_names, *installed, *OPTIONAL, "syno"}:
        text = _MODULE.format(witness=str(witness), name=name)
        (folder / f"{name}.py").write_text(text)
    for name, text in SETTINGS.items():
        (folder / name).write_text(text)
    for name in PROGRAMS:
        (folder / name).write_text(_PROGRAM.format(name=name, witness=witness))
        (folder / name).chmod(0o755)
    return {path.name for path in folder.iterdir()}


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """Sees every file that is opened or read in the folder until the end of the block."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(_NONBLOCK)
    assert handle >= 0, os.strerror(ctypes.get_errno())
    try:
        added = libc.inotify_add_watch(handle, os.fsencode(folder), _IN_OPEN | _IN_ACCESS)
        assert added >= 0, os.strerror(ctypes.get_errno())
        found = Watched()
        yield found
        while True:
            try:
                data = os.read(handle, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                _, _, _, length = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                if name:
                    found.opened.add(os.fsdecode(name))
    finally:
        os.close(handle)


def console_script(folder: Path) -> Path:
    """What an installed `syno` is: a script in a folder of its own."""
    script = folder / "bin" / "syno"
    script.parent.mkdir(exist_ok=True)
    script.write_text("from syno.cli.main import main\nif __name__ == '__main__':\n    main()\n")
    return script


def run(
    script: Path, folder: Path, *arguments: str, cache: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command of the command line in the folder."""
    here = str(Path(__file__).resolve().parents[2] / "python")
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    given = os.environ | {
        "OMP_NUM_THREADS": "1",
        "SYNO_CACHE": str(cache),
        "SYNO_DEBUG": "",
        "PYTHONPATH": path,
    }
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=given | environment,
        check=False,
        timeout=900,
    )


def run_python(words: Sequence[str], folder: Path) -> None:
    """Runs Python in the folder as it comes, whatever the result is."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, check=False
    )
