"""A search with fake answers in a process of its own, to be killed.

The argument is a JSON object: store, trace, evaluations, seconds, ladder, method,
objectives, isolated.
Begins the study, or goes on with it when the store has it; prints why it stopped.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from study.fakes import FakeEvaluator, FakeRungs, FakeSpace, RealSpace, fake_ladder
from syno.store import Store
from syno.study import Study, StudySettings, run
from syno.study.evaluate.checkpoints import Checkpoints

# Of an isolated search: quick to notice what does not answer.
SILENCE_S = 2.0
LIMIT_S = 8.0


def isolated(factory: functools.partial[FakeEvaluator]) -> Any:
    from syno.study.evaluate import isolated_evaluator as module
    from syno.study.evaluate import server_process

    module.GRACE_S = LIMIT_S
    server_process.SILENCE_S = SILENCE_S
    # Without the compiler of torch, which these evaluations do not need.
    sys.path.insert(0, str(Path(__file__).parents[1] / "study"))
    server_process._MODULE = "quick_server"
    made = module.IsolatedEvaluator(factory)
    made._deadline_s = 0.0
    return made


def main() -> None:
    given = json.loads(sys.argv[1])
    # Methods that learn look at the steps of operators.
    simple = given["method"] in ("uniform", "diverse")
    space = FakeSpace(max(100, 2 * given["evaluations"])) if simple else RealSpace()
    with Store.open(given["store"]) as store:
        if store.studies():
            study = Study.load(store, "study", space)
        else:
            content = fake_ladder().to_json() if given["ladder"] else None
            settings = StudySettings(
                evaluations=given["evaluations"],
                seed=11,
                method=given["method"],
                ladder=content,
                objective=given["objectives"],
            )
            study = Study.create(store, "study", settings, space)
        arguments = (given["seconds"], Path(given["trace"]))
        checkpoints = None
        if given["ladder"]:
            checkpoints = Checkpoints.of(store, study.record)
            factory = functools.partial(FakeRungs, *arguments, checkpoints)
        else:
            factory = functools.partial(FakeEvaluator, *arguments)
        evaluator = isolated(factory) if given["isolated"] else factory()
        try:
            print(run(study, evaluator, checkpoints=checkpoints).name)
        finally:
            if given["isolated"]:
                evaluator.close()


main()
