"""Schedules of TVM's MetaSchedule for the code of one operator, or for functions of a network.

TVM 0.27 has it as `tvm.s_tir.meta_schedule`. Its database stays in the folder of a layer, so that
an interrupted search continues with the trials that it lacks.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import NotRequired, Protocol, TypedDict

import numpy as np

from syno._util.errors import UserError
from syno.codegen.emitters.tvm import imported
from syno.codegen.emitters.tvm_target import device_target, linker
from syno.codegen.emitters.tvm_types import Array, Executable, Foreign, Module, PrimFunc, Tensor
from syno.runs import helper_process, processes

_TUNER = "tvm.s_tir.meta_schedule"
# The file in the folder of a layer with what TVM prints.
_MESSAGES = "messages.txt"
# With fewer trials there is nothing that an evolution, or a model of the time, could learn from.
_LEAST_EVOLVED = 32
# A schedule is given up after so long; a process of TVM takes half a minute to begin on a busy
# machine.
_SECONDS = 180.0
_FAILED_SECONDS = 1e9
# More than any database has for one function.
_MOST_RECORDS = 1 << 30
# So many trials are built and measured together. A search that is killed loses at most these.
_BATCH = 16


@dataclass(frozen=True)
class Remote:
    """Devices on which trials run: the address of their tracker, their key, the file of its secret,
    and how many there are."""

    tracker: str
    key: str
    secret: str | None
    count: int


class _RemoteOrders(TypedDict):
    tracker: str
    key: str
    secret: str | None
    count: int


class _Orders(TypedDict):
    """What `main` is asked on standard input: the schedules of an emitted file, or of modules."""

    source: NotRequired[str]
    modules: NotRequired[list[tuple[str, str]]]
    trials: int
    threads: int
    target: str | None
    folder: str
    remote: _RemoteOrders | None
    parent: int


@dataclass(frozen=True)
class Best:
    """The compiled function `main` with the best schedule, of so many that were measured."""

    executable: Executable
    trials: int


class _Call(Protocol):
    def __call__(self, *tensors: object) -> object: ...


class CompiledFunction:
    """A compiled function of x, the weights and y.

    trials: how many schedules were measured; the best of them is compiled.
    """

    def __init__(self, function: _Call, trials: int) -> None:
        self.trials = trials
        self._function = function
        self._tensor = imported().runtime.tensor

    def run(self, x: Array, weights: Sequence[Array], shape: Sequence[int]) -> Array:
        """y; what the code does not write stays NaN."""
        y: Tensor = self._tensor(np.full(tuple(shape), np.nan, np.float32))
        self._function(*(self._tensor(array) for array in (x, *weights)), y)
        return y.numpy()

    def prepared(
        self, x: Array, weights: Sequence[Array], shape: Sequence[int]
    ) -> Callable[[], object]:
        """A call on these arrays, which returns TVM's tensor y; the next call overwrites it."""
        given = [self._tensor(array) for array in (x, *weights)]
        y = self._tensor(np.zeros(tuple(shape), np.float32))

        def call() -> object:
            self._function(*given, y)
            return y

        return call


def missing() -> str | None:
    """None, or that this TVM has no MetaSchedule."""
    try:
        if importlib.util.find_spec(_TUNER) is not None:
            return None
    except ImportError as error:
        return f"TVM cannot be imported: {error}"
    return f"this package of TVM has no MetaSchedule ({_TUNER}); apache-tvm 0.27 has it"


def compile_tuned(
    source: str,
    folder: Path,
    *,
    trials: int,
    threads: int,
    target: str | None,
    progress: Callable[[str], None],
) -> CompiledFunction:
    """Search the schedule of the code of an operator for this machine: see `best`."""
    found = best(source, folder, trials=trials, threads=threads, target=target, progress=progress)
    imported().get_global_func("runtime.config_threadpool")(1, threads)
    return CompiledFunction(found.executable["main"], found.trials)


def best(
    source: str,
    folder: Path,
    *,
    trials: int,
    threads: int,
    target: str | None,
    progress: Callable[[str], None],
    remote: Remote | None = None,
) -> Best:
    """Search the schedule of the code of an operator, as the emitter `tvm` writes it.

    The search runs in a process of its own without torch: TVM inspects the stack while it loads,
    which takes minutes with as many modules.

    Args:
        source: the emitted file.
        folder: of the database. Trials that are in it count.
        trials: number of schedules that are measured, those of an earlier run included.
        threads: number of threads of the code.
        target: as TVM's command lines write it; None for this machine.
        progress: called with what is done.
        remote: devices on which the trials run; None for this machine.

    Raises:
        UserError: MetaSchedule fails, or finds no schedule that runs.
    """
    asked = {"source": source, "trials": trials, "threads": threads, "target": target}
    _search(asked, folder, progress, remote)
    progress("compiling the best schedule")
    tvm, meta_schedule = imported(), importlib.import_module(_TUNER)
    device = device_target(target, threads)
    database = meta_schedule.database.JSONDatabase(work_dir=str(folder))
    module = _module(source, tvm)
    schedule = meta_schedule.tir_integration.compile_tir(database, module, device)
    if schedule is None:
        raise UserError(
            f"MetaSchedule found no schedule that runs in {trials} trials\n"
            f"  what to do: allow more trials; {folder / 'logs'} says what was tried"
        )
    return Best(tvm.compile(schedule.mod, target=device), _timed(database, module))


def tune_functions(
    functions: Mapping[str, Module],
    folder: Path,
    *,
    trials: int,
    threads: int,
    target: str | None,
    progress: Callable[[str], None],
) -> None:
    """Search the schedules of functions of TensorIR for this machine, one after the other.

    All of them share the database in `folder`, in which trials of an earlier run count.

    Args:
        functions: modules of TVM with one function each, by name.
        folder, threads, target, progress: as in `best`.
        trials: number of schedules that are measured for each function.

    Raises:
        UserError: MetaSchedule fails.
    """
    save = imported().ir.save_json
    modules = [[name, save(module)] for name, module in functions.items()]
    asked = {"modules": modules, "trials": trials, "threads": threads, "target": target}
    _search(asked, folder, progress, None)


def _search(
    asked: Mapping[str, object],
    folder: Path,
    progress: Callable[[str], None],
    remote: Remote | None,
) -> None:
    """Run `main` in a process of its own. UserError where it fails."""
    folder.mkdir(parents=True, exist_ok=True)
    more = {"folder": str(folder), "remote": remote and asdict(remote), "parent": os.getpid()}
    orders = {**asked, **more}
    with (
        open(folder / _MESSAGES, "a", encoding="utf-8") as messages,
        helper_process.start(
            "syno.tune.tvm_schedules", orders, stderr=messages, own_session=False
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            progress(line.strip())
    if process.returncode != 0:
        raise UserError(
            f"the search of MetaSchedule ended with exit code {process.returncode}\n"
            f"  what to do: {folder / _MESSAGES} says why, and {folder / 'logs'} what was tried"
        )


def main() -> None:
    """Search, as standard input asks; print a line for each batch of trials."""
    asked: _Orders = helper_process.read_orders()
    answers = helper_process.answers()
    processes.die_with(asked["parent"])
    tvm = imported()
    meta_schedule = importlib.import_module(_TUNER)
    if "source" in asked:
        modules = [("", _module(asked["source"], tvm))]
    else:
        modules = [(name, tvm.ir.load_json(text)) for name, text in asked["modules"]]
    for number, (name, module) in enumerate(modules, 1):
        place = f"{name} ({number} of {len(modules)}): " if name else ""

        def told(count: int, place: str = place) -> None:
            answers.write(f"{place}{count} of {asked['trials']} trials\n")
            answers.flush()

        _tune(asked, name or "main", module, told, meta_schedule)


def _tune(
    asked: _Orders,
    name: str,
    module: Module,
    told: Callable[[int], None],
    meta_schedule: ModuleType,
) -> None:
    """Measure the schedules of one function that its database lacks."""
    folder, trials, threads = asked["folder"], asked["trials"], asked["threads"]
    done = _timed(meta_schedule.database.JSONDatabase(work_dir=folder), module)
    told(done)
    if done >= trials:
        return
    remote = None if asked["remote"] is None else Remote(**asked["remote"])
    builder, runner = _measuring(remote, asked["target"], threads, meta_schedule)
    meta_schedule.tir_integration.tune_tir(
        mod=imported().IRModule({name: module["main"]}),
        target=device_target(asked["target"], threads),
        work_dir=folder,
        max_trials_global=trials - done,
        num_trials_per_iter=min(_BATCH, trials - done),
        num_tuning_cores=threads,
        builder=builder,
        runner=runner,
        cost_model=_cost_model(),
        strategy="evolutionary" if trials >= _LEAST_EVOLVED else "replay-trace",
        measure_callbacks=[
            *meta_schedule.MeasureCallback.create("default"),
            _counter(done, told),
        ],
        seed=done + 1,
    )


def _measuring(
    remote: Remote | None, target: str | None, threads: int, meta_schedule: ModuleType
) -> tuple[object, object]:
    """What builds trials, and what measures them: on this machine, or on devices."""
    if remote is None:
        own = meta_schedule.builder.LocalBuilder(max_workers=threads, timeout_sec=_SECONDS)
        return own, meta_schedule.runner.LocalRunner(timeout_sec=_SECONDS)
    from syno.devices import parse_address, read_secret
    from syno.devices import tvm_remote as devices

    secret = None if remote.secret is None else read_secret(Path(remote.secret))
    place = devices.SessionRequest(
        parse_address(remote.tracker), remote.key, secret, seconds=_SECONDS
    )
    compiler = linker(target or "")
    return devices.builder(compiler), devices.runner(place, threads, remote.count)


def _timed(database: Foreign, module: Module) -> int:
    """How many schedules of a function ran. Others are in the database with a time of 1e10
    seconds."""
    if not database.has_workload(module):
        return 0
    records = database.get_top_k(database.commit_workload(module), _MOST_RECORDS)
    return sum(min(map(float, record.run_secs)) < _FAILED_SECONDS for record in records)


def _module(source: str, tvm: ModuleType) -> Module:
    """The module with the function of an emitted file."""
    namespace: dict[str, Callable[[], PrimFunc]] = {}
    exec(compile(source, "<emitted for tvm>", "exec"), namespace)
    main = namespace["prim_func"]().with_attr("global_symbol", "main")
    found: Module = tvm.IRModule({"main": main})
    return found


def _cost_model() -> str:
    """The model that ranks schedules before they are measured."""
    return "xgb" if importlib.util.find_spec("xgboost") is not None else "random"


def _counter(done: int, told: Callable[[int], None]) -> object:
    """What MetaSchedule calls behind each batch of measurements."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule import measure_callback

    count = done

    @derived_object
    class Counter(measure_callback.PyMeasureCallback):
        def apply(
            self,
            scheduler: object,
            task: int,
            candidates: Sequence[object],
            built: object,
            run: object,
        ) -> None:
            nonlocal count
            count += len(candidates)
            told(count)

    return Counter()
