"""A small store of real operators with their keys, written through the store's own door."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import CONV, HERE, LINEAR, ORIGINAL, SPECIFICATION, outcome

from syno import Operator
from syno.store import Outcome, Store


def small_store(path: Path) -> None:
    """A baseline, an answered and a failed operator in the study `digits-1`."""
    with Store.open(str(path)) as store:
        study = store.create_study(
            "digits-1",
            specification=(SPECIFICATION.key, json.loads(SPECIFICATION.to_json())),
            settings={"model": "resnet-small", "data": "digits", "evaluations": 3},
            seed=0,
        )
        store.append_event(study, "started", {})
        store.append_event(study, "space", {"rejections": {"cannot-finish": 7}})
        answers = (
            (None, Outcome("ok", accuracy=0.9, macs=200_000, params=1000, latency=ORIGINAL)),
            (LINEAR, outcome(0.85, 1.2)),
            (CONV, Outcome("error", reason="non_finite_loss", macs=1)),
        )
        for number, (text, answer) in enumerate(answers):
            found = None
            if text is not None:
                found = (text, Operator.from_text(text, SPECIFICATION).key)
            proposal = store.ask(study, number, found, "worker")
            store.tell(proposal.id, answer, HERE)
