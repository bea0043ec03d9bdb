"""A table of rankings: what is trained, in which order, and what it says."""

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result

import syno
from syno.cli.main import cli
from syno.experiments import ranking
from syno.experiments.agreement import agreement, spearman
from syno.experiments.ranking import HIGH, INITIAL, LOW, PLAIN, SCALED, Entry, Run, Table
from syno.train import fidelity

COUNT = 30


def syno_cli(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def settings(**changes):
    quick = fidelity("digits").changed(images=60, epochs=1, batch=20).to_json()
    long = fidelity("digits").changed(images=60, epochs=3, batch=20).to_json()
    given = {"model": "cnn-small", "model_options": {"width": 4}, "data": "digits"}
    given |= json.loads(json.dumps({"low": quick, "high": long}))
    return ranking.Settings(**given | {"arms": 8} | changes)


def entry(number):
    return Entry("conv2d" if number == 0 else "", f"{number:032x}", "text", "{}", 1000, 10, 1.0)


def trained(table, job, accuracy):
    which, rung, scales, seed = job
    table.runs.append(Run(which, rung, scales, seed, accuracy, (1.0 - accuracy,), 1.0))


def filled(noise=0.02, **changes):
    """A table whose operators have the accuracies 0.30, 0.31, ... and noise on them."""
    random = np.random.default_rng(0)
    table = Table(settings(**changes), {}, [entry(i) for i in range(COUNT)])
    while job := next(table.waiting(), None):
        trained(table, job, 0.3 + 0.01 * job[0] + noise * float(random.standard_normal()))
    return table


def test_a_rung_of_all_images_counts_those_that_the_data_has():
    everything = fidelity("digits").changed(images=None, epochs=3).to_json()
    table = filled(high=everything, train_images=300)
    assert agreement(table).images == 3 * 300 / 60


def test_every_operator_is_trained_low_and_one_of_three_high():
    table = filled()
    jobs = [run.job for run in table.runs]
    assert len(set(jobs)) == len(jobs)
    for seed in (0, 1):
        assert {job[0] for job in jobs if job[1:] == (LOW, SCALED, seed)} == set(range(COUNT))
        arms = [{j[0] for j in jobs if j[1:] == (LOW, s, seed)} for s in (PLAIN, INITIAL)]
        assert arms[0] == arms[1]
        assert len(arms[0]) == 8
    high = [job[0] for job in jobs if job[1] == HIGH]
    low = table.accuracies(LOW)
    order = sorted(low, key=lambda i: -low[i])
    assert sorted(order.index(i) // 3 for i in high) == list(range(COUNT // 3))


def test_the_high_rung_waits_for_the_first_seed_of_all():
    table = Table(settings(), {}, [entry(i) for i in range(COUNT)])
    assert all(job[1] == LOW for job in table.waiting())
    first = [job for job in table.waiting() if job[2:] == (SCALED, 0)]
    for job in first:
        trained(table, job, 0.5)
    assert sum(job[1] == HIGH for job in table.waiting()) == COUNT // 3


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = filled()
    path = tmp_path / "table.jsonl"
    table.write(path)
    assert Table.read(path) == table
    whole = path.read_text()
    path.write_text(whole[:-20])  # killed while it wrote
    again = Table.read(path)
    assert again.runs == table.runs[:-1]
    assert list(again.waiting()) == [table.runs[-1].job]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}\n", "is no table of `syno experiment ranking`"),
        ("", "is no table of `syno experiment ranking`"),
        ("{oh\n{}\n", "is damaged"),
    ],
)
def test_another_file_is_refused(tmp_path, content, message):
    path = tmp_path / "table.jsonl"
    path.write_text(content)
    with pytest.raises(syno.UserError, match=message):
        Table.read(path)


def test_the_figures_are_those_of_scipy_and_of_what_was_put_in():
    from scipy.stats import spearmanr

    quiet = agreement(filled(noise=0.0, arms=8))
    assert quiet.correlation("low rung, one seed").value == pytest.approx(1.0)
    assert [arm.difference for arm in quiet.arms] == [0.0] * 3
    table = filled(noise=0.1)
    found = agreement(table).correlation("two seeds of the low rung")
    one, other = table.accuracies(LOW, 0), table.accuracies(LOW, 1)
    wanted = spearmanr([one[i] for i in range(COUNT)], [other[i] for i in range(COUNT)])
    assert found.value == pytest.approx(wanted.statistic)
    assert found.low < found.value < found.high
    assert 0.0 < found.value < 0.9


def test_too_few_or_all_alike_give_no_correlation():
    assert spearman("few", {0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}).value is None
    alike = dict.fromkeys(range(9), 0.1)
    assert spearman("alike", alike, {i: float(i) for i in range(9)}).value is None


def test_failures_are_kept_and_not_repeated():
    table = Table(settings(), {}, [entry(i) for i in range(4)])
    which, rung, scales, seed = next(table.waiting())
    table.runs.append(Run(which, rung, scales, seed, None, (), 0.1, "diverging: loss"))
    assert (which, rung, scales, seed) not in set(table.waiting())
    assert agreement(table).failed == 1


def test_a_table_is_made_trained_and_gone_on_with(tmp_path):
    path, picture = tmp_path / "table.jsonl", tmp_path / "picture.png"
    given = ["--data", "digits", "--model", "cnn-small", "--model-option", "width=4"]
    given += ["--operators", "2", "--low", "digits", "--high", "digits", "--high-epochs", "1"]
    given += ["--arms", "0", "--seeds", "1", "--max-slowdown", "100", "--limit", "1"]
    first = syno_cli("experiment", "ranking", *given, "--out", str(path))
    assert first.exit_code == 1, first.stderr
    assert "not finished" in first.stderr
    table = Table.read(path)
    assert len(table.runs) == 1
    assert sum(not each.name for each in table.entries) == 2
    assert table.settings.train_images == 1078
    assert {"conv2d", "operator-1"} <= {each.name for each in table.entries}

    again = syno_cli("experiment", "ranking", "--out", str(path), "--limit", "1")
    assert again.exit_code == 1
    runs = Table.read(path).runs
    assert len(runs) == 2
    assert runs[0] == table.runs[0]
    assert all(run.accuracy > 0.05 and run.seconds > 0 for run in runs)

    shown = syno_cli(
        "experiment", "ranking", "--out", str(path), "--show", "--json", "--picture", str(picture)
    )
    assert json.loads(shown.stdout)["trained_low"] == 2
    assert picture.stat().st_size > 10_000


def test_mistakes_are_told(tmp_path):
    missing = str(tmp_path / "none.jsonl")
    found = syno_cli("experiment", "ranking", "--out", missing, "--show")
    assert (found.exit_code, "there is no table" in found.stderr) == (2, True)
    found = syno_cli("experiment", "ranking", "--out", missing)
    assert (found.exit_code, "expected: --data" in found.stderr) == (2, True)
