"""Seals of rows: the same text as JSON gives, for all that a database may hold."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from syno.store import Store, leasing, log, schema
from syno.store.seals import digest_of, event_digest, seal_of_stored

from .sample import make_study

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.binary().map(bytearray),
    st.binary().map(lambda value: value.decode("utf-8", "surrogateescape")),
)


def as_stored(value: object) -> object:
    """A value of the database as a seal has it: alike for every database."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return value + 0.0  # SQLite keeps no sign of zero
    if isinstance(value, (bytes, bytearray, memoryview)):
        return hashlib.sha256(bytes(value)).hexdigest()
    return value


@given(st.lists(VALUES, min_size=5, max_size=5))
def test_an_event_has_the_digest_of_its_json(values):
    names = ("sequence", "kind", "data", "created", "stored")
    made = event_digest("head", dict(zip(names, values, strict=True)))
    assert made == digest_of(["head", *map(as_stored, values)])


@given(st.dictionaries(st.sampled_from([c.name for c in schema.proposal.columns]), VALUES))
def test_a_row_has_the_seal_of_its_json(values):
    columns = [c.name for c in schema.proposal.columns if c.name not in ("id", "seal")]
    content = ["proposal", *(as_stored(values.get(name)) for name in columns)]
    assert seal_of_stored(schema.proposal, values) == digest_of(content)


def test_the_sign_of_zero_is_not_sealed():
    with_sign, without = ({"heartbeat": zero} for zero in (-0.0, 0.0))
    assert seal_of_stored(schema.proposal, with_sign) == seal_of_stored(schema.proposal, without)


@given(st.recursive(VALUES.filter(lambda v: not isinstance(v, (bytes, bytearray))), st.lists))
def test_canonical_text_is_read_as_json_reads_it(value):
    text = json.dumps(value, separators=(",", ":"))
    assert json.dumps(schema.value_of(text)) == json.dumps(json.loads(text))


@pytest.mark.parametrize("text", ["", " ", "{", "[1,]", "1 2", "nul", "[" * 100_000])
def test_other_text_is_no_json(text):
    with pytest.raises(ValueError):
        schema.value_of(text)


def test_spaces_are_allowed_around_json():
    assert schema.value_of(" [1] ") == [1]


@pytest.mark.parametrize("find", [leasing.waiting, log.open_proposals])
def test_what_waits_is_found_without_reading_all_proposals(find, tmp_path):
    with Store.open(str(tmp_path / "store.db")) as store:
        study = make_study(store, "one")
        for ask in (1, 2, 3):
            store.ask(study, ask, (f"text {ask}", f"key {ask}"), None)
        statements: list[tuple[str, tuple[object, ...]]] = []

        def note(_connection, _cursor, statement, parameters, *_):
            statements.append((statement, parameters))

        event.listen(store.database.engine, "before_cursor_execute", note)
        with store.database.reading() as connection:
            assert len(find(connection, study.id)) == 3
            of_proposals = [each for each in statements if "FROM proposal" in each[0]]
            plans = [
                connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", parameters).all()
                for query, parameters in of_proposals
            ]
    assert plans
    assert all("proposal_by_state" in str(plan) for plan in plans)
