"""The real evaluator: verify, train, measure. Needs torch."""

from __future__ import annotations

import copy
import math
import signal
import time
import traceback
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from syno._errors import UserError
from syno.data import DataSet, load
from syno.kernel import KernelPack
from syno.layers import LayerReport
from syno.measure import Measurement, latency
from syno.store import BaselineLatency, MeasurementResult, Outcome, VerificationResult
from syno.store.records import ERROR, REJECTED, canonical_json, digest, plain
from syno.study.network import Network
from syno.study.observer import Observer
from syno.torch_threads import torch_threads
from syno.train import Fidelity, ForeignCheckpointError, State, train
from syno.train import Outcome as Training
from syno.verify import Verification, verify


@dataclass(frozen=True)
class Timing:
    """How networks are timed: one sample, `warmup` calls, then `repeats` timed ones."""

    repeats: int = 30
    warmup: int = 5
    threads: int = 1


@dataclass(frozen=True)
class Part:
    """A rung as a part of a training: `stop_after` epochs of `whole` (None: all of it), with a
    network of a share of the asked `width`."""

    whole: Fidelity
    stop_after: int | None = None
    width: float = 1.0


@dataclass
class NetworkEvaluator:
    """Evaluates operators inside one network.

    1. The operator goes into the slots; a slot that it does not fit keeps its layer.
    2. The emitted source is compared with the reference interpreter under each binding.
    3. A training step is timed; one of more than `max_slowdown` of the original's is not worth it.
    4. The network is trained; its accuracy is that on the hold-out split.
    5. Its latency is measured, the original network's in the same run.

    At a rung of a ladder, `part` says what of a training it is, and costs are those in `priced`,
    the network of the highest rung.

    What 1 to 3 refuse is `rejected` before training. What fails afterwards is an `error` with its
    reason; a UserError alone ends the search.
    """

    network: Network
    dataset: DataSet
    fidelity: Fidelity
    seed: int
    timing: Timing = field(default_factory=Timing)
    deadline_s: float | None = None
    max_slowdown: float = math.inf
    observer: Observer = field(default_factory=Observer)
    part: Part | None = None
    priced: Network | None = None
    _resumed: int = field(default=0, init=False)

    def baseline(self, checkpoint: Path | None = None) -> Outcome:
        """Trains and times the original network, going on from `checkpoint` where that is."""
        began = time.perf_counter()
        net = self.network.original()
        training = self._train(net, checkpoint)
        timed = self._time(net, None, []) if training.ok else None
        return self._outcome(
            training,
            began,
            macs=(self.priced or self.network).macs,
            params=(self.priced or self.network).params,
            latency=BaselineLatency(timed.median_ms, timed.spread_ms) if timed else None,
            details=self._details(training, timed),
        )

    def evaluate(self, operator: Any, checkpoint: Path | None = None) -> Outcome:
        """Verifies, trains and times the network with `operator` in it, going on from `checkpoint`
        where that is."""
        began = time.perf_counter()
        try:
            return self._evaluate(operator, began, checkpoint)
        except UserError:
            raise
        except Exception as error:  # one operator must not end the search of thousands
            return replace(
                self.failure(),
                reason=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
                seconds=time.perf_counter() - began,
                details={"traceback": traceback.format_exc(limit=-8)},
            )

    def failure(self) -> Outcome:
        """An evaluation that ended without an answer, to be completed with a reason."""
        return Outcome(ERROR, rung=self.fidelity.name, recipe=self._recipe(), seed=self.seed)

    def _evaluate(self, operator: Any, began: float, checkpoint: Path | None) -> Outcome:
        try:
            net, report = self.network.with_operator(operator)
        except UserError as error:
            return self._rejected(operator, str(error), began)
        macs, params = self._cost(operator, report)
        kept = {row.name: row.reason for row in self.network.kept(report)}

        checks = self._verify(operator, net)
        failed = next((check for check in checks if not check.passed), None)
        if failed is not None:
            reason = f"the generated code is wrong: {failed.failure}"
            return self._rejected(operator, reason, began, verification=_together(checks))

        slowdown = self._slowdown(net)
        if slowdown > self.max_slowdown:
            reason = (
                f"a training step takes {slowdown:.1f} times as long as the original's, more than "
                f"{self.max_slowdown:g}"
            )
            return self._rejected(operator, reason, began, verification=_together(checks))

        training = self._train(net, checkpoint)
        timed = self._time(net, self.network.original(), checks) if training.ok else None
        return self._outcome(
            training,
            began,
            macs=macs,
            params=params,
            primitives=operator.primitives(),
            verification=_together(checks),
            measurement=_measurement(timed) if timed else None,
            details=self._details(training, timed) | {"kept": kept},
        )

    def _cost(self, operator: Any, report: LayerReport) -> tuple[int | None, int]:
        """(macs, params) in the network that was asked for, which may be another one."""
        if self.priced is None or self.priced is self.network:
            return self.network.cost(operator, report)
        return self.priced.cost(operator, self.priced.with_operator(operator)[1])

    def _verify(self, operator: Any, net: nn.Module) -> list[Verification]:
        """One comparison for each binding under which the operator stands in the network."""
        self.observer.on_step("verify")
        packs = [module for module in net.modules() if isinstance(module, KernelPack)]
        bindings = {canonical_json(pack.binding): pack.binding for pack in packs}
        return [verify(operator, binding, seed=self.seed) for binding in bindings.values()]

    def _slowdown(self, net: nn.Module) -> float:
        """How many times as long as the original's a training step takes."""
        if math.isinf(self.max_slowdown):
            return 1.0
        nets = [self.network.original(), copy.deepcopy(net)]  # batch statistics change
        shape = (self.fidelity.batch, *self.network.input_shape)
        with torch_threads(self.timing.threads):
            seconds = [_step_seconds(each, shape) for each in nets]
        return seconds[1] / seconds[0]

    def _train(self, net: nn.Module, checkpoint: Path | None) -> Training:
        """Trains `net`; `ok` at the end of a rung that is a part of a training, too."""
        self.observer.on_step("train")
        part = self.part or Part(self.fidelity)
        self._resumed = -1
        arguments: dict[str, Any] = {"deadline_s": self.deadline_s, "progress": self._report}
        with torch_threads(self.timing.threads):
            if checkpoint is None:
                return train(net, self.dataset, part.whole, self.seed, **arguments)
            arguments |= {"checkpoint": checkpoint, "stop_after": part.stop_after}
            try:
                training = train(net, self.dataset, part.whole, self.seed, **arguments)
            except ForeignCheckpointError as error:  # of another Syno: it is a cache and goes
                warnings.warn(f"{error.args[0].splitlines()[0]}; it starts over", stacklevel=2)
                checkpoint.unlink(missing_ok=True)
                training = train(net, self.dataset, part.whole, self.seed, **arguments)
        if training.status != "paused":
            return training
        if training.reason == "signal":
            signal.raise_signal(signal.SIGTERM)  # as without a checkpoint
            raise KeyboardInterrupt  # it has a handler of the user's
        return replace(training, status="ok", reason="", detail="")

    def _report(self, state: State) -> None:
        if self._resumed < 0:
            self._resumed = state.epoch
        if state.epoch_loss is not None:
            self.observer.on_epoch(state.epoch + 1, state.epochs, state.epoch_loss)

    def _time(
        self, net: nn.Module, original: nn.Module | None, checks: list[Verification]
    ) -> Measurement:
        self.observer.on_step("measure")
        return latency(
            net,
            self.network.input_shape,
            baseline=original,
            verifications=checks,
            repeats=self.timing.repeats,
            warmup=self.timing.warmup,
            threads=self.timing.threads,
        )

    def _recipe(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "fidelity": self.fidelity.to_json(),
            "data": self.dataset.fingerprint,
            "threads": self.timing.threads,
        }
        if self.part is not None:
            # The schedule is that of the whole training.
            found |= {"width": self.part.width, "of_epochs": self.part.whole.epochs}
        return found

    def _details(self, training: Training, timed: Measurement | None) -> dict[str, Any]:
        """The signals of a training; with a ladder, the epoch of a checkpoint it went on from."""
        resumed = {} if self.part is None else {"resumed_at": max(self._resumed, 0)}
        return _curve(training, timed) | resumed

    def _outcome(self, training: Training, began: float, **found: Any) -> Outcome:
        return Outcome(
            training.status,
            reason=training.why,
            accuracy=training.accuracy,
            rung=self.fidelity.name,
            recipe=self._recipe(),
            seed=self.seed,
            seconds=time.perf_counter() - began,
            **found,
        )

    def _rejected(self, operator: Any, reason: str, began: float, **found: Any) -> Outcome:
        return Outcome(
            REJECTED,
            reason=reason,
            seed=self.seed,
            seconds=time.perf_counter() - began,
            primitives=operator.primitives(),
            **found,
        )


def make_evaluator(
    network: Network,
    data: str,
    data_dir: str | None,
    fingerprint: str,
    **settings: Any,
) -> NetworkEvaluator:
    """An evaluator in another process: it reads the data again, memory-mapped from its cache.

    settings: further arguments of NetworkEvaluator. UserError when the data changed meanwhile.
    """
    dataset = load_again(data, data_dir, settings["fidelity"].loaded_at, fingerprint)
    return NetworkEvaluator(network, dataset, **settings)


def load_again(data: str, data_dir: str | None, size: int | None, fingerprint: str) -> DataSet:
    """A data set that was loaded before. UserError when it changed meanwhile."""
    dataset = load(data, data_dir, size=size, progress=False)
    if dataset.fingerprint != fingerprint:
        raise UserError(
            f"the data set '{data}' changed while the search began\n"
            f"  expected: {fingerprint}      got: {dataset.fingerprint}"
        )
    return dataset


def _step_seconds(net: nn.Module, shape: tuple[int, ...]) -> float:
    """Seconds of a forward and backward pass, the quickest of three."""
    net.train()
    x = torch.zeros(shape)
    found = []
    for _ in range(3):
        began = time.perf_counter()
        net(x).sum().backward()
        found.append(time.perf_counter() - began)
    return min(found)


def _together(checks: list[Verification]) -> VerificationResult:
    """All comparisons of one operator as one; the hash names all of the source."""
    sources = sorted({check.source_hash for check in checks})
    return VerificationResult(
        source_hash=sources[0] if len(sources) == 1 else digest(canonical_json(sources)),
        bindings=[check.binding for check in checks],
        emitter=checks[0].emitter,
        seed=checks[0].seed,
        passed=all(check.passed for check in checks),
        max_error=max(check.max_error for check in checks),
    )


def _measurement(timed: Measurement) -> MeasurementResult:
    assert timed.baseline is not None and timed.ratio is not None
    return MeasurementResult(
        median_ms=timed.median_ms,
        spread_ms=timed.spread_ms,
        ratio=timed.ratio,
        baseline=BaselineLatency(timed.baseline.median_ms, timed.baseline.spread_ms),
        threads=timed.threads,
        repeats=timed.repeats,
        batch=timed.batch,
    )


def _curve(training: Training, timed: Measurement | None) -> dict[str, Any]:
    details: dict[str, Any] = {
        "losses": [point.loss for point in training.curve],
        "loss_sum": training.loss_sum,
        "tail_loss": training.tail_loss,
        "training_s": training.seconds,
        "step_s": training.step_s,
        "steps": training.steps,
        "peak_bytes": training.peak_bytes,
    }
    if timed is not None:
        details |= {"control": plain(timed.control), "noisy": timed.noisy}
    return details
