"""The run key: whether a stored result is the result of a requested training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syno._util.json_types import Json
from syno.store.documents import RunRecipe
from syno.store.records import FLOAT32, INT8
from syno.study.evaluate.quantization import Quantization

if TYPE_CHECKING:
    from syno.store import Evaluation

# What a key without another engine stands for; INT8 networks know no other.
EAGER = "eager"


@dataclass(frozen=True)
class RunKey:
    """What a result depends on, beside operator, seed and machine.

    Two results of one operator and one seed are comparable exactly when their run keys are equal,
    and a stored result is that of a requested training exactly when the run key `counts` it. The
    store keeps a run key as the `recipe` of an evaluation.

    Args:
        fidelity: `Fidelity.to_json()`: the amount of data, the length and the recipe.
        data: the fingerprint of the data set.
        threads: threads of training and timing. None for a result on the test split, which is
            not timed.
        width, of_epochs: of a rung: the share of the full width of the network, and the epochs of
            the training that the rung is a part of, which determine its schedule (None if steps or
            seconds limit the training). A width of None means no rung.
        quantization: how the trained network was quantized to INT8; None for float32.
        latency: the engine that ran the network while it was timed.
        kernels: what computed operators during the training, see `TrainOptions`.
    """

    fidelity: Mapping[str, Json]
    data: str
    threads: int | None = None
    width: float | None = None
    of_epochs: int | None = None
    quantization: Quantization | None = None
    latency: str = EAGER
    kernels: str = "eager"

    @property
    def precision(self) -> str:
        """`float32` or `int8`."""
        return FLOAT32 if self.quantization is None else INT8

    def quantized(self, how: Quantization) -> RunKey:
        """Return the key of the same training, quantized to INT8."""
        return replace(self, quantization=how, latency=EAGER)

    def to_json(self) -> RunRecipe:
        """Return the recipe that the store keeps."""
        found: RunRecipe = {"fidelity": dict(self.fidelity), "data": self.data}
        if self.threads is not None:
            found["threads"] = self.threads
        if self.latency != EAGER:  # a key from before there were others stays the same
            found["latency"] = self.latency
        if self.width is not None:
            found |= {"width": self.width, "of_epochs": self.of_epochs}
        if self.quantization is not None:
            how = self.quantization
            found |= {
                "precision": INT8,
                "engine": how.engine,
                "calibration": {"images": how.images, "seed": how.seed},
            }
        if self.kernels != "eager":
            found["kernels"] = self.kernels
        return found

    def counts(self, evaluation: Evaluation) -> bool:
        """Return whether a stored result has this run key."""
        # The store returns a recipe as JSON, in which tuples are lists.
        return bool(evaluation.recipe == json.loads(json.dumps(self.to_json())))
