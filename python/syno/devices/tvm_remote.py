"""Sessions on a device, for TVM: trials of MetaSchedule, and the calls of a compiled function."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from syno._util.errors import UserError
from syno.codegen.emitters.tvm import imported
from syno.codegen.emitters.tvm_target import write_library
from syno.codegen.emitters.tvm_types import (
    Array,
    Executable,
    Foreign,
    RemoteModule,
    Session,
    Tensor,
)
from syno.devices.address import Address
from syno.devices.client import borrow

# Seconds beyond those of a session in which its end is heard of.
_GRACE_S = 30.0


@dataclass(frozen=True)
class SessionRequest:
    """Where sessions are asked for.

    tracker, key, secret: as in `borrow`; wait: seconds until a device is free; seconds: the longest
    session.
    """

    tracker: Address
    key: str
    secret: bytes | None = None
    wait: float = 600.0
    seconds: float = 180.0

    @contextlib.contextmanager
    def session(self, threads: int) -> Iterator[Session]:
        """A session of TVM on a device that runs so many threads. UserError where there is none."""
        lent = borrow(self.tracker, self.key, self.secret, wait=self.wait)
        rpc = _rpc()
        try:
            found = rpc.connect(
                lent.address.host, lent.address.port, lent.match_key, session_timeout=self.seconds
            )
            found.get_function("runtime.config_threadpool")(1, threads)
        except Exception as error:  # of TVM, which raises whatever it likes
            raise UserError(
                f"the device '{self.key}' at {lent.address} began no session: {error}\n"
                "  what to do: look at what its `syno device serve` printed"
            ) from error
        yield found


def runner(place: SessionRequest, threads: int, sessions: int) -> object:
    """What measures the trials of MetaSchedule on devices, several at a time.

    A session is a few calls of C that wait for the network, so that threads are enough.
    """
    imported()
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule import runner as runners

    gate = threading.Semaphore(sessions)

    @derived_object
    class Future(runners.PyRunnerFuture):
        def __init__(self, given: Foreign) -> None:
            super().__init__()
            self._answer: object = None
            self._thread = threading.Thread(target=self._work, args=(given,), daemon=True)
            self._thread.start()

        def _work(self, given: Foreign) -> None:
            with gate:
                try:
                    self._answer = runners.RunnerResult(_timed(place, threads, given), None)
                except Exception as error:  # of TVM; a trial that fails is one of many
                    self._answer = runners.RunnerResult(None, str(error))

        def done(self) -> bool:
            return not self._thread.is_alive()

        def result(self) -> object:
            self._thread.join(place.wait + place.seconds + _GRACE_S)
            if self._answer is None:
                return runners.RunnerResult(None, "the device does not answer")
            return self._answer

    @derived_object
    class Runner(runners.PyRunner):
        def run(self, given: list[Foreign]) -> list[object]:
            return [Future(each) for each in given]

    return Runner()


def builder(compiler: str | None) -> object:
    """What compiles the trials of MetaSchedule for devices: this process.

    MetaSchedule's own starts processes that import TVM with the intrinsics of all devices anew,
    which takes most of a minute, and on a busy machine longer than its limit. compiler: as in
    `upload`.
    """
    imported()
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule import builder as builders

    def built(given: Foreign) -> object:
        # MetaSchedule deletes the folder of each artifact.
        folder = Path(tempfile.mkdtemp(prefix="syno-trial-"))
        try:
            module = builders.local_builder.default_build(given.mod, given.target, None)
            return builders.BuilderResult(str(_exported(module, folder / "trial", compiler)), None)
        except Exception as error:  # of TVM; a trial that cannot be built is one of many
            shutil.rmtree(folder)
            return builders.BuilderResult(None, str(error))

    @derived_object
    class Builder(builders.PyBuilder):
        def build(self, given: list[Foreign]) -> list[object]:
            return [built(each) for each in given]

    return Builder()


def _timed(place: SessionRequest, threads: int, given: Foreign) -> list[float]:
    from tvm.s_tir.meta_schedule.runner import rpc_runner
    from tvm.s_tir.meta_schedule.runner.config import EvaluatorConfig

    path = str(given.artifact_path)
    name = Path(path).name
    shapes = tuple(each.as_json() for each in given.args_info)
    with place.session(threads) as session:
        device = session.device(str(given.device_type), 0)
        module = rpc_runner.default_upload_module(session, path, name)
        arrays = rpc_runner.default_alloc_argument(session, device, shapes, 1)
        found = rpc_runner.default_run_evaluator(session, module, device, EvaluatorConfig(), arrays)
        return [float(each) for each in found]


class RemoteFunctions:
    """Compiled functions on a device within a session."""

    def __init__(self, session: Session, module: RemoteModule) -> None:
        self._session, self._module = session, module
        self._device = session.cpu(0)
        self._tensor = imported().runtime.tensor

    def tensors(self, arrays: Sequence[Array]) -> list[Tensor]:
        """Arrays on the device."""
        return [self._tensor(array, self._device) for array in arrays]

    def call(self, name: str, arrays: Sequence[Array], shape: Sequence[int]) -> Array:
        """The output of a function; what it does not write stays NaN."""
        y: Tensor = self._tensor(np.full(tuple(shape), np.nan, np.float32), self._device)
        self._module[name](*self.tensors(arrays), y)
        return y.numpy()

    def timer(self, name: str, tensors: Sequence[Tensor], least_ms: int) -> Callable[[], float]:
        """What measures a function on the device: seconds of a call, the mean of `least_ms`."""
        evaluate = self._module.time_evaluator(
            name, self._device, number=1, repeat=1, min_repeat_ms=least_ms
        )
        return lambda: float(evaluate(*tensors).results[0])


def upload(
    session: Session, executable: Executable, path: Path, compiler: str | None
) -> RemoteFunctions:
    """Send compiled functions to a device.

    path: of the library, without an ending; compiler: links them here for the device; None: the
    device links them.
    """
    path = _exported(executable, path, compiler)
    session.upload(str(path), path.name)
    return RemoteFunctions(session, session.load_module(path.name))


def _exported(executable: Executable, path: Path, compiler: str | None) -> Path:
    """The file of compiled functions: a library, or what the device makes one of."""
    path = path.with_suffix(".tar" if compiler is None else ".so")
    write_library(executable, path, compiler)
    return path


def _rpc() -> ModuleType:
    imported()
    from tvm import rpc

    return rpc
