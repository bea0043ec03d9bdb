"""A probe training: a few steps, from which the time of a whole training is estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno._util.torch_threads import torch_threads

if TYPE_CHECKING:
    from syno.study.evaluate.loading import Data
    from syno.study.evaluate.network import Network
    from syno.train import Fidelity, State, Stop

_STEPS = 12


def seconds_each(
    network: Network,
    dataset: Data,
    fidelity: Fidelity,
    *,
    seed: int = 0,
    threads: int = 1,
    device: str = "cpu",
) -> float | None:
    """Estimate the seconds of one training of the original network.

    Returns:
        The seconds; None if the probe training failed, and for a custom evaluation.
    """
    from syno.data.custom import CustomEvaluation
    from syno.train import Stop, train

    if fidelity.seconds is not None:
        return fidelity.seconds
    if isinstance(dataset, CustomEvaluation):
        return None
    total = 0

    class Enough:
        def check(self, state: State) -> Stop | None:
            nonlocal total
            total = fidelity.steps or state.epochs * state.steps
            enough = state.step >= _STEPS or state.step == state.steps
            return Stop("timeout", "probe", "enough steps were timed") if enough else None

    net = network.original()
    with torch_threads(threads):
        outcome = train(net, dataset, fidelity, seed, stoppers=[Enough()], device=device)
    return None if outcome.step_s is None else outcome.step_s * total
