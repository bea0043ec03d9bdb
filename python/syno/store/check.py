"""Whether a store is whole: each row by its seal, each study by the chain of its log.

1. SQLite's own checks: the structure of the file, references between rows.
2. The definitions of tables, indexes and triggers are those that were written down.
3. Each row has the seal of its content, and each key is that of its operator.
4. The log of each study is a chain from the study to its last event, and the tables hold what the
   log says: no row, change or answer is missing, and there is none that it does not know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from syno._util.collector import paused_collector
from syno.store import definitions, schema
from syno.store.operators import KEY_VERSION, Keys
from syno.store.raw import Values, lenient, raw_rows, row_name
from syno.store.records import BASELINE, digest
from syno.store.replay import Expected, Failures, LogReplay
from syno.store.seals import event_digest, seals_of_stored

# More findings than this say nothing new.
MOST_FINDINGS = 50

_ANSWER_TABLES = ("evaluation", "baseline", "measurement", "finding")

Rows = dict[str, list[Values]]


@dataclass(frozen=True)
class Finding:
    """What is damaged: `where` names the table and row, or the page."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def sqlite_findings(connection: Connection) -> list[Finding]:
    """What SQLite's own checks say; nothing on another database, which checks itself."""
    if connection.dialect.name != "sqlite":
        return []
    found: list[Finding] = []
    try:
        with lenient(connection):
            pragma = f"PRAGMA integrity_check({MOST_FINDINGS})"
            for (text,) in connection.exec_driver_sql(pragma).all():
                if text != "ok":
                    found += [Finding("file", line) for line in str(text).splitlines()]
            for row in connection.exec_driver_sql("PRAGMA foreign_key_check").all():
                what = f"refers to a row of {row[2]} that is missing"
                found.append(Finding(f"table {row[0]}, row {row[1]}", what))
    except (DBAPIError, UnicodeDecodeError) as error:  # pages that cannot be read at all
        found.append(Finding("file", str(getattr(error, "orig", error))))
    return found


def findings(connection: Connection, version: int = schema.VERSION) -> list[Finding]:
    """All that is damaged in a store of a version whose rows have seals; one consistent state is
    read."""
    try:
        found = sqlite_findings(connection)
        found = found or [Finding(*each) for each in definitions.findings(connection)]
        if not found:
            tables = schema.tables(version)
            with paused_collector():
                rows = {table.name: raw_rows(connection, table) for table in tables}
                found = [*_unsealed(tables, rows), *_operators(rows), *_studies(rows)]
    except (DBAPIError, UnicodeDecodeError) as error:  # what the checks before did not notice
        if getattr(error, "connection_invalidated", False):  # a server that is gone says nothing
            raise
        found = [Finding("file", str(getattr(error, "orig", error)))]
    return found[:MOST_FINDINGS]


def _unsealed(tables: Iterable[Table], rows: Rows) -> Iterator[Finding]:
    for table in tables:
        if table is schema.event:
            continue  # by the chain
        found = rows[table.name]
        for values, seal in zip(found, seals_of_stored(table, found), strict=True):
            if values["seal"] != seal:
                yield Finding(row_name(table, values), "its content is not what was written")


def _operators(rows: Rows) -> Iterator[Finding]:
    specifications = {row["id"]: row["content"] for row in rows["specification"]}
    known = Keys()
    for row in rows["operator"]:
        if not isinstance(row["text"], str) or not isinstance(row["key"], str):
            yield Finding(row_name(schema.operator, row), "its text or key is not text")
            continue
        if row["key_version"] != KEY_VERSION:
            continue
        content = specifications.get(row["specification_id"])
        key = known.derived(row["text"], content) if isinstance(content, str) else None
        if key != row["key"]:
            what = f"its text gives the key {key}, and the row has {row['key']}"
            yield Finding(row_name(schema.operator, row), what)


def _studies(rows: Rows) -> Iterator[Finding]:
    keys = {row["id"]: row["key"] for row in rows["operator"]}
    own: dict[int, list[Values]] = defaultdict(list)
    for event in rows["event"]:
        own[event["study_id"]].append(event)
    replays: dict[int, LogReplay] = {}
    for study in rows["study"]:
        replay = LogReplay(keys)
        replays[study["id"]] = replay
        found = list(_chain(study, own[study["id"]], replay))
        yield from found
        if not found:
            yield from _state(study, rows, replay)
    yield from _known(rows, replays)


def _chain(study: Values, events: list[Values], replay: LogReplay) -> Iterator[Finding]:
    """The first break of the chain of a study."""
    head = study["seal"]
    for number, event in enumerate(events, start=1):
        if event["sequence"] != number:
            missing = {"study_id": study["id"], "sequence": number}
            yield Finding(row_name(schema.event, missing), "it is missing from the log")
            return
        if event["digest"] != event_digest(head, event):
            what = "its digest does not follow from its content and the event before"
            yield Finding(row_name(schema.event, event), what)
            return
        head = event["digest"]
        try:
            replay.take(event)
        except ValueError as error:
            yield Finding(row_name(schema.event, event), str(error))
            return
    if (study["events"], study["head"]) != (len(events), head):
        what = f"its log has {len(events)} events that follow each other, not {study['events']}"
        yield Finding(row_name(schema.study, study), what)


def _state(study: Values, rows: Rows, replay: LogReplay) -> Iterator[Finding]:
    """What the log of a study says and the tables do not."""
    identity = study["id"]
    found = {p["id"]: p for p in rows["proposal"] if p["study_id"] == identity}
    for proposal in sorted(replay.proposals.keys() | found.keys()):
        where = f"table proposal, row {proposal}"
        expected, row = replay.proposals.get(proposal), found.get(proposal)
        if row is None:
            yield Finding(where, "it is missing")
        elif expected is None:
            yield Finding(where, "the log of its study does not mention it")
        elif not same_proposal(row, expected):
            yield Finding(where, "its state is not what the log of its study says")
    quarantined = {q["operator_id"]: q for q in rows["quarantine"] if q["study_id"] == identity}
    for operator in sorted(replay.failures.keys() | quarantined.keys()):
        failures, row = replay.failures.get(operator), quarantined.get(operator)
        if row is None or failures is None or not _same_failures(row, failures):
            where = f"table quarantine, row {(identity, operator)}"
            yield Finding(where, "it is not what the log of its study says")


def same_proposal(row: Values, expected: Expected) -> bool:
    """Whether a proposal is as the log says."""
    return bool(
        (row["ask"], row["operator_id"], row["state"], row["rung_index"])
        == (expected.ask, expected.operator, expected.state, expected.rung)
        and (row["kind"] == BASELINE) == (expected.operator is None)
    )


def _same_failures(row: Values, failures: Failures) -> bool:
    return bool(
        (row["failures"], row["kind"], row["reason"])
        == (failures.count, failures.kind, failures.reason)
    )


def _known(rows: Rows, replays: dict[int, LogReplay]) -> Iterator[Finding]:
    """Rows that a log knows and that are missing or others, and rows of answers that none knows."""
    stored: dict[tuple[str, int], str] = {}
    for replay in replays.values():
        stored |= replay.stored
    names = {table for table, _ in stored} | set(_ANSWER_TABLES)
    there = {(name, row["id"]): row["seal"] for name in names for row in rows.get(name, ())}
    for (table, row), seal in stored.items():
        if (table, row) not in there:
            yield Finding(f"table {table}, row {row}", "it is missing")
        elif there[table, row] != seal:
            yield Finding(f"table {table}, row {row}", "it is not the one that the log knows")
    for table, row in there:
        if table in _ANSWER_TABLES and (table, row) not in stored:
            yield Finding(f"table {table}, row {row}", "no log mentions it")


def digest_findings(operators: list[Values]) -> Iterator[Finding]:
    """Operators of an older store, without seals, whose text is not the one of their digest."""
    for row in operators:
        known = isinstance(row["digest"], str) and len(row["digest"]) == 32
        if known and row["digest"] != digest(str(row["text"])):
            yield Finding(row_name(schema.operator, row), "its text is not what was written")
