"""A search with fake answers in a process of its own, to be killed.

Arguments: STORE TRACE EVALUATIONS SECONDS.
Begins the study, or goes on with it when the store has it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from study.fakes import FakeEvaluator, FakeSpace
from syno.store import Store
from syno.study import Study, StudySettings, run


def main() -> None:
    path, trace, evaluations, seconds = sys.argv[1:]
    with Store.open(path) as store:
        if store.studies():
            study = Study.load(store, None, FakeSpace())
        else:
            settings = StudySettings(evaluations=int(evaluations), seed=11, method="diverse")
            study = Study.create(store, "study", settings, FakeSpace())
        run(study, FakeEvaluator(float(seconds), Path(trace)))


main()
