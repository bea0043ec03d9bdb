"""Kernels of single operators, timed beside convolutions in the same run.

What is timed is what is verified: the very function, at the timed binding. A time that the machine
cannot reach is an error. Everything of one layer runs in turns, so that a slow moment of the
machine meets all; ratios of a layer are medians over the rounds.
"""

from __future__ import annotations

import math
import signal
import statistics
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch

from syno._util.errors import UserError
from syno._util.threads import check_threads
from syno._util.torch_code import with_own_code
from syno._util.torch_threads import torch_threads
from syno.codegen.native import Variant, compile_operator
from syno.measure.kernel_tuning import tune_kernel
from syno.measure.plans import PYTORCH, choose_plan
from syno.measure.roofline import Roofline, checked_time, measure_roofline, reachable
from syno.measure.timing import (
    CPP,
    WARM_UP,
    Controls,
    Timing,
    check_native,
    control,
    interleaved,
    speedup,
    stream,
)
from syno.operators.operator import Operator
from syno.operators.value import MOST_PLANS
from syno.runs.cache_folder import use_private_compiler_caches

# Channels and size of the maps of ResNet-18's 3x3 convolutions on images of 224 pixels.
RESNET18_LAYERS = ((64, 56), (128, 28), (256, 14), (512, 7))
# What timed code is a multiple of.
BASELINE = "torch conv2d"
FROZEN = "torch conv2d frozen"
# A form: the cheapest plan that lowers step by step, torch.compile max-autotune.
STRAIGHTFORWARD = "straightforward"
# Behind the name of a kernel whose plan was chosen by measurement.
MEASURED = "measured"
# The same of one whose schedule was.
TUNED = "tuned"
_CONTROL = "control"


@dataclass(frozen=True)
class KernelTime:
    """Times of one kernel in one layer, in milliseconds.

    best_ms, median_ms, spread_ms: over all rounds; spread is the interquartile range.
    speedup: how many times as fast as the baseline, the median over rounds; None of the baseline.
    macs: of the plan that it runs; bytes: input, weights and output, once each.
    roofline: the share of what the machine can do in the best round, with all MACs that are not on
    zero padding; above 1 where rows are computed in pairs, with fewer products. None of vendor
    kernels, which may need fewer MACs than the definition (Winograd, FFT).
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


@dataclass(frozen=True)
class ChosenPlan:
    """The plan of a kernel that an earlier measurement chose, and what it is worth in this run.

    number: in `Operator.plans`, from 1, the cheapest. speedup: how many times as fast as the
    cheapest plan, the median over the rounds; 1 where it is that.
    """

    kernel: str
    layer: str
    batch: int
    number: int
    speedup: float


@dataclass(frozen=True)
class TunedKernel:
    """A kernel whose schedule was found by measurement, and what it is worth in this run.

    tuning: the choices, empty where the rules are as good; speedup: how many times as fast as the
    code of the rules, the median over the rounds; 1 where it is that.
    """

    kernel: str
    layer: str
    batch: int
    tuning: str
    speedup: float


@dataclass(frozen=True)
class NotMeasured:
    """A kernel without a time, and why."""

    kernel: str
    layer: str
    batch: int
    reason: str


@dataclass
class KernelRun:
    """All times of one run, and what they were taken on.

    controls: times of the fixed computations by layer; control_spread: interquartile range of the
    product over its median.
    chosen: the plans chosen by measurement, if requested; tuned: the schedules.
    missing: what has no time.
    """

    threads: int
    rounds: int
    roofline: Roofline
    times: list[KernelTime] = field(default_factory=list)
    control_spread: dict[str, float] = field(default_factory=dict)
    controls: dict[str, Controls] = field(default_factory=dict)
    chosen: list[ChosenPlan] = field(default_factory=list)
    missing: list[NotMeasured] = field(default_factory=list)
    tuned: list[TunedKernel] = field(default_factory=list)

    @property
    def noisy(self) -> bool:
        """Whether other processes used the machine."""
        return any(each.noisy for each in self.controls.values())

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

    def plan_speedup(self, kernel: str | None = None) -> float | None:
        """Geometric mean of how many times as fast the chosen plan is as the cheapest one.

        Over the layers of one kernel, such as "conv2d cpp", or of all whose plans were measured.
        """
        found = [c.speedup for c in self.chosen if kernel is None or c.kernel == kernel]
        return _geometric_mean(found)

    def tuned_speedup(self) -> float | None:
        """Geometric mean over kernels and layers of what tuning is worth."""
        return _geometric_mean([each.speedup for each in self.tuned])

    def roofline_share(self, kernel: str, batch: int) -> float | None:
        """Geometric mean over the layers of the share of what the machine can do."""
        found = [t.roofline for t in self.times if (t.kernel, t.batch) == (kernel, batch)]
        return _geometric_mean([share for share in found if share is not None])


@dataclass
class Runner:
    """Code that is ready to be timed.

    macs, bytes: of the plan that it runs; least_macs: the MACs that no code can skip, all of them
    if not stated; own: whether the time is compared with what the machine can do; outputs: how many
    outputs were compared with the interpreter; plan: the number of the plan; tuning: its schedule,
    empty for that of the rules.
    """

    kernel: str
    call: Callable[[], object]
    macs: int
    bytes: int
    own: bool
    outputs: int
    plan: int = 1
    tuning: str = ""
    least_macs: int | None = None


def sizes(
    operator: Operator,
    channels: int,
    size: int,
    batch: int,
    given: Mapping[str, int] | None = None,
    otherwise: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The binding of an operator in a layer of so many channels and size.

    A sequence (variable T) has as many positions as the map has; H is then a number of features.
    given: values of variables, instead of these; otherwise: of variables that layers have no size
    for. UserError for a variable without a value.
    """
    known = {**(otherwise or {}), "N": batch, "C_in": channels, "C_out": channels, "C": channels}
    known |= {"H": size, "W": size, "T": size * size, "k": 3, "g": 32, "s": 2}
    known |= {"k_1": 3, "k_2": 7, "R": channels // 4, "t": 3}
    if "T" in operator.variables:
        known["H"] = channels
        if "k" in operator.variables:  # GPT-2's projection: two halves, blocks of 16 features
            known |= {"k": 2, "g": channels // 16}
    known |= given or {}
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
    form_seconds: float | None = None,
    measured_plans: int = 0,
    tuning_trials: int = 0,
    convolutions: Mapping[str, tuple[int, int]] | None = None,
    modules: Mapping[str, Mapping[str, tuple[torch.nn.Module, Sequence[int]]]] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> KernelRun:
    """Times operators layer by layer.

    bindings: of each layer by name, the binding of each operator in it (see `sizes`); operators
        without one are left out there.
    torch_forms: "eager", "frozen" (torch.compile with frozen weights) and "straightforward"
        (`straightforward_plan` under torch.compile max-autotune), of each operator.
    form_seconds: building one of these for one operator in one layer takes at most so long; else
        it stands in `missing`. None for as long as it takes.
    measured_plans: of so many plans of each operator the fastest is chosen (`choose_plan`), as
        compiled code and for the form "eager", and timed beside the cheapest; 0 for none.
    tuning_trials: of so many schedules of each operator's cheapest plan the fastest is chosen
        (`tune_kernel`), and timed beside that of the rules; 0 for none.
    convolutions: by layer, channels and size of the 3x3 convolution that ratios are to: PyTorch's
        own, and frozen where "frozen" is among the forms. None for none.
    modules: by layer and name, what else is timed there in eager PyTorch, with the shape of its
        input, batch first; its MACs and bytes are not counted.
    UserError for a kernel that differs from the interpreter, or is faster than the machine.
    """
    check_threads(threads)
    run = KernelRun(threads, rounds, measure_roofline(threads))
    with torch_threads(threads), torch.inference_mode():
        for layer, of_layer in bindings.items():
            runners = [control_runner()]
            beside = {} if modules is None else modules[layer]
            batches = [binding.get("N", 1) for binding in of_layer.values()]
            batches += [shape[0] for _, shape in beside.values()]
            batch = batches[0] if batches else 1
            for name, binding in of_layer.items():
                operator, values = operators[name], dict(binding)
                progress(f"{layer}: {name}")
                runners.append(compiled_runner(name, operator, values, threads))
                for form in torch_forms:
                    progress(f"{layer}: {name} {form}")
                    try:
                        with _within(form_seconds):
                            runners.append(torch_runner(name, operator, values, form))
                    except NotMeasuredError as reason:
                        missing = NotMeasured(f"{name} {form}", layer, batch, str(reason))
                        run.missing.append(missing)
                for form in (CPP, "eager") if measured_plans else ():
                    if form != CPP and form not in torch_forms:
                        continue
                    progress(f"{layer}: {name}: plans, {form}")
                    found = _measured(name, operator, values, threads, form, measured_plans)
                    if not found:
                        kernel = f"{name} {form}"
                        run.chosen.append(ChosenPlan(kernel, layer, batch, 1, 1.0))
                    runners += found
                if tuning_trials:
                    progress(f"{layer}: {name}: schedules")
                    found = _tuned(name, operator, values, threads, tuning_trials)
                    if not found:
                        run.tuned.append(TunedKernel(f"{name} {CPP}", layer, batch, "", 1.0))
                    runners += found
            if convolutions is not None:
                runners += _convolutions(*convolutions[layer], batch, torch_forms)
            runners += [module_runner(name, *each) for name, each in beside.items()]
            progress(f"{layer}: timing")
            time_runners(run, layer, batch, runners)
    return run


# --- what is timed --------------------------------------------------------------------------------


def control_runner() -> Runner:
    """Return the fixed computation that is timed beside everything else."""
    return Runner(_CONTROL, control(), 0, 0, False, 0)


def compiled_runner(
    name: str,
    operator: Operator,
    binding: dict[str, int],
    threads: int,
    plan: int = 1,
    tuning: str = "",
) -> Runner:
    """Return an operator as compiled C++, compared with the interpreter. UserError if wrong."""
    function = compile_operator(
        operator.canonical, binding, plan=plan, variant=Variant(tuning=tuning)
    )
    outputs = check_native(name, operator, binding, function, threads)
    random = np.random.default_rng(0)
    x = random.standard_normal(function.input_shape, np.float32)
    weights = [random.standard_normal(s, np.float32) for s in function.weight_shapes]
    function.pack(weights)
    y = np.empty(function.output_shape, np.float32)
    moved = 4 * (x.size + y.size + sum(w.size for w in weights))
    call = function.prepared(x, y, threads)
    costs = operator.numbered_plan(binding, plan)
    least = costs.macs_in_bounds
    return Runner(f"{name} {CPP}", call, costs.macs, moved, True, outputs, plan, tuning, least)


def _measured(
    name: str, operator: Operator, binding: dict[str, int], threads: int, form: str, limit: int
) -> list[Runner]:
    """The form with the plan that is the fastest; nothing where that is the cheapest one."""
    emitter = CPP if form == CPP else PYTORCH
    choice = choose_plan(operator, binding, emitter=emitter, limit=limit, threads=threads)
    if choice.number == 1:
        return []
    if form == CPP:
        return [compiled_runner(name, operator, binding, threads, choice.number)]
    return [torch_runner(name, operator, binding, form, choice.number)]


def _tuned(
    name: str, operator: Operator, binding: dict[str, int], threads: int, trials: int
) -> list[Runner]:
    """The cheapest plan with the schedule that is the fastest; nothing where the rules' is it."""
    found = tune_kernel(operator.canonical, binding, threads=threads, trials=trials)
    if not found.tuning:
        return []
    return [compiled_runner(name, operator, binding, threads, tuning=found.tuning)]


def torch_runner(
    name: str,
    operator: Operator,
    binding: dict[str, int],
    form: str,
    number: int = 1,
    device: str = "cpu",
) -> Runner:
    """Return an operator in PyTorch: "eager", "frozen", "straightforward" or "autotune".

    Compiled forms are compared with the eager module. UserError if they differ.
    """
    from syno.operators.emitted import load_module

    if form == STRAIGHTFORWARD:
        number = straightforward_plan(operator, binding)
    source = operator.source(binding, plan=number)
    macs = operator.numbered_plan(binding, number).macs
    torch.manual_seed(0)
    # Dynamo of some versions imports the module by its name, so it has to be there.
    module = load_module(source)().eval().to(device)
    x = torch.randn(operator.shapes(binding).input).to(device)
    call = _checked_form(name, module, x, form)
    outputs = math.prod(operator.shapes(binding).output)
    moved = 4 * (x.numel() + outputs + operator.params(binding))
    number = 1 if form == STRAIGHTFORWARD else number
    run = synchronized(lambda: call(x), device)
    return Runner(f"{name} {form}", run, macs, moved, False, 0, number)


def _checked_form(
    name: str, module: torch.nn.Module, x: torch.Tensor, form: str
) -> Callable[[torch.Tensor], torch.Tensor]:
    """A module in a form, which is compared with the eager module. UserError if they differ."""
    call = module if form == "eager" else compiled(module, x, freeze=form == "frozen")
    expected = module(x)
    error = float((call(x) - expected).abs().max() / expected.abs().max())
    if not error < 1e-4:
        raise UserError(f"{name}: compiled and eager PyTorch differ by {error:.1e} of the maximum")
    return call


def synchronized(call: Callable[[], object], device: str) -> Callable[[], object]:
    """Return a function that also waits for a GPU, which works on after a call has returned."""
    if device == "cpu":
        return call

    def run() -> object:
        result = call()
        torch.cuda.synchronize()
        return result

    return run


def straightforward_plan(operator: Operator, binding: dict[str, int]) -> int:
    """The number of the cheapest plan that lowers step by step.

    It makes every window and rotation of the input first and contracts with the weights then, as
    the published system's code does. NotMeasuredError where there is none: where a window's place
    or index comes from a weight.
    """
    plans = operator.plans(binding, MOST_PLANS)
    for number, plan in enumerate(plans, 1):
        if plan.views_first:
            return number
    raise NotMeasuredError(f"none of {len(plans)} plans makes all windows before it multiplies")


class NotMeasuredError(Exception):
    """Why there is no time of a form."""


@contextmanager
def _within(seconds: float | None) -> Iterator[None]:
    """NotMeasuredError after so many seconds. Threads but the main one cannot be interrupted."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    class TooLong(BaseException):
        """Passes through compilers that catch every Exception."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except TooLong:
        raise NotMeasuredError(f"building it took more than {seconds:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def module_runner(
    name: str,
    module: torch.nn.Module,
    shape: Sequence[int],
    device: str = "cpu",
    form: str = "eager",
) -> Runner:
    """Return a module in PyTorch, whose MACs and bytes are not counted.

    form: "eager", "frozen" or "autotune". UserError if a compiled form differs from the eager one.
    """
    module, x = module.eval().to(device), torch.randn(*shape).to(device)
    call = module if form == "eager" else _checked_form(name, module, x, form)
    return Runner(name, synchronized(lambda: call(x), device), 0, 0, False, 0)


def _convolutions(channels: int, size: int, batch: int, torch_forms: Sequence[str]) -> list[Runner]:
    x = torch.randn(batch, channels, size, size)
    layer = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False).eval()
    macs = 9 * channels * channels * size * size * batch
    moved = 4 * (2 * x.numel() + 9 * channels * channels)
    found = [Runner(BASELINE, lambda: layer(x), macs, moved, False, 0)]
    if "frozen" in torch_forms:
        frozen = compiled(layer, x, freeze=True)
        found.append(Runner(FROZEN, lambda: frozen(x), macs, moved, False, 0))
    return found


def compiled(
    module: torch.nn.Module, x: torch.Tensor, *, freeze: bool
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The module under torch.compile for inputs like x: its weights frozen, or max-autotune."""
    use_private_compiler_caches()
    import torch._inductor.config as inductor

    # No reset of Dynamo: functions compiled before would be compiled again, without the setting.
    function = torch.compile(
        with_own_code(module), options={"max_autotune": not freeze}, dynamic=False
    )
    # Dynamo asks the setting while it traces, which is in the first call.
    with inductor.patch(freezing=freeze):
        function(x)

    def call(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = function(x)
        return result

    return call


# --- timing ---------------------------------------------------------------------------------------


def time_runners(run: KernelRun, layer: str, batch: int, runners: Sequence[Runner]) -> None:
    """Time runners in turns, and add the times to the run.

    ImpossibleTimeError for a time of our own code that the machine cannot reach.
    """
    for runner in runners:
        for _ in range(WARM_UP):
            runner.call()
    *times, streams = interleaved([*(each.call for each in runners), stream()], run.rounds)
    names = [runner.kernel for runner in runners]
    cheapest = {
        c.kernel: t for c, t in zip(runners, times, strict=True) if c.plan == 1 and not c.tuning
    }
    base = times[names.index(BASELINE)] if BASELINE in names else None
    for runner, own in zip(runners, times, strict=True):
        found = Timing.of(own)
        if runner.kernel == _CONTROL:
            run.control_spread[layer] = found.spread
            run.controls[layer] = Controls(found, Timing.of(streams))
            continue
        share = None
        if runner.own:
            least = runner.macs if runner.least_macs is None else runner.least_macs
            run.roofline = reachable(run.roofline, min(own), least, runner.bytes)
            possible = run.roofline.least_time(least, runner.bytes)
            best = checked_time(f"{runner.kernel} in {layer}", min(own), possible)
            share = run.roofline.floor(least, runner.bytes) / best
        kernel = runner.kernel
        if runner.plan != 1:
            gain = speedup(cheapest[kernel], own)
            run.chosen.append(ChosenPlan(kernel, layer, batch, runner.plan, gain))
            kernel = f"{kernel} {MEASURED}"
        if runner.tuning and kernel in cheapest:
            gain = speedup(cheapest[kernel], own)
            run.tuned.append(TunedKernel(kernel, layer, batch, runner.tuning, gain))
            kernel = f"{kernel} {TUNED}"
        ratio = None
        if base is not None and own is not base:
            ratio = speedup(base, own)
        run.times.append(
            KernelTime(
                kernel=kernel,
                layer=layer,
                batch=batch,
                best_ms=min(own) * 1e3,
                median_ms=found.median_ms,
                spread_ms=found.spread_ms,
                speedup=ratio,
                macs=runner.macs,
                bytes=runner.bytes,
                roofline=share,
                outputs=runner.outputs,
            )
        )


def _geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(statistics.fmean(map(math.log, values))) if values else None
