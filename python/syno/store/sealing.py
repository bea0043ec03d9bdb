"""The step to version 5: rows of an older store get their seals, its logs become chains.

What an older version can tell of damage is looked at first, because a seal makes whatever stands in
a row the truth: SQLite's own checks, the digests of operators, and whether log and tables agree.
The last answer to a proposal refers to all rows of that proposal's evaluations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from sqlalchemy import Connection, Table, Text, bindparam, update
from sqlalchemy.types import TypeEngine

from syno._util.checks import parsed_json
from syno.store import schema
from syno.store.check import Finding, digest_findings, same_proposal, sqlite_findings
from syno.store.operators import Keys
from syno.store.raw import Values, raw_rows, row_name
from syno.store.records import BASELINE, PENDING, canonical_json
from syno.store.replay import LogReplay
from syno.store.seals import event_digest, seals_of_stored

_VERSION = 5  # where this step arrives


def seal_store(connection: Connection) -> list[Finding]:
    """Seals all rows and chains all logs; or changes nothing and gives what is damaged."""
    found = sqlite_findings(connection)
    if found:
        return found
    tables = schema.tables(_VERSION)
    rows = {table.name: raw_rows(connection, table) for table in tables}
    found = list(digest_findings(rows["operator"]))
    if found:
        return found
    specifications = {row["id"]: row["content"] for row in rows["specification"]}
    known = Keys()
    for row in rows["operator"]:
        content = specifications[row["specification_id"]]
        row["key_version"] = known.version(row["text"], row["key"], content)
    for table in tables:
        if table is not schema.event:
            unsealed = rows[table.name]
            for row, seal in zip(unsealed, seals_of_stored(table, unsealed), strict=True):
                row["seal"] = seal
    for study in rows["study"]:
        found += _chain(study, rows)
    if not found:
        _write(connection, rows)
    return found


def _write(connection: Connection, rows: dict[str, list[Values]]) -> None:
    changed: dict[str, list[str]] = defaultdict(lambda: ["seal"])
    changed["operator"] = ["seal", "key_version"]
    changed["study"] = ["seal", "events", "head"]
    changed["event"] = ["digest", "stored"]
    for table in schema.tables(_VERSION):
        if rows[table.name] and table is not schema.schema_version:
            _update(connection, table, changed[table.name], rows[table.name])


def _update(connection: Connection, table: Table, names: list[str], rows: list[Values]) -> None:
    keys = [column.name for column in table.primary_key.columns]
    same = [table.c[name] == bindparam(f"the_{name}") for name in keys]
    # JSON is text already.
    values = {name: bindparam(f"new_{name}", type_=_plain_type(table, name)) for name in names}
    connection.execute(
        update(table).where(*same).values(**values),
        [{f"the_{k}": row[k] for k in keys} | {f"new_{n}": row[n] for n in names} for row in rows],
    )


def _plain_type(table: Table, name: str) -> Text | TypeEngine[object]:
    kind = table.c[name].type
    return Text() if isinstance(kind, schema.JsonText) else kind


def _chain(study: Values, rows: dict[str, list[Values]]) -> Iterator[Finding]:
    """Chains the log of a study; what it and the tables do not agree on."""
    events = [event for event in rows["event"] if event["study_id"] == study["id"]]
    proposals = {p["id"]: p for p in rows["proposal"] if p["study_id"] == study["id"]}
    stored = _Stored(rows)
    keys = {row["id"]: row["key"] for row in rows["operator"]}
    last_result, releases = {}, defaultdict(list)
    contents: list[Values] = [{} for _ in events]
    replay = LogReplay(keys)
    for number, event in enumerate(events):
        if event["sequence"] != number + 1:
            missing = {"study_id": study["id"], "sequence": number + 1}
            yield Finding(row_name(schema.event, missing), "it is missing from the log")
            return
        try:
            data = parsed_json(event["data"])
            proposal = proposals.get(data["proposal"]) if "proposal" in data else None
            if event["kind"] == "asked" and proposal is not None:
                contents[number] = stored.operator(proposal["operator_id"])
            event["stored"] = canonical_json(contents[number])
            replay.take(event)
        except (ValueError, KeyError, TypeError) as error:
            yield Finding(row_name(schema.event, event), f"it cannot be read: {error}")
            return
        if event["kind"] == "told":
            last_result[data["proposal"]] = number
        elif event["kind"] == "released":
            releases[data["key"]].append(number)
    for proposal, number in last_result.items():
        contents[number] = stored.answers(proposal)
    # Letting an operator out of quarantine opens its proposals again: the last time tells which.
    for identity, expected in replay.proposals.items():
        row = proposals.get(identity)
        key = BASELINE if expected.operator is None else keys.get(expected.operator, "")
        numbers = releases.get(key, [])
        if row is not None and numbers and row["state"] == PENDING != expected.state:
            contents[numbers[-1]].setdefault("reopened", []).append(identity)
            expected.state = PENDING
    yield from _unlike(proposals, replay, stored, set(last_result))
    head = study["seal"]
    for event, content in zip(events, contents, strict=True):
        event["stored"] = canonical_json(content)
        head = event["digest"] = event_digest(head, event)
    study["events"], study["head"] = len(events), head


def _unlike(
    proposals: dict[int, Values], replay: LogReplay, stored: _Stored, told: set[int]
) -> Iterator[Finding]:
    for identity in sorted(proposals.keys() | replay.proposals.keys()):
        where, row = f"table proposal, row {identity}", proposals.get(identity)
        expected = replay.proposals.get(identity)
        if row is None or expected is None:
            yield Finding(where, "the log of its study and the table disagree on whether it exists")
        elif not same_proposal(row, expected):
            yield Finding(where, "its state is not what the log of its study says")
        elif identity in told and row["state"] != PENDING and not stored.answers(identity):
            yield Finding(where, "it is completed, but its evaluation is missing")
        elif identity not in told and stored.answers(identity):
            yield Finding(where, "it has evaluations, but the log of its study has no result")


class _Stored:
    """The rows of answers and operators, by whom they belong to, as events name them."""

    def __init__(self, rows: dict[str, list[Values]]) -> None:
        self._seals = {
            name: {row["id"]: row["seal"] for row in rows[name]}
            for name in ("operator", "environment", "evaluation", "verification", "baseline")
        } | {"measurement": {row["id"]: row["seal"] for row in rows["measurement"]}}
        self._evaluations = _grouped(rows["evaluation"], "proposal_id")
        self._baselines = _grouped(rows["baseline"], "evaluation_id")
        self._measurements = _grouped(rows["measurement"], "evaluation_id")

    def operator(self, identity: int | None) -> Values:
        """What the event of asking for it names; nothing of a baseline."""
        return {} if identity is None else self._named([("operator", identity)])

    def answers(self, proposal: int) -> Values:
        """All rows of the evaluations of a proposal."""
        found: list[tuple[str, int]] = []
        for evaluation in self._evaluations[proposal]:
            found += [("evaluation", evaluation["id"])]
            found += [("environment", evaluation["environment_id"])]
            found += [("baseline", row["id"]) for row in self._baselines[evaluation["id"]]]
            for row in self._measurements[evaluation["id"]]:
                found += [("measurement", row["id"]), ("verification", row["verification_id"])]
        return self._named(found)

    def _named(self, found: list[tuple[str, int]]) -> Values:
        named: dict[str, dict[str, str]] = defaultdict(dict)
        for table, row in found:
            named[table][str(row)] = self._seals[table][row]
        return dict(named)


def _grouped(rows: list[Values], by: str) -> dict[int, list[Values]]:
    found: dict[int, list[Values]] = defaultdict(list)
    for row in rows:
        found[row[by]].append(row)
    return found
