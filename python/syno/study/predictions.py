"""Predicted latencies in a search: the predictor, with what the store has measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.store import Evaluation, Store
from syno.store.documents import SettingsDocument
from syno.store.records import StudyRecord
from syno.study.settings import StudySettings

if TYPE_CHECKING:
    from syno.study.evaluate.network import Network


def check_measured(latency: str | None) -> None:
    """Raise a UserError where latencies are to be predicted that are final results."""
    from syno.study.evaluate.predicted import PREDICTED

    if latency == PREDICTED:
        raise UserError(
            "latencies of given operators are measured, and not predicted\n"
            "  expected: --latency compiled, eager or inductor      got: --latency predicted\n"
            "  what to do: --no-latency trains without a latency"
        )


def check_predictor(path: str, threads: int) -> None:
    """Raise a UserError for a file that is no predictor for this number of threads."""
    from syno.prediction import LatencyPredictor
    from syno.study.evaluate.predicted import check_threads

    check_threads(LatencyPredictor.load(path), threads)


def predictor_document(
    store: Store,
    study: StudyRecord,
    settings: StudySettings,
    network: Network,
    path: str | None,
) -> tuple[JsonObject, str]:
    """Return the predictor of a search, which has also learned from the store.

    Args:
        store, study, settings: of the search. Latencies of studies of the same network count.
        network: the network of the search.
        path: a file of `LatencyPredictor.save`; None for a predictor of this machine.

    Returns:
        The document of the predictor, and a note for the user.
    """
    from syno.prediction import LatencyPredictor
    from syno.study.evaluate.predicted import predictor_for

    known = None if path is None else LatencyPredictor.load(path)
    found = predictor_for(
        known, network, _evaluations(store, study, settings), settings.timing.threads
    )
    more = len(found.samples) - (0 if known is None else len(known.samples))
    note = (
        f"latencies are predicted for {found.device.name}, and not measured: the predictor has "
        f"learned from {len(found.samples)} latencies, {more} of them of this network in the store"
    )
    return found.to_json(), note


def _evaluations(store: Store, study: StudyRecord, settings: StudySettings) -> list[Evaluation]:
    """Return the evaluations of all studies of the same network, those of the study first."""
    found = list(store.evaluations(study))
    if settings.model is None:  # the store does not know which module it was
        return found
    same = _network_settings(study.settings)
    for other in store.studies():
        if other.id != study.id and _network_settings(other.settings) == same:
            found += store.evaluations(other)
    return found


def _network_settings(settings: SettingsDocument) -> str:
    fidelity = settings.get("fidelity") or {}
    names = ("resolution", "context")
    described = [settings.get("model"), settings.get("model_options"), settings.get("data")]
    return json.dumps([*described, *(fidelity.get(name) for name in names)], sort_keys=True)
