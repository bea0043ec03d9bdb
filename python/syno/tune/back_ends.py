"""The back ends of a grid: each makes the forms of an operator that are timed in one run."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from syno.codegen import emitters
from syno.codegen.native import no_compiler
from syno.measure import kernels
from syno.measure.kernel_tuning import tune_kernel
from syno.measure.kernels import KernelRun, Runner, synchronized
from syno.measure.plans import LEAST_ROUNDS, choose_plan, measurable_plans
from syno.measure.roofline import measure_roofline
from syno.measure.timing import WARM_UP, interleaved
from syno.operators.operator import Operator
from syno.tune.grid import CPP, CPU, EAGER, INDUCTOR, TRITON, TVM
from syno.tune.results import TunedLayer
from syno.tune.subjects import TuningSubject
from syno.tune.tasks import TuningTask
from syno.tune.verified import verified

Progress = Callable[[str], None]
_TRIPLE = re.compile(r"-mtriple=([^-\s]+)")
# Inductor with constant weights, and with max-autotune: the better one is its result.
_INDUCTOR_FORMS = ("frozen", "autotune")


class BackEnd(Protocol):
    """One way to run operators."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Where it can run operators."""

    def missing(self) -> str | None:
        """None, or what it lacks here."""

    def runners(
        self, task: TuningTask, subject: TuningSubject, folder: Path, progress: Progress
    ) -> list[Runner]:
        """The forms of a layer, each compared with the definition.

        folder: what is to be kept for another run lies there. UserError if the layer has no form.
        """


class TorchBackEnd:
    """PyTorch in eager mode or under TorchInductor: the cheapest plan, and the fastest one."""

    devices = (CPU, "cuda")

    def __init__(self, forms: tuple[str, ...]) -> None:
        self._forms = forms

    def missing(self) -> str | None:
        """What Inductor lacks."""
        return None if self._forms == (EAGER,) else no_compiler()

    def runners(
        self, task: TuningTask, subject: TuningSubject, folder: Path, progress: Progress
    ) -> list[Runner]:
        """Each plan in each form."""
        found = []
        if subject.operator is None:
            for form in self._forms:
                progress(f"original layer, {form}")
                found.append(
                    kernels.module_runner(form, subject.original, subject.shape, task.device, form)
                )
            return found
        operator, binding = subject.computation()
        for number in _plans(task, operator, binding, "pytorch", progress):
            for form in self._forms:
                progress(f"plan {number}, {form}")
                made = kernels.torch_runner(form, operator, binding, form, number, task.device)
                name = f"plan {number}" if form == EAGER else f"plan {number}, {form}"
                found.append(_named(name, made))
        return found


class CppBackEnd:
    """Compiled C++: the cheapest plan, the fastest one, and that with the fastest schedule."""

    devices = (CPU,)

    def missing(self) -> str | None:
        """A compiler."""
        return no_compiler()

    def runners(
        self, task: TuningTask, subject: TuningSubject, folder: Path, progress: Progress
    ) -> list[Runner]:
        """Each plan, and the last one tuned."""
        operator, binding = subject.computation()
        found = []
        for number in _plans(task, operator, binding, "cpp", progress):
            made = kernels.compiled_runner(CPP, operator, binding, task.threads, number)
            found.append(_named(f"plan {number}", made))
        best = tune_kernel(
            operator.canonical,
            binding,
            plan=number,
            threads=task.threads,
            trials=task.trials,
            progress=progress,
        )
        if best.tuning:
            made = kernels.compiled_runner(
                CPP, operator, binding, task.threads, number, best.tuning
            )
            found.append(_named(f"plan {number}, tuned: {best.tuning}", made))
        return found


class TritonBackEnd:
    """Triton kernels on a GPU. Times of Triton's interpreter on the CPU would say nothing."""

    devices = ("cuda",)

    def missing(self) -> str | None:
        """The package."""
        return emitters.get(TRITON).available()

    def runners(
        self, task: TuningTask, subject: TuningSubject, folder: Path, progress: Progress
    ) -> list[Runner]:
        """The cheapest plan, on the device that the emitted code finds."""
        from syno.codegen.emitters.triton_worker import Kernel

        operator, binding = subject.computation()
        progress("compiling")
        self._files = tempfile.TemporaryDirectory(prefix="syno-triton-")
        case = emitters.Case(operator.canonical, binding)
        source = emitters.get(TRITON).source(case)
        kernel = Kernel(Path(self._files.name, "emitted.py"), source)
        outputs = verified(TRITON, case, kernel)
        shapes = operator.shapes(binding)
        tensors = [torch.randn(s).to(task.device) for s in (shapes.input, *shapes.weights)]
        call = synchronized(lambda: kernel.function(*tensors), task.device)
        macs = operator.macs(binding)
        return [Runner("plan 1", call, macs, 0, False, outputs)]


class TvmBackEnd:
    """TVM with schedules of MetaSchedule, on the CPU."""

    devices = (CPU,)

    def missing(self) -> str | None:
        """The package, and its tuner."""
        from syno.tune import tvm_schedules

        return emitters.get(TVM).available() or tvm_schedules.missing()

    def runners(
        self, task: TuningTask, subject: TuningSubject, folder: Path, progress: Progress
    ) -> list[Runner]:
        """The cheapest plan with the best schedule of all trials."""
        from syno.tune import tvm_schedules

        operator, binding = subject.computation()
        case = emitters.Case(operator.canonical, binding)
        function = tvm_schedules.compile_tuned(
            emitters.get(TVM).source(case),
            folder,
            trials=task.trials,
            threads=task.threads,
            target=task.tvm_target,
            progress=progress,
        )
        shapes = operator.shapes(binding)
        outputs = verified(TVM, case, lambda x, weights: function.run(x, weights, shapes.output))
        random = np.random.default_rng(0)
        x, *weights = (
            random.standard_normal(shape, np.float32) for shape in (shapes.input, *shapes.weights)
        )
        moved = 4 * (x.size + sum(w.size for w in weights) + int(np.prod(shapes.output)))
        call = function.prepared(x, weights, shapes.output)
        name = f"{function.trials} trials"
        plan = operator.numbered_plan(binding, 1)
        least = plan.macs_in_bounds
        return [Runner(name, call, plan.macs, moved, True, outputs, least_macs=least)]


_BACK_ENDS: dict[str, BackEnd] = {
    EAGER: TorchBackEnd((EAGER,)),
    INDUCTOR: TorchBackEnd(_INDUCTOR_FORMS),
    CPP: CppBackEnd(),
    TRITON: TritonBackEnd(),
    TVM: TvmBackEnd(),
}


def problem(task: TuningTask) -> str:
    """Why a task cannot be done on this machine; empty where it can."""
    if task.whole:
        from syno.tune import networks

        reason = networks.problem(task)
        if reason:
            return reason
    if task.tracker is not None:
        from syno.tune import tvm_remote

        return tvm_remote.problem(task)
    back_end = _BACK_ENDS[task.back_end]
    if task.device not in back_end.devices:
        return f"{task.back_end} does not run on the device '{task.device}'"
    if task.device == "cuda" and not torch.cuda.is_available():
        return "PyTorch finds no GPU on this machine; run the grid on one with a GPU"
    processor = _TRIPLE.search(task.tvm_target or "")
    if processor is not None and processor[1] != platform.machine():
        return (
            f"the target is a {processor[1]}, and this machine is a {platform.machine()}; run the "
            "grid there"
        )
    return (back_end.missing() or "").partition("\n")[0]


def measured(
    task: TuningTask, subject: TuningSubject, folder: Path, progress: Progress
) -> TunedLayer:
    """The times of all forms of a layer, measured in turns, of which the fastest is the result.

    Raises:
        UserError: the layer has no form in the back end, or its code is wrong.
    """
    if task.tracker is not None:
        from syno.tune import tvm_remote

        return tvm_remote.measured(task, subject, folder, progress)
    with _exact(task.device):
        return _measured(task, subject, folder, progress)


def _measured(
    task: TuningTask, subject: TuningSubject, folder: Path, progress: Progress
) -> TunedLayer:
    runners = _BACK_ENDS[task.back_end].runners(task, subject, folder, progress)
    timed = list(runners)
    if subject.moves is not None:
        timed.append(kernels.module_runner("moves", subject.moves, subject.shape, task.device))
    progress("timing")
    run = KernelRun(task.threads, task.rounds, measure_roofline(task.threads))
    kernels.time_runners(run, subject.layer, task.batch, [kernels.control_runner(), *timed])
    times = run.times[: len(runners)]
    best = min(times, key=lambda time: time.median_ms)
    return TunedLayer(
        layer=subject.layer,
        count=subject.count,
        kept=subject.kept,
        form=best.kernel,
        forms={time.kernel: time.median_ms for time in times},
        best_ms=best.best_ms,
        median_ms=best.median_ms,
        spread_ms=best.spread_ms,
        pool_ms=0.0 if subject.moves is None else run.times[-1].median_ms,
        macs=best.macs,
        roofline=best.roofline,
        outputs=best.outputs,
        control_spread=run.control_spread[subject.layer],
    )


@contextlib.contextmanager
def _exact(device: str) -> Iterator[None]:
    """On a GPU, PyTorch computes in float32 inside, as Triton's kernels do, and not in TF32."""
    if device == CPU:
        yield
        return
    before = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before[0]
        torch.set_float32_matmul_precision(before[1])


def _plans(
    task: TuningTask, operator: Operator, binding: dict[str, int], emitter: str, progress: Progress
) -> list[int]:
    """The numbers of the cheapest plan and of the fastest one, which is measured."""
    progress(f"measuring {task.plans} plans")
    if task.device != CPU:
        return sorted({1, _fastest_on_gpu(task, operator, binding)})
    choice = choose_plan(operator, binding, emitter=emitter, limit=task.plans, threads=task.threads)
    return sorted({1, choice.number})


def _fastest_on_gpu(task: TuningTask, operator: Operator, binding: dict[str, int]) -> int:
    """The number of the plan whose eager module is the fastest on the GPU."""
    found = [
        kernels.torch_runner(EAGER, operator, binding, EAGER, number, task.device)
        for number in measurable_plans(operator, binding, task.plans)
    ]
    calls = [runner.call for runner in found]
    interleaved(calls, WARM_UP)
    best = [min(times) for times in interleaved(calls, LEAST_ROUNDS)]
    return found[best.index(min(best))].plan


def _named(name: str, runner: Runner) -> Runner:
    """The runner as a form of its own, not another plan of the form of the same name."""
    return dataclasses.replace(runner, kernel=name, plan=1, tuning="")
