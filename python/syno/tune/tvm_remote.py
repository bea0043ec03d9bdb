"""Tasks of TVM on a device of a tracker: compared with the interpreter and timed there."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from torch import nn

from syno._util.errors import UserError, first_line
from syno.codegen import emitters
from syno.codegen.emitters.tvm import imported
from syno.codegen.emitters.tvm_target import device_target, linker
from syno.codegen.emitters.tvm_types import Executable, PrimFunc
from syno.devices import TrackedDevice, parse_address, read_secret
from syno.devices.client import check_device
from syno.devices.tvm_remote import RemoteFunctions, SessionRequest, upload
from syno.measure.timing import Timing
from syno.tune import tvm_schedules
from syno.tune.grid import CPU, TVM
from syno.tune.results import TunedLayer
from syno.tune.subjects import TuningSubject
from syno.tune.tasks import TuningTask
from syno.tune.verified import verified

# A time is the mean over calls that take together this long.
_LEAST_MS = 5
# The size of the matrices of the fixed computation.
_CONTROL_SIZE = 128
# The longest session in which a function is compared and timed, in seconds.
_SECONDS = 600.0
_MACHINE = re.compile(r"-mtriple=([^-\s]+)")


def place(task: TuningTask) -> SessionRequest:
    """Where a task asks for its device."""
    assert task.tracker is not None and task.rpc_key is not None
    secret = None if task.secret is None else read_secret(Path(task.secret))
    return SessionRequest(parse_address(task.tracker), task.rpc_key, secret)


def devices(task: TuningTask) -> list[TrackedDevice]:
    """The devices of a task. UserError where none can be used."""
    found = place(task)
    return check_device(found.tracker, found.key, found.secret)


def problem(task: TuningTask) -> str:
    """Why a task cannot be done on its device; empty where it can."""
    if task.back_end != TVM:
        return (
            f"{task.back_end} does not run on devices of a tracker; run the grid on the device, or "
            "leave out --tracker"
        )
    if task.device != CPU:
        return f"on devices of a tracker, Syno tunes for the CPU, and not for '{task.device}'"
    missing = emitters.get(TVM).available() or tvm_schedules.missing()
    if missing is not None:
        return missing
    try:
        found = devices(task)
    except UserError as error:
        return str(error)
    processor = _MACHINE.search(task.tvm_target or "")
    for each in found:
        if processor is not None and each.machine and processor[1] != each.machine:
            return (
                f"the target is a {processor[1]}, and the device '{each.key}' at {each.address} is "
                f"a {each.machine}"
            )
    return ""


def measured(
    task: TuningTask, subject: TuningSubject, folder: Path, progress: Callable[[str], None]
) -> TunedLayer:
    """The times of the best schedule of a layer on the device, beside a fixed computation.

    Raises:
        UserError: MetaSchedule finds nothing that runs, its code is wrong, or the device left.
    """
    try:
        return _measured(task, subject, folder, progress)
    except UserError:
        raise
    except Exception as error:  # of TVM, which raises whatever it likes
        raise UserError(
            f"the device '{task.rpc_key}' did not finish: {first_line(error)}\n"
            "  what to do: `syno device list` shows whether it is there; --retry tries again"
        ) from error


def _measured(
    task: TuningTask, subject: TuningSubject, folder: Path, progress: Callable[[str], None]
) -> TunedLayer:

    operator, binding = subject.computation()
    case = emitters.Case(operator.canonical, binding)
    found = devices(task)
    where = place(task)
    target = task.tvm_target or found[0].target or None
    if target is None:
        raise UserError(
            f"nothing says what to compile for on the device '{task.rpc_key}'\n"
            "  what to do: give a 'target', such as \"llvm -mtriple=aarch64-linux-gnu\""
        )
    best = tvm_schedules.best(
        emitters.get(TVM).source(case),
        folder,
        trials=task.trials,
        threads=task.threads,
        target=target,
        progress=progress,
        remote=tvm_schedules.Remote(
            task.tracker or "", task.rpc_key or "", task.secret, len(found)
        ),
    )
    shapes = operator.shapes(binding)
    random = np.random.default_rng(0)
    given = [
        random.standard_normal(shape, np.float32)
        for shape in (shapes.input, *shapes.weights, shapes.output)
    ]
    where = SessionRequest(where.tracker, where.key, where.secret, where.wait, _SECONDS)
    progress(f"timing on {task.rpc_key}")
    with (
        tempfile.TemporaryDirectory(prefix="syno-remote-") as files,
        where.session(task.threads) as s,
    ):
        compiler = linker(target)
        main = upload(s, best.executable, Path(files) / "main", compiler)
        outputs = verified(
            TVM, case, lambda x, weights: main.call("main", [x, *weights], shapes.output)
        )
        timers = {"main": main.timer("main", main.tensors(given), _LEAST_MS)}
        for name, (function, arrays) in _beside(subject).items():
            executable = _compiled(function, target, task.threads)
            sent = upload(s, executable, Path(files) / name, compiler)
            timers[name] = _timer(sent, arrays)
        seconds = _in_turns(timers, task.rounds)
        own, control = Timing.of(seconds["main"]), Timing.of(seconds["control"])
    name = f"{best.trials} trials"
    return TunedLayer(
        layer=subject.layer,
        count=subject.count,
        kept=subject.kept,
        form=name,
        forms={name: own.median_ms},
        best_ms=1e3 * min(seconds["main"]),
        median_ms=own.median_ms,
        spread_ms=own.spread_ms,
        pool_ms=Timing.of(seconds["moves"]).median_ms if "moves" in seconds else 0.0,
        macs=operator.macs(binding),
        roofline=None,  # what the device could do is not measured
        outputs=outputs,
        control_spread=control.spread,
    )


def _in_turns(timers: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call in each round, as the device measures them."""
    found: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            found[name].append(timer())
    return found


def _timer(sent: RemoteFunctions, arrays: Sequence[Sequence[int]]) -> Callable[[], float]:
    tensors = sent.tensors([np.ones(shape, np.float32) for shape in arrays])
    return sent.timer("main", tensors, _LEAST_MS)


def _beside(subject: TuningSubject) -> dict[str, tuple[PrimFunc, list[Sequence[int]]]]:
    """What is timed with a layer: functions of TVM with the shapes of their tensors."""
    size = _CONTROL_SIZE
    found: dict[str, tuple[PrimFunc, list[Sequence[int]]]] = {
        "control": (_product(size), [(size, size)] * 3)
    }
    if subject.moves is not None:
        function, shape = _average(subject.moves, subject.shape)
        found["moves"] = function, [subject.shape, shape]
    return found


def _product(size: int) -> PrimFunc:
    imported()
    from tvm import te

    a, b = (te.placeholder((size, size), name=name) for name in "ab")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    found: PrimFunc = te.create_prim_func([a, b, c])
    return found


def _average(moves: nn.Module, shape: Sequence[int]) -> tuple[PrimFunc, tuple[int, ...]]:
    """The average over windows that do not overlap, as it stands before an operator."""
    imported()
    from tvm import te

    window = moves.kernel_size if isinstance(moves, nn.AvgPool2d) else None
    if not isinstance(window, int) or moves.stride != window or moves.padding != 0:
        raise UserError(f"{moves} beside the operator has no form on other devices")
    x = te.placeholder(tuple(shape), name="x")
    di, dj = (te.reduce_axis((0, window), name=name) for name in ("di", "dj"))
    small = (*shape[:2], *(size // window for size in shape[2:]))
    total = te.compute(
        small,
        lambda n, c, i, j: te.sum(x[n, c, i * window + di, j * window + dj], axis=[di, dj]),
        name="total",
    )
    factor = 1 / math.pow(window, 2)
    y = te.compute(small, lambda n, c, i, j: total[n, c, i, j] * factor, name="y")
    return te.create_prim_func([x, y]), small


def _compiled(function: PrimFunc, target: str, threads: int) -> Executable:
    tvm = imported()
    module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    found: Executable = tvm.compile(module, target=device_target(target, threads))
    return found
