"""What a worker prints: a line for each trial."""

from __future__ import annotations

from syno._util import numbers
from syno.cli import output
from syno.operators.summary import short_id
from syno.store import Outcome
from syno.store.records import OK
from syno.study.answers import Proposal
from syno.study.observer import StudyObserver
from syno.study.stoppers import Tally


class TrialLines(StudyObserver):
    """Prints a line for each trial, and each note once."""

    def __init__(self) -> None:
        self._notes: set[str] = set()

    def on_note(self, text: str) -> None:
        """Print the note, once: each trial may have the same to say."""
        if text not in self._notes:
            self._notes.add(text)
            output.say(text)

    def on_failure(self, proposal: Proposal, outcome: Outcome) -> None:
        """Say that an evaluation is repeated."""
        output.say(f"{_name(proposal)}: {outcome.reason}; it is evaluated once more")

    def on_tell(self, proposal: Proposal, outcome: Outcome, tally: Tally) -> None:
        """Say what was found."""
        found = numbers.percent(outcome.accuracy) if outcome.accuracy is not None else ""
        loss = outcome.details.get("loss")
        if not found and loss is not None:
            found = f"loss {loss:.4g}"
        text = found if outcome.status == OK else f"{outcome.status}: {outcome.reason}"
        output.say(f"{_name(proposal)}: {text}, {numbers.duration(outcome.seconds)}")


def _name(proposal: Proposal) -> str:
    operator = proposal.operator
    name = "baseline" if operator is None else short_id(operator.text, operator.key)
    rung = "" if proposal.rung is None else f", rung {proposal.rung + 1}"
    return f"trial {proposal.ask} ({name}{rung})"
