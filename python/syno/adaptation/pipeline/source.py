"""What is adapted: a network, a model by name, or the baseline of a study, with its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from syno._util.errors import UserError
from syno.adaptation.activations import checked_originals
from syno.adaptation.pipeline.arguments import AdaptationArguments
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.data import DataSet, Records, TextData
from syno.data.custom import CustomData
from syno.network.placeholder import slots
from syno.network.substitute import substitute
from syno.network.surgery import sample_shape
from syno.store.documents import SettingsDocument
from syno.study.evaluate.loading import load_for
from syno.study.evaluate.network import Network
from syno.train import Fidelity, fidelity, test_accuracy, test_metrics
from syno.train.distillation import Distance, name_of

Data = DataSet | Records | TextData | CustomData
# Fields of a fidelity and of its recipe.
Changes = dict[str, Any]
# The fidelity of the fine-tuning, by the task of the data.
_USUAL = {"images": "fast/adapt", "text": "fast/adapt-text", "custom": "fast/adapt-custom"}
# The resolution and the validation split of `digits`, as a search uses them.
_DIGITS = {"resolution": 8, "holdout": 0.25, "epochs": 6}


@dataclass
class AdaptationSource:
    """A network with its data, before anything is computed.

    name: for the name of the study. model, model_options, data_name, data_dir: how the network is
    built again, if it is a model by name.
    """

    name: str
    network: Network
    data: Data
    fidelity: Fidelity
    model: str | None = None
    model_options: Mapping[str, int | str] = field(default_factory=dict)
    data_name: str | None = None
    data_dir: str | None = None
    distance: Distance | None = None

    def subject(self) -> AdaptationSubject:
        """The network as a subject of fits."""
        return AdaptationSubject(self.network, self.data, self.fidelity, self.distance)

    def settings(self) -> dict[str, object]:
        """What a store keeps of it."""
        metric = None
        if isinstance(self.data, CustomData):
            metric = {"name": self.data.metric.name, "maximize": self.data.metric.maximize}
        return {
            "model": self.model,
            "model_options": {k: v for k, v in self.model_options.items() if k != "weights"},
            "data": self.data_name or getattr(self.data, "name", None),
            "data_dir": self.data_dir,
            "fidelity": self.fidelity.to_json(),
            **({} if self.distance is None else {"distance": name_of(self.distance)}),
            **({} if metric is None else {"metric": metric}),
        }

    def test(self, net: nn.Module) -> float | None:
        """The objective on the test split; None for data without one."""
        if isinstance(self.data, DataSet):
            return test_accuracy(net, self.data, resolution=self.fidelity.resolution)
        if isinstance(self.data, TextData):
            assert self.fidelity.context is not None
            batch = self.fidelity.batch
            return test_metrics(net, self.data, context=self.fidelity.context, batch=batch).loss
        return None


def checked_source(given: AdaptationArguments) -> AdaptationSource:
    """Check the arguments of `syno.adapt`, and load the data.

    Raises UserError for what does not go together.
    """
    net, data, data_dir, seed = given.net, given.data, given.data_dir, given.seed
    model, module, before = None, net, None
    model_options = dict(given.model_options or {})
    if not isinstance(net, (nn.Module, str)):
        module, before = _baseline(net)
        model, data = before["model"], before["data"] if data is None else data
        model_options = {**before["model_options"], **model_options}
        data_dir = data_dir or before["data_dir"]
    elif isinstance(net, str):
        model = net
        if "weights" not in model_options:
            raise UserError(
                f"the model '{net}' has random initial weights\n"
                "  expected: trained weights, model_options={'weights': FILE} (--weights FILE)\n"
                "  what to do: train it with `syno train --baseline --model NAME --data NAME`, and "
                "adapt\n              the study that this makes: `syno adapt --study NAME`"
            )
    if given.where is not None:
        if not isinstance(module, nn.Module):
            raise UserError("'where' is for a network; a model by name has its own slots")
        if given.example_input is not None:
            module = substitute(module, given.where, given.example_input)
    where = given.where if given.example_input is None else None
    if isinstance(module, nn.Module) and slots(module):
        checked_originals(module)
    own = given.custom_data(data, module)
    if given.distance is not None and (own is None or not callable(given.distance)):
        raise UserError(
            "'distance' is a function of a network's outputs and of the original's, for custom data"
            f"\n  got: {type(given.distance).__name__}"
            + ("" if own is not None else f" for the data set '{data}'")
        )
    if own is not None:
        found = _checked_fidelity(given.fidelity, _USUAL["custom"], {})
        network = Network.custom(module, own, seed, where)  # type: ignore[arg-type]
        name = type(module).__name__.lower()
        label = f"{name}-{own.name}"
        return AdaptationSource(label, network, own, found, distance=given.distance)
    assert isinstance(data, str)
    usual = _USUAL[_task(data, data_dir)]
    found = _checked_fidelity(given.fidelity, usual, _changes(data, before, module))
    loaded = load_for(data, data_dir, found, progress=False)
    size, context = found.resolution, found.context
    if isinstance(module, str):
        network = Network.named(module, model_options, loaded, seed, size=size, context=context)
    else:
        network = Network.given(
            module,  # type: ignore[arg-type]
            loaded,
            seed,
            size=size,
            context=context,
            where=where,
        )
    label = model or type(module).__name__.lower()
    return AdaptationSource(
        f"{label}-{loaded.name if not isinstance(loaded, Records) else loaded.folder.name}",
        network,
        loaded,
        found,
        model,
        model_options,
        data,
        data_dir,
    )


def _baseline(results: object) -> tuple[nn.Module, SettingsDocument]:
    """The trained baseline network of a study, and the settings that it was trained with."""
    from syno.study.results import StudyResults
    from syno.study.trained_network import trained_network

    if not isinstance(results, StudyResults):
        raise UserError(
            "the network is a torch.nn.Module, the name of a model, or the results of a study\n"
            f"  got: {type(results).__name__}"
        )
    net, _ = trained_network(results, "baseline")
    return net, results.settings


def _task(data: str, data_dir: str | None) -> str:
    from syno.data import is_text_data

    return "text" if is_text_data(data, data_dir) else "images"


def _changes(data: str, before: SettingsDocument | None, module: object) -> Changes:
    """What the fine-tuning has in common with the training of the network."""
    if before is not None:
        trained: Changes = dict(before["fidelity"])
        trained = {**trained, "precision": trained.get("recipe", {}).get("precision")}
        names = ("resolution", "holdout", "split_seed", "context", "precision")
        return {name: trained[name] for name in names if trained.get(name) is not None}
    changes: Changes = dict(_DIGITS) if data == "digits" else {}
    if isinstance(module, nn.Module) and slots(module):
        shape = sample_shape(module)
        if shape is not None and len(shape) == 3:
            changes["resolution"] = shape[-1]
    return changes


def _checked_fidelity(
    given: Fidelity | str | Mapping[str, int | str] | None,
    usual: str,
    changes: Changes,
) -> Fidelity:
    if isinstance(given, Fidelity):
        return given
    if isinstance(given, Mapping):
        changes = {**changes, **given}
    elif given is not None:  # its own length, but the validation split of the training
        changes = {k: v for k, v in changes.items() if k in ("holdout", "split_seed")}
    found = fidelity(given if isinstance(given, str) else usual)
    before = {**found.recipe.to_json(), **found.to_json()}
    changed = {key: value for key, value in changes.items() if before.get(key) != value}
    if not changed:
        return found
    return found.changed(name=found.name_with(changed), **changed)
