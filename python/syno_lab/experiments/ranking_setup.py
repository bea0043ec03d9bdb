"""Create a table of the ranking experiment: its settings and its operators."""

from __future__ import annotations

import dataclasses
from typing import Any

from syno._util.errors import UserError
from syno._util.torch_threads import torch_threads
from syno.data import load
from syno.network.surgery import slot_bindings
from syno.operands.layers import fit_to_network
from syno.operands.lookup import NamedOperator
from syno.operators import zoo
from syno.operators.operator import Operator
from syno.space.rules import rule_set
from syno.space.walks import walk
from syno.store import capture_environment
from syno.study.evaluate.network import Network
from syno.study.specifications import small_vision
from syno.train import fidelity
from syno_lab.experiments.ranking import Progress, RankingFile, Settings, select_operators

# The space of the operators: that of `syno search` without a preset, with groups in addition.
_SIZES = {"k": 3, "s": 2, "g": 4}
_SPACE: dict[str, Any] = {
    "coefficient": ["k=3: 2", "s=2: 2", "g=4: 2"],
    "max_splits": 2,
    "max_merges": 1,
}
_LEAST_MACS, _MOST_MACS = 0.03, 1.1
_WALKS = 500  # for each operator to sample


def new_settings(*, low: str, high: str, high_epochs: int, **others: Any) -> Settings:
    """Return the settings of a table.

    Args:
        low, high: names of the fidelities of the two rungs.
        high_epochs: number of epochs at the high rung.
        others: further fields of `Settings`.
    """
    long = fidelity(high).changed(name="long", epochs=high_epochs)
    return Settings(low=fidelity(low).to_json(), high=long.to_json(), **others)


def new_table(
    settings: Settings, data_dir: str | None, operators: int, progress: Progress | None = None
) -> RankingFile:
    """Create a table of the zoo's operators that fit the network and of sampled operators.

    `operators` operators are sampled by random walks. Nothing is trained.

    Raises:
        UserError: there are too few operators that are fast enough.
    """
    size = settings.low["resolution"]
    images = load(settings.data, data_dir=data_dir, size=size)
    fit, _ = images.validation_split(settings.low["holdout"], settings.low["split_seed"])
    settings = dataclasses.replace(settings, train_images=len(fit.labels))
    seed = settings.draw
    network = Network.named(settings.model, settings.model_options, images, seed, size=size)
    with torch_threads(1):
        samples = _samples(network, seed, _WALKS * operators)
        entries = select_operators(network, samples, _zoo(network), settings, operators, progress)
    environment = capture_environment(threads=1, rules=rule_set((), ()).version)
    return RankingFile(settings, dataclasses.asdict(environment), entries)


def _samples(network: Network, seed: int, count: int) -> list[Operator]:
    whole = network.macs or 0
    asked = small_vision(
        **_SPACE, min_macs=int(_LEAST_MACS * whole), max_macs=int(_MOST_MACS * whole)
    )
    asked = asked.with_changes(**slot_bindings(network.template, asked))
    return walk(asked, count=count, seed=seed).operators


def _zoo(network: Network) -> list[tuple[str, Operator]]:
    """Return the operators of the zoo that fit the network, with their names."""
    found = []
    for name in zoo.names():
        named = NamedOperator(name, zoo.load(name), zoo.binding(name))
        try:
            operator = fit_to_network(named, network.template, _SIZES)
            network.with_operator(operator)
        except UserError:  # of other shapes, such as a projection
            continue
        if operator.params():
            found.append((name, operator))
    return found
