"""The log of an adaptation: one process at a time writes it, and each finding once."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from syno._util.checks import short
from syno._util.errors import UserError
from syno.store import log, presence, schema
from syno.store.database import Database
from syno.store.records import canonical_json, digest
from syno.store.rows import Rows, add

# The kind of the event of a finding.
FINDING = "finding"


class Findings:
    """The log of an adaptation, for the process that drives it.

    study: its id; driver: the token of the process. What another process writes meanwhile raises
    DriverLostError here.
    """

    def __init__(self, database: Database, study: int, driver: int) -> None:
        self._database, self._study, self._driver = database, study, driver

    def add(self, what: str, key: str, value: object) -> int:
        """Add a finding of plain values, and return the number of its event.

        Raises:
            UserError: it was found before.
        """
        with self._database.writing() as connection:
            end = log.lock_study(connection, self._study)
            presence.check_driver(connection, self._study, self._driver)
            same = digest(canonical_json([what, key]))
            column = schema.finding.c
            known = select(column.id).where(column.study_id == self._study, column.digest == same)
            if connection.scalar(known) is not None:
                raise UserError(
                    f"the adaptation has found '{short(what)}' of '{short(key)}' before\n"
                    "  what to do: run the same command again; it continues with what is stored"
                )
            rows = Rows()
            add(connection, schema.finding, rows, study_id=self._study, digest=same)
            data = {"what": what, "key": key, "value": value}
            return log.append(connection, self._study, FINDING, data, rows, end)

    def note(self, kind: str, data: Mapping[str, object]) -> int:
        """Add another event, and return its number."""
        with self._database.writing() as connection:
            end = log.lock_study(connection, self._study)
            presence.check_driver(connection, self._study, self._driver)
            return log.append(connection, self._study, kind, data, end=end)
