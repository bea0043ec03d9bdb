"""The paper's experiments: counts that fit together, the same for any number of threads."""

from __future__ import annotations

import pytest

from syno import Specification, UserError
from syno_lab.experiments import SizeRow, canonical_rate, distance_ablation
from syno_lab.experiments.ablation import GUIDES, PAPER, Guided
from syno_lab.experiments.canonical import PAPER_CANONICAL, PAPER_RATES, PAPER_SAMPLES
from syno_lab.experiments.pictures import save_ablation, save_canonical_rate

SMALL = Specification(
    "[H, W]",
    "[H, W]",
    ["H: 1", "W: 1"],
    ["k=3: 1"],
    bindings=["H=9, W=12"],
    max_depth=5,
    element_wise_weights=True,
)


def test_the_papers_figures_are_those_of_the_paper():
    assert pytest.approx(1 / 75, rel=0.01) == PAPER_CANONICAL / PAPER_SAMPLES
    assert list(PAPER_RATES.values()) == sorted(PAPER_RATES.values(), reverse=True)
    without, with_distance = PAPER
    assert without.distinct == 0
    assert with_distance.per_million(with_distance.distinct) == pytest.approx(50.6)
    assert with_distance.per_core_second(253) == pytest.approx(253 / 68.33 / 192)


def test_canonical_rates_fall_and_do_not_depend_on_threads():
    one, three = (canonical_rate(SMALL, samples=600, depth=5, threads=n, seed=2) for n in (1, 3))
    assert one.rows == three.rows
    assert one.samples == 600
    rates = [row.rate for row in one.rows if row.samples >= 50]
    assert len(rates) >= 3
    assert rates == sorted(rates, reverse=True)
    for row in one.rows:
        assert row.listed <= row.canonical <= row.samples
        assert row.operators <= row.structures <= row.samples
        assert row.interval[0] <= (row.rate or 0.0) <= row.interval[1]


def test_another_seed_gives_other_samples():
    first, second = (canonical_rate(SMALL, samples=200, depth=5, seed=seed) for seed in (1, 2))
    assert first.rows != second.rows


def test_a_rule_that_is_off_makes_more_samples_canonical():
    all_on = canonical_rate(SMALL, samples=300, depth=5)
    some_off = canonical_rate(SMALL, samples=300, depth=5, rules_off=["R6a", "R1b"])
    assert some_off.samples == all_on.samples
    assert some_off.canonical > all_on.canonical
    assert some_off.rules != all_on.rules


def test_wilsons_interval_holds_the_rate_and_narrows():
    def row(canonical: int, samples: int) -> SizeRow:
        return SizeRow(3, "3", samples, canonical, 0, 0, 0, 0.2)

    assert row(0, 0).interval == (0.0, 1.0)
    # Newcombe, "Two-sided confidence intervals for the single proportion", 1998: 15 of 148.
    assert row(15, 148).interval == pytest.approx((0.0624, 0.1605), abs=1e-4)
    wide, narrow = row(1, 10).interval, row(100, 1000).interval
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    assert row(0, 50).interval[0] == 0.0
    assert row(50, 50).interval[1] == 1.0


def test_the_ablation_counts_alike_for_any_number_of_threads():
    def counts(threads: int) -> list[tuple]:
        found = distance_ablation(SMALL, trials=400, threads=threads, seed=3).guided
        return [(g.guide, g.trials, g.complete, g.valid, g.distinct) for g in found]

    assert counts(1) == counts(2)
    assert [name for name, *_ in counts(1)] == list(GUIDES)
    for _, trials, complete, valid, distinct in counts(1):
        assert trials >= complete >= valid
        assert (valid > 0) == (distinct > 0)


def test_rates_of_no_trials_and_no_time_are_zero():
    nothing = Guided("none", 0, 0, 0, 0, 0.0, 2)
    assert nothing.per_million(0) == nothing.per_core_second(0) == nothing.trials_per_s == 0.0
    assert nothing.per_million(None) is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: canonical_rate(SMALL, samples=0), "'samples' is an integer of at least 1"),
        (lambda: canonical_rate(SMALL, depth=1), "'depth' is an integer of at least 2"),
        (lambda: canonical_rate(SMALL, samples=5, guide="compass"), "cannot be guided by"),
        (lambda: canonical_rate(SMALL, samples=5, rules_off=["R99"]), "R99"),
        (lambda: distance_ablation(SMALL, trials=0), "'trials' is an integer of at least 1"),
        (lambda: distance_ablation(Specification.preset("paper/gcn")), "has no binding"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(UserError, match=words):
        call()


def test_pictures_are_written(tmp_path):
    save_canonical_rate(canonical_rate(SMALL, samples=60, depth=4), tmp_path / "rate.png")
    save_ablation(distance_ablation(SMALL, trials=60), tmp_path / "ablation.png")
    for name in ("rate.png", "ablation.png"):
        picture = (tmp_path / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 10_000


def test_an_interrupt_ends_the_trials():
    def stop(guide: str, done: int) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distance_ablation(SMALL, trials=100_000, progress=stop)
