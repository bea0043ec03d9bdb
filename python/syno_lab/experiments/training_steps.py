"""What `syno bench training` measures, and the result as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from syno.codegen.native import find_compiler
from syno.operands.networks import image_model
from syno.operators.summary import short_id
from syno.store.environment import capture_environment

if TYPE_CHECKING:
    from torch import nn

    from syno.measure.training_steps import TrainingSteps
    from syno.operators.operator import Operator
    from syno.study.evaluate.network import Network


def training_steps(
    model: str,
    options: Mapping[str, Any],
    size: int | None,
    names: Sequence[str],
    sampled: int,
    *,
    sizes: Mapping[str, int],
    batch: int = 64,
    threads: int = 1,
    rounds: int = 10,
    eager: bool = True,
    seed: int = 0,
    progress: Callable[[str], object] = lambda _: None,
) -> TrainingSteps:
    """Measure training steps of a model with each operator in its slots.

    Args:
        model: the name of the model.
        options: options of the model.
        size: height and width of the images in pixels; None: that of the model.
        names: operators as for `syno train`.
        sampled: the number of further operators, sampled uniformly from the space of a search.
        sizes: values of coefficients.
        batch: batch size of a step.
        threads, rounds, eager, progress: as in `bench_training_steps`.
        seed: of the weights and of the sample.

    Raises:
        UserError: the model does not process images, or an operator fits no slot.
    """
    import torch

    from syno.measure.training_steps import bench_training_steps
    from syno.network import models
    from syno.study.evaluate.network import Network

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = image_model(model, options, size)
    network = Network(models.slots(net), models.built(net).input_shape, seed)
    inputs = network.inputs(batch)
    assert isinstance(inputs, torch.Tensor)  # models by name have one
    operators = {**_named(network, names, sizes), **_sampled(network, sampled, seed)}
    return bench_training_steps(
        network.original(),
        _networks(network, operators),
        inputs,
        threads=threads,
        rounds=rounds,
        eager=eager,
        progress=progress,
    )


def _named(network: Network, names: Sequence[str], sizes: Mapping[str, int]) -> dict[str, Operator]:
    from syno.operands.layers import fit_to_network, layer_specification
    from syno.operands.lookup import named_operators

    known = layer_specification(network.template, sizes)
    return {
        named.name: fit_to_network(named, network.template, sizes)
        for named in (named_operators(names, layers=known) if names else ())
    }


def _sampled(network: Network, count: int, seed: int) -> dict[str, Operator]:
    from syno.network.sampler import Sampler
    from syno.study.specifications import specification_for

    if count == 0:
        return {}
    wanted = specification_for(None, {}, network)
    sampler = Sampler.from_specification(wanted, net=network.template, seed=seed)
    return {short_id(op.text, op.key): op for op in (sampler.sample() for _ in range(count))}


def _networks(
    network: Network, operators: Mapping[str, Operator]
) -> Iterator[tuple[str, str, nn.Module]]:
    for name, operator in operators.items():
        yield name, operator.formula(), network.with_operator(operator)[0]


def described(found: TrainingSteps, model: str) -> dict[str, object]:
    """Return everything that was measured, as plain values, with the machine."""
    return {
        "model": model,
        "input": list(found.input),
        "times": [dataclasses.asdict(time) for time in found.times],
        "geometric_mean": found.geometric_mean,
        "eager_geometric_mean": found.eager_geometric_mean,
        "rounds": found.rounds,
        "controls": None if found.controls is None else dataclasses.asdict(found.controls),
        "noisy": found.noisy,
        "compiler": find_compiler().version,
        "environment": dataclasses.asdict(capture_environment(threads=found.threads, rules="")),
    }
