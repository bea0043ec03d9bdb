"""How long networks are fine-tuned, so that all of them end in time.

A few steps of the first network tell how long a step takes. The epochs, or the steps of text, are
as many as there is time for. What is left for a part of an epoch gives all epochs fewer images, and
one epoch more; if there is no time for an epoch, one of fewer images is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from torch import nn

from syno._util import numbers
from syno._util.errors import UserError
from syno.adaptation.frozen import freeze
from syno.adaptation.pipeline.assembly import plain
from syno.adaptation.pipeline.budget import Budget
from syno.adaptation.pipeline.fine_tuning import FineTuner
from syno.train import Fidelity, train
from syno.train.stoppers import State, Stop

_PHASE = "fine-tuning"
# Steps that are timed.
_STEPS = 12
# So many times as long as usual at most, where the length is not given.
_MOST = 10
# A length that takes at most this much longer than there is time for is kept.
_LATE = 1.1
_FEWEST_STEPS, _FEWEST_BATCHES = 20, 4
# Whole epochs of all images are enough where the time is not so many times theirs.
_PART = 1.1


@dataclass(frozen=True)
class TrainingPace:
    """step_s: seconds of a training step; steps: of an epoch, or of a part of a text. value_s: of
    a measurement on the validation split; other_s: of what comes before the first step."""

    step_s: float
    steps: int
    value_s: float
    other_s: float

    def seconds(self, fidelity: Fidelity) -> float:
        """Of a training of this length."""
        if fidelity.steps is not None:
            parts = fidelity.steps / self.steps
            return self.other_s + fidelity.steps * self.step_s + parts * self.value_s
        steps = self.steps
        if fidelity.images is not None:
            steps = min(steps, -(-fidelity.images // fidelity.batch))
        return self.other_s + (fidelity.epochs or 1) * (steps * self.step_s + self.value_s)


class Lengths:
    """The fidelity of the fine-tuning of each network.

    grows: whether networks are trained longer than usual if there is time.
    """

    def __init__(self, tuner: FineTuner, budget: Budget, *, grows: bool) -> None:
        self._tuner, self._journal = tuner, tuner.journal
        self._budget, self._grows = budget, grows

    def fidelity(self, name: str, make: Callable[[], nn.Module], networks: int) -> Fidelity:
        """How long a network is trained.

        Args:
            name: of the network.
            make: makes a network like it.
            networks: how many are still to be trained, this one included.
        """
        usual = self._tuner.subject.fidelity
        if not self._budget.limited:
            return usual

        found = self._journal.once("pace", "", lambda: asdict(_pace(self._tuner, make())))
        pace = TrainingPace(**found)

        def decide() -> dict[str, int]:
            longest = self._journal.get("longest", "") or _longest(usual, self._grows)
            trainings = networks * self._tuner.options.seeds
            return _length(usual, longest, pace, self._budget.left(_PHASE) / trainings)

        length = self._journal.once("length", name, decide)
        if self._journal.get("longest", "") is None:
            self._journal.put("longest", "", length)
        return usual.changed(name=usual.name_with(length), **length)

    def check(self, networks: int) -> None:
        """UserError where not even the shortest fine-tuning of so many networks fits.

        A few steps of the original network tell how long that takes.
        """
        if not self._budget.limited:
            return
        subject = self._tuner.subject
        found = self._journal.once(
            "pace of the original", "", lambda: asdict(_pace(self._tuner, plain(subject.original)))
        )
        usual, pace = subject.fidelity, TrainingPace(**found)
        shortest = usual.changed(**_length(usual, _longest(usual, self._grows), pace, 0.0))
        trainings = networks * self._tuner.options.seeds
        needed = trainings * pace.seconds(shortest)
        hours = self._budget.hours
        assert hours is not None
        if needed > 3600.0 * hours:
            raise UserError(
                f"'hours' is too short: {numbers.duration(3600.0 * hours)}, and the shortest "
                f"fine-tuning of {numbers.counted(networks, 'network')} takes "
                f"{numbers.duration(needed)}\n"
                "  expected: several times as long, as everything else comes before it\n"
                "  what to do: more hours, fewer goals or seeds"
            )

    def forecast(self, fidelity: Fidelity, networks: int) -> str:
        """How long the fine-tuning takes, in words; empty without a limit."""
        pace = self._journal.get("pace", "")
        if not self._budget.limited or pace is None:
            return ""
        trainings = networks * self._tuner.options.seeds
        seconds = trainings * TrainingPace(**pace).seconds(fidelity)
        return (
            f"fine-tuning: {numbers.counted(trainings, 'training')} of {fidelity.length}, about "
            f"{numbers.duration(seconds)}"
        )


def _longest(usual: Fidelity, grows: bool) -> dict[str, int]:
    factor = _MOST if grows else 1
    if usual.steps is not None:
        return {"steps": factor * usual.steps}
    return {"epochs": factor * (usual.epochs or 1)}


def _length(
    usual: Fidelity, longest: dict[str, int], pace: TrainingPace, seconds: float
) -> dict[str, int]:
    """The longest length that takes at most so many seconds, as changes of a fidelity."""
    if _LATE * seconds >= pace.seconds(usual.changed(**longest)):
        return longest
    left = max(seconds - pace.other_s, 0.0)
    if usual.steps is not None:
        steps = int(left / (pace.step_s + pace.value_s / pace.steps))
        return {"steps": min(max(steps, _FEWEST_STEPS), longest["steps"])}
    possible = left / (pace.steps * pace.step_s + pace.value_s)
    epochs = int(possible)
    if epochs >= longest["epochs"] or (epochs and possible < _PART * epochs):
        return {**longest, "epochs": min(epochs, longest["epochs"])}
    batches = int(max(left / (epochs + 1) - pace.value_s, 0.0) / pace.step_s)
    images = max(batches, _FEWEST_BATCHES) * usual.batch
    return {"epochs": epochs + 1, "images": min(images, pace.steps * usual.batch)}


class _Enough:
    """Ends a training when the time of its steps is known."""

    def __init__(self) -> None:
        self.last: State | None = None
        self.first_at = 0.0
        self._count = 0

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        self._count += 1
        if self._count == 1:
            self.first_at = time.perf_counter()
        self.last = state
        if self._count >= _STEPS and state.step_s is not None:
            return Stop("timeout", "timed", "the time of a step is known")
        return None


def _pace(tuner: FineTuner, net: nn.Module) -> TrainingPace:
    subject, enough = tuner.subject, _Enough()
    freeze(net, subject.frozen)
    began = time.perf_counter()
    with tuner.kernels(net):
        train(
            net,
            subject.data,
            subject.fidelity,
            tuner.seed,
            stoppers=(enough,),
            distillation=tuner.distillation(net),
        )
        ended = time.perf_counter()
        subject.value(net)
    value_s = time.perf_counter() - ended
    state = enough.last
    assert state is not None
    # A training of fewer steps has no median.
    step_s = state.step_s or (ended - enough.first_at) / max(state.step, 1)
    return TrainingPace(step_s, state.steps, value_s, max(enough.first_at - began - step_s, 0.0))
