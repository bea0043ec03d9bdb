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

from syno import options

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


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL database, see postgresql.py."""
    with postgresql_database() as url:
        yield url


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
