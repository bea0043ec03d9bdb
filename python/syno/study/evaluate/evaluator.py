"""The evaluator of operators in a network: verify, train, measure and quantize. Needs torch."""

from __future__ import annotations

import functools
import math
import signal
import time
import traceback
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Unpack

from torch import nn

from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno._util.torch_threads import torch_threads
from syno.codegen.native.kernels import WrongKernelError, compile_kernels
from syno.codegen.verify import Verification, verify
from syno.data import DataSet, Records
from syno.data.custom import CustomData, CustomEvaluation
from syno.engines.engine import get as get_engine
from syno.engines.engine_network import EngineNetwork
from syno.inference import quantize
from syno.measure import Measurement, latency, step_slowdown
from syno.measure.latency import FailingNetworkError, Prepare, eager
from syno.network.layers import LayerReport
from syno.operators.layer import Layer
from syno.operators.operator import Operator
from syno.options import TimingOptions
from syno.prediction import LatencyPredictor
from syno.store import BaselineLatency, Outcome, VerificationResult
from syno.store.documents import Details
from syno.store.records import ERROR, FLOAT32, OK, REJECTED, canonical_json
from syno.study.evaluate import engines
from syno.study.evaluate.checkpoints import checkpoint
from syno.study.evaluate.custom import baseline_failed, check_baseline, evaluated
from syno.study.evaluate.engines import COMPILED, EAGER
from syno.study.evaluate.evaluator_settings import EvaluatorSettings, TrainingPart
from syno.study.evaluate.failures import check_disk
from syno.study.evaluate.loading import Data, load_for
from syno.study.evaluate.network import Network
from syno.study.evaluate.observer import EvaluationObserver
from syno.study.evaluate.parts import measurement_result, noise, verification_result
from syno.study.evaluate.predicted import NetworkLatencyPredictor
from syno.study.evaluate.quantization import FLOATS, INTEGERS, Quantization, details_of
from syno.study.evaluate.run_key import RunKey
from syno.study.evaluate.weights import file_name, write_weights
from syno.train import (
    Fidelity,
    ForeignCheckpointError,
    State,
    TrainingOutcome,
    train,
    training_images,
    validation_accuracy,
)

# What the option `latency` names, as engines.
_ENGINES = {COMPILED: "syno", "inductor": "inductor"}


class _Timed(NamedTuple):
    """A latency, and the engine that it was measured in."""

    measurement: Measurement
    engine: str


@dataclass
class NetworkEvaluator:
    """Evaluates operators inside one network.

    1. The operator is put into the slots. A slot that it does not fit keeps its layer. In a
       language model, an operator that reads a later position is rejected.
    2. The generated code is compared with the reference interpreter under each binding.
    3. A training step is timed. An operator is rejected if its step takes more than `max_slowdown`
       times as long as that of the original network.
    4. The network is trained (with `kernels="compiled"`, its operators as compiled C++, from the
       timed step on), and its accuracy or loss is measured on the validation split.
    5. Its latency is measured, alternately with that of the original network, both in the engine
       that `timing` names. The original network is also measured in the engines of others that are
       installed, if its own engine is `compiled`.
    6. If requested, the trained network is quantized to INT8, and measured in the same way. That
       outcome is in `beside`.

    At a rung of a ladder, `part` is the part of the training, and MACs and parameters are counted
    in `priced`, the network of the highest rung.

    The weights of each trained network of the highest rung are written to the folder `weights`,
    where there is one. With the document of a `predictor`, step 5 predicts the latency and measures
    nothing. What cannot be compiled is trained or timed in eager PyTorch, with a note.

    An operator that steps 1 to 3 reject has the status `rejected`. A later failure has the status
    `error` and a reason. Only a UserError ends the search.
    """

    network: Network
    dataset: Data
    fidelity: Fidelity
    seed: int
    timing: TimingOptions = field(default_factory=TimingOptions)
    deadline_s: float | None = None
    max_slowdown: float = math.inf
    observer: EvaluationObserver = field(default_factory=EvaluationObserver)
    device: str = "cpu"
    workers: int = 0
    checkpoints: Path | None = None
    measured: bool = True
    quantization: Quantization | None = None
    part: TrainingPart | None = None
    priced: Network | None = None
    kernels: str = EAGER
    weights: Path | None = None
    predictor: JsonObject | None = None
    _resumed: int = field(default=0, init=False)

    def prepared(self) -> NetworkEvaluator:
        """Prepare what is the same for all evaluations, in the process that forks them.

        A child of a process that has counted the GPUs cannot use one, and torch counts them when it
        traces a network (FakeTensorMode): what is traced is left to the children then.
        """
        if COMPILED in (self.kernels, self.timing.latency):
            engines.prepare_compilers()
        _ = self._latencies
        if self.device == "cpu":
            _ = self._shared
        return self

    @functools.cached_property
    def _shared(self) -> engines.SharedCompilation | None:
        """What the timed networks have in common; None if they are not compiled."""
        # An evaluation by the user may change the network itself.
        wanted = self.measured and not isinstance(self.dataset, CustomEvaluation)
        if not wanted or self.timing.latency != COMPILED:
            return None
        try:
            return engines.SharedCompilation(self.network)
        except UserError:  # each evaluation meets and reports it
            return None

    @functools.cached_property
    def _latencies(self) -> NetworkLatencyPredictor | None:
        """What predicts latencies; None if they are measured."""
        if not self.measured or self.predictor is None:
            return None
        return NetworkLatencyPredictor(self.network, LatencyPredictor.from_json(self.predictor))

    def _predicted(self, net: nn.Module) -> Details:
        """Predict the latency of a trained network, if requested."""
        found = None if self._latencies is None else self._latencies.predict(net)
        return {} if found is None else {"predicted_latency": found}

    def baseline(self, state: Path | None = None) -> Outcome:
        """Train and time the original network.

        Args:
            state: the checkpoint to resume from, if the file exists.
        """
        began = time.perf_counter()
        net = self.network.original()
        try:
            training = self._train(net, None, state)
        except UserError:
            raise
        except Exception as error:
            check_disk(error)
            if isinstance(self.dataset, (CustomData, CustomEvaluation)):  # nor would an operator
                raise baseline_failed(self.dataset, error) from error
            raise
        check_baseline(self.dataset, training)
        if training.ok:
            self._keep(net, None)
        timed = self._time(net, None, []) if training.ok else None
        own = timed.measurement if timed else None
        found = replace(
            self._outcome(training, began),
            macs=(self.priced or self.network).macs,
            params=(self.priced or self.network).params,
            latency=BaselineLatency(own.median_ms, own.spread_ms) if own else None,
            details=self._details(training, timed, net) | self._rivals(net, timed),
        )
        return self._with_int8(found, net)

    def evaluate(self, operator: Operator, state: Path | None = None) -> Outcome:
        """Verify, train and time the network with an operator in its slots.

        Args:
            operator: the operator.
            state: the checkpoint to resume from, if the file exists.
        """
        began = time.perf_counter()
        try:
            return self._evaluate(operator, began, state)
        except UserError:
            raise
        except Exception as error:  # one operator must not end the search of thousands
            check_disk(error)
            return replace(
                self.failure(),
                reason=_in_words(error),
                seconds=time.perf_counter() - began,
                details={"traceback": traceback.format_exc(limit=-8)},
            )

    def compile_ahead(self, operator: Operator) -> None:
        """Compile what `evaluate` needs for an operator, so that it finds that in the cache."""
        net, _ = self.network.with_operator(operator)
        with self._compiling(net):
            if self._trains_compiled:
                compile_kernels(net)

    def repeat(self, operator: Operator, seed: int) -> Outcome:
        """Train the network with an operator again, with another seed and without a timing."""
        network = self.network.reseeded(seed)
        again = replace(
            self,
            network=network,
            seed=seed,
            measured=False,
            weights=None,
            checkpoints=None,
            quantization=None,
        )
        return again.evaluate(operator)

    def failure(self) -> Outcome:
        """Return the outcome of an evaluation without a result, to which a reason is added."""
        return Outcome(
            ERROR, rung=self.fidelity.name, recipe=self.run_key().to_json(), seed=self.seed
        )

    def _evaluate(self, operator: Operator, began: float, state: Path | None) -> Outcome:
        try:
            net, report = self.network.with_operator(operator)
        except UserError as error:
            return self._rejected(operator, str(error), began)
        macs, params = self._cost(operator, report)
        kept = {row.name: row.reason for row in self.network.kept(report)}
        leak = self.network.future_read(net, operator)
        if leak is not None:
            return self._rejected(operator, leak, began)

        checks = self._verify(operator, net)
        verified = verification_result(checks)
        failed = next((check for check in checks if not check.passed), None)
        if failed is not None:
            reason = f"the generated code is wrong: {failed.failure}"
            return self._rejected(operator, reason, began, verification=verified)

        try:
            with self._kernels(net) as not_compiled:
                slowdown = self._slowdown(net)
                if slowdown <= self.max_slowdown:
                    with self._compiling(net):
                        training = self._train(net, operator, state)
        except WrongKernelError as error:
            return self._rejected(operator, str(error), began, verification=verified)
        if slowdown > self.max_slowdown:
            reason = (
                f"a training step takes {slowdown:.1f} times as long as that of the original "
                "network, more than "
                f"{self.max_slowdown:g}"
            )
            return self._rejected(operator, reason, began, verification=verified)

        timed = None
        if training.ok:
            self._keep(net, operator)
            timed = self._time(net, self.network.original(), checks)
        found = replace(
            self._outcome(training, began),
            macs=macs,
            params=params,
            primitives=operator.primitives(),
            verification=verified,
            measurement=measurement_result(timed.measurement) if timed else None,
            details=self._details(training, timed, net) | Details(kept=kept),
        )
        if not_compiled is not None:
            found.details["not_compiled"] = not_compiled
        return self._with_int8(found, net)

    def _keep(self, net: nn.Module, operator: Operator | None) -> None:
        """Write the weights of a trained network, if requested."""
        if self.weights is None or self.priced not in (None, self.network):
            return
        path = self.weights / file_name(None if operator is None else operator.key, self.seed)
        try:
            write_weights(path, net, self.network.shape)
        except OSError as error:  # the result is stored in any case
            self.observer.on_note(f"the weights cannot be written to '{path}': {error.strerror}")

    def _cost(self, operator: Operator, report: LayerReport) -> tuple[int | None, int]:
        """Return MACs and parameters in the network of the highest rung."""
        if self.priced is None or self.priced is self.network:
            return self.network.cost(operator, report)
        return self.priced.cost(operator, self.priced.with_operator(operator)[1])

    def _verify(self, operator: Operator, net: nn.Module) -> list[Verification]:
        """Compare code and interpreter under each binding of the operator in the network."""
        self.observer.on_step("verify")
        layers = [module for module in net.modules() if isinstance(module, Layer)]
        bindings = {canonical_json(layer.binding): layer.binding for layer in layers}
        return [verify(operator, binding, seed=self.seed) for binding in bindings.values()]

    def _kernels(self, net: nn.Module) -> AbstractContextManager[str | None]:
        """Run the operators of a network as compiled code, if requested; gives why not."""
        if self._trains_compiled:
            self.observer.on_step("compile")
            return engines.kernels(net, COMPILED, self.observer.on_note)
        return engines.kernels(net, EAGER, self.observer.on_note)

    @property
    def _trains_compiled(self) -> bool:
        on_cpu = self.device == "cpu" and self.fidelity.recipe.precision == FLOAT32
        return on_cpu and self.kernels == COMPILED

    def _slowdown(self, net: nn.Module) -> float:
        """Divide the time of a training step by that of the original network."""
        if math.isinf(self.max_slowdown) or isinstance(self.dataset, CustomEvaluation):
            return 1.0  # only a custom evaluation knows what its steps are
        inputs = self.network.inputs(self.fidelity.batch)
        with torch_threads(self.timing.threads):
            return step_slowdown(self.network.original(), net, inputs)

    def _train(
        self, net: nn.Module, operator: Operator | None, state: Path | None
    ) -> TrainingOutcome:
        """Train a network. The status at the end of a rung is `ok`, even if the training pauses."""
        self.observer.on_step("train")
        self._resumed = -1
        path = state or checkpoint(self.checkpoints, operator, self.seed)
        with torch_threads(self.timing.threads):
            if state is None:
                return self._trained(net, self.fidelity, path)
            assert self.part is not None
            whole, stop_after = self.part.whole, self.part.stop_after
            try:
                training = self._trained(net, whole, state, stop_after)
            except ForeignCheckpointError as error:  # of another version of Syno
                warnings.warn(
                    f"{error.args[0].splitlines()[0]}; the training starts over", stacklevel=2
                )
                state.unlink(missing_ok=True)
                training = self._trained(net, whole, state, stop_after)
        if training.status != "paused":
            return training
        if training.reason == "signal":
            signal.raise_signal(signal.SIGTERM)  # as without a checkpoint
            raise KeyboardInterrupt  # the user has set a handler
        return replace(training, status="ok", reason="", detail="")

    def _trained(
        self, net: nn.Module, fidelity: Fidelity, path: Path | None, stop_after: int | None = None
    ) -> TrainingOutcome:
        if isinstance(self.dataset, CustomEvaluation):
            return evaluated(self.dataset, net, self.seed)
        return train(
            net,
            self.dataset,
            fidelity,
            self.seed,
            deadline_s=self.deadline_s,
            progress=self._report,
            device=self.device,
            workers=self.workers,
            checkpoint=path,
            stop_after=stop_after,
        )

    def _report(self, state: State) -> None:
        if self._resumed < 0:
            self._resumed = state.epoch
        if state.epoch_loss is not None:
            self.observer.on_epoch(state.epoch + 1, state.epochs, state.epoch_loss)

    def _time(
        self,
        net: nn.Module,
        original: nn.Module | None,
        checks: list[Verification],
        engine: str | None = None,
    ) -> _Timed | None:
        """Measure the latency in an engine, or in eager PyTorch where that cannot run it."""
        if not self.measured or self.predictor is not None:
            return None
        self.observer.on_step("measure")
        wanted = engine or self.timing.latency or EAGER

        def measured(name: str) -> _Timed:
            found = latency(
                net,
                self.network.input_shape,
                baseline=original,
                verifications=checks,
                repeats=self.timing.repeats,
                warmup=self.timing.warmup,
                threads=self.timing.threads,
                example=self.network.inputs(1),
                prepare=self._prepare(name, original),
            )
            return _Timed(found, name)

        try:
            return measured(wanted)
        except FailingNetworkError as error:  # of one operator, which does not end the search
            raise RuntimeError(str(error)) from error
        except UserError as error:
            if wanted in (EAGER, INTEGERS):
                raise
            self.observer.on_note(f"a latency is measured in eager PyTorch: {_in_words(error)}")
            return measured(EAGER)

    def _rivals(self, net: nn.Module, timed: _Timed | None) -> Details:
        """Measure the original network in the engines of others that are installed."""
        if timed is None or timed.engine != COMPILED:
            return {}
        timing = self.timing
        found = engines.rivals(
            net,
            self.network.inputs(1),
            threads=timing.threads,
            repeats=timing.repeats,
            warmup=timing.warmup,
        )
        return {"rivals": found} if found else {}

    def _prepare(self, engine: str, original: nn.Module | None) -> Prepare:
        """Return how the networks that are timed come to be run by an engine."""
        if engine == EAGER:
            return eager
        if engine == INTEGERS:  # against the original in float32
            return lambda net, x, threads: get_engine(
                FLOATS if net is original else INTEGERS
            ).prepare(net, x, threads)
        shared = self._shared if engine == COMPILED and original is not None else None
        if shared is None:
            return get_engine(_ENGINES[engine]).prepare
        return lambda net, x, _: shared.prepared(net, x, is_original=net is original)

    def _compiling(self, net: nn.Module) -> AbstractContextManager[None]:
        """Compile the network that is timed while it is trained in the block."""
        return nullcontext() if self._shared is None else self._shared.compiling(net)

    def _with_int8(self, found: Outcome, net: nn.Module) -> Outcome:
        """Add the outcome of the network in INT8 to `beside`."""
        if self.quantization is None or found.status != OK:
            return found
        began = time.perf_counter()
        how = self.quantization
        recipe = self.run_key().quantized(how).to_json()
        beside = replace(found, recipe=recipe, latency=None, measurement=None, details={})
        try:
            beside = self._int8(beside, net, how)
        except Exception as error:  # the result of the trained network is stored in any case
            trace = Details(traceback=traceback.format_exc(limit=-8))
            reason = _in_words(error)
            beside = replace(beside, status=ERROR, reason=reason, accuracy=None, details=trace)
        beside = replace(beside, seconds=time.perf_counter() - began)
        return replace(found, beside=(beside,))

    def _int8(self, beside: Outcome, net: nn.Module, how: Quantization) -> Outcome:
        self.observer.on_step("quantize")
        assert isinstance(self.dataset, (DataSet, Records))
        with torch_threads(self.timing.threads):
            images = training_images(self.dataset, self.fidelity, how.images, how.seed)
            made = quantize(net.eval(), images)
            engine = get_engine(how.engine)
            code = EngineNetwork(engine, made, self.network.inputs(1), [], self.timing.threads)
            accuracy = validation_accuracy(code, self.dataset, self.fidelity)
        timed = self._time(made, self.network.original(), [], how.engine)
        details = details_of(made)
        found = replace(beside, accuracy=accuracy)
        if timed is None:
            return replace(found, details=details)
        own = timed.measurement
        assert own.ratio is not None
        details |= noise(own) | Details(latency_ratio=own.ratio)
        if found.verification is None:  # the original network
            of_original = BaselineLatency(own.median_ms, own.spread_ms)
            return replace(found, latency=of_original, details=details)
        return replace(found, measurement=measurement_result(own), details=details)

    def run_key(self) -> RunKey:
        """The run key of the results: what they depend on beside operator, seed and machine."""
        part = self.part  # The schedule is that of the whole training.
        return RunKey(
            self.fidelity.to_json(),
            self.dataset.fingerprint,
            self.timing.threads,
            width=None if part is None else part.width,
            of_epochs=None if part is None else part.whole.epochs,
            latency=self.timing.latency or EAGER,
            kernels=self.kernels,
        )

    def _outcome(self, training: TrainingOutcome, began: float) -> Outcome:
        """Make the outcome of a training, without measurements."""
        return Outcome(
            training.status,
            reason=training.why,
            accuracy=training.accuracy,
            rung=self.fidelity.name,
            recipe=self.run_key().to_json(),
            seed=self.seed,
            seconds=time.perf_counter() - began,
        )

    def _details(self, training: TrainingOutcome, timed: _Timed | None, net: nn.Module) -> Details:
        details: Details = {
            "losses": [point.loss for point in training.curve],
            "loss_sum": training.loss_sum,
            "tail_loss": training.tail_loss,
            "training_s": training.seconds,
            "step_s": training.step_s,
            "steps": training.steps,
            "peak_bytes": training.peak_bytes,
            "device": self.device,
        }
        if training.loss is not None:
            details["loss"] = training.loss
        if self.part is not None:  # the epoch of the checkpoint that it resumed from
            details["resumed_at"] = max(self._resumed, 0)
        if training.tokens_seen:
            details |= {
                "perplexity": training.perplexity,
                "bits_a_byte": training.bits_a_byte,
                "tokens_seen": training.tokens_seen,
                "tokens_per_s": training.tokens_per_s,
            }
        if timed is None:
            return details | (self._predicted(net) if training.ok else {})
        return details | noise(timed.measurement) | Details(latency_engine=timed.engine)

    def _rejected(
        self,
        operator: Operator,
        reason: str,
        began: float,
        verification: VerificationResult | None = None,
    ) -> Outcome:
        return Outcome(
            REJECTED,
            reason=reason,
            recipe=self.run_key().to_json(),
            seed=self.seed,
            seconds=time.perf_counter() - began,
            primitives=operator.primitives(),
            verification=verification,
        )


def make_evaluator(
    network: Network,
    data: str,
    data_dir: str | None,
    fingerprint: str,
    tokenizer: str = "bytes",
    **settings: Unpack[EvaluatorSettings],
) -> NetworkEvaluator:
    """Make an evaluator in another process, which maps the data from its cache.

    Args:
        network: the network with slots.
        data, data_dir, tokenizer: the data set, as in `load_for`.
        fingerprint: that of the data when the search started.
        settings: further arguments of NetworkEvaluator.

    Raises:
        UserError: if the data changed meanwhile.
    """
    dataset = load_for(data, data_dir, settings["fidelity"], tokenizer, progress=False)
    if dataset.fingerprint != fingerprint:
        raise UserError(
            f"the data set '{data}' changed while the search began\n"
            f"  expected: {fingerprint}      got: {dataset.fingerprint}"
        )
    return NetworkEvaluator(network, dataset, **settings).prepared()


def make_custom_evaluator(
    network: Network, dataset: Data, **settings: Unpack[EvaluatorSettings]
) -> NetworkEvaluator:
    """Make an evaluator in another process for data that is sent to it: see `make_evaluator`."""
    return NetworkEvaluator(network, dataset, **settings).prepared()


def _in_words(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0]
    return first if isinstance(error, UserError) else f"{type(error).__name__}: {first}"
