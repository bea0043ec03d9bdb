"""What all tests need."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from postgresql import database as postgresql_database


def pytest_configure() -> None:
    """Lets tests press Ctrl-C: a shell that starts them in the background has it ignored, here and
    in every process that is started here."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL database, see postgresql.py."""
    with postgresql_database() as url:
        yield url
