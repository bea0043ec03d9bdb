"""A search with fake answers in a process of its own, to be killed.

Arguments: STORE TRACE EVALUATIONS SECONDS [ladder].
Begins the study, or goes on with it when the store has it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from study.fakes import FakeEvaluator, FakeRungs, FakeSpace, fake_ladder
from syno.store import Store
from syno.study import Study, StudySettings, run
from syno.study.checkpoints import Checkpoints


def main() -> None:
    path, trace, evaluations, seconds, *ladder = sys.argv[1:]
    with Store.open(path) as store:
        if store.studies():
            study = Study.load(store, None, FakeSpace())
        else:
            content = fake_ladder().to_json() if ladder else None
            settings = StudySettings(
                evaluations=int(evaluations), seed=11, method="diverse", ladder=content
            )
            study = Study.create(store, "study", settings, FakeSpace())
        if not ladder:
            run(study, FakeEvaluator(float(seconds), Path(trace)))
            return
        checkpoints = Checkpoints.of(store, study.record)
        evaluator = FakeRungs(float(seconds), Path(trace), checkpoints)
        run(study, evaluator, checkpoints=checkpoints)


main()
