"""Tables: what is stored is read again, and what they say of operators."""

import gzip
import json
import math
from dataclasses import replace

import pytest

import syno
from syno_lab.benchmark import BenchmarkTable, Configuration, Latency, load, noise_of
from syno_lab.benchmark.tables import described, spread_of, summary

from . import made


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = made.table(seeds=2)
    table.latencies.append(Latency(3, 1.5, 0.75))
    failed = replace(table.results[0], accuracy=None, curve=(), status="error", reason="no memory")
    table.results[0] = failed
    path = tmp_path / "made.jsonl.gz"
    table.write(path)
    again = load(path)
    assert again.configuration == table.configuration
    assert again.specification == table.specification
    assert list(again.rows) == list(table.rows)
    assert again.results == table.results
    assert again.latencies == table.latencies
    first = path.read_bytes()
    again.write(path)
    assert path.read_bytes() == first


def test_an_operator_has_its_trials_and_its_latency():
    table = made.table(seeds=2)
    table.latencies.append(Latency(0, 1.5, 0.75))
    row = table.rows[0]
    trial = table.trial(row.key, 1)
    assert trial.accuracy == trial.objective == table.by_operator[0][1].accuracy
    assert (trial.macs, trial.params) == (row.macs, row.params)
    assert (trial.latency_ms, trial.latency_ratio) == (1.5, 0.75)
    assert table.seeds(row.key) == [0, 1]
    assert table.operators[0].key == row.key
    assert {c.key for c in table.members} == set(table.keys)
    with pytest.raises(syno.UserError, match=r"no training of .* with seed 7"):
        table.trial(row.key, 7)
    with pytest.raises(syno.UserError, match="no result of an operator 'ffff'"):
        table.trial("ffff", 0)


def test_the_true_score_is_the_mean_over_the_seeds_and_a_failure_is_the_worst():
    table = made.table(seeds=2, noise=0.01)
    key = table.rows[0].key
    values = [result.accuracy for result in table.by_operator[0].values()]
    assert table.scores[key] == pytest.approx(sum(values) / 2)
    failing = made.table(seeds=2)
    failing.results[1] = replace(failing.results[1], accuracy=None)
    assert failing.scores[failing.rows[0].key] == -math.inf
    assert failing.ranking[-1] == failing.rows[0].key


def test_the_best_share_has_the_best_operators_and_never_none():
    table = made.table()
    scores = sorted(table.scores.values(), reverse=True)
    ten = table.best(0.1)
    assert len(ten) == round(0.1 * len(scores))
    assert [table.scores[key] for key in ten] == scores[: len(ten)]
    assert table.best(1e-9) == [table.ranking[0]]


def test_an_unfinished_table_is_one_of_its_trained_operators():
    table = made.table(trained=20)
    assert not table.is_complete
    assert len(table.keys) == len(table.operators) == len(table.members) == 20
    assert "20 of" in summary(table)[0]
    assert described(table)["trained"] == 20


def test_noise_and_spread_are_those_of_the_operators():
    table = made.table(seeds=2, noise=0.02)
    table.configuration = made.configuration(repeated=len(table.rows))
    found = noise_of(table)
    assert found.operators == len(table.rows)
    assert found.deviation == pytest.approx(0.02, rel=0.2)
    assert 0.9 < found.spearman < 1
    spread = spread_of(table)
    assert spread.best > spread.high > spread.low > spread.worst
    assert noise_of(made.table()) is None
    assert spread_of(made.table(trained=1)) is None


def test_other_files_and_versions_are_refused(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    with pytest.raises(syno.UserError, match="there is no table"):
        load(path)
    with pytest.raises(syno.UserError, match="there is no table 'nothing'"):
        load("nothing")
    path.write_bytes(b"no gzip")
    with pytest.raises(syno.UserError, match="cannot read table"):
        load(path)
    for head, words in (
        ({"format": "other"}, "is not a table"),
        ({"format": "syno table", "version": 99}, "has version 99"),
        ({"format": "syno table", "version": 1}, "is damaged"),
    ):
        path.write_bytes(gzip.compress(json.dumps(head).encode() + b"\n"))
        with pytest.raises(syno.UserError, match=words):
            load(path)
    made.table().write(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(syno.UserError, match="cannot read table"):
        load(path)


def test_a_configuration_is_checked(tmp_path):
    for changes, words in (
        ({"least_macs": 2.0}, "leave no operator"),
        ({"colour": 1}, "has no 'colour'"),
        ({"best": -1}, "best"),
        ({"fidelity": {"epochs": 1}}, "has no name"),
    ):
        with pytest.raises(syno.UserError, match=words):
            made.configuration(**changes).made_fidelity()
    path = tmp_path / "broken.toml"
    path.write_text("data = ")
    with pytest.raises(syno.UserError, match=r"cannot read .*broken.toml"):
        Configuration.read(path)
    path.write_text('data = "digits"')
    with pytest.raises(syno.UserError, match="not complete"):
        Configuration.read(path)
    with pytest.raises(syno.UserError, match=r"is not a table|cannot read"):
        BenchmarkTable.read(path)
