"""A store with everything that a store can hold: two studies of real operators with fake answers.

`search` stopped after some evaluations and can be resumed; `ladder` has rungs, an operator that was
in quarantine and was let out, one that still is and an evaluation on the test split; `adapted` is
an adaptation with some findings.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import ClassVar

sys.path.append(str(Path(__file__).resolve().parents[1]))

from study.fakes import FakeEvaluator, FakeRungs, fake_ladder
from syno import Operator, Sampler, Specification
from syno.adaptation.pipeline.journal import open_journal
from syno.store import Environment, Outcome, Store
from syno.study import Study, StudySettings, run

HERE = Environment("a processor", "Linux", {"torch": "2"}, "", 1, "1")

SPECIFICATION = Specification(
    "[N, C_in: unordered, H, H]",
    "[N, C_out: unordered, H, H]",
    ["N: 0", "C_in: 2", "C_out: 4", "H: 0"],
    ["k=3: 2"],
    bindings=[{"C_in": 8, "C_out": 8, "H": 8}],
    passed_through=[(0, 0)],
    min_unfold_ratio=1.3,
    max_depth=5,
)
STOPPED_AFTER = 6
RESUMED_TO = 9


class RealSpace:
    """Real operators of a small specification, enumerated once."""

    rules = "1"
    _found: ClassVar[list[Operator]] = []

    def __init__(self) -> None:
        if not RealSpace._found:
            sampler = Sampler.from_specification(SPECIFICATION, seed=3)
            RealSpace._found = list(sampler.operators)[:60]
        self.operators = RealSpace._found
        self.specification = (SPECIFICATION.key, json.loads(SPECIFICATION.to_json()))

    def rejections(self) -> dict[str, int]:
        return {"pooling": 17, "window_ratio": 4}

    def parse(self, text: str) -> Operator:
        return Operator.from_text(text, SPECIFICATION)


def settings(**options: object) -> StudySettings:
    named = {"model": "resnet-small", "data": "digits", "fidelity": {"name": "tiny"}}
    return StudySettings(**{"evaluations": STOPPED_AFTER, "seed": 11, **named, **options})


def make(path: Path) -> None:
    """Writes the store; all its connections are closed, so that it is one file."""
    with Store.open(str(path)) as store:
        content = fake_ladder().to_json()
        chosen = settings(ladder=content, seed=5, evaluations=5)
        study = Study.create(store, "ladder", chosen, RealSpace())
        _fail_twice(study)
        run(study, FakeRungs())
        _fail_twice(study, store)
        store.quarantine.leave(study.record, store.quarantine.of(study.record)[0].key)
        tested = Outcome("ok", accuracy=0.5, split="test", rung="tiny", recipe={"final": True})
        store.add_evaluation(study.record, 0, tested, HERE)
        study.close()
        with open_journal(store, "adapted", "net", {"model": "resnet-small"}, 0) as journal:
            journal.started()
            for key in ("a", "b"):
                journal.put("fit", key, [1.5, 2])
            journal.change("hours", "", 2.0)
        study = Study.create(store, "search", settings(), RealSpace())
        run(study, FakeEvaluator())
        study.close()


def _fail_twice(study: Study, store: Store | None = None) -> None:
    """An operator goes into quarantine: a new one, or, with the store, one that has its answer."""
    if store is None:
        baseline, proposal = study.ask(2)
        study.tell(baseline.id, FakeRungs().baseline(0))
        identity = proposal.id
    else:
        told = [p for p in store.proposals(study.record) if p.ask == 2]
        identity = told[0].id
    for reason in ("SIGSEGV", "SIGBUS"):
        study.failed(identity, "crash", reason)
    if store is None:
        study.tell(identity, Outcome("error", reason="SIGBUS; it is in quarantine"))


def make_with_log(path: Path, scratch: Path) -> None:
    """The same with a part of it in the log beside the file, as a killed search leaves it."""
    make(scratch)
    holding = sqlite3.connect(scratch)
    holding.execute("SELECT count(*) FROM study").fetchone()  # keeps the log from being folded in
    with Store.open(str(scratch)) as store:
        study = Study.load(store, "search", RealSpace(), evaluations=STOPPED_AFTER + 1)
        run(study, FakeEvaluator())
        study.close()
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{scratch}{ending}", f"{path}{ending}")
    holding.close()
