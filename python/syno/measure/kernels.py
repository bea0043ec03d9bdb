"""Kernels of single operators, timed beside convolutions in the same run.

What is timed is what is verified: the very function, at the timed binding. A time that the machine
cannot reach is an error. Everything of one layer runs in turns, so that a slow moment of the
machine meets all; ratios of a layer are medians over the rounds.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from syno import emitters
from syno._errors import UserError
from syno.measure.latency import NOISE, quiet_torch
from syno.measure.roofline import SLACK, Roofline, checked_time, measure_roofline
from syno.native import NativeFunction, compile_operator
from syno.operator import Operator
from syno.verify.check import Comparison, MismatchError

# Channels and size of the maps of ResNet-18's 3x3 convolutions on images of 224 pixels.
RESNET18_LAYERS = ((64, 56), (128, 28), (256, 14), (512, 7))
# What timed code is a multiple of.
BASELINE = "torch conv2d"
FROZEN = "torch conv2d frozen"
CPP = "cpp"
_CONTROL = "control"
_CONTROL_SIZE = 256


@dataclass(frozen=True)
class KernelTime:
    """Times of one kernel in one layer, in milliseconds.

    best_ms, median_ms, spread_ms: over all rounds; spread is the interquartile range.
    speedup: how many times as fast as the baseline, the median over rounds; None of the baseline.
    macs: of the plan that it runs; bytes: input, weights and output, once each.
    roofline: the share of what the machine can do in the best round, None of vendor kernels, which
    may take fewer multiply-adds than the definition (Winograd, FFT).
    outputs: how many outputs were compared with the interpreter before.
    """

    kernel: str
    layer: str
    batch: int
    best_ms: float
    median_ms: float
    spread_ms: float
    speedup: float | None
    macs: int
    bytes: int
    roofline: float | None
    outputs: int


@dataclass
class KernelRun:
    """All times of one run, and what they were taken on.

    control_spread: interquartile range of a fixed computation over its median, by layer and batch.
    """

    threads: int
    rounds: int
    roofline: Roofline
    times: list[KernelTime] = field(default_factory=list)
    control_spread: dict[str, float] = field(default_factory=dict)

    @property
    def noisy(self) -> bool:
        """Whether something else used the machine."""
        return any(spread > NOISE for spread in self.control_spread.values())

    def speedup(self, kernel: str, batch: int, over: Sequence[str] = (BASELINE,)) -> float | None:
        """Geometric mean over the layers of how many times as fast as the fastest of `over`."""
        ratios = []
        for layer in {t.layer for t in self.times if t.batch == batch}:
            found = {t.kernel: t for t in self.times if (t.layer, t.batch) == (layer, batch)}
            beside = [found[name] for name in over if name in found]
            if kernel in found and beside:
                # Best times: a busy machine makes all others longer, by as much as it likes.
                ratios.append(min(t.best_ms for t in beside) / found[kernel].best_ms)
        return _geometric_mean(ratios)

    def roofline_share(self, kernel: str, batch: int) -> float | None:
        """Geometric mean over the layers of the share of what the machine can do."""
        found = [t.roofline for t in self.times if (t.kernel, t.batch) == (kernel, batch)]
        return _geometric_mean([share for share in found if share is not None])


@dataclass
class _Candidate:
    kernel: str
    call: Callable[[], object]
    macs: int
    bytes: int
    own: bool
    outputs: int


def sizes(operator: Operator, channels: int, size: int, batch: int) -> dict[str, int]:
    """The binding of an operator in a layer of so many channels and size.

    A sequence (variable T) has as many positions as the map has; H is then a number of features.
    UserError for a variable that layers have no size for.
    """
    known = {"N": batch, "C_in": channels, "C_out": channels, "C": channels}
    known |= {"H": size, "W": size, "T": size * size, "k": 3, "g": 32, "s": 2}
    known |= {"k_1": 3, "k_2": 7, "R": channels // 4, "t": 3}
    if "T" in operator.variables:
        known["H"] = channels
        if "k" in operator.variables:  # GPT-2's projection: two halves, blocks of 16 features
            known |= {"k": 2, "g": channels // 16}
    missing = [name for name in operator.variables if name not in known]
    if missing:
        raise UserError(f"no size for {', '.join(missing)} in a layer of a network for images")
    return {name: value for name, value in known.items() if name in operator.variables}


def bindings_of(
    operators: Mapping[str, Operator], channels: int, size: int, batch: int
) -> dict[str, dict[str, int]]:
    """`sizes` of all operators that fit the layer."""
    found = {}
    for name, operator in operators.items():
        binding = sizes(operator, channels, size, batch)
        try:
            operator.shapes(binding)
        except UserError:
            continue  # such as pooling of a map of odd size
        found[name] = binding
    return found


def bench_kernels(
    operators: Mapping[str, Operator],
    *,
    bindings: Mapping[str, Mapping[str, Mapping[str, int]]],
    threads: int = 2,
    rounds: int = 60,
    torch_forms: Sequence[str] = (),
    convolutions: Mapping[str, tuple[int, int]] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> KernelRun:
    """Times operators layer by layer.

    bindings: of each layer by name, the binding of each operator in it (see `sizes`); operators
        without one are left out there.
    torch_forms: "eager", "frozen" (torch.compile with frozen weights) and "straightforward" (the
        graph's views as they stand and one product, torch.compile max-autotune), of each operator.
    convolutions: by layer, channels and size of the 3x3 convolution that ratios are to: PyTorch's
        own, and frozen where "frozen" is among the forms. None for none.
    UserError for a kernel that differs from the interpreter, or is faster than the machine.
    """
    run = KernelRun(threads, rounds, measure_roofline(threads))
    with quiet_torch(threads), torch.inference_mode():
        for layer, of_layer in bindings.items():
            candidates = _control()
            batch = 1
            for name, binding in of_layer.items():
                progress(f"{layer}: {name}")
                batch = binding.get("N", 1)
                candidates += _own(name, operators[name], dict(binding), threads)
                for form in torch_forms:
                    candidates += _torch_form(name, operators[name], dict(binding), form)
            if convolutions is not None:
                candidates += _convolutions(*convolutions[layer], batch, torch_forms)
            progress(f"{layer}: timing")
            _time(run, layer, batch, candidates)
    return run


# --- what is timed --------------------------------------------------------------------------------


def _control() -> list[_Candidate]:
    control = torch.randn(_CONTROL_SIZE, _CONTROL_SIZE)
    return [_Candidate(_CONTROL, lambda: control @ control, 0, 0, False, 0)]


def _own(name: str, operator: Operator, binding: dict[str, int], threads: int) -> list[_Candidate]:
    function = compile_operator(operator, binding)
    outputs = check_native(name, operator, binding, function, threads)
    random = np.random.default_rng(0)
    x = random.standard_normal(function.input_shape, np.float32)
    weights = [random.standard_normal(s, np.float32) for s in function.weight_shapes]
    function.pack(weights)
    y = np.empty(function.output_shape, np.float32)
    moved = 4 * (x.size + y.size + sum(w.size for w in weights))
    call = function.prepared(x, y, threads)
    macs = operator.macs(binding)
    return [_Candidate(f"{name} {CPP}", call, macs, moved, True, outputs)]


def check_native(
    name: str, operator: Operator, binding: dict[str, int], function: NativeFunction, threads: int
) -> int:
    """Compares the function itself with the interpreter; how many outputs. UserError if wrong."""

    def packed(x: Any, weights: Any) -> Any:
        function.pack(weights)
        return function(x, threads)

    comparison = Comparison(emitters.get(CPP), emitters.Case(operator, binding), 0)
    try:
        comparison.check(packed)
    except MismatchError as mismatch:
        raise UserError(f"the compiled code of {name} is wrong: {mismatch}") from mismatch
    return len(comparison.positions)


def _torch_form(
    name: str, operator: Operator, binding: dict[str, int], form: str
) -> list[_Candidate]:
    from syno.kernel import load_kernel

    if form == "straightforward":
        plan = operator.plans(binding, 200)[-1]
        from syno import _core

        source, macs = _core.emit_pytorch(plan, "")[0], plan.macs
    else:
        source, macs = operator.source(binding), operator.macs(binding)
    torch.manual_seed(0)
    module = load_kernel(source, keep=False)().eval()
    x = torch.randn(operator.shapes(binding).input)
    expected = module(x)
    call: Callable[[torch.Tensor], torch.Tensor] = module
    if form != "eager":
        call = compiled(module, x, freeze=form == "frozen")
    got = call(x)
    error = float((got - expected).abs().max() / expected.abs().max())
    if not error < 1e-4:
        raise UserError(f"{name}: compiled and eager PyTorch differ by {error:.1e} of the maximum")
    moved = 4 * (x.numel() + got.numel() + operator.params(binding))
    return [_Candidate(f"{name} {form}", lambda: call(x), macs, moved, False, 0)]


def _convolutions(
    channels: int, size: int, batch: int, torch_forms: Sequence[str]
) -> list[_Candidate]:
    x = torch.randn(batch, channels, size, size)
    layer = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False).eval()
    macs = 9 * channels * channels * size * size * batch
    moved = 4 * (2 * x.numel() + 9 * channels * channels)
    found = [_Candidate(BASELINE, lambda: layer(x), macs, moved, False, 0)]
    if "frozen" in torch_forms:
        frozen = compiled(layer, x, freeze=True)
        found.append(_Candidate(FROZEN, lambda: frozen(x), macs, moved, False, 0))
    return found


def compiled(
    module: torch.nn.Module, x: torch.Tensor, *, freeze: bool
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The module under torch.compile for inputs like x: its weights frozen, or max-autotune."""
    import torch._inductor.config as inductor

    # No reset of Dynamo: functions compiled before would be compiled again, without the setting.
    function = torch.compile(module, options={"max_autotune": not freeze}, dynamic=False)
    # Dynamo asks the setting while it traces, which is in the first call.
    with inductor.patch(freezing=freeze):
        function(x)

    def call(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = function(x)
        return result

    return call


# --- timing ---------------------------------------------------------------------------------------


def _time(run: KernelRun, layer: str, batch: int, candidates: Sequence[_Candidate]) -> None:
    for candidate in candidates:
        for _ in range(3):
            candidate.call()
    times: list[list[float]] = [[] for _ in candidates]
    for round_ in range(run.rounds):
        for turn in range(len(candidates)):
            which = (round_ + turn) % len(candidates)
            call = candidates[which].call
            call()  # the one before has used the caches
            began = time.perf_counter()
            call()
            times[which].append(time.perf_counter() - began)
    names = [candidate.kernel for candidate in candidates]
    base = times[names.index(BASELINE)] if BASELINE in names else None
    for candidate, own in zip(candidates, times, strict=True):
        low, middle, high = statistics.quantiles(own, n=4, method="inclusive")
        if candidate.kernel == _CONTROL:
            run.control_spread[layer] = (high - low) / middle
            continue
        share = None
        if candidate.own:
            if min(own) * SLACK < run.roofline.floor(candidate.macs, candidate.bytes):
                # The peak may have been measured while something else used the machine.
                again = measure_roofline.__wrapped__(run.threads)
                run.roofline = run.roofline.faster_of(again)
            floor = run.roofline.floor(candidate.macs, candidate.bytes)
            share = floor / checked_time(f"{candidate.kernel} in {layer}", min(own), floor)
        ratio = None
        if base is not None and own is not base:
            ratio = statistics.median(b / t for b, t in zip(base, own, strict=True))
        run.times.append(
            KernelTime(
                kernel=candidate.kernel,
                layer=layer,
                batch=batch,
                best_ms=min(own) * 1e3,
                median_ms=middle * 1e3,
                spread_ms=(high - low) * 1e3,
                speedup=ratio,
                macs=candidate.macs,
                bytes=candidate.bytes,
                roofline=share,
                outputs=candidate.outputs,
            )
        )


def _geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, values))) if values else None
