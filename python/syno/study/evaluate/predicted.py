"""Latencies of the network of a study that are predicted and not measured. Needs torch."""

from __future__ import annotations

import math
from collections.abc import Iterable

from torch import nn

from syno._util.errors import UserError
from syno.network.placeholder import Placeholder, slots
from syno.network.substitute import layer_report
from syno.operators import zoo
from syno.operators.layer import Layer
from syno.operators.operator import Operator
from syno.prediction import Device, LatencyPredictor, LatencySample, Workload
from syno.store import Evaluation
from syno.store.documents import PredictedLatency
from syno.store.records import BASELINE, OK, canonical_json, digest
from syno.study.evaluate.network import Network

# What the option `latency` of a search names.
PREDICTED = "predicted"
# More stored results of one network add nothing.
_MOST_ROWS = 300


class NetworkLatencyPredictor:
    """Predicts the latency of a network with an operator in its slots.

    Args:
        network: the network.
        predictor: predicts kernels, and the rest of a network that was among its samples.
    """

    def __init__(self, network: Network, predictor: LatencyPredictor) -> None:
        self._predictor = predictor
        self._name = network_name(network)
        self._original = kernels_of(network.template)

    def predict(self, net: nn.Module) -> PredictedLatency | None:
        """Predict the latency of a copy of the network; None if it has a slot of another kind."""
        kernels = kernels_of(net)
        if kernels is None:
            return None
        (own,) = self._predictor.predict_many([kernels], network=self._name)
        found: PredictedLatency = {
            "median_ms": 1e3 * own.seconds,
            "low_ms": 1e3 * own.low,
            "high_ms": 1e3 * own.high,
            "whole": own.whole,
            "device": self._predictor.device.name,
            "samples": len(self._predictor.samples),
        }
        if self._original is not None:
            (beside,) = self._predictor.predict_many([self._original], network=self._name)
            found["ratio"] = own.seconds / beside.seconds
        return found


def kernels_of(net: nn.Module) -> tuple[Workload, ...] | None:
    """Return the kernels of all slots of a network; None if there is a layer of another kind.

    Args:
        net: a network whose slots know their shapes.
    """
    rows = {row.name: row.macs for row in layer_report(net).rows}
    counts: dict[tuple[str, str], Workload] = {}
    for name, slot in slots(net).items():
        found = _kernel(slot, rows.get(name))
        if found is None:
            return None
        key = (found.operator.text, canonical_json(dict(found.binding)))
        before = counts[key].count if key in counts else 0
        counts[key] = Workload(found.operator, found.binding, before + 1)
    return tuple(counts.values())


def network_name(network: Network) -> str:
    """Return a name that networks share whose other layers take the same time."""
    slot_bindings = [dict(slot.binding) for slot in slots(network.template).values()]
    kind = type(network.template).__name__
    described = [kind, network.input_shape, slot_bindings, network.all_macs]
    return f"{kind}-{digest(canonical_json(described))[:12]}"


def stored_samples(
    network: Network, evaluations: Iterable[Evaluation], predictor: LatencyPredictor
) -> list[LatencySample]:
    """Return stored latencies of a network that were measured on the device of a predictor.

    Latencies in another engine than compiled code are left out.

    Args:
        network: the network.
        evaluations: of studies of this network.
        predictor: whose device they must be of.
    """
    device, name = predictor.device, network_name(network)
    found = []
    for each in evaluations:
        engine = each.details.get("latency_engine", "eager")
        same = (each.environment.device, each.environment.threads) == (device.name, device.threads)
        timed = each.latency_ms is not None and engine == "compiled" and each.status == OK
        if not (same and timed) or each.latency_ms is None:
            continue
        if each.kind == BASELINE:
            kernels, family = kernels_of(network.template), BASELINE
        else:
            operator = Operator.from_text(each.text or "")
            try:
                net, _ = network.with_operator(operator)
            except UserError:  # of a study with other slots
                continue
            kernels, family = kernels_of(net), each.key or ""
        if kernels:
            found.append(LatencySample(kernels, each.latency_ms / 1e3, device, name, family))
        if len(found) == _MOST_ROWS:
            break
    return found


def predictor_for(
    known: LatencyPredictor | None,
    network: Network,
    evaluations: Iterable[Evaluation],
    threads: int,
) -> LatencyPredictor:
    """Return a predictor that has also learned from stored latencies of a network.

    Args:
        known: a predictor; None for one of this machine that has measured nothing.
        network: the network.
        evaluations: of studies of this network.
        threads: of the timing.

    Raises:
        UserError: the predictor is for another number of threads.
    """
    known = LatencyPredictor(Device.here(threads)) if known is None else known
    check_threads(known, threads)
    more = stored_samples(network, evaluations, known)
    return LatencyPredictor(known.device).fit([*known.samples, *more])


def check_threads(predictor: LatencyPredictor, threads: int) -> None:
    """Raise a UserError for a predictor of another number of threads than that of the timing."""
    if predictor.device.threads != threads:
        raise UserError(
            f"the latency predictor is for {predictor.device.threads} threads\n"
            f"  expected: {threads}, the number of threads of the timing"
        )


def _kernel(slot: Placeholder, macs: int | None) -> Workload | None:
    if isinstance(slot.kernel, Layer):
        operator = Operator.from_text(slot.kernel.operator.text)
        batch = {} if operator.batch is None else {operator.batch: slot.phases}
        binding = batch | dict(slot.kernel.binding)
        return Workload(operator, {name: binding[name] for name in operator.variables})
    if slot.shapes is None or not macs:
        return None
    source, target = slot.shapes
    sizes = math.prod(target) * source[0]
    if len(target) == 3 and macs % sizes == 0 and math.isqrt(macs // sizes) ** 2 == macs // sizes:
        given = {"N": 1, "C_in": source[0], "C_out": target[0], "H": target[1], "W": target[2]}
        return Workload(zoo.load("conv2d"), given | {"k": math.isqrt(macs // sizes)})
    if len(target) == 2 and macs == math.prod(source) * target[1]:
        given = {"N": 1, "T": source[0], "C_in": source[1], "C_out": target[1]}
        return Workload(zoo.load("linear"), given)
    return None
