"""`syno.export_network`: a trained network of a study as files that run without Syno."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.store import Store, StudySummary
from syno.study.results import StudyResults, load_study
from syno.study.trained_network import trained_network

if TYPE_CHECKING:
    from torch import nn

    from syno.codegen.export.formats import Exported


def export_network(
    study: StudySummary | Store | str,
    key: str,
    path: str | Path,
    *,
    name: str | int | None = None,
    net: nn.Module | None = None,
    format: str = "torch-network",
    seed: int | None = None,
    fold_weights: bool = False,
) -> Exported:
    """Write the trained network of a trial, so that it runs without Syno.

    Args:
        study: what `syno.search` or `syno.load_study` returned, or a store or its address.
        key: the start of the id or key of an operator, or `baseline`.
        path: the file; the suffix of the format is added.
        name: the name or id of the study. Default: the latest of the store.
        net: the network that the study was started with, unless that was a model by name. Its
            weights do not matter.
        format: `torch-network` (a .py file with PyTorch code and a .safetensors file with the
            weights), or another format of `syno.export.export_network`, such as `cpp-network`.
        seed: of several trainings of the operator, the one with this seed.
        fold_weights: as in `syno.export.export_network`.

    Returns:
        The files.

    Raises:
        UserError: if there is no such study or trial, its weights were not kept, or the network is
            not the one that was trained.
    """
    from syno.codegen.export import export_network as write

    trained, example = trained_network(_results(study, name), key, net=net, seed=seed)
    return write(trained, path, example, format=format, fold_weights=fold_weights)


def _results(study: StudySummary | Store | str, name: str | int | None) -> StudyResults:
    if isinstance(study, StudyResults):
        return study
    if isinstance(study, StudySummary):
        raise UserError("a summary does not say where weights are: use syno.load_study(...)")
    return load_study(study, name)
