"""A PostgreSQL database for tests: the one of SYNO_TEST_POSTGRESQL, or a server of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# Tests look for it in what Syno prints.
PASSWORD = "a-secret-of-the-tests"


class Server:
    """A server of Debian's package on the loopback address, with a password, in `folder`."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder, self._programs = folder, programs
        self._data = folder / "data"
        self._as_user: dict[str, object] = {}
        if os.geteuid() == 0:  # the server refuses to run as root
            self._as_user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(folder, "nobody")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)  # the folder is private
        given = ["-A", "scram-sha-256", "-U", "syno", "-E", "UTF8", f"--pwfile={secret}"]
        self._run("initdb", "--no-sync", *given)
        self.url = f"postgresql+psycopg://syno:{PASSWORD}@127.0.0.1:{self._port}/postgres"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self._folder,
            timeout=120,
            **self._as_user,
        )

    def start(self, *, durable: bool = False) -> None:
        """Start it. durable: it survives `kill`, and is slower."""
        options = (
            f"-c listen_addresses=127.0.0.1 -c port={self._port} "
            f"-c unix_socket_directories={self._folder} -c fsync={'on' if durable else 'off'}"
        )
        self._run(
            "pg_ctl", "-w", "-t", "100", "-l", str(self._folder / "log"), "-o", options, "start"
        )

    def kill(self) -> None:
        """Kill it with `kill -9`, and wait until nothing is left of it."""
        process = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 300
        while _processes_in(self._data) or Path(f"/proc/{process}").exists():  # also a zombie
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "stop")


def _processes_in(folder: Path) -> list[str]:
    """The processes with this working folder; those of a server have its data folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is of another user
            if os.readlink(process / "cwd") == str(folder):
                found.append(process.name)
    return found


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """A server that is not started yet. Skips the test where the package is not installed."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("no PostgreSQL here: install it, or name a database in SYNO_TEST_POSTGRESQL")
    folder = Path(tempfile.mkdtemp(prefix="syno-postgresql-"))  # short: it holds a socket
    try:
        yield Server(folder, programs[-1].parent)
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database. Skips the test where there is neither."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    given = os.environ.get("SYNO_TEST_POSTGRESQL")
    if given:
        yield given.replace("postgresql://", "postgresql+psycopg://")
        return
    with server() as made:
        made.start()
        try:
            yield made.url
        finally:
            made.stop()
