"""The results of a search as an object: `syno.search` returns it, and `syno.load_study`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util import numbers
from syno._util.arguments import checked, text
from syno._util.errors import UserError
from syno.operators.specification import read_specification
from syno.operators.summary import identity, is_named, short_id
from syno.store import Evaluation, Store, StudySummary
from syno.store.overview import best_of, failed, failure_reasons, rejected, trained
from syno.store.records import BASELINE
from syno.study.evaluate.weights import Weights
from syno.study.fronts import COSTS, front_of
from syno.study.trained_network import trained_network

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure
    from torch import nn

    from syno.operators.operator import Operator


@dataclass(frozen=True, repr=False)
class StudyResults(StudySummary):
    """A study with its trials. A notebook prints the number of trials and the best of them.

    weights: the folder of its trained weights; None if none are kept.
    """

    weights: Path | None = None

    @classmethod
    def of(cls, summary: StudySummary, store: Store) -> StudyResults:
        """Make results of what a store has of a study."""
        held = {each.name: getattr(summary, each.name) for each in fields(StudySummary)}
        found = Weights.of(store, summary.study)
        return cls(**held, weights=None if found is None else found.folder)

    @property
    def trials(self) -> tuple[Evaluation, ...]:
        """The baseline and all operators, also those that failed, in the order of the proposals."""
        return (*self.baselines, *self.evaluations)

    @property
    def best(self) -> Evaluation | None:
        """The trained operator with the best value of the objective; None if there is none."""
        return best_of(self)

    @checked(cost=text)
    def front(self, cost: str = "latency") -> list[Evaluation]:
        """Return the trials that no other trial beats, the cheapest first.

        The baseline is a trial like any other: it is on the front unless an operator costs no more
        and is at least as good.

        Args:
            cost: `latency` (the ratio to the baseline in the same run), `macs` or `params`.

        Raises:
            UserError: for another cost.
        """
        if cost not in COSTS:
            raise UserError(f"'{cost}' is no cost\n  expected: one of {', '.join(COSTS)}")
        original = [] if self.baseline is None else [self.baseline]
        return front_of(self, (*original, *self.compared), cost)

    @checked(key=text)
    def trial(self, key: str) -> Evaluation:
        """Return the last trial of an operator.

        Args:
            key: the start of its id or key, or `baseline`.

        Raises:
            UserError: if no operator or more than one has such an id or key.
        """
        if key == BASELINE:
            found = [t for t in self.trials if t.kind == BASELINE]
        else:
            found = [t for t in self.trials if t.key is not None and is_named(key, t.text, t.key)]
        keys = sorted({t.key or "" for t in found})
        if len(keys) != 1 or not key:
            known = ", ".join(short_id(t.text, t.key) for t in self.compared[:8]) or "none"
            what = "no trial" if not keys else f"{len(keys)} operators"
            raise UserError(
                f"study '{self.study.name}' has {what} with the id '{key}'\n"
                f"  expected: baseline, or the start of one of {known}"
            )
        return found[-1]

    def operator(self, trial: Evaluation | str) -> Operator:
        """Return the operator of a trial, or of the start of an id or a key.

        Raises:
            UserError: for the baseline, which has none.
        """
        from syno.operators.operator import Operator

        found = self.trial(trial) if isinstance(trial, str) else trial
        if found.text is None:
            raise UserError("the baseline is the original network, without an operator")
        return Operator.from_text(found.text, read_specification(self.study.specification))

    def network(self, trial: Evaluation | str, net: nn.Module | None = None) -> nn.Module:
        """Return the trained network of a trial, with its operator in the slots.

        It is in evaluation mode, to be compiled by `syno.compile` or trained further.

        Args:
            trial: a trial, the start of an id or a key, or `baseline`.
            net: the network that the study was started with, unless that was a model by name. Its
                weights do not matter.

        Raises:
            UserError: as in `syno.export_network`.
        """
        found = self.trial(trial) if isinstance(trial, str) else trial
        made, _ = trained_network(self, found.key or BASELINE, net=net, seed=found.seed)
        return made

    def rows(self) -> list[dict[str, object]]:
        """Return the trials as plain values, a row for each."""
        objective = self.objective
        return [
            {
                "number": trial.ask,
                "id": identity(trial.text or "") or BASELINE,
                "key": trial.key or BASELINE,
                "status": trial.status,
                "reason": trial.reason,
                objective.name: self.quality(trial),
                "latency_ms": trial.latency_ms,
                "latency_ratio": trial.latency_ratio,
                "macs": trial.macs,
                "params": trial.params,
                "seconds": trial.seconds,
                "seed": trial.seed,
                "rung": trial.rung,
                "formula": "" if trial.text is None else self.operator(trial).formula(),
            }
            for trial in self.trials
        ]

    def trials_dataframe(self) -> pandas.DataFrame:
        """Return the trials as a table of pandas, a row for each as in `rows`.

        Raises:
            UserError: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise UserError(
                "trials_dataframe() needs pandas, which is not installed\n"
                "  what to do: pip install pandas, or use rows(), which returns plain values"
            ) from error
        return pandas.DataFrame(self.rows())

    def plot_front(self, path: str | Path | None = None) -> Figure:
        """Plot the objective against latency and MACs, as in the report.

        Args:
            path: a PNG file to write, if requested.

        Returns:
            The figure of Matplotlib, which a notebook shows.
        """
        from syno.report import gather
        from syno.report.images import front_figure

        figure = front_figure(gather(self))
        if path is not None:
            figure.savefig(path)
        return figure

    def __repr__(self) -> str:
        objective, best = self.objective, self.best
        parts = [
            f"{trained(self)} trained",
            f"{failed(self) + rejected(self)} failed or rejected",
        ]
        if self.baseline is not None:
            parts.append(f"baseline {objective.shown(self.quality(self.baseline))}")
        if best is not None and best.key is not None:
            speed = numbers.speedup(best.latency_ratio)
            value = objective.shown(self.quality(best))
            parts.append(f"best {value}, speed-up {speed} ({short_id(best.text, best.key)})")
        elif self.stop_reason:
            parts.append(f"stopped: {self.stop_reason}")
        reasons = "".join(f"\n  {each}" for each in failure_reasons(self))
        return f"<study {self.study.name}: {', '.join(parts)}{reasons}>"


def load_study(store: Store | str, study: str | int | None = None) -> StudyResults:
    """Return the results of a study in a store.

    Args:
        store: an open store or its address.
        study: the name or id of the study. Default: the latest of the store.

    Raises:
        UserError: if there is no such store or study.
    """
    if isinstance(store, Store):
        return StudyResults.of(store.summary(study), store)
    with Store.open(store, read_only=True) as opened:
        return StudyResults.of(opened.summary(study), opened)
