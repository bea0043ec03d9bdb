"""C++ source to shared libraries, each compiled once a machine."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from syno._util.errors import UserError
from syno._util.threads import usable_cores
from syno.runs.cache_folder import not_written, private_cache
from syno.runs.helper_process import find_program
from syno.runs.private_files import opened_folder, read_private

# What code that is measured is built with. Nothing here changes results: no -ffast-math.
_COMMON = ("-std=c++17", "-march=native", "-fPIC", "-shared")
FLAGS = (*_COMMON, "-O3")
# Code that trains: its products are unrolled as they are, and -O3 takes twice as long.
TRAINING_FLAGS = (*_COMMON, "-O2")
# Code that is only checked: quick to compile.
QUICK_FLAGS = (*_COMMON, "-O1")
_THREADS = "-fopenmp"
_COMPILERS = ("g++", "clang++", "c++")
# Half of what compiling a small kernel takes is reading the first of these.
_HEADERS = "#include <immintrin.h>\n#include <cstdint>\n#include <cstring>\n"
# The parts of a library from which on it pays at once to precompile them: a second, or 0.2 s each.
_MANY = 6


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler of the GCC or Clang family.

    path: the program; version: the first line that it says of itself; threads: whether it builds
    OpenMP programs. Without that, the code runs on one thread.
    """

    path: str
    version: str
    threads: bool

    def library(self, source: str, flags: Sequence[str] = FLAGS, *, parts: int = 1) -> ctypes.CDLL:
        """The library that `source` compiles to, from the cache when it is there.

        parts: into how many the source can be taken apart, which are compiled side by side;
        SYNO_PART chooses one, from 0 on. The cache's key is all that decides the result: source,
        compiler, flags, processor. UserError with the compiler's words when it does not compile,
        and for a cache into which somebody else could have put it.
        """
        path = self._place(source, flags)
        with opened_folder(path.parent) as folder:
            if not _is_whole(path, folder):
                self._compile(source, flags, path, parts)
            # Loading runs what is there: it is to be the file in the folder that was checked.
            opened = Path(f"/proc/self/fd/{folder}")
            library = ctypes.CDLL(str((opened if opened.is_dir() else path.parent) / path.name))
            library._name = str(path)  # what it is called when the folder is closed
            return library

    def file(self, source: str, flags: Sequence[str] = FLAGS) -> Path:
        """The file of the library, compiled where the cache does not have it."""
        if not self.has(source, flags):
            self._compile(source, flags, self._place(source, flags))
        return self._place(source, flags)

    def has(self, source: str, flags: Sequence[str] = FLAGS) -> bool:
        """Whether the library is in the cache, so that `library` compiles nothing."""
        path = self._place(source, flags)
        with opened_folder(path.parent) as folder:
            return _is_whole(path, folder)

    def precompile(self, flags: Sequence[str] = FLAGS) -> None:
        """Precompile the headers of kernels, which then takes half the time to compile them.

        It pays for many kernels: it takes a second, and 28 MB of the cache. Other compilers than
        GCC, and processors without these headers, do without.
        """
        header = self._header(flags)
        made = header.with_suffix(".h.gch")
        if made.exists() or "clang" in self.version:
            return
        with tempfile.TemporaryDirectory(prefix=".", dir=header.parent) as temporary:
            text, built = Path(temporary) / header.name, Path(temporary) / made.name
            text.write_text(_HEADERS, encoding="ascii")
            command = [self.path, *self._command(flags), "-x", "c++-header", str(text)]
            done = subprocess.run(
                [*command, "-o", str(built)], capture_output=True, check=False, cwd=temporary
            )
            if done.returncode == 0:
                for each in (text, built):
                    each.chmod(0o700)
                text.replace(header)
                built.replace(made)

    def _header(self, flags: Sequence[str]) -> Path:
        command = shlex.join(self._command(flags))
        key = _digest(_HEADERS, self.path, self.version, command, processor())
        return private_cache("native", "compiled code") / f"{key}.h"

    def _command(self, flags: Sequence[str]) -> list[str]:
        return [*flags, *self.thread_flags]

    def _place(self, source: str, flags: Sequence[str]) -> Path:
        command = shlex.join(self._command(flags))
        key = _digest(source, self.path, self.version, command, processor())
        return private_cache("native", "compiled code") / f"{key}.so"

    @property
    def thread_flags(self) -> tuple[str, ...]:
        """What lets code use threads, if the compiler can."""
        return (_THREADS,) if self.threads else ()

    def build(self, source: str, flags: Sequence[str], path: Path, *, parts: int = 1) -> None:
        """Compile `source` to the library `path`, in one step, without the cache.

        parts: as `library` has them. UserError when it does not compile, or cannot be written.
        """
        try:
            # A compiler runs in its own folder.
            with tempfile.TemporaryDirectory(prefix=".", dir=path.parent.resolve()) as temporary:
                self._pieces(source, self._command(flags), Path(temporary), parts).replace(path)
        except OSError as error:
            raise UserError(f"cannot write '{path}': {error.strerror}") from error

    def _pieces(self, source: str, command: Sequence[str], folder: Path, parts: int) -> Path:
        """A library in a folder, of pieces that are compiled side by side."""
        text, built = folder / "operator.cpp", folder / "operator.so"
        text.write_text(source, encoding="utf-8")
        if parts == 1:
            self._run([*command, str(text), "-o", str(built)], str(folder))
            return built
        objects = [folder / f"{part}.o" for part in range(parts)]
        pieces = [
            [*command, f"-DSYNO_PART={part}", "-c", str(text), "-o", str(piece)]
            for part, piece in enumerate(objects)
        ]
        with ThreadPoolExecutor(usable_cores()) as pool:
            list(pool.map(lambda piece: self._run(piece, str(folder)), pieces))
        self._run([*command, *map(str, objects), "-o", str(built)], str(folder))
        return built

    def _compile(self, source: str, flags: Sequence[str], path: Path, parts: int = 1) -> None:
        if parts >= _MANY:
            self.precompile(flags)
        command, header = self._command(flags), self._header(flags)
        if header.with_suffix(".h.gch").exists():
            command += ["-include", str(header)]
        try:
            with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as temporary:
                built = self._pieces(source, command, Path(temporary), parts)
                # Each in one step: whoever reads sees a library that fits its sum, or makes it.
                sums = Path(temporary) / "sums"
                sums.write_text(_digest_of(built.read_bytes()), encoding="ascii")
                for made in (built, sums):
                    made.chmod(0o700)  # whatever the mask: what others may write is not loaded
                built.replace(path)
                sums.replace(path.with_suffix(".sum"))
        except OSError as error:
            raise not_written("compiled code", path.parent, error) from error

    def _run(self, command: Sequence[str], folder: str) -> None:
        """In `folder`: the programs that the compiler runs find no others there."""
        result = subprocess.run(
            [self.path, *command], capture_output=True, text=True, check=False, cwd=folder
        )
        if result.returncode != 0:
            raise UserError(
                f"{self.path} cannot compile the code of an operator\n"
                f"  in {shlex.join(command)}\n{result.stderr[:4000]}"
            )


def _is_whole(path: Path, folder: int) -> bool:
    """Whether the library is there as it was written: loading a part of one kills the process.

    UserError for a file that somebody else could have written.
    """
    try:
        said = read_private(path.with_suffix(".sum"), folder)
        return said.decode("ascii") == _digest_of(read_private(path, folder))
    except (OSError, UnicodeDecodeError):
        return False


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@functools.cache
def find_compiler(name: str | None = None) -> Compiler:
    """The compiler of that name or path; else that of $CXX, else g++, clang++ or c++.

    UserError when there is none.
    """
    wished = os.path.abspath(name) if name and os.sep in name else name or os.environ.get("CXX")
    if wished and os.sep in wished and not os.path.isabs(wished):
        raise UserError(
            f"CXX names the compiler '{wished}' by a relative path\n"
            "  expected: a name in PATH, or an absolute path\n"
            f"  what to do: CXX={shlex.quote(os.path.abspath(wished))}, if this is the compiler"
        )
    for candidate in (wished,) if wished else _COMPILERS:
        path = find_program(candidate)
        if path is None:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        if said.returncode == 0:
            return Compiler(path, said.stdout.split("\n", 1)[0], _builds_threads(path))
    raise UserError(
        f"there is no C++ compiler{f' {wished!r}' if wished else ''}\n"
        f"  expected: {' or '.join(_COMPILERS)}      got: none that can be run\n"
        "  what to do: `apt install g++` (Debian, Ubuntu), or set CXX"
    )


def no_compiler() -> str | None:
    """Why code cannot be compiled here; None where there is a compiler."""
    try:
        find_compiler()
    except UserError as error:
        return str(error)
    return None


def _builds_threads(path: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="syno-") as folder:
        source = Path(folder) / "threads.cpp"
        source.write_text("#include <omp.h>\nint main() { return omp_get_num_threads() - 1; }\n")
        command = [path, _THREADS, str(source), "-o", str(source.with_suffix(".out"))]
        done = subprocess.run(command, capture_output=True, check=False, cwd=folder)
        return done.returncode == 0


@functools.cache
def processor() -> str:
    """What -march=native depends on, and so what compiled code and its times do."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n", 1)[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    wanted = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU part")
    return "\n".join(line for line in lines if line.split("\t", 1)[0].strip(" :") in wanted)


def _digest(*parts: str) -> str:
    state = hashlib.sha256()
    for part in parts:
        state.update(str(len(part)).encode() + b"\n" + part.encode())
    return state.hexdigest()[:40]
