"""A table of rankings: what is trained, in which order, and what it says."""

import json

import numpy as np
import pytest

import syno
from syno.train import fidelity
from syno_lab.experiments import ranking
from syno_lab.experiments.agreement import agreement, spearman
from syno_lab.experiments.ranking import (
    HIGH,
    INITIAL,
    LOW,
    PLAIN,
    SCALED,
    RankingEntry,
    RankingFile,
    RankingRun,
)

COUNT = 30


def settings(**changes):
    quick = fidelity("digits").changed(images=60, epochs=1, batch=20).to_json()
    long = fidelity("digits").changed(images=60, epochs=3, batch=20).to_json()
    given = {"model": "cnn-small", "model_options": {"width": 4}, "data": "digits"}
    given |= json.loads(json.dumps({"low": quick, "high": long}))
    return ranking.Settings(**given | {"arms": 8} | changes)


def entry(number):
    return RankingEntry(
        "conv2d" if number == 0 else "", f"{number:032x}", "text", "{}", 1000, 10, 1.0
    )


def trained(table, job, accuracy):
    which, rung, scales, seed = job
    table.runs.append(RankingRun(which, rung, scales, seed, accuracy, (1.0 - accuracy,), 1.0))


def filled(noise=0.02, **changes):
    """A table whose operators have the accuracies 0.30, 0.31, ... and noise on them."""
    random = np.random.default_rng(0)
    table = RankingFile(settings(**changes), {}, [entry(i) for i in range(COUNT)])
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
    table = RankingFile(settings(), {}, [entry(i) for i in range(COUNT)])
    assert all(job[1] == LOW for job in table.waiting())
    first = [job for job in table.waiting() if job[2:] == (SCALED, 0)]
    for job in first:
        trained(table, job, 0.5)
    assert sum(job[1] == HIGH for job in table.waiting()) == COUNT // 3


def test_a_table_is_read_as_it_was_written(tmp_path):
    table = filled()
    path = tmp_path / "table.jsonl"
    table.write(path)
    assert RankingFile.read(path) == table
    whole = path.read_text()
    path.write_text(whole[:-20])  # killed while it wrote
    again = RankingFile.read(path)
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
        RankingFile.read(path)


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


def ranked(low, high):
    """A table of as many operators with these accuracies at the two rungs."""
    table = RankingFile(settings(), {}, [entry(i) for i in range(len(low))])
    for i, (below, above) in enumerate(zip(low, high, strict=True)):
        trained(table, (i, LOW, SCALED, 0), below)
        trained(table, (i, HIGH, SCALED, 0), above)
    return table


def test_recall_compares_the_best_of_one_rung_with_those_of_the_other():
    up = [0.3 + 0.01 * i for i in range(COUNT)]
    assert agreement(ranked(up, up)).recall == 10
    assert agreement(ranked(up, up[::-1])).recall == 0
    turned = [*up[4:], *up[:4]]  # the high rung's best four are the low rung's worst
    assert agreement(ranked(turned, up)).recall == 6


def test_the_best_third_is_that_of_the_low_rung():
    random = np.random.default_rng(1)
    low = [0.3 + 0.01 * i for i in range(COUNT)]
    high = [float(value) for value in random.permutation(low)]
    found = agreement(ranked(low, high)).correlation("best third of the low rung")
    wanted = spearman("", dict(enumerate(low)), dict(enumerate(high)), range(COUNT - 10, COUNT))
    assert (found.count, found.value) == (10, wanted.value)
    by_high = sorted(range(COUNT), key=lambda i: -high[i])[:10]
    other = spearman("", dict(enumerate(low)), dict(enumerate(high)), by_high)
    assert found.value != other.value


def test_both_seeds_and_every_band_of_macs_are_compared_with_the_high_rung():
    table = ranked(
        [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95], [0.1, 0.2, 0.4, 0.3, 0.5, 0.6, 0.8, 0.7]
    )
    for i in range(8):
        trained(table, (i, LOW, SCALED, 1), 0.9 - 0.1 * i)
        macs = (1000, 100, 149, 150, 299, 300, 900, 1200)[i]
        table.entries[i] = RankingEntry(
            "conv2d" if i == 0 else "", f"{i:032x}", "", "{}", macs, 10, 1.0
        )
    table.entries[7] = RankingEntry("", f"{7:032x}", "", "{}", 999, 10, 1.0)
    found = agreement(table)
    assert found.correlation("low rung, one seed").value > 0.9
    assert found.correlation("low rung, second seed").value < -0.9
    bands = [each.count for each in found.correlations if each.name.startswith("MACs of ")]
    assert bands == [2, 2, 4]
    assert sum(bands) == 8


def test_the_high_rung_takes_any_of_three_neighbours():
    """Always the best of three would leave out what the low rung puts second and third."""
    places = []
    for draw in range(12):
        table = filled(draw=draw)
        low = table.accuracies(LOW)
        order = sorted(low, key=lambda i: (-low[i], i))
        picked = table.stratified()
        assert picked == table.stratified()
        places += [order.index(i) % 3 for i in picked]
    shares = [places.count(place) / len(places) for place in range(3)]
    assert min(shares) > 0.2
    assert max(shares) < 0.5


def test_too_few_or_all_alike_give_no_correlation():
    assert spearman("few", {0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}).value is None
    alike = dict.fromkeys(range(9), 0.1)
    assert spearman("alike", alike, {i: float(i) for i in range(9)}).value is None


def test_failures_are_kept_and_not_repeated():
    table = RankingFile(settings(), {}, [entry(i) for i in range(4)])
    which, rung, scales, seed = next(table.waiting())
    table.runs.append(RankingRun(which, rung, scales, seed, None, (), 0.1, "diverging: loss"))
    assert (which, rung, scales, seed) not in set(table.waiting())
    assert agreement(table).failed == 1
