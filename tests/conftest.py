"""What all tests need."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Before numpy and torch are loaded: what a test finds depends neither on the number of cores nor on
# what lies in the cache of who runs it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SYNO_CACHE", str(Path(__file__).resolve().parents[1] / "build/test-cache"))

from syno import UserError, options
from syno.codegen import native
from syno.runs.cache_folder import private_cache
from syno.runs.private_files import make_private_folder

sys.path.insert(0, str(Path(__file__).parent))
import durations
import order
import skips
from postgresql import database as postgresql_database


def pytest_configure(config: pytest.Config) -> None:
    """Let tests press Ctrl-C, mix them, keep their durations, and watch for unexpected skips.

    A shell that starts the tests in the background ignores Ctrl-C, here and in every process that
    is started here.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    order.register(config)
    durations.register(config)
    skips.register(config)
    # Compilation takes longer than the networks of tests: those of compiled code ask for it.
    options.DEFAULT_ENGINE = "eager"


@pytest.fixture(scope="session", autouse=True)
def precompiled_headers() -> None:
    """Tests compile hundreds of small kernels, and most of that is reading their headers."""
    with contextlib.suppress(UserError):  # there is no compiler
        for flags in (native.QUICK_FLAGS, native.FLAGS):
            native.find_compiler().precompile(flags)


@pytest.fixture(scope="session")
def new_cache(precompiled_headers: None) -> Callable[[Path], Path]:
    """A function of a folder that does not exist: a cache that holds the precompiled headers."""
    # Folders of compilers that run begin with a dot.
    headers = list(private_cache("native", "compiled code").glob("[!.]*.h*"))

    def made(folder: Path) -> Path:
        make_private_folder(folder / "native")
        for header in headers:
            shutil.copy(header, folder / "native")
        return folder

    return made


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL database, see postgresql.py."""
    with postgresql_database() as url:
        yield url


def _state() -> dict[str, object]:
    """What belongs to the whole process, and so to all tests in it."""
    found: dict[str, object] = {"folder": os.getcwd(), "Ctrl-C": signal.getsignal(signal.SIGINT)}
    found |= {k: v for k, v in os.environ.items() if k.startswith(("SYNO_", "OMP_", "CUDA_"))}
    if (torch := sys.modules.get("torch")) is not None:
        found["gradients"] = torch.is_grad_enabled()
        found["type"] = torch.get_default_dtype()
        found["threads"] = torch.get_num_threads()
    return found


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """A test that changes the process for those that follow is at fault, and not they."""
    before = _state()
    yield
    after = _state()
    if "type" not in before:  # torch was not loaded yet
        after = {name: value for name, value in after.items() if name in before}
    assert after == before, "this test leaves the process changed"


_FIRST_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


@pytest.fixture
def first_cores() -> set[int]:
    """The cores that this process might use before its first test."""
    return set(_FIRST_CORES)


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """Timing and sums do not depend on the machine's cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_disk() -> Callable[[Path, str], contextlib.AbstractContextManager[Path]]:
    """A function of a folder and a size, such as "1m": a file system of its own in the folder.

    The test is skipped where none can be mounted.
    """

    @contextlib.contextmanager
    def mounted(folder: Path, size: str) -> Iterator[Path]:
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("no file system can be mounted here")
        try:
            yield folder
        finally:
            subprocess.run(["umount", str(folder)], check=True)

    return mounted
