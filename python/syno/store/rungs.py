"""A ladder search by rungs: how many operators came there, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from syno.store.documents import LadderDocument
from syno.store.evaluation import Evaluation
from syno.store.records import OK, OPERATOR, EventRecord


@dataclass(frozen=True)
class RungSummary:
    """One rung, from the lowest with index 0.

    evaluated: operators trained here; failed: of these, those without an accuracy; promoted: those
    that were sent to the next rung; stopped: the others, which may still go on while the search
    runs; finished: those with an accuracy at the top; rejected: refused here before training; best:
    the greatest accuracy; baseline: that of the original network; seconds: of all evaluations here,
    the baseline's among them.
    """

    index: int
    name: str
    evaluated: int
    failed: int
    promoted: int
    stopped: int
    finished: int
    rejected: int
    best: float | None
    baseline: float | None
    seconds: float


def summarize_rungs(
    ladder: LadderDocument | None,
    evaluations: Iterable[Evaluation],
    events: Iterable[EventRecord],
) -> tuple[RungSummary, ...]:
    """Summarize the rungs of a study; without a ladder there are none.

    Args:
        ladder: of the settings.
        evaluations: all evaluations on the validation split, including those of the baseline.
        events: the log of the study.
    """
    if ladder is None:
        return ()
    listed = list(evaluations)
    # The baseline has the number 0.
    sent = {
        (e.data["ask"], e.data["rung"]) for e in events if e.kind == "promoted" and e.data["ask"]
    }
    found = []
    for index, rung in enumerate(ladder["rungs"]):
        here = [e for e in listed if e.rung_index == index]
        own = [e for e in here if e.kind == OPERATOR]
        trained = [e for e in own if e.is_evaluated]
        scores = [e.accuracy for e in trained if e.status == OK and e.accuracy is not None]
        original = [e.accuracy for e in here if e.kind != OPERATOR and e.accuracy is not None]
        promoted = sum(to == index + 1 for _, to in sent)
        top = index == len(ladder["rungs"]) - 1
        found.append(
            RungSummary(
                index=index,
                name=str(rung["fidelity"]["name"]),
                evaluated=len(trained),
                failed=len(trained) - len(scores),
                promoted=promoted,
                stopped=0 if top else len(scores) - promoted,
                finished=len(scores) if top else 0,
                rejected=len(own) - len(trained),
                best=max(scores, default=None),
                baseline=original[0] if original else None,
                seconds=sum(e.seconds for e in here),
            )
        )
    return tuple(found)
