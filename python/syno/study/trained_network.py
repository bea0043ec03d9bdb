"""The trained networks of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from syno._util.errors import UserError
from syno.operators.summary import short_id
from syno.store import Evaluation, EventRecord, StudyRecord
from syno.study.study import settings_of

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno._util.inputs import Inputs
    from syno.operators.operator import Operator
    from syno.study.evaluate.weights import NetworkShape


class TrainedStudy(Protocol):
    """The results of a study, as far as its networks are made of them."""

    @property
    def weights(self) -> Path | None:
        """The folder of its trained weights; None if none are kept."""

    @property
    def study(self) -> StudyRecord:
        """The study."""

    @property
    def events(self) -> Sequence[EventRecord]:
        """Its log."""

    @property
    def trials(self) -> Sequence[Evaluation]:
        """The baseline and all operators."""

    def trial(self, key: str) -> Evaluation:
        """The last trial of an operator."""

    def operator(self, trial: Evaluation) -> Operator:
        """The operator of a trial."""


def trained_network(
    results: TrainedStudy, key: str, *, net: nn.Module | None = None, seed: int | None = None
) -> tuple[nn.Module, Inputs]:
    """Return the trained network of a trial in evaluation mode, and an input of it.

    Arguments and errors are those of `export_network`.
    """
    from syno.network.surgery import replace_slots
    from syno.study.evaluate.weights import load_weights, read_shape

    trial = results.trial(key)
    file = _file(results, trial, seed)
    shape = read_shape(file)
    template, example = _template(results, net, shape)
    if trial.text is not None:
        replace_slots(template, results.operator(trial), scaled=False)
    load_weights(file, template)
    return template.eval(), example


def _file(results: TrainedStudy, trial: Evaluation, seed: int | None) -> Path:
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
    results: TrainedStudy, net: nn.Module | None, shape: NetworkShape
) -> tuple[nn.Module, Inputs]:
    """Return the network with its slots, and an input of it."""
    import torch

    from syno.study.evaluate.network import with_slots
    from syno.study.evaluate.weights import input_of

    settings = settings_of(results.study, list(results.events))
    inside, tokens = shape["input_shape"], shape["vocabulary"]
    example: Inputs = torch.zeros(1, *inside)
    if tokens is not None:
        example = (torch.arange(math.prod(inside)) % tokens).reshape(1, *inside)
    if "inputs" in shape:
        example = tuple(input_of(form) for form in shape["inputs"])
    if net is None and settings.model is None:
        raise UserError(
            f"study '{results.study.name}' was started with a module, which a store cannot hold\n"
            "  what to do: pass net=, the same network with any weights"
        )
    if net is not None:
        return with_slots(net, example), example
    assert settings.model is not None and isinstance(example, torch.Tensor)
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
