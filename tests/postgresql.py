"""A PostgreSQL database for tests: the one of SYNO_TEST_POSTGRESQL, or a server of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database. Skips the test where there is neither."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    given = os.environ.get("SYNO_TEST_POSTGRESQL")
    if given:
        yield given.replace("postgresql://", "postgresql+psycopg://")
        return
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("no PostgreSQL here: install it, or name a database in SYNO_TEST_POSTGRESQL")
    programs_dir = programs[-1].parent
    folder = Path(tempfile.mkdtemp(prefix="syno-postgresql-"))  # short: it holds a socket
    as_user: dict[str, object] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        as_user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody")
    data, socket = folder / "data", folder

    def run(program: str, *arguments: str) -> None:
        command = [str(programs_dir / program), "-D", str(data), *arguments]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=60, **as_user
        )

    run("initdb", "--no-sync", "-A", "trust", "-U", "syno", "-E", "UTF8")
    options = f"-c listen_addresses= -c unix_socket_directories={socket} -c fsync=off"
    run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://syno@/postgres?host={socket}"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)
