"""A study with a ladder: who is asked next, what is stored, and the same after a resume."""

from __future__ import annotations

import collections

import pytest

from syno._util.errors import UserError
from syno.store import Outcome, Store
from syno.study import Study, StudyObserver, StudySettings, run
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.methods import UniformSampling

from .fakes import FakeRungs, FakeSpace, fake_ladder

EVALUATIONS = 16


@pytest.fixture
def store():
    with Store.open("sqlite://") as store:
        yield store


def settings(eta: int = 2, **options) -> StudySettings:
    options = {
        "evaluations": EVALUATIONS,
        "seed": 7,
        "ladder": fake_ladder(eta).to_json(),
    } | options
    return StudySettings(**options)


def answers(store: Store, name: str = "study") -> list[tuple[object, ...]]:
    """Every (operator, rung) with its result."""
    return [
        (r.ask, r.rung_index, r.rung, r.status, r.accuracy)
        for r in store.rung_results(store.study(name))
    ]


def decided(store: Store, name: str = "study") -> list[tuple[object, ...]]:
    """The decisions, in the order in which they were taken."""
    events = store.events(store.study(name))
    kinds = ("asked", "promoted", "told")
    return [
        (e.kind, e.data["ask"], e.data.get("rung"), e.data.get("status"))
        for e in events
        if e.kind in kinds
    ]


def test_the_best_of_each_rung_go_on_and_every_score_is_stored(store):
    evaluator = FakeRungs()
    study = Study.create(store, "study", settings(), FakeSpace())
    assert run(study, evaluator).name == "evaluations"
    summary = store.summary("study")
    bottom, middle, top = summary.rungs
    assert bottom.evaluated == EVALUATIONS
    assert middle.evaluated == bottom.promoted
    assert top.evaluated == middle.promoted
    assert 0 < top.evaluated < middle.evaluated < bottom.evaluated
    for rung in (bottom, middle):
        assert rung.evaluated == rung.failed + rung.promoted + rung.stopped
        assert rung.promoted >= (rung.evaluated - rung.failed) // 2 - rung.failed
    assert top.evaluated == top.failed + top.finished
    assert len(evaluator.evaluated) == len(set(evaluator.evaluated))
    assert summary.baseline.rung_index == 2
    assert [e.rung_index for e in summary.baselines] == [0, 1, 2]
    assert {e.rung_index for e in summary.compared} == {2}
    assert {e.recipe["rung"] for e in summary.evaluations if e.rung} == {0, 1, 2}


def test_the_original_network_is_at_a_rung_before_any_operator(store):
    evaluator = FakeRungs()
    run(Study.create(store, "study", settings(), FakeSpace()), evaluator)
    seen = set()
    for key, rung in evaluator.evaluated:
        seen.add((key, rung))
        assert ("baseline", rung) in seen


def test_no_failed_operator_is_promoted(store):
    run(Study.create(store, "study", settings(evaluations=40), FakeSpace()), FakeRungs())
    failed = collections.defaultdict(list)
    for ask, rung, _, status, _ in answers(store):
        if status != "ok":
            failed[ask].append(rung)
    assert {rung for rungs in failed.values() for rung in rungs} == {0, 1, 2}
    for ask, rungs in failed.items():
        assert len(rungs) == 1
        later = [a for a in answers(store) if a[0] == ask and a[1] > rungs[0]]
        assert later == []


def test_a_study_without_a_baseline_climbs_as_well(store):
    evaluator = FakeRungs()
    run(Study.create(store, "study", settings(baseline=False), FakeSpace()), evaluator)
    assert "baseline" not in {key for key, _ in evaluator.evaluated}
    assert store.summary("study").rungs[2].evaluated > 0


def test_an_original_network_that_fails_at_a_rung_goes_no_further(store):
    class Failing(FakeRungs):
        def baseline(self, rung):
            outcome = super().baseline(rung)
            return outcome if rung == 0 else Outcome("error", reason="no memory", rung="rung 1")

    run(Study.create(store, "study", settings(), FakeSpace()), Failing())
    summary = store.summary("study")
    assert [(e.rung_index, e.status) for e in summary.baselines] == [(0, "ok"), (1, "error")]
    assert summary.baseline is None  # none at the rung of the operators that are compared
    assert summary.rungs[2].evaluated > 0


class Interrupted(FakeRungs):
    """Ends like a process that is stopped, in the evaluation with this number."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def _check(self) -> None:
        if len(self.evaluated) == self._at:
            raise KeyboardInterrupt

    def baseline(self, rung):
        self._check()
        return super().baseline(rung)

    def evaluate(self, operator, rung):
        self._check()
        return super().evaluate(operator, rung)


@pytest.mark.slow
def test_interrupted_at_any_evaluation_it_prunes_the_same_after_a_resume(store):
    few = settings(evaluations=9)
    whole = FakeRungs()
    run(Study.create(store, "whole", few, FakeSpace()), whole)
    expected, decisions = answers(store, "whole"), decided(store, "whole")
    assert any(rung == 2 for _, rung, *_ in expected)
    for at in range(len(whole.evaluated)):
        name = f"cut at {at}"
        first = Interrupted(at)
        with pytest.raises(KeyboardInterrupt):
            run(Study.create(store, name, few, FakeSpace()), first)
        assert store.summary(name).open_asks != ()
        second = FakeRungs()
        run(Study.load(store, name, FakeSpace()), second)
        assert [*first.evaluated, *second.evaluated] == whole.evaluated
        assert answers(store, name) == expected
        assert decided(store, name) == decisions


def test_resumed_after_every_evaluation_with_higher_limits_it_ends_with_nothing_due(store):
    study = Study.create(store, "study", settings(evaluations=1), FakeSpace())
    run(study, FakeRungs())
    for count in range(2, EVALUATIONS + 1):
        study = Study.load(store, "study", FakeSpace(), evaluations=count)
        assert run(study, FakeRungs()).name == "evaluations"
        assert study.tally().due == 0
    run(Study.create(store, "whole", settings(), FakeSpace()), FakeRungs())
    assert answers(store, "study") == answers(store, "whole")


def test_what_is_due_is_done_before_a_study_ends_and_after_a_resume(store):
    class Stop(StudyObserver):
        def on_tell(self, proposal, outcome, tally):
            if tally.evaluated == EVALUATIONS and tally.due:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study = Study.create(store, "study", settings(), FakeSpace())
        run(study, FakeRungs(), observer=Stop())
    again = Study.load(store, "study", FakeSpace())
    assert again.tally().evaluated == EVALUATIONS
    assert again.tally().due > 0
    run(again, FakeRungs())
    assert again.tally().due == 0


def test_a_space_that_is_exhausted_ends_with_its_promotions_done(store):
    study = Study.create(store, "study", settings(evaluations=1000), FakeSpace(10))
    assert run(study, FakeRungs()).name == "exhausted"
    assert study.tally().due == 0
    assert store.summary("study").rungs[1].evaluated > 0


def test_a_crash_at_a_higher_rung_is_tried_once_more_and_then_quarantined(store):
    class Crashing(FakeRungs):
        def evaluate(self, operator, rung):
            outcome = super().evaluate(operator, rung)
            if rung == 1:
                crash = {"failure": "crash"}
                return Outcome("error", reason="crash: SIGSEGV", rung="rung 1", details=crash)
            return outcome

    evaluator = Crashing()
    study = Study.create(store, "study", settings(evaluations=4), FakeSpace())
    run(study, evaluator)
    summary = store.summary("study")
    tried = [key for key, rung in evaluator.evaluated if rung == 1 and key != "baseline"]
    assert set(collections.Counter(tried).values()) == {2}
    assert [q.key for q in summary.quarantined] == list(dict.fromkeys(tried))
    # Its score at the bottom stays, and so does what it says to a method.
    assert summary.rungs[0].failed == summary.rungs[0].evaluated - len(
        [e for e in summary.trained if e.rung_index == 0]
    )
    released = store.quarantine.leave(summary.study, summary.quarantined[0].key)
    again = FakeRungs()
    run(Study.load(store, "study", FakeSpace()), again)
    assert (released[0].key, 1) in again.evaluated
    assert (released[0].key, 0) not in again.evaluated


def test_a_method_is_told_how_far_each_operator_came(store, monkeypatch):
    seen = []

    def propose(self, history):
        seen.append((history, answers(store)))
        return original(self, history)

    original = UniformSampling.propose
    monkeypatch.setattr(UniformSampling, "propose", propose)
    run(Study.create(store, "study", settings(), FakeSpace()), FakeRungs())
    history, told = seen[-1]
    values = {entry.ask: entry.value for entry in history.entries}
    tops = collections.defaultdict(lambda: -1)
    for ask, rung, _, status, _ in told:
        if status == "ok" and ask in values:
            tops[ask] = max(tops[ask], rung)
    assert values
    for ask, value in values.items():
        if value is None:  # refused before it was trained, or not answered
            assert tops[ask] < 0
        else:
            assert tops[ask] / 3 <= value <= (tops[ask] + 1) / 3 or (tops[ask] < 0 and value == 0)


def test_two_processes_may_climb_one_ladder(store):
    """Both ask in turn, and tell in another order."""
    first = Study.create(store, "study", settings(), FakeSpace())
    second = Study.load(store, "study", FakeSpace())
    evaluator = FakeRungs()
    while True:
        proposals = [*first.ask(1), *second.ask(2)]
        for proposal in reversed(proposals):
            if proposal.is_baseline:
                outcome = evaluator.baseline(proposal.rung)
            else:
                outcome = evaluator.evaluate(proposal.operator, proposal.rung)
            first.tell(proposal.id, outcome)
        tally = first.tally()
        if tally.evaluated >= EVALUATIONS and not tally.due:
            break
    assert len(evaluator.evaluated) == len(set(evaluator.evaluated))
    assert store.summary("study").rungs[2].evaluated > 0


def test_checkpoints_are_kept_while_needed_and_deleted_after(tmp_path):
    with Store.open(str(tmp_path / "runs.db")) as store:
        study = Study.create(store, "study", settings(eta=3, evaluations=27), FakeSpace())
        checkpoints = Checkpoints.of(store, study.record)
        evaluator = FakeRungs(checkpoints=checkpoints)
        most = []

        class Count(StudyObserver):
            def on_tell(self, proposal, outcome, tally):
                most.append(len(list(checkpoints.folder.glob("*"))))

        run(study, evaluator, observer=Count(), checkpoints=checkpoints)
    for _, rung, was_there in evaluator.found:
        assert was_there == (rung > 0)  # each promotion found what the rung below left
    # The best 27 // 3 of the two lower rungs, the baseline, and the one that was just told.
    assert max(most) <= 2 * 9 + 2
    assert not checkpoints.folder.exists()
    assert not checkpoints.folder.parent.exists()


def test_what_a_killed_process_left_half_written_is_deleted(tmp_path):
    checkpoints = Checkpoints(tmp_path / "1")
    kept, gone = checkpoints.path("a" * 32, 0), checkpoints.path("b" * 32, 0)
    kept.parent.mkdir()
    others = [kept.with_name(f".{p.stem}.syno-0a1b2c3d{p.suffix}") for p in (kept, gone)]
    foreign = kept.with_name("notes.txt")
    for path in (kept, gone, *others, foreign):
        path.write_text("")
    checkpoints.keep(lambda: {("a" * 32, 0)})
    assert sorted(p.name for p in checkpoints.folder.iterdir()) == sorted(
        [kept.name, others[0].name, foreign.name]
    )


def test_a_ladder_of_a_newer_kind_is_refused_by_its_rule(store):
    content = fake_ladder().to_json() | {"eta": 1}
    with pytest.raises(UserError, match="cannot have eta = 1"):
        Study.create(store, "study", settings(ladder=content), FakeSpace())
