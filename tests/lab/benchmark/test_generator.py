"""The generator: it trains everything once, and continues after a kill."""

import json
import shutil

import pytest

import syno
from syno_lab.benchmark import BenchmarkTable, generate, load, new_table
from syno_lab.benchmark.generator import MOST_STARTS, TableFile, jobs, journal_of, recovered
from syno_lab.benchmark.latency import measure_latencies
from syno_lab.benchmark.table import BASELINE

from . import made


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "made.jsonl.gz"
    new_table(made.configuration(operators=5)).write(path)
    return path


@pytest.fixture(scope="module")
def whole(empty, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "made.jsonl.gz"
    shutil.copy(empty, path)
    generate(path)
    return path


def results(table):
    """Without the processor time, which differs."""
    return {(r.operator, r.seed): (r.accuracy, r.curve, r.losses) for r in table.results}


def test_a_new_table_has_the_operators_of_the_space_in_a_random_order(empty):
    table = load(empty)
    assert len(table.rows) == len({row.key for row in table.rows}) == 5
    assert table.environment["space"] > 5
    bindings = table.specification.full_bindings
    assert [(b["C_in"], b["H"]) for b in bindings] == [(8, 8)]
    other = new_table(made.configuration(operators=5, order_seed=1))
    assert [r.key for r in other.rows] != [r.key for r in table.rows]
    assert [r.key for r in new_table(made.configuration(operators=5)).rows] == [
        r.key for r in table.rows
    ]


def test_everything_is_trained_once_and_the_best_and_a_sample_more_often(whole):
    table = load(whole)
    done = {(r.operator, r.seed) for r in table.results}
    assert len(done) == len(table.results)
    assert {job for job in done if job[0] == BASELINE} == {(BASELINE, s) for s in range(3)}
    assert {(n, 0) for n in range(5)} <= done
    assert {(0, 1), (1, 1)} <= done
    first = {n: table.by_operator[n][0].accuracy for n in range(5)}
    best = sorted(first, key=lambda n: (-first[n], n))[:2]
    assert {(n, s) for n in best for s in range(3)} <= done
    assert done == set(jobs(table))
    assert table.is_complete
    for result in table.results:
        assert result.status == "ok"
        assert len(result.curve) == len(result.losses) == 2
        assert result.curve[-1] == result.accuracy
        assert result.seconds > 0


def test_a_run_that_is_cut_off_ends_with_the_same_results(empty, whole, tmp_path):
    path = tmp_path / "made.jsonl.gz"
    shutil.copy(empty, path)
    generate(path, limit=2)
    with journal_of(path).open("a") as file:
        file.write('{"started":[-1,2]}\n{"operator":-1,"se')  # a kill while it was written
    partial = load(path)
    assert not partial.is_complete
    with pytest.warns(UserWarning, match=r"last line of '.*made\.jsonl\.gz\.journal'; what"):
        generate(path, limit=1)
    assert results(generate(path)) == results(load(whole))
    assert journal_of(path).read_text() == ""


def test_what_was_not_packed_is_found_in_the_journal(whole, tmp_path):
    path = tmp_path / "made.jsonl.gz"
    table = load(whole)
    table.results, last = table.results[:-1], table.results[-1]
    table.write(path)
    with pytest.raises(KeyboardInterrupt), TableFile(path) as file:
        file.begin((last.operator, last.seed))
        file.results.put((last.operator, last.seed), last)
        raise KeyboardInterrupt
    again, started = recovered(path)
    assert again.results[-1] == last
    assert not started


def test_an_operator_that_ends_the_process_again_and_again_is_a_failure(empty, tmp_path):
    path = tmp_path / "made.jsonl.gz"
    shutil.copy(empty, path)
    journal_of(path).write_text((json.dumps({"started": [BASELINE, 0]}) + "\n") * MOST_STARTS)
    generate(path, limit=1)
    (result,) = load(path).results
    assert (result.status, result.accuracy) == ("error", None)
    assert "the process ended 3 times" in result.reason


def test_a_space_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("syno_lab.benchmark.generator._MAX_NODES", 3)
    with pytest.raises(syno.UserError, match="not enumerated completely"):
        new_table(made.configuration())


def test_latencies_are_those_of_compiled_networks_beside_the_original(whole, tmp_path):
    path = tmp_path / "made.jsonl.gz"
    shutil.copy(whole, path)
    measure_latencies(path, limit=1, repeats=20)
    table = measure_latencies(path, limit=1, repeats=20)
    assert [latency.operator for latency in table.latencies] == [0, 1]
    again = BenchmarkTable.read(path)
    assert again.latencies == table.latencies
    for latency in again.latencies:
        assert latency.reason == ""
        assert 0 < latency.ms < 100
        assert 0.05 < latency.ratio < 20
    assert again.trial(again.rows[0].key, 0).latency_ratio == again.latencies[0].ratio


def test_a_table_of_text_compares_losses(tmp_path):
    pytest.importorskip("transformers")
    text = tmp_path / "words.txt"
    lines = [f"the quick brown fox jumps {n} times over the lazy dog" for n in range(200)]
    text.write_text("\n".join(lines))
    specification = {
        "input": "[N, seq_len: causal, H_in: unordered]",
        "output": "[N, seq_len: causal, H_out]",
        "primary": ["N: 0", "seq_len: 0", "H_in: 3", "H_out: 3"],
        "coefficient": ["k=3: 2", "g=2: 2"],
        "passed_through": [[0, 0]],
        "max_depth": 5,
    }
    given = made.configuration(
        data=str(text),
        model="gpt2-small",
        model_options={"width": 8, "heads": 2, "layers": 1, "context": 8},
        specification=specification,
        fidelity={"name": "fast/text", "context": 8, "steps": 20, "batch": 4, "held_tokens": 200},
        operators=2,
        repeats=1,
        best_repeats=1,
    )
    path = tmp_path / "words.jsonl.gz"
    new_table(given).write(path)
    table = generate(path)
    assert table.is_complete
    assert table.objective.name == "loss"
    for result in load(path).results:
        assert result.loss > 0
    best, worst = table.ranking
    assert table.trial(best, 0).loss < table.trial(worst, 0).loss
    assert table.scores[best] == -table.trial(best, 0).loss
    assert table.trial(best, 0).objective == table.trial(best, 0).loss
