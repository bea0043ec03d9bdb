"""`syno.export_network`: a trained network of a study as files that run without Syno."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.operators.summary import short_id
from syno.store import Evaluation, Store, StudySummary
from syno.study.results import StudyResults, load_study
from syno.study.study import settings_of

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno.codegen.export.formats import Exported
    from syno.study.evaluate.weights import NetworkShape


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

    trained, example = trained_network(study, key, name=name, net=net, seed=seed)
    return write(trained, path, example, format=format, fold_weights=fold_weights)


def trained_network(
    study: StudySummary | Store | str,
    key: str,
    *,
    name: str | int | None = None,
    net: nn.Module | None = None,
    seed: int | None = None,
) -> tuple[nn.Module, torch.Tensor]:
    """Return the trained network of a trial in evaluation mode, and an input of it.

    Args and errors are those of `export_network`.
    """
    from syno.network.surgery import replace_slots
    from syno.study.evaluate.weights import load_weights, read_shape

    results = study if isinstance(study, StudyResults) else None
    if results is None:
        if isinstance(study, StudySummary):
            raise UserError("a summary does not say where weights are: use syno.load_study(...)")
        results = load_study(study, name)
    trial = results.trial(key)
    file = _file(results, trial, seed)
    shape = read_shape(file)
    template, example = _template(results, net, shape)
    if trial.text is not None:
        replace_slots(template, results.operator(trial), scaled=False)
    load_weights(file, template)
    return template.eval(), example


def _file(results: StudyResults, trial: Evaluation, seed: int | None) -> Path:
    """Return the file with the weights of a trial."""
    from syno.study.evaluate.weights import file_name

    wanted = trial.seed if seed is None else seed
    file = None if results.weights is None else results.weights / file_name(trial.key, wanted)
    if file is None or not file.is_file():
        known = {file_name(t.key, t.seed): t for t in results.trials}
        files = [] if results.weights is None else sorted(results.weights.glob("*.safetensors"))
        held = [known[f.name] for f in files if f.name in known]
        kept = [short_id(t.text, t.key) or "baseline" for t in held]
        raise UserError(
            f"the trained weights of {short_id(trial.text, trial.key) or 'the baseline'} in study "
            f"'{results.study.name}' were not kept\n"
            f"  kept: {', '.join(kept) or 'none'}\n"
            "  a search keeps those of the Pareto front, up to weights_limit (--weights-limit); "
            "`syno train` keeps\n  those of every operator"
        )
    return file


def _template(
    results: StudyResults, net: nn.Module | None, shape: NetworkShape
) -> tuple[nn.Module, torch.Tensor]:
    """Return the network with its slots, and an input of it."""
    import torch

    from syno.study.evaluate.network import with_slots

    settings = settings_of(results.study, list(results.events))
    inside, tokens = shape["input_shape"], shape["vocabulary"]
    example = torch.zeros(1, *inside)
    if tokens is not None:
        example = (torch.arange(example.numel()) % tokens).reshape(example.shape)
    if net is None and settings.model is None:
        raise UserError(
            f"study '{results.study.name}' was started with a module, which a store cannot hold\n"
            "  what to do: pass net=, the same network with any weights"
        )
    if net is not None:
        return with_slots(net, example), example
    assert settings.model is not None
    return model_of_shape(settings.model, settings.model_options, shape, example), example


def model_of_shape(
    name: str, options: Mapping[str, int | str], shape: NetworkShape, example: torch.Tensor
) -> nn.Module:
    """Return a model of the catalogue with its slots, with any weights.

    Args:
        name: the name of the model.
        options: its options. Initial weights are left out.
        shape: as it was trained.
        example: an input of it.
    """
    from syno.network import models

    sizes: dict[str, int | str | None]
    if shape["vocabulary"] is None:
        channels, size = shape["input_shape"][:2]
        sizes = {"classes": shape["classes"], "channels": channels, "size": size}
    else:
        sizes = {"vocabulary": shape["vocabulary"], "context": shape["input_shape"][0]}
    sizes |= {option: value for option, value in options.items() if option != "weights"}
    built = models.build(name, **sizes)  # type: ignore[arg-type]  # `weights` is a path
    return models.slots(built, example=example)
