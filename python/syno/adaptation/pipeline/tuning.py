"""Fine-tuning: a network learns from the original one, and keeps what it learnt in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from syno._util.errors import UserError
from syno.adaptation.pipeline.subject import Subject
from syno.options import AdaptOptions
from syno.study.evaluate import engines
from syno.study.evaluate.weights import load_weights, write_weights
from syno.train import Distillation, Fidelity, NonFinite, train
from syno.train.stoppers import State


@dataclass(frozen=True)
class Tuned:
    """A fine-tuned network: the objective on the validation split, and the time it took."""

    value: float
    seconds: float


def tuned(
    subject: Subject,
    net: nn.Module,
    options: AdaptOptions,
    fidelity: Fidelity,
    *,
    seed: int,
    file: Path | None,
    progress: Callable[[float], None],
) -> Tuned:
    """Train a network in place with distillation from the original.

    Args:
        subject: the original network with its data.
        net: the network, in evaluation mode.
        options: of the adaptation.
        fidelity: how long.
        seed: of the batches.
        file: for the weights; its checkpoint is beside it. None to keep neither.
        progress: called with the completed share.

    Raises:
        UserError: the training failed; the message says why.
    """
    features = [name for name in subject.features if options.distill_features]
    teaching = Distillation(subject.original, subject.dimension, features=features)
    checkpoint = None if file is None else file.with_suffix(".checkpoint")

    def told(state: State) -> None:
        progress(state.done)

    with engines.kernels(net, options.kernels or engines.EAGER, lambda _: None):
        outcome = train(
            net,
            subject.data,
            fidelity,
            seed,
            stoppers=(NonFinite(),),
            progress=told,
            checkpoint=checkpoint,
            distillation=teaching,
        )
    if outcome.status == "paused":
        raise KeyboardInterrupt
    if outcome.status != "ok":
        raise UserError(
            f"the fine-tuning failed: {outcome.reason}, {outcome.detail}\n"
            "  what to do: a smaller learning rate in a recipe of your own (--fidelity FILE.toml)"
        )
    if file is not None:
        write_weights(file, net, subject.network.shape)
        assert checkpoint is not None
        checkpoint.unlink(missing_ok=True)
    value = outcome.accuracy if subject.objective.field == "accuracy" else outcome.loss
    assert value is not None
    return Tuned(value, outcome.seconds)


def restored(net: nn.Module, file: Path) -> nn.Module:
    """The network with the weights of a file, in evaluation mode."""
    load_weights(file, net)
    return net.eval()
