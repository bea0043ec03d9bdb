"""What can be read of a damaged store: rows by their seals, and of each study the part of its log
that is whole.

A study can go on exactly as from any moment up to which its log is a chain and all rows are there
that the log names. What is intact behind that moment belongs to no study that could go on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Float, Table, inspect

from syno._util.checks import parsed_json
from syno.store import schema
from syno.store.pages import Pages, Record
from syno.store.raw import Values, raw_rows
from syno.store.replay import Replay
from syno.store.seals import event_digest, seal_of_stored

_EVENT_TYPES = (int, int, str, str, str, str, str)


@dataclass
class Readable:
    """Intact rows by table and primary key, several versions of one where there are several; and
    what may be events, by study and number."""

    rows: dict[str, dict[Any, list[Values]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    events: dict[int, dict[int, list[Values]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    @classmethod
    def of_pages(cls, pages: Pages) -> Readable:
        """What the pages of a SQLite file hold."""
        readable = cls()
        counts: dict[int, list[Table]] = defaultdict(list)
        for table in schema.metadata.sorted_tables:
            counts[len(table.columns)].append(table)
        for record in pages.records(counts):
            for table in counts[len(record[1])]:
                readable._take(table, _values(table, record))
        return readable

    @classmethod
    def of_database(cls, connection: Connection) -> Readable:
        """What a server's tables hold."""
        readable = cls()
        there = set(inspect(connection).get_table_names())
        for table in (t for t in schema.metadata.sorted_tables if t.name in there):
            for values in raw_rows(connection, table):
                readable._take(table, values)
        return readable

    def _take(self, table: Table, values: Values) -> None:
        if table is schema.event:
            if all(map(isinstance, values.values(), _EVENT_TYPES)):
                _add(self.events[values["study_id"]][values["sequence"]], values)
        elif values["seal"] == seal_of_stored(table, values):
            key = tuple(values[column.name] for column in table.primary_key.columns)
            _add(self.rows[table.name][key if len(key) > 1 else key[0]], values)

    def row(self, table: str, key: object, seal: str) -> Values | None:
        """The row with this key and seal."""
        versions = self.rows[table].get(key, ())
        return next((values for values in versions if values["seal"] == seal), None)


def _add(versions: list[Values], values: Values) -> None:
    if values not in versions:
        versions.append(values)


def _values(table: Table, record: Record) -> Values:
    """A record as SQLite would give it."""
    row, found = record
    values = dict(zip((column.name for column in table.columns), found, strict=True))
    for column in table.columns:
        value = values[column.name]
        if column.primary_key and value is None:
            values[column.name] = row
        elif isinstance(column.type, Float) and isinstance(value, int):
            values[column.name] = float(value)
    return values


@dataclass(frozen=True)
class SavedStudy:
    """What can be saved of a study.

    trials, of_trials: evaluations that are kept, of those that there are signs of; events: the
    whole part of the log; replay: what the tables must hold by it.
    """

    study: Values
    specification: Values
    events: list[Values]
    replay: Replay
    trials: int
    of_trials: int

    def __str__(self) -> str:
        return f"study {self.study['name']!r}: {self.trials} of {self.of_trials} trials"


def saved_studies(readable: Readable) -> list[SavedStudy]:
    """What can be saved of each study whose settings and specification are intact, by id."""
    keys = {key: rows[0]["key"] for key, rows in readable.rows["operator"].items()}
    found = []
    for identity in sorted(readable.rows["study"]):
        versions = readable.rows["study"][identity]
        study = max(versions, key=lambda values: values["events"] or 0)
        specifications = readable.rows["specification"].get(study["specification_id"])
        if specifications:
            found.append(_saved(study, specifications[0], readable, keys))
    return found


def _saved(
    study: Values, specification: Values, readable: Readable, keys: dict[int, str]
) -> SavedStudy:
    chain = list(_chain(study, readable.events[study["id"]]))
    replay, missing, whole = Replay(keys), set[tuple[str, int]](), 0
    for number, event in enumerate(chain, start=1):
        known = set(replay.stored)
        try:
            replay.take(event)
        except ValueError:
            break
        # An evaluation that was taken back later need not be there.
        missing &= set(replay.stored)
        added = replay.stored.keys() - known
        missing |= {place for place in added if not readable.row(*place, replay.stored[place])}
        if not missing:
            whole = number
    kept = Replay(keys)
    for event in chain[:whole]:
        kept.take(event)
    trials = sum(table == "evaluation" for table, _ in kept.stored)
    signs = _signs(readable, study["id"], kept)
    return SavedStudy(study, specification, chain[:whole], kept, trials, max(trials, signs))


def _chain(study: Values, events: dict[int, list[Values]]) -> Iterator[Values]:
    head, number = study["seal"], 1
    while True:
        following = (e for e in events.get(number, ()) if e["digest"] == event_digest(head, e))
        event = next(following, None)
        if event is None:
            return
        yield event
        head, number = event["digest"], number + 1


def _signs(readable: Readable, study: int, kept: Replay) -> int:
    """How many evaluations the study seems to have had."""
    seen: set[int] = set()
    gone: set[int] = set()
    for _, event in sorted(
        (n, e) for n, found in readable.events[study].items() for e in found[:1]
    ):
        try:
            stored = parsed_json(event["stored"])
            seen |= {int(row) for row in stored.get("evaluation", {})}
            gone |= set(stored.get("removed", []))
        except (ValueError, AttributeError, TypeError):
            continue  # one of the damaged ones
    proposals = {p for p, rows in readable.rows["proposal"].items() if rows[0]["study_id"] == study}
    proposals |= kept.proposals.keys()
    for identity, rows in readable.rows["evaluation"].items():
        if rows[0]["proposal_id"] in proposals:
            seen.add(identity)
    return len(seen - gone)


def is_sealed(readable: Readable) -> bool:
    """Whether the store has a version whose rows have seals, as far as that can be seen."""
    return any(readable.rows[name] for name in ("study", "specification", "operator"))


def named(studies: Iterable[SavedStudy]) -> tuple[str, ...]:
    """A line for each study."""
    return tuple(str(study) for study in studies)
