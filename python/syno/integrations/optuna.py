"""Operators in studies of Optuna: a sampler that selects them by a search method of Syno.

    space = syno.Space.enumerate(specification)
    sampler = OperatorSampler(space, method="graph", seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: accuracy_of(sampler.suggest(trial)), n_trials=50)

It needs the package optuna: `pip install syno[optuna]`.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Mapping, Sequence

from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.operators.operator import Operator
from syno.space.space import Space
from syno.store.objectives import ranked
from syno.store.records import ERROR, OK
from syno.study.members import Members
from syno.study.methods import History, HistoryEntry, make_method, parse_method

try:
    import optuna
except ImportError:
    raise UserError(
        "syno.integrations.optuna needs the package optuna\n"
        "  what to do: pip install 'syno[optuna]'"
    ) from None
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

# The name of the parameter that is the place of an operator in its space.
PARAMETER = "syno_operator"
# The attribute of a trial that holds the key of its operator, also while the trial runs.
ATTRIBUTE = "syno:key"


class OperatorSampler(BaseSampler):
    """Selects an operator for each trial by a search method of Syno.

    The operator of a trial is an integer parameter, its place in the space. Other parameters of
    the trial are sampled by another sampler. Proposals follow from the seed and the trials in the
    storage of the study, so a study that is loaded again continues as if it was never stopped. If
    every operator was proposed, the study stops.

    Args:
        space: the operators, such as a `syno.Space`, or any sequence of operators.
        method: the name of a search method with its options, as in `syno.search`.
        seed: of the random numbers.
        others: the sampler of the other parameters. Default: a random sampler.

    Raises:
        UserError: for an unknown method, for an unknown option, and for a space without operators.
    """

    def __init__(
        self,
        space: Space | Sequence[Operator],
        *,
        method: str | Mapping[str, Json] = "graph",
        seed: int = 0,
        others: BaseSampler | None = None,
    ) -> None:
        self._members = Members(_Operators(space))
        if not len(self._members):
            raise UserError("the space of the sampler has no operator")
        name, options = parse_method(method)
        self._method = make_method(name, self._members, seed, options)
        self._others = others or RandomSampler(seed)
        self._lock = threading.Lock()

    def suggest(self, trial: Trial) -> Operator:
        """Return the operator of a trial.

        Raises:
            UserError: if the study of the trial has another sampler.
        """
        place = trial.suggest_int(PARAMETER, 0, len(self._members) - 1)
        if ATTRIBUTE not in trial.storage.get_trial(trial._trial_id).system_attrs:
            raise UserError(
                "the study of this trial has another sampler\n"
                "  what to do: pass this sampler to optuna.create_study(sampler=...)"
            )
        return self._members[place].operator

    def reseed_rng(self) -> None:
        """Reseed the sampler of the other parameters. Optuna calls it in worker processes."""
        self._others.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """See BaseSampler."""
        return {PARAMETER: IntDistribution(0, len(self._members) - 1)}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, object]:
        """Select the operator of a trial: see BaseSampler."""
        with self._lock:
            operator = self._method.propose(self._history(study, trial))
            if operator is None:
                with contextlib.suppress(RuntimeError):  # outside of Study.optimize
                    study.stop()
                raise optuna.TrialPruned("every operator of the space was proposed")
            study._storage.set_trial_system_attr(trial._trial_id, ATTRIBUTE, operator.key)
        return {PARAMETER: self._members.place(operator.key)}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> object:
        """Sample another parameter: see BaseSampler."""
        return self._others.sample_independent(study, trial, param_name, param_distribution)

    def _history(self, study: Study, trial: FrozenTrial) -> History:
        """Return the operators of all other trials; those of running trials are pending."""
        trials = [
            each
            for each in study.get_trials(deepcopy=False)
            if each.number != trial.number and ATTRIBUTE in each.system_attrs
        ]
        ended = {each.number: _scores(study, each) for each in trials if each.state.is_finished()}
        values = ranked(ended, dict.fromkeys(ended, 0.0))
        entries = []
        for place, each in enumerate(trials, start=1):
            found = ended.get(each.number)
            status = None if each.number not in ended else ERROR if found is None else OK
            told = None
            if each.datetime_complete is not None:
                told = sum(
                    other.datetime_start is not None
                    and other.datetime_start <= each.datetime_complete
                    for other in trials
                )
            key = each.system_attrs[ATTRIBUTE]
            entries.append(HistoryEntry(place, key, status, values.get(each.number), told=told))
        return History(len(entries) + 1, tuple(entries))


class _Operators:
    """A sequence of operators as the space of `Members`."""

    rules = ""
    specification: tuple[str, Json] = ("", None)

    def __init__(self, operators: Sequence[Operator] | Space) -> None:
        self.operators: Sequence[Operator] = list(operators)

    def rejections(self) -> dict[str, int]:
        """Return no rejections: they are not known."""
        return {}

    def parse(self, text: str) -> Operator:
        """Read an operator from its text."""
        return Operator.from_text(text)


def _scores(study: Study, trial: FrozenTrial) -> tuple[float, ...] | None:
    """Return the values of a finished trial, greater is better; None for a failed trial.

    A pruned trial counts with its last intermediate value, if the study has one objective.
    """
    values = trial.values if trial.state is TrialState.COMPLETE else None
    if (
        trial.state is TrialState.PRUNED
        and len(study.directions) == 1
        and trial.intermediate_values
    ):
        values = [trial.intermediate_values[max(trial.intermediate_values)]]
    if not values or any(value is None or math.isnan(value) for value in values):
        return None
    return tuple(
        value if direction is StudyDirection.MAXIMIZE else -value
        for value, direction in zip(values, study.directions, strict=True)
    )
