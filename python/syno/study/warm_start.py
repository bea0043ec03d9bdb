"""The results of another study, for a search that starts from them."""

from __future__ import annotations

import math
from pathlib import Path

from syno._util.errors import UserError
from syno.features import FeatureTable
from syno.operators.operator import Operator
from syno.operators.specification import read_specification
from syno.store import Store
from syno.store.overview import ordered, score
from syno.surrogate import SurrogateData, normal_scores
from syno.surrogate.models import cross_validated, rank_correlation

# With fewer operators, nothing can be learned.
_LEAST = 5


def study_data(store: Store, study: str | int | None, source: str) -> SurrogateData:
    """Collect the operators of a study with their features and results.

    With a ladder, an operator that reached a higher rung counts as better than one that did not.

    Args:
        store: an open store.
        study: the name of the study in it; None for the latest.
        source: how messages name it.

    Raises:
        UserError: for an unknown study, and for one with too few results.
    """
    summary = store.summary(study)
    specification = read_specification(summary.study.specification)
    table = FeatureTable()
    found = [
        Operator.from_text(each.text, specification)
        for each in ordered(summary)
        if each.text is not None and score(summary, each) > -math.inf
    ]
    if len(found) < _LEAST:
        raise UserError(
            f"study '{summary.study.name}' has {len(found)} results, too few to start from\n"
            f"  expected: at least {_LEAST}\n"
            "  what to do: leave out --warm-start, or name a study with more results"
        )
    values = tuple(float(len(found) - place) for place in range(len(found)))
    return SurrogateData(source, table.matrix(found), values)


def warm_start(text: str) -> SurrogateData:
    """Read `STORE:STUDY`, or a file that `SurrogateData.save` wrote.

    Raises:
        UserError: if there is no such store, study or file, or it belongs to another version.
    """
    if text.endswith(".json"):
        return SurrogateData.load(text)
    store, colon, study = text.rpartition(":")
    if not colon or not store:
        raise UserError(
            f"'{text}' does not name a study to start from\n"
            "  expected: STORE:STUDY, such as runs.db:resnet-small-cifar10-1, or a .json file"
        )
    if "://" not in store and not Path(store).exists():
        raise UserError(f"there is no store '{store}' to start from")
    with Store.open(store, read_only=True) as opened:
        return study_data(opened, study or None, text)


def given_data(given: str | SurrogateData, method: str) -> SurrogateData:
    """Return the data that the argument `warm_start` of a search names, for a search method.

    Raises:
        UserError: as `warm_start` does, and if the method does not use a model.
    """
    if method != "surrogate":
        raise UserError(
            f"the search method '{method}' cannot start from another study\n"
            f"  expected: --method surrogate      got: {method}"
        )
    return given if isinstance(given, SurrogateData) else warm_start(given)


def in_words(data: SurrogateData) -> str:
    """Describe the data, and how well a model of it ranks its own operators."""
    targets = normal_scores(data.values)
    own = rank_correlation(cross_validated("forest", data.rows, targets), targets)
    return (
        f"warm start from {len(data)} operators of '{data.source}', which a model ranks with a "
        f"correlation of {own:.2f} in cross-validation; results of this study replace them"
    )
