"""Schedules of TVM's MetaSchedule for the code of one operator.

TVM 0.27 has it as `tvm.s_tir.meta_schedule`. Its database stays in the folder of a layer, so that
an interrupted search goes on with the trials that it lacks.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError
from syno.codegen.emitters.tvm import imported

Array = NDArray[np.number]
_TUNER = "tvm.s_tir.meta_schedule"
# With fewer trials there is nothing that an evolution, or a model of the time, could learn from.
_LEAST_EVOLVED = 32
# So many trials are built and measured together. A search that is killed loses at most these.
_BATCH = 16


class _Call(Protocol):
    def __call__(self, *tensors: object) -> object: ...


class Tuned:
    """A compiled function of x, the weights and y.

    trials: how many schedules were measured; the best of them is compiled.
    """

    def __init__(self, function: _Call, trials: int) -> None:
        self.trials = trials
        self._function = function
        self._tensor = imported().runtime.tensor

    def run(self, x: Array, weights: Sequence[Array], shape: Sequence[int]) -> Array:
        """y; what the code does not write stays NaN."""
        y = self._tensor(np.full(tuple(shape), np.nan, np.float32))
        self._function(*(self._tensor(array) for array in (x, *weights)), y)
        result: Array = y.numpy()
        return result

    def prepared(
        self, x: Array, weights: Sequence[Array], shape: Sequence[int]
    ) -> Callable[[], object]:
        """A call on these arrays."""
        given = [self._tensor(array) for array in (x, *weights)]
        y = self._tensor(np.zeros(tuple(shape), np.float32))
        return lambda: self._function(*given, y)


def missing() -> str | None:
    """None, or that this TVM has no MetaSchedule."""
    try:
        if importlib.util.find_spec(_TUNER) is not None:
            return None
    except ImportError as error:
        return f"TVM cannot be imported: {error}"
    return f"this package of TVM has no MetaSchedule ({_TUNER}); apache-tvm 0.27 has it"


def tuned(
    source: str,
    folder: Path,
    *,
    trials: int,
    threads: int,
    target: str | None,
    progress: Callable[[str], None],
) -> Tuned:
    """Search the schedule of the code of an operator, as the emitter `tvm` writes it.

    Args:
        source: the emitted file.
        folder: of the database. Trials that are in it count.
        trials: number of schedules that are measured, those of an earlier run included.
        threads: number of threads of the code.
        target: as TVM's command lines write it; None for this machine.
        progress: called with what is done.

    Raises:
        UserError: MetaSchedule finds no schedule that runs.
    """
    tvm = imported()
    meta_schedule: Any = importlib.import_module(_TUNER)
    namespace: dict[str, Callable[[], Any]] = {}
    exec(compile(source, "<emitted for tvm>", "exec"), namespace)
    module = tvm.IRModule({"main": namespace["prim_func"]().with_attr("global_symbol", "main")})
    device = tvm.target.Target(_target(target, threads, tvm))
    folder.mkdir(parents=True, exist_ok=True)
    tvm.get_global_func("runtime.config_threadpool")(1, threads)
    _quiet()

    def database() -> Any:
        return meta_schedule.database.JSONDatabase(work_dir=str(folder))

    done = len(database())
    if done < trials:
        progress(f"{done} of {trials} trials")
        # TVM prints tables of its progress.
        with contextlib.redirect_stdout(None):
            meta_schedule.tir_integration.tune_tir(
                mod=module,
                target=device,
                work_dir=str(folder),
                max_trials_global=trials - done,
                num_trials_per_iter=min(_BATCH, trials - done),
                num_tuning_cores=threads,
                cost_model=_cost_model(),
                strategy="evolutionary" if trials >= _LEAST_EVOLVED else "replay-trace",
                measure_callbacks=[
                    *meta_schedule.MeasureCallback.create("default"),
                    _counter(meta_schedule, done, trials, progress),
                ],
                seed=done + 1,
            )
    schedule = meta_schedule.tir_integration.compile_tir(database(), module, device)
    if schedule is None:
        raise UserError(
            f"MetaSchedule found no schedule that runs in {trials} trials\n"
            f"  what to do: allow more trials; {folder / 'logs'} says what was tried"
        )
    progress("compiling the best schedule")
    return Tuned(tvm.compile(schedule.mod, target=device)["main"], len(database()))


def _cost_model() -> str:
    """The model that ranks schedules before they are measured."""
    return "xgb" if importlib.util.find_spec("xgboost") is not None else "random"


def _counter(meta_schedule: Any, done: int, trials: int, progress: Callable[[str], None]) -> Any:
    """What MetaSchedule calls behind each batch of measurements."""
    from tvm.ir.utils import derived_object

    count = done

    @derived_object
    class Counter(meta_schedule.measure_callback.PyMeasureCallback):  # type: ignore[misc]
        def apply(
            self, scheduler: Any, task: int, candidates: Sequence[Any], built: Any, run: Any
        ) -> None:
            nonlocal count
            count += len(candidates)
            progress(f"{count} of {trials} trials")

    return Counter()


def _target(text: str | None, threads: int, tvm: Any) -> Mapping[str, object]:
    """A target as TVM 0.27 takes it, from one in the form of a command line."""
    if text is None:
        cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
        return {"kind": "llvm", "mcpu": str(cpu), "num-cores": threads}
    kind, *options = text.split()
    found: dict[str, object] = {"kind": kind, "num-cores": threads}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        if name == "mattr":
            found[name] = value.split(",")
        else:
            found[name] = int(value) if value.isdecimal() else value
    return found


def _quiet() -> None:
    for name in list(logging.Logger.manager.loggerDict):
        if name.startswith("tvm"):
            logging.getLogger(name).setLevel(logging.ERROR)
