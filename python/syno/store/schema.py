"""The tables, as they are at `VERSION`. Older stores come here by `migrations.py`.

    specification <- operator <- proposal -> study -> specification
                                    ^
                               evaluation <- measurement -> verification -> operator
                                                   |
                                                   +------> baseline -> evaluation
    study <- quarantine -> operator
    study <- event (the ordered log)      environment (of every result)
    study <- driver    proposal <- lease    worker -> environment
    study <- finding

Leases, workers and drivers say who works on what at the moment: nothing of a result depends on
them, so the log does not know them.

What an adaptation found is in its log; `finding` has a row for each, so that none is found twice.

A baseline is the latency of the original network, taken in the run of the evaluation it names.
A measurement refers to a verification by (id, source hash, passed), and `passed` is checked to
be true: no number about a source can be stored unless that source passed.
Content that may be long (operator text, recipe) is unique by its digest, because PostgreSQL
limits the length of an index entry.

Each row has a `seal`, the digest of its content (`seals.py`). An event has in its place the digest
of its content and of the event before it, and names the rows that it stored with their seals; the
study knows how many events it has and the digest of the last one (`log.append`). A new column
comes last: that is where a migration puts it.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Dialect,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TextClause,
    TypeDecorator,
    UniqueConstraint,
    text,
)

from syno._util.checks import parsed_json
from syno.store.records import canonical_json

VERSION = 10
# A store from this version on is read as it is: its rows have seals, and the tables that are read
# are the same since, beside those of `SINCE`.
READABLE_SINCE = 5
# Tables that came later, each with its first version.
SINCE = {"worker": 7, "lease": 7, "driver": 7, "finding": 9}

metadata = MetaData()
# Reads a JSON value at a place of a text, and gives the place behind it.
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def value_of(document: str) -> Any:
    """The value of canonical JSON text, as `parsed_json` gives it in twice the time. ValueError for
    what is no JSON."""
    try:  # canonical text has no spaces around it, which `json.loads` looks for
        found, end = _scan(document, 0)
    except (StopIteration, ValueError, RecursionError):
        return parsed_json(document)
    return found if end == len(document) else parsed_json(document)


class JsonText(TypeDecorator[object]):
    """A JSON value as canonical text: the same bytes on every database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        """To the database."""
        return None if value is None else canonical_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> object:
        """From the database."""
        return None if value is None else value_of(value)


def _reference(name: str, target: str, *, null: bool = False) -> Column[int]:
    return Column(name, ForeignKey(target), nullable=null)


def _text(
    name: str, *, unique: bool | None = None, server_default: TextClause | None = None
) -> Column[str]:
    return Column(name, Text, nullable=False, unique=unique, server_default=server_default)


def _seal(name: str = "seal") -> Column[str]:
    return _text(name, server_default=text("''"))


# One row for each version this store has had: the greatest is the present one.
schema_version = Table(
    "syno_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    _text("written_by"),
    _text("applied"),
    # The digest of each definition in a SQLite file: see `definitions.py`.
    Column("definitions", JsonText, nullable=False, server_default=text("'{}'")),
    _seal(),
)

specification = Table(
    "specification",
    metadata,
    Column("id", Integer, primary_key=True),
    _text("key", unique=True),
    Column("content", JsonText, nullable=False),
    _seal(),
)

operator = Table(
    "operator",
    metadata,
    Column("id", Integer, primary_key=True),
    _reference("specification_id", "specification.id"),
    _text("key"),
    _text("text"),
    _text("digest"),
    # Of the algorithm that gives the key from the text; 0: the key came from elsewhere.
    Column("key_version", Integer, nullable=False, server_default=text("0")),
    _seal(),
    UniqueConstraint("specification_id", "digest"),
    Index("operator_by_key", "key"),
)

environment = Table(
    "environment",
    metadata,
    Column("id", Integer, primary_key=True),
    _text("digest", unique=True),
    _text("device"),
    _text("platform"),
    Column("libraries", JsonText, nullable=False),
    _text("commit_hash"),
    Column("threads", Integer, nullable=False),
    _text("rules"),
    _seal(),
)

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True),
    _text("name", unique=True),
    _reference("specification_id", "specification.id"),
    Column("settings", JsonText, nullable=False),
    Column("seed", BigInteger, nullable=False),
    _text("created"),
    _seal(),
    # The length of the log and the digest of its last event; of an empty log the study's seal.
    Column("events", Integer, nullable=False, server_default=text("0")),
    _seal("head"),
)

event = Table(
    "event",
    metadata,
    Column("study_id", ForeignKey("study.id"), primary_key=True),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    _text("kind"),
    Column("data", JsonText, nullable=False),
    _text("created"),
    # The rows that it stored, and what it took back: see `rows.Rows`.
    Column("stored", JsonText, nullable=False, server_default=text("'{}'")),
    _seal("digest"),
)

proposal = Table(
    "proposal",
    metadata,
    Column("id", Integer, primary_key=True),
    _reference("study_id", "study.id"),
    Column("ask", Integer, nullable=False),
    _text("kind"),
    _reference("operator_id", "operator.id", null=True),
    _text("state"),
    Column("lease", Text),  # who works on it
    Column("heartbeat", Text),  # when that worker was last heard of
    _text("created"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # The rung of a ladder that it was sent to last.
    Column("rung_index", Integer, nullable=False, server_default=text("0")),
    _seal(),
    UniqueConstraint("study_id", "ask"),
    CheckConstraint("(kind = 'baseline') = (operator_id IS NULL)"),
    Index("proposal_by_state", "study_id", "state"),
)

# Operators of a study that crashed, hung or ran out of memory, and how often.
quarantine = Table(
    "quarantine",
    metadata,
    Column("study_id", ForeignKey("study.id"), primary_key=True),
    Column("operator_id", ForeignKey("operator.id"), primary_key=True),
    Column("failures", Integer, nullable=False),
    _text("kind"),
    _text("reason"),
    _text("updated"),
    _seal(),
)

evaluation = Table(
    "evaluation",
    metadata,
    Column("id", Integer, primary_key=True),
    _reference("proposal_id", "proposal.id"),
    _text("recipe_digest"),
    Column("recipe", JsonText, nullable=False),
    _text("split"),
    _text("rung"),
    Column("seed", BigInteger, nullable=False),
    _text("status"),
    _text("reason"),
    Column("accuracy", Float),
    Column("macs", BigInteger),
    Column("params", BigInteger),
    Column("primitives", JsonText, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("details", JsonText, nullable=False),
    _reference("environment_id", "environment.id"),
    _text("finished"),
    Column("rung_index", Integer, nullable=False, server_default=text("0")),
    _seal(),
    UniqueConstraint("proposal_id", "recipe_digest", "split", "rung", "seed"),
    CheckConstraint("status IN ('ok', 'error', 'timeout', 'rejected')"),
)

verification = Table(
    "verification",
    metadata,
    Column("id", Integer, primary_key=True),
    _reference("operator_id", "operator.id"),
    _text("source_hash"),
    Column("bindings", JsonText, nullable=False),
    _text("emitter"),
    Column("seed", BigInteger, nullable=False),
    Column("passed", Boolean, nullable=False),
    Column("max_error", Float),
    _reference("environment_id", "environment.id"),
    _text("created"),
    _seal(),
    UniqueConstraint("id", "source_hash", "passed"),
)

baseline = Table(
    "baseline",
    metadata,
    Column("id", Integer, primary_key=True),
    _reference("evaluation_id", "evaluation.id"),
    _reference("environment_id", "environment.id"),
    Column("median_ms", Float, nullable=False),
    Column("spread_ms", Float, nullable=False),
    _text("created"),
    _seal(),
    Index("baseline_by_evaluation", "evaluation_id"),
)

measurement = Table(
    "measurement",
    metadata,
    Column("id", Integer, primary_key=True),
    _reference("evaluation_id", "evaluation.id"),
    Column("verification_id", Integer, nullable=False),
    _text("source_hash"),
    Column("passed", Boolean, nullable=False),
    _reference("baseline_id", "baseline.id"),
    _reference("environment_id", "environment.id"),
    _text("device"),
    Column("median_ms", Float, nullable=False),
    Column("spread_ms", Float, nullable=False),
    Column("ratio", Float, nullable=False),
    Column("threads", Integer, nullable=False),
    Column("repeats", Integer, nullable=False),
    Column("batch", Integer, nullable=False),
    _text("created"),
    _seal(),
    ForeignKeyConstraint(
        ["verification_id", "source_hash", "passed"],
        ["verification.id", "verification.source_hash", "verification.passed"],
    ),
    CheckConstraint("passed"),
    Index("measurement_by_evaluation", "evaluation_id"),
)

# Processes that evaluate the proposals of drivers (`syno worker`), as they announced themselves.
worker = Table(
    "worker",
    metadata,
    Column("id", Integer, primary_key=True),
    _text("name", unique=True),
    Column("tags", JsonText, nullable=False),
    _reference("environment_id", "environment.id"),
    _text("started"),
    _text("heartbeat"),
    Column("ended", Text),
    _seal(),
)

# One row for each time that a proposal was handed out. The id is the fencing token of the lease:
# of two leases of a proposal, the later one has the greater id. What refers to a lost proposal says
# less about the damage than the log does, so that it is no foreign key.
lease = Table(
    "lease",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("proposal_id", Integer, nullable=False),
    Column("rung_index", Integer, nullable=False),
    _text("worker"),
    _text("taken"),
    Column("ended", Text),
    Column("ending", Text),  # how it ended: see `leasing.py`
    _seal(),
    Index("lease_by_proposal", "proposal_id"),
)

# The process that proposes for a study, while others evaluate. The token rises with each take-over.
driver = Table(
    "driver",
    metadata,
    Column("study_id", ForeignKey("study.id"), primary_key=True),
    _text("holder"),
    Column("token", Integer, nullable=False),
    _text("taken"),
    _text("heartbeat"),
    Column("ended", Text),
    _seal(),
)

# What an adaptation has found: the digest of the kind and the key of each finding, once. Those of
# version 8 and before are in the log alone.
finding = Table(
    "finding",
    metadata,
    Column("id", Integer, primary_key=True),
    _reference("study_id", "study.id"),
    _text("digest"),
    _seal(),
    UniqueConstraint("study_id", "digest"),
)


def tables(version: int) -> list[Table]:
    """The tables of a store of this version, in the order of their references."""
    return [t for t in metadata.sorted_tables if SINCE.get(t.name, 0) <= version]
