"""`syno.select`: the selection of accurate and cheap operators of a study. No torch."""

from __future__ import annotations

import contextlib
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from syno._util import checks
from syno._util.arguments import checked, flag, integer, optional, path, real, text
from syno._util.errors import UserError
from syno.operators.summary import identity, short_id
from syno.runs.files import write_text
from syno.store import Evaluation, Store, StudySummary
from syno.store.front import pareto_front
from syno.store.objective import ACCURACY, LOSS, Objective
from syno.store.records import digest
from syno.study.fronts import COSTS

OPERATOR_FILE = "operator.txt"
SPECIFICATION_FILE = "specification.json"
FACTS_FILE = "evaluation.json"

ORDERS = (*COSTS, "accuracy", "loss")
# Operators that differ in one step, or by a factor of two in cost, are different choices.
LEAST_DISTANCE = 1.0


@dataclass(frozen=True)
class Choice:
    """A selected operator of a study with its results.

    accuracy: the validation accuracy, or a custom metric that is maximized, the mean over `seeds`
        seeds; None if the study has none.
    latency_ms, latency_ratio: of the network; the ratio is to the original network in the same run,
        and lower is faster.
    loss: the validation loss of text in nats per token, or a custom metric that is minimized, the
        mean over seeds; None for images.
    objective: the objective of the study.
    """

    key: str
    text: str
    accuracy: float | None
    seeds: int
    latency_ms: float | None
    latency_ratio: float | None
    macs: int | None
    params: int | None
    primitives: dict[str, int]
    loss: float | None = None
    objective: Objective = ACCURACY

    @property
    def quality(self) -> float:
        """The value of the objective: the accuracy, or the loss."""
        value: float | None = getattr(self, self.objective.field)
        assert value is not None  # a choice was trained
        return value

    @property
    def score(self) -> float:
        """The value of the objective, with the sign that makes greater values better."""
        return self.objective.score(self.quality)

    @property
    def folder(self) -> str:
        """`<score>_<id>`: the accuracy (a fraction) or loss, then the short id of the operator."""
        return f"{self.quality:.4f}_{short_id(self.text, self.key)}"


@checked(
    top=integer(1, checks.MOST_COUNTED),
    within=optional(real),
    reference=text,
    by=text,
    diverse=flag,
    least_distance=real,
    front=flag,
    out=optional(path),
)
def select(
    store: Store | str,
    study: str | None = None,
    *,
    top: int = 10,
    within: float | None = None,
    reference: str = "baseline",
    by: str = "latency",
    diverse: bool = False,
    least_distance: float = LEAST_DISTANCE,
    front: bool = False,
    out: str | Path | None = None,
) -> list[Choice]:
    """Select operators of a study, and write them to a folder if requested.

    Args:
        store: an open store or its address.
        study: the name of a study in it. Default: the latest.
        top: the most operators that are selected.
        within: how many points of accuracy (percent) an operator may lie below the reference, or
            how many percent its perplexity on text above that. Default: any number.
        reference: `baseline`, the original network, or `best`, the best operator.
        by: their order: `latency` (ratio to the original network), `macs`, `params`, `loss` (text;
            all four the lowest first) or `accuracy` (the highest first).
        diverse: of operators nearer than `least_distance` to each other, only the first is taken;
            see `distance`.
        front: only operators on the Pareto front of the objective and the cost of `by` (the latency
            if that is no cost); of more than `top`, an even choice along the front with both ends.
        out: a new or empty folder; each operator gets a folder `<score>_<id>` in it with its text,
            its specification and its figures, which commands take wherever they take an operator.

    Returns:
        The operators with their figures, in the order asked for; none where none is good enough.

    Raises:
        UserError: for a store or a study that is not there, a reference or a loss that the study
            does not have, an unknown order, and a folder that is not empty or cannot be written.
    """
    with contextlib.ExitStack() as stack:
        if not isinstance(store, Store):
            store = stack.enter_context(Store.open(store, read_only=True))
        summary = store.summary(study)
    found = choose(
        summary,
        top=top,
        within=within,
        reference=reference,
        by=by,
        diverse=diverse,
        least_distance=least_distance,
        front=front,
    )
    if out is not None and found:
        write(summary, found, Path(out))
    return found


def choose(
    summary: StudySummary,
    *,
    top: int,
    within: float | None = None,
    reference: str = "baseline",
    by: str = "latency",
    diverse: bool = False,
    least_distance: float = LEAST_DISTANCE,
    front: bool = False,
) -> list[Choice]:
    """Select up to `top` operators of a study, in the order of `by`.

    Args:
        summary: the study.
        top: the most operators that are selected.
        within: how many percentage points the accuracy of an operator may be below the reference,
            or how many percent its perplexity above it; None for any number.
        reference: the `baseline`, or the `best` operator.
        by: `latency` (ratio to the original), `macs`, `params` or `loss` (text), the lowest first,
            or `accuracy`, the highest first. The better of equal operators comes first, and values
            that were not measured come last.
        diverse: of operators nearer than `least_distance` to each other, only the first is
            selected.
        front: only operators that no other one beats in the objective and the cost of `by`, or the
            latency if that is no cost. An operator without that cost is not among them. Of more
            than `top`, an even choice along the front with both ends is selected.

    Raises:
        UserError: if the study does not have the reference, or has no loss to order by.
    """
    found = _choices(summary)
    objective = summary.objective
    if by == LOSS.name and objective.field != LOSS.field:
        raise UserError(
            f"study '{summary.study.name}' is about images: its operators have no loss to be "
            "ordered by\n  expected: --by accuracy, latency, macs or params"
        )
    if within is not None and found:
        least = objective.score(objective.least(_reference(summary, found, reference), within))
        # 1e-9 is less than the accuracy of one image.
        found = [choice for choice in found if choice.score >= least - 1e-9]
    if front:
        found = _front(found, by if by in COSTS else "latency")
    found.sort(key=lambda choice: _order(choice, by))
    if not diverse:
        return _spread(found, top) if front else found[:top]
    taken: list[Choice] = []
    for choice in found:
        if len(taken) == top:
            break
        if all(distance(choice, other) >= least_distance for other in taken):
            taken.append(choice)
    return taken


def _front(found: Sequence[Choice], cost: str) -> list[Choice]:
    costs = ((_order(choice, cost)[0], choice) for choice in found)
    return pareto_front(
        (spent, choice.score, number, choice)
        for number, (spent, choice) in enumerate(costs)
        if spent < math.inf
    )


def _spread(found: list[Choice], top: int) -> list[Choice]:
    """Select `top` operators at even steps of their order, the first and the last among them."""
    if len(found) <= top or top == 1:
        return found[:top]
    return [found[round(step * (len(found) - 1) / (top - 1))] for step in range(top)]


def distance(a: Choice, b: Choice) -> float:
    """Compute the distance of two operators.

    It is the difference in the numbers of their primitives, plus the logarithms to base 2 of the
    ratios of their MACs and of their parameters. Semantic keys only tell whether operators are
    equal. For a selection, operators of the same steps with the same costs are similar, whichever
    dimensions their steps transform.
    """
    names = {*a.primitives, *b.primitives}
    steps = sum(abs(a.primitives.get(n, 0) - b.primitives.get(n, 0)) for n in names)
    return steps + _doublings(a.macs, b.macs) + _doublings(a.params, b.params)


def _doublings(a: int | None, b: int | None) -> float:
    return abs(math.log2(a / b)) if a and b else 0.0


def _choices(summary: StudySummary) -> list[Choice]:
    """Collect the results of each operator at the rung of the baseline, or else at its last rung.

    With a ladder, only operators of the highest rung that any operator reached are compared.
    """
    by_key: dict[str, list[Evaluation]] = {}
    for evaluation in summary.compared:
        by_key.setdefault(evaluation.key or "", []).append(evaluation)
    rung = summary.baseline.rung if summary.baseline is not None else None
    found = []
    for key, evaluations in by_key.items():
        same = [e for e in evaluations if e.rung == rung] if rung is not None else []
        same = same or [e for e in evaluations if e.rung == evaluations[-1].rung]
        timed = next((e for e in reversed(evaluations) if e.latency_ratio is not None), same[-1])
        found.append(
            Choice(
                key=key,
                text=same[-1].text or "",
                accuracy=_mean(e.accuracy for e in same),
                loss=_mean_loss(summary, same),
                objective=summary.objective,
                seeds=len(same),
                latency_ms=timed.latency_ms,
                latency_ratio=timed.latency_ratio,
                macs=same[-1].macs,
                params=same[-1].params,
                primitives=dict(same[-1].primitives),
            )
        )
    return found


def _mean_loss(summary: StudySummary, evaluations: Sequence[Evaluation]) -> float | None:
    if summary.objective.field != LOSS.field:
        return None
    return _mean(summary.quality(evaluation) for evaluation in evaluations)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _reference(summary: StudySummary, found: Sequence[Choice], reference: str) -> float:
    if reference == "best":
        return max(found, key=lambda choice: choice.score).quality
    baseline = summary.quality(summary.baseline)
    if baseline is None:
        raise UserError(
            f"study '{summary.study.name}' has no {summary.objective.name} of the original "
            "network\n"
            "  what to do: compare with the best operator: --reference best"
        )
    return baseline


def _order(choice: Choice, by: str) -> tuple[float, float, str]:
    if by not in ORDERS:
        raise UserError(f"operators cannot be ordered by '{by}'\n  expected: {', '.join(ORDERS)}")
    value: float | None = {
        "latency": choice.latency_ratio,
        "macs": choice.macs,
        "params": choice.params,
        "accuracy": None if choice.accuracy is None else -choice.accuracy,
        "loss": choice.loss,
    }[by]
    return (math.inf if value is None else value, -choice.score, choice.key)


def write(summary: StudySummary, choices: Sequence[Choice], folder: Path) -> list[Path]:
    """Write a folder `<score>_<id>/` with text, specification and results of each operator.

    Returns:
        These folders.

    Raises:
        UserError: if the folder is not empty or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(
                f"the folder '{folder}' is not empty\n"
                "  expected: a new folder, so that selections do not mix"
            )
        return [_write_one(summary, choice, folder / choice.folder) for choice in choices]
    except OSError as error:
        raise UserError(f"cannot write the selection to '{folder}': {error}") from error


def _write_one(summary: StudySummary, choice: Choice, folder: Path) -> Path:
    folder.mkdir()
    content = summary.study.specification
    specification = content if isinstance(content, str) else json.dumps(content, indent=2)
    texts = {OPERATOR_FILE: choice.text, SPECIFICATION_FILE: specification + "\n"}
    for name, written in texts.items():
        write_text(folder / name, written, "the selection", "--out")
    # With these digests, reading the operator detects files that were damaged or edited.
    digests = {name: digest(text) for name, text in texts.items()}
    facts = described(choice) | {"study": summary.study.name, "digests": digests}
    facts_text = json.dumps(facts, indent=2) + "\n"
    write_text(folder / FACTS_FILE, facts_text, "the selection", "--out")
    return folder


def described(choice: Choice) -> dict[str, object]:
    """Return the results of an operator as plain values, without its text."""
    names = ("key", "accuracy", "seeds", "latency_ms", "latency_ratio", "macs", "params")
    found = {"id": identity(choice.text) or None} | {n: getattr(choice, n) for n in names}
    if choice.objective == LOSS and choice.loss is not None:
        found |= {"loss": choice.loss, "perplexity": math.exp(min(choice.loss, 700.0))}
    if choice.objective not in (ACCURACY, LOSS):
        found[choice.objective.name] = choice.quality
    return found | {"primitives": choice.primitives}
