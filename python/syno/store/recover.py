"""Saving what is intact in a damaged store into a new one. The damaged store is only read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from sqlalchemy import Connection, column, insert, table
from sqlalchemy.exc import DBAPIError

from syno._util.checks import parsed_json
from syno._util.errors import InternalError, UserError
from syno._util.written import write_text
from syno.store import schema
from syno.store.check import findings, same_proposal
from syno.store.engine import Address, make_engine, parse_address
from syno.store.errors import translated
from syno.store.migrations import migrate
from syno.store.pages import Pages
from syno.store.raw import Values
from syno.store.records import BASELINE, OPERATOR
from syno.store.replay import Expected
from syno.store.salvage import Readable, SavedStudy, is_sealed, named, saved_studies
from syno.store.seals import seal_of_stored

_FORMAT = "syno rest 1"


@dataclass(frozen=True)
class Recovery:
    """What was saved: of each study; `rest`: the file with what is intact and belongs to no part of
    a study that can go on, with `rest_trials` evaluations in it; None where there is none."""

    store: str
    studies: tuple[SavedStudy, ...]
    rest: Path | None
    rest_trials: int

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        studies = [
            {
                "name": saved.study["name"],
                "trials": saved.trials,
                "of_trials": saved.of_trials,
                "events": len(saved.events),
            }
            for saved in self.studies
        ]
        rest = None if self.rest is None else str(self.rest)
        counts = {"rest": rest, "rest_trials": self.rest_trials}
        return {"store": self.store, "studies": studies, **counts}


def savable(url: str) -> tuple[str, ...]:
    """What can be saved of each study of a damaged store; nothing where that cannot be told."""
    address = parse_address(url)
    try:
        return named(saved_studies(_read(url, address)))
    except (OSError, DBAPIError, UserError):
        return ()


def recover(url: str, new: str) -> Recovery:
    """Writes what can be saved of the store at `url` into a new SQLite store `new`.

    Of each study the longest part of its log is kept that is whole with all its rows: it goes on
    exactly as from that moment. Other intact rows are written to `NEW.rest.json`.

    UserError when nothing can be saved, and when `new` is there already.
    """
    source, target = parse_address(url), parse_address(new)
    if target.path is None:
        raise UserError(
            f"a store cannot be recovered into '{target.name}'\n  expected: the path of a new file"
        )
    rest_path = target.path.with_name(target.path.name + ".rest.json")
    for path in (target.path, rest_path):
        if path.exists():
            raise UserError(
                f"'{path}' already exists\n  expected: a new file, so that nothing is lost"
            )
    with translated(source.name, source.path, 10.0):
        readable = _read(url, source)
    if not is_sealed(readable):
        raise UserError(
            f"nothing in '{source.name}' can be saved: no row of it has a seal\n"
            "  stores have seals since version 5\n"
            "  what to do: restore a copy; of an older store, `sqlite3 FILE .recover` saves rows"
        )
    studies = saved_studies(readable)
    kept = _write(target, studies, readable)
    rest = _rest(readable, studies, kept)
    if rest is not None:
        write_text(rest_path, json.dumps(rest, indent=1) + "\n", "what is left of the store")
    trials = len(rest["rows"].get("evaluation", [])) if rest is not None else 0
    return Recovery(target.name, tuple(studies), rest_path if rest is not None else None, trials)


class Rest(TypedDict):
    """Intact rows that are not in the new store."""

    format: str
    rows: dict[str, list[Values]]
    events: list[Values]


def _read(url: str, address: Address) -> Readable:
    if address.path is not None:
        if not address.path.is_file():
            raise UserError(f"there is no store '{address.path}'\n  what to do: check the path")
        return Readable.of_pages(Pages(address.path))
    engine = make_engine(url, address, create=False, read_only=True, timeout=10.0)
    try:
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
            return Readable.of_database(connection)
    finally:
        engine.dispose()


# A table and a primary key in it: one number, or several.
RowName = tuple[str, object]


def _write(target: Address, studies: list[SavedStudy], readable: Readable) -> set[RowName]:
    """The rows that the new store holds, by table and primary key."""
    rows: dict[RowName, Values] = {}
    for saved in studies:
        rows |= _rows_of(saved, readable)
    assert target.path is not None
    engine = make_engine(target.name, target, create=True, read_only=False, timeout=10.0)
    try:
        with translated(target.name, target.path, 10.0), engine.begin() as connection:
            migrate(connection, target.name)
            for each in schema.metadata.sorted_tables:
                _insert(connection, each.name, [v for (n, _), v in rows.items() if n == each.name])
            wrong = findings(connection)
            if wrong:
                raise InternalError(f"the recovered store is damaged: {wrong[0]}")
    except BaseException:
        engine.dispose()
        target.path.unlink(missing_ok=True)
        raise
    engine.dispose()
    return set(rows)


def _insert(connection: Connection, name: str, rows: list[Values]) -> None:
    if rows:
        # Without types: the values are as the database has them.
        bare = table(name, *(column(c.name) for c in schema.metadata.tables[name].columns))
        connection.execute(insert(bare), rows)


def _rows_of(saved: SavedStudy, readable: Readable) -> dict[RowName, Values]:
    study, identity = saved.study, saved.study["id"]
    last = saved.events[-1]["digest"] if saved.events else study["seal"]
    rows: dict[RowName, Values] = {
        ("specification", saved.specification["id"]): saved.specification,
        ("study", identity): {**study, "events": len(saved.events), "head": last},
    }
    for event in saved.events:
        rows["event", (identity, event["sequence"])] = event
    for (name, key), seal in saved.replay.stored.items():
        found = readable.row(name, key, seal)
        assert found is not None  # the log is kept as far as all rows are there
        rows[name, key] = found
    for proposal, expected in saved.replay.proposals.items():
        rows["proposal", proposal] = _proposal(identity, proposal, expected, readable)
    for operator, failures in saved.replay.failures.items():
        values: Values = {
            "study_id": identity,
            "operator_id": operator,
            "failures": failures.count,
            "kind": failures.kind,
            "reason": failures.reason,
            "updated": failures.updated,
        }
        values["seal"] = seal_of_stored(schema.quarantine, values)
        rows["quarantine", (identity, operator)] = values
    return rows


def _proposal(study: int, identity: int, expected: Expected, readable: Readable) -> Values:
    """A proposal as the log says; how often it was handed out is not in the log, but in its row."""
    versions = readable.rows["proposal"].get(identity, [])
    same = [v for v in versions if v["study_id"] == study and same_proposal(v, expected)]
    attempts = max((values["attempts"] for values in same), default=1)
    values: Values = {
        "id": identity,
        "study_id": study,
        "ask": expected.ask,
        "kind": BASELINE if expected.operator is None else OPERATOR,
        "operator_id": expected.operator,
        "state": expected.state,
        "lease": None,
        "heartbeat": None,
        "created": expected.created,
        "attempts": attempts,
        "rung_index": expected.rung,
    }
    return {**values, "seal": seal_of_stored(schema.proposal, values)}


def _rest(readable: Readable, studies: list[SavedStudy], kept: set[RowName]) -> Rest | None:
    """Intact rows that are not in the new store; None when there are none."""
    taken_back = {place for saved in studies for place in saved.replay.removed}
    rows: dict[str, list[Values]] = {}
    for name, found in readable.rows.items():
        if name == schema.schema_version.name or name in schema.PASSING:
            continue
        more = [v[0] for key, v in found.items() if (name, key) not in kept | taken_back]
        if more:
            rows[name] = [_parsed(name, values) for values in more]
    events = [
        _parsed("event", values)
        for study, numbers in readable.events.items()
        for number, versions in sorted(numbers.items())
        for values in versions[:1]
        if ("event", (study, number)) not in kept
    ]
    if not rows and not events:
        return None
    return {"format": _FORMAT, "rows": rows, "events": events}


def _parsed(name: str, values: Values) -> Values:
    """A row with its JSON as values, for a reader."""
    found = dict(values)
    for each in schema.metadata.tables[name].columns:
        if isinstance(each.type, schema.JsonText):
            try:
                found[each.name] = parsed_json(values[each.name])
            except ValueError:
                continue  # of an event that is damaged: its text says what is left
    return found
