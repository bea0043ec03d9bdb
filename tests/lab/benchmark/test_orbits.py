"""Tables with symmetries: which operators are one orbit, and replays that offer one of each."""

import json
from dataclasses import replace

import pytest

import syno
from syno.operators.operator import Operator
from syno.space.orbits import mean_difference, orbits
from syno_lab.benchmark import BenchmarkTable, load, orbit_noise_of
from syno_lab.benchmark.generator import adopt
from syno_lab.benchmark.tables import described, summary

from . import made

EXCHANGE = ["exchange 2 3"]


def symmetric(**options) -> BenchmarkTable:
    return made.table(**options).with_orbits(EXCHANGE)


def test_operators_of_one_orbit_have_the_number_of_the_first():
    table = symmetric()
    changed = table.specification.with_changes(symmetries=EXCHANGE)
    operators = [Operator.from_text(row.text, table.specification) for row in table.rows]
    expected = orbits(operators, changed)
    assert table.orbits == expected
    assert 0.5 * len(table.rows) <= len(expected) < len(table.rows)
    for orbit in expected:
        assert {table.rows[n].orbit for n in orbit} == {orbit[0]}
    keys = {Operator.from_text(row.text, changed).orbit for row in table.rows}
    assert len(keys) == len(expected)


def test_a_table_with_orbits_is_read_as_it_was_written_and_others_have_no_trace(tmp_path):
    path = tmp_path / "made.jsonl.gz"
    symmetric().write(path)
    again = load(path)
    assert again.orbits == symmetric().orbits
    assert list(again.configuration.symmetries) == EXCHANGE
    plain = made.table()
    assert not plain.orbits
    assert "symmetries" not in plain.configuration.to_json()
    assert again.with_orbits([]).rows == plain.rows
    assert described(plain)["orbits"] is None
    with pytest.raises(syno.UserError, match="names no symmetries"):
        plain.one_of_each_orbit()


def test_one_of_each_orbit_is_its_first_operator_with_a_result():
    table = symmetric(trained=40)
    one = table.one_of_each_orbit()
    kept = set(one.numbers.values())
    for orbit in table.orbits:
        trained = [n for n in orbit if n < 40]
        assert kept & set(orbit) == set(trained[:1])
    assert len(one.keys) == len(one.members) == len(table.trained_orbits) < 40


def test_the_sheet_says_how_far_operators_of_one_orbit_differ():
    table = made.table(seeds=2, noise=0.02)
    table = replace(table, configuration=made.configuration(repeated=100)).with_orbits(EXCHANGE)
    found = orbit_noise_of(table)
    assert found is not None
    values = {n: table.by_operator[n][0].accuracy for n in range(len(table.rows))}
    within, pairs = mean_difference([[values[n] for n in orbit] for orbit in table.orbits])
    assert (found.within, found.pairs) == (within, pairs)
    assert found.orbits == len(table.orbits)
    assert found.seeds == pytest.approx(1.128 * 0.02, rel=0.3)
    sheet = described(table)
    assert sheet["orbits"] == sheet["trained_orbits"] == len(table.orbits)
    assert json.dumps(sheet["orbit_noise"])
    lines = "\n".join(summary(table))
    assert f"{len(table.orbits)} orbits under exchange 2 3" in lines
    assert "two operators of one orbit differ by" in lines


def test_a_table_takes_the_symmetries_of_its_configuration_and_nothing_else(tmp_path):
    path = tmp_path / "made.jsonl.gz"
    made.table(trained=20).write(path)
    before = load(path)
    adopt(path, replace(before.configuration, symmetries=tuple(EXCHANGE)))
    after = load(path)
    assert after.orbits == symmetric().orbits
    assert after.results == before.results
    adopt(path, before.configuration)
    assert load(path).rows == before.rows
    with pytest.raises(syno.UserError, match=r"another configuration\n.*different: most_macs"):
        adopt(path, replace(before.configuration, most_macs=0.5))
