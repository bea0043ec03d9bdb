"""The settings of the paper run from end to end: its models, small, on small images and text."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from syno import IsolationOptions, SpaceOptions, TimingOptions, TrainOptions
from syno.network import models
from syno.network.models import describe
from syno.network.substitute import replace
from syno.operands.layers import fit_to_network, layer_specification
from syno.operands.lookup import named_operators
from syno.operators.specification import Specification
from syno.store import Evaluation, Store, StudySummary
from syno.study.search import resume, search
from syno.train import Fidelity, fidelity

needs_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is None, reason="needs torchvision"
)
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs transformers"
)

# Model and the options that make it small. The published layers are those of images of 224 px.
MODELS = {
    "paper/resnet18": ("resnet18", {"width": 8, "cifar_stem": 1}),
    "paper/resnet34": ("resnet34", {"width": 8, "cifar_stem": 1}),
    "paper/densenet121": ("densenet121", {"growth": 8, "cifar_stem": 1}),
    "paper/resnext29_2x64d": ("resnext29_2x64d", {"width": 8, "cifar_stem": 1}),
}
# Maps of 4 px are narrower than 2.3 windows of 3, which the paper asks for.
SMALL_MAPS = {"min_unfold_ratio": 1.3}
FEW = fidelity("digits").changed(name="few", images=96, resolution=32, epochs=1, learning_rate=0.01)


def test_each_preset_of_the_paper_that_is_for_images_is_here():
    presets = {name for name in Specification.presets() if name.startswith("paper/")}
    others = {"paper/gpt2", "paper/vit", "paper/gcn", "paper/readme"}
    assert presets - others - {"paper/efficientnet_v2_s"} == set(MODELS)
    assert all(describe(model).preset == preset for preset, (model, _) in MODELS.items())
    assert describe("gpt2").preset == "paper/gpt2"


def found(
    preset: str, data: str, store: Path, limits: Any, trained: Fidelity, **arguments: Any
) -> tuple[StudySummary, list[Evaluation]]:
    """A search with two evaluations, and what it evaluated: the baseline first. It is resumed for
    one evaluation more, and keeps the others.
    """
    summary = search(
        data=data,
        specification=preset,
        evaluations=2,
        space=SpaceOptions(max_nodes=3000, limits=limits),
        train=TrainOptions(fidelity=trained, max_slowdown=1000.0),
        timing=TimingOptions(repeats=20, warmup=1),
        isolation=IsolationOptions(isolate=True),
        store=str(store),
        **arguments,
    )
    assert summary.stop_reason == "evaluations"
    evaluated = [e for e in summary.evaluations if e.is_evaluated]
    assert len(evaluated) == 2
    again = resume(str(store), evaluations=3).evaluations
    assert sum(e.is_evaluated for e in again) == 3
    assert again[: len(summary.evaluations)] == summary.evaluations
    assert summary.baseline is not None
    return summary, [summary.baseline, *evaluated]


@pytest.mark.slow
@needs_torchvision
@pytest.mark.parametrize("preset", MODELS)
def test_a_preset_of_the_paper_runs(preset, tmp_path):
    model, options = MODELS[preset]
    path = tmp_path / "runs.db"
    summary, evaluated = found(
        preset, "digits", path, SMALL_MAPS, FEW, net=model, model_options=options
    )
    for evaluation in evaluated:
        assert evaluation.status == "ok", evaluation.reason
        assert evaluation.latency_ratio > 0
        assert evaluation.source_hash or evaluation is summary.baseline
    # The bindings are those of the network's own layers.
    bindings = summary.study.specification["bindings"]
    assert bindings
    assert bindings != Specification.preset(preset).bindings
    with Store.open(str(path), read_only=True) as store:
        assert store.summary().quarantined == ()


@pytest.mark.slow
@needs_torchvision
def test_efficientnet_is_trained_and_stays_above_a_guess(tmp_path):
    """Its forty layers with random depth need more than three steps: the search ends there."""
    model, options = "efficientnet_v2_s", {"cifar_stem": 1}
    summary = search(
        data="digits",
        net=model,
        model_options=options,
        specification=f"paper/{model}",
        evaluations=2,
        space=SpaceOptions(max_nodes=3000, limits=SMALL_MAPS),
        train=TrainOptions(fidelity=FEW, max_slowdown=1000.0),
        store=str(tmp_path / "runs.db"),
    )
    assert summary.stop_reason == "baseline"
    assert summary.baseline.reason.startswith("loss_above_chance")
    net = models.build(model, classes=10, channels=1, size=32, **options)
    slots = models.slots(net)
    (named,) = named_operators(["operator-1"], layers=layer_specification(slots, {}))
    replace(slots, fit_to_network(named, slots, {}))
    loss = slots(torch.zeros(2, 1, 32, 32)).square().mean()
    loss.backward()
    assert all(p.grad is not None for p in slots.parameters())


@pytest.mark.slow
@needs_transformers
def test_the_preset_for_gpt2_runs(tmp_path):
    text = tmp_path / "sums.txt"
    lines = (f"{a} plus {b} is {a + b}.\n" for a in range(40) for b in range(40))
    text.write_text("".join(lines))
    brief = fidelity("paper/gpt2").changed(name="few", context=32, seconds=None, steps=5, batch=4)
    summary, evaluated = found(
        "paper/gpt2",
        str(text),
        tmp_path / "runs.db",
        {"min_weight_params": 16},
        brief,
        net="gpt2",
        model_options={"layers": 2, "width": 64, "heads": 2},
    )
    for evaluation in evaluated:
        assert evaluation.status == "ok", evaluation.reason
        assert evaluation.details["perplexity"] < 400
        assert evaluation.latency_ratio > 0
    for evaluation in summary.evaluations:
        if not evaluation.is_evaluated:
            assert evaluation.reason.startswith("not causal along seq_len")
    (binding,) = summary.study.specification["bindings"]
    assert (binding["seq_len"], binding["H_in"]) == (32, 64)
