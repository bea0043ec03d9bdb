"""`train`: the training of one network at one fidelity with one seed."""

from __future__ import annotations

import math
import os
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, Targets, arguments, samples_in
from syno.data import DataSet, Records, TextData
from syno.data.custom import CustomData
from syno.data.progress import bar
from syno.runs.cache_folder import use_private_compiler_caches
from syno.runs.termination import on_termination
from syno.train.checkpoint import (
    DamagedCheckpointError,
    TrainingState,
    check_signature,
    read_checkpoint,
    signature,
    write_checkpoint,
)
from syno.train.custom import CustomTask
from syno.train.distillation import Distillation, Lesson
from syno.train.fidelities import Fidelity
from syno.train.images import ImageTask
from syno.train.numerics import Average, Numerics, checked_device
from syno.train.optimizers import make_optimizer, parameter_groups, set_rate
from syno.train.outcome import EpochPoint, Status, TrainingOutcome
from syno.train.parallel import ProcessGroup
from syno.train.schedules import rate
from syno.train.sizes import any_size
from syno.train.stoppers import (
    DEFAULT_STOPPERS,
    LeastAccuracy,
    State,
    Stop,
    TimeLimit,
    TrainingStopper,
)
from syno.train.task import Metrics, NonFiniteScoresError, TrainingTask
from syno.train.text import TextTask

Progress = Callable[[State], None]
Data = DataSet | Records | TextData | CustomData

# The number of steps of `recent_loss` and `step_s`.
_RECENT = 50
# The resolution of a schedule over time instead of steps.
_TICKS = 10_000
_TAIL = 5


def train(
    net: nn.Module,
    data: Data,
    fidelity: Fidelity,
    seed: int,
    *,
    deadline_s: float | None = None,
    progress: bool | Progress | None = None,
    stoppers: Sequence[TrainingStopper] = DEFAULT_STOPPERS,
    device: str | torch.device = "cpu",
    workers: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    stop_after: int | None = None,
    distillation: Distillation | None = None,
) -> TrainingOutcome:
    """Train a network in place and measure it on the validation split.

    Processes that are joined by `parallel.joined` train together, and each gets the outcome. A
    damaged checkpoint is reported as a warning, and the training starts over.

    Args:
        net: [N, C, H, W] -> [N, classes] for images, token ids [N, T] -> [N, T, vocabulary] for
            text, inputs -> what their loss takes for custom data, with several arguments where an
            input is a tuple. It keeps its initial weights,
            ends in evaluation mode and returns to its device.
        data: a DataSet or Records for a recipe for images, TextData, or CustomData.
        fidelity: how much the network is trained, and the recipe.
        seed: of batch order, augmentation and dropout. The same network, seed and number of threads
            give the same outcome. The global random state of torch does not change.
        deadline_s: wall-clock limit in seconds, which is checked between steps.
        progress: True draws a progress bar on a terminal; a function is called with the State after
            every step.
        stoppers: conditions that stop the training early, checked before the least accuracies of
            the recipe.
        device: `cpu`, `cuda` or `cuda:N`.
        workers: threads that read images ahead. The outcome does not depend on them.
        checkpoint: a file for the state after every epoch. If it exists, the training resumes from
            it, and ends as without a pause, bit for bit on the same machine. With a checkpoint,
            SIGTERM pauses the training after the current step.
        stop_after: the training pauses after this number of epochs, with the accuracy then.
        distillation: a trained network whose outputs are learned, too.

    Returns:
        The outcome. A failure of the network (MemoryError, RuntimeError) is an outcome `error`;
        other exceptions are programming errors and are raised.

    Raises:
        UserError: for data that does not fit the fidelity, too few images or tokens, scores of
            another shape, a precision or device that this machine does not have, and a checkpoint
            of another training.
    """
    if stop_after is not None and (stop_after < 1 or checkpoint is None):
        raise UserError(
            f"cannot stop after {stop_after} epochs\n"
            "  expected: 1 or more, with a checkpoint to resume from"
        )
    checks = [*stoppers]
    if fidelity.recipe.least_accuracy:
        checks.append(LeastAccuracy(fidelity.recipe.least_accuracy))
    if deadline_s is not None:
        checks.append(TimeLimit(deadline_s))
    home = next((parameter.device for parameter in net.parameters()), None)
    try:
        path = None if checkpoint is None else Path(checkpoint)
        growing = any_size(net) if fidelity.recipe.progressive else nullcontext()
        with growing:
            taught = "" if distillation is None else f" taught by {distillation.fingerprint}"
            place = checked_device(device)
            run = _Run(net, data, fidelity, seed, place, workers, path, taught=taught)
            if distillation is None:
                return _executed(run, checks, progress, stop_after)
            with distillation.beside(net) as run.lesson:
                return _executed(run, checks, progress, stop_after)
    finally:
        if home is not None:
            net.to(home)


def _executed(
    run: _Run,
    checks: Sequence[TrainingStopper],
    progress: bool | Progress | None,
    stop_after: int | None,
) -> TrainingOutcome:
    steps = run.task.epochs * run.task.steps
    with (
        _reporter(progress if run.group.is_first else None, steps) as report,
        _private_seed(run.seed, run.numerics.device),
        _terminations(run.path is not None) as terminated,
    ):
        return run.execute(checks, report, stop_after, terminated)


def check(
    data: Data, fidelity: Fidelity, *, seed: int = 0, device: str | torch.device = "cpu"
) -> None:
    """Check that data, fidelity and device fit together.

    Raises:
        UserError: the error that `train` would raise.
    """
    make_task(data, fidelity, seed=seed, device=device)


def make_task(
    data: Data, fidelity: Fidelity, *, seed: int = 0, device: str | torch.device = "cpu"
) -> TrainingTask:
    """Return the batches, the loss and the metrics of a training.

    Raises:
        UserError: if data, fidelity and device do not fit together.
    """
    numerics = Numerics(fidelity.recipe, checked_device(device))
    return _task(data, fidelity, seed, numerics, ProcessGroup.current(), 0)


class _Run:
    """The state of one training.

    1. __init__   selects the data, makes the optimizer, resumes from a checkpoint
    2. execute    runs epochs until the end or until a stopper stops, then evaluates
    3. _epoch     runs the steps of one epoch and checks the stoppers
    4. _step      forward, backward, update
    """

    def __init__(
        self,
        net: nn.Module,
        data: Data,
        fidelity: Fidelity,
        seed: int,
        device: torch.device,
        workers: int,
        checkpoint: Path | None,
        *,
        taught: str = "",
    ) -> None:
        self._started = time.perf_counter()
        self._net, self._fidelity, self.seed = net, fidelity, seed
        self._recipe = fidelity.recipe
        self.group = ProcessGroup.current()
        self.numerics = Numerics(self._recipe, device)
        self.task = _task(data, fidelity, seed, self.numerics, self.group, workers)
        self.path = checkpoint
        self.lesson: Lesson | None = None
        if checkpoint is not None:
            groups = [
                [len(group["params"]), group["weight_decay"], group["lr_scale"]]
                for group in parameter_groups(net, self._recipe)
            ]
            world = self.group.world
            self._signature = signature(
                net, fidelity.to_json(), groups, seed, self.task.fingerprint + taught, world
            )
        self.numerics.prepared(net)
        self.task.probe(net)
        self._optimizer = make_optimizer(net, self._recipe)
        self._parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        self._average = None if self._recipe.ema is None else Average(net, self._recipe.ema)
        self._curve: list[EpochPoint] = []
        self._losses: list[float] = []
        self._right = self._seen = self._samples = 0
        self._times: list[float] = []
        self._training_s = 0.0
        self._peak = 0
        self._epochs_completed = self._steps_completed = 0
        self._saved_random: dict[str, torch.Tensor] = {}
        if checkpoint is not None:
            self._restore(checkpoint)
        if self._recipe.compile:
            use_private_compiler_caches()
        model = torch.compile(net) if self._recipe.compile else net
        self._model = self.group.wrapped(model, device)  # type: ignore[arg-type]

    def execute(
        self,
        checks: Sequence[TrainingStopper],
        report: Progress,
        stop_after: int | None,
        terminated: threading.Event,
    ) -> TrainingOutcome:
        """Train and evaluate the network, and return its outcome or failure."""
        self._net.train()
        _set_random(self._saved_random)
        try:
            epoch = self._epochs_completed
            while not self._over(epoch):
                if stop_after is not None and epoch >= stop_after:
                    found = self._curve[-1].accuracy
                    metrics = self._metrics() if found is None else Metrics(found)
                    return self._outcome("paused", "epoch", f"after epoch {epoch}", metrics)
                stop = self._epoch(epoch, checks, report, stop_after, terminated)
                if stop is not None:
                    return self._outcome(stop.status, stop.reason, stop.detail)
                epoch += 1
            if self._average is not None:
                self._net.load_state_dict(self._average.kept)
                self._average = None
            metrics = self._metrics()
        except NonFiniteScoresError as error:
            return self._outcome("rejected", "non_finite_scores", str(error))
        except (NotImplementedError, RecursionError):
            raise  # subclasses of RuntimeError, but mistakes in code
        except (MemoryError, RuntimeError) as error:
            return self._outcome("error", _kind(error), _first_lines(error))
        finally:
            self._net.eval()
        return self._outcome("ok", "", "", metrics)

    def _over(self, epoch: int) -> bool:
        if self.task.epochs:
            return epoch >= self.task.epochs
        return self._done(0) >= 1.0

    def _done(self, steps: int) -> float:
        """Return the completed share of the training after a number of steps."""
        if self.task.epochs:
            return steps / (self._fidelity.steps or self.task.epochs * self.task.steps)
        assert self._fidelity.seconds is not None
        return float(self.group.broadcast(self._training_s)) / self._fidelity.seconds

    def _epoch(
        self,
        epoch: int,
        checks: Sequence[TrainingStopper],
        report: Progress,
        stop_after: int | None,
        terminated: threading.Event,
    ) -> Stop | None:
        first = self._steps_completed
        steps = self._steps_of(epoch)
        began = time.perf_counter()
        for place, (inputs, targets, count) in enumerate(self.task.batches(epoch, first), first):
            loss, hits = self._step(inputs, targets, count, epoch * self.task.steps + place)
            now = time.perf_counter()
            self._times.append(now - began)
            self._training_s += now - began
            began = now
            self._losses.append(loss)
            self._right += hits
            self._seen += count * max(self.task.tokens // self._fidelity.batch, 1)
            self._samples += count
            out_of_time = not self.task.epochs and self._done(0) >= 1.0
            last = place + 1 == steps or out_of_time
            state = self._state(epoch, place, steps, last, stop_after)
            if last:
                self._finish(epoch, state, place + 1)
            report(state)
            stop = self.group.broadcast(
                _first_stop(checks, state) or self._paused(terminated, state)
            )
            if last and self.path is not None and stop is None:
                self._save(epoch + 1, 0)
            if stop is not None:
                if stop.status == "paused":
                    self._save(*((epoch + 1, 0) if last else (epoch, place + 1)))
                return stop
            if last:
                break
        self._steps_completed = 0
        return None

    def _steps_of(self, epoch: int) -> int:
        total = self._fidelity.steps
        return (
            self.task.steps
            if total is None
            else min(self.task.steps, total - epoch * self.task.steps)
        )

    def _state(
        self, epoch: int, place: int, steps: int, last: bool, stop_after: int | None
    ) -> State:
        of_epoch = self._losses[epoch * self.task.steps :]
        recent = self._losses[-_RECENT:]
        measured = last and any(e == epoch + 1 for e, _ in self._recipe.least_accuracy)
        measured = measured or (last and epoch + 1 == stop_after)
        memory = _memory(self.numerics.device)
        self._peak = max(self._peak, memory)
        return State(
            epoch=epoch,
            epochs=self.task.epochs,
            step=place + 1,
            steps=steps,
            loss=self._losses[-1],
            epoch_loss=float(np.mean(of_epoch[len(of_epoch) // 2 :])) if last else None,
            chance=self.task.chance,
            seconds=time.perf_counter() - self._started,
            accuracy=self._metrics().accuracy if measured else None,
            recent_loss=float(np.mean(recent)) if len(recent) == _RECENT else None,
            step_s=statistics.median(self._times[-_RECENT:]) if len(self._times) > 4 else None,
            memory=memory,
            done=min(self._done(len(self._losses)), 1.0),
        )

    def _finish(self, epoch: int, state: State, steps: int) -> None:
        losses = self._losses[-steps:]
        right, seen = self._right, max(self._seen, 1)
        self._curve.append(
            EpochPoint(
                epoch + 1, float(np.mean(losses)), right / seen, state.seconds, state.accuracy
            )
        )
        self._right = self._seen = 0

    def _step(self, inputs: Inputs, targets: Targets, count: int, number: int) -> tuple[float, int]:
        if self.task.epochs:
            steps = self._fidelity.steps or self.task.steps * self.task.epochs
            factor = rate(self._recipe, number, steps)
        else:
            factor = rate(self._recipe, min(int(self._done(0) * _TICKS), _TICKS - 1), _TICKS)
        set_rate(self._optimizer, self._recipe.learning_rate * factor)
        self._optimizer.zero_grad(set_to_none=True)
        with self.numerics.autocast():
            given = self.numerics.inputs(inputs)
            scores = self._model(*arguments(given))
            loss, hits = self.task.loss(scores, targets)
            if self.lesson is not None:
                loss = self.lesson.loss(loss, scores, given)
        # Gradients are averaged over processes whose parts may differ by one sample.
        share = samples_in(inputs) / count
        summed, hits_ = self.group.summed(loss.item() * share, hits, device=self.numerics.device)
        if math.isfinite(summed):  # otherwise a stopper stops, and the weights do not change
            scaler = self.numerics.scaler
            if self.group.world > 1:
                loss = loss * (share * self.group.world)
            scaler.scale(loss).backward()
            if self._recipe.clip_norm is not None:
                scaler.unscale_(self._optimizer)
                nn.utils.clip_grad_norm_(self._parameters, self._recipe.clip_norm)
            scaler.step(self._optimizer)
            scaler.update()
            if self._average is not None:
                self._average.update(self._net)
        return summed, int(hits_)

    def _metrics(self) -> Metrics:
        """Measure the network in the first process, with averaged weights if there are any."""
        metrics = None
        if self.group.is_first:
            if self._average is None:
                metrics = self.task.metrics(self._net)
            else:
                with self._average.inside(self._net):
                    metrics = self.task.metrics(self._net)
        shared = self.group.broadcast(metrics)
        assert isinstance(shared, Metrics)
        return shared

    def _paused(self, terminated: threading.Event, state: State) -> Stop | None:
        if not terminated.is_set():
            return None
        where = f"step {state.step} of epoch {state.epoch + 1}"
        return Stop("paused", "signal", f"SIGTERM came at {where}")

    def _save(self, epoch: int, step: int) -> None:
        """Write a checkpoint of the state before `step` of `epoch`."""
        if not self.group.is_first:
            return
        assert self.path is not None
        content: TrainingState = {
            "signature": self._signature,
            "place": [epoch, step],
            "net": self._net.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "scaler": self.numerics.scaler.state_dict(),
            "average": None,
            "random": _random(self.numerics.device),
            "losses": self._losses,
            "curve": [vars(point) for point in self._curve],
            "counts": [self._right, self._seen, self._samples, self._peak],
            "times": self._times[-_RECENT:],
            "seconds": [time.perf_counter() - self._started, self._training_s],
        }
        if self._average is not None:
            content["average"] = [self._average.steps, self._average.kept]
        write_checkpoint(self.path, content)

    def _restore(self, path: Path) -> None:
        try:
            content = read_checkpoint(path)
        except DamagedCheckpointError as error:
            warnings.warn(f"{error}; the training starts over", stacklevel=4)
            return
        if content is None:
            return
        check_signature(path, content["signature"], self._signature)
        self._net.load_state_dict(content["net"])
        self._optimizer.load_state_dict(content["optimizer"])
        self.numerics.scaler.load_state_dict(content["scaler"])
        if self._average is not None:
            assert content["average"] is not None  # the signature says that there is one
            self._average.steps, kept = content["average"]
            for key, value in kept.items():
                self._average.kept[key].copy_(value)
        self._epochs_completed, self._steps_completed = content["place"]
        self._losses, self._times = content["losses"], content["times"]
        self._curve = [EpochPoint(**point) for point in content["curve"]]
        self._right, self._seen, self._samples, self._peak = content["counts"]
        before, self._training_s = content["seconds"]
        self._started -= before
        self._saved_random = content["random"]

    def _outcome(
        self, status: Status, reason: str, detail: str, metrics: Metrics | None = None
    ) -> TrainingOutcome:
        tail = self._losses[-max(len(self._losses) // _TAIL, 1) :]
        is_text = self.task.tokens > 0
        tokens = self.task.tokens * len(self._losses)
        outcome = TrainingOutcome(
            status=status,
            reason=reason,
            detail=detail,
            accuracy=None if metrics is None else metrics.accuracy,
            curve=tuple(self._curve),
            loss_sum=sum(point.loss for point in self._curve),
            seconds=time.perf_counter() - self._started,
            epochs_done=len(self._curve),
            images_seen=0 if is_text else self._samples,
            threads=torch.get_num_threads(),
            seed=self.seed,
            fidelity=self._fidelity.name,
            steps=len(self._losses),
            tail_loss=float(np.mean(tail)) if tail else None,
            step_s=statistics.median(self._times) if self._times else None,
            peak_bytes=self._peak or None,
        )
        loss = None if metrics is None else metrics.loss
        outcome = replace(outcome, loss=loss)
        if not is_text:
            return outcome
        return replace(
            outcome,
            perplexity=None if loss is None else math.exp(min(loss, 700.0)),
            bits_a_byte=None if metrics is None else metrics.bits_a_byte,
            tokens_seen=tokens,
            tokens_per_s=tokens / self._training_s if self._training_s else None,
        )


def _task(
    data: Data, fidelity: Fidelity, seed: int, numerics: Numerics, group: ProcessGroup, workers: int
) -> TrainingTask:
    kind = "custom" if isinstance(data, CustomData) else "images"
    kind = "text" if isinstance(data, TextData) else kind
    if kind != fidelity.task:
        usual = {"custom": "fast/custom", "images": "fast/short", "text": "fast/text"}
        raise UserError(
            f"recipe '{fidelity.recipe.name}' trains on {fidelity.task}, and the data is {kind}\n"
            f"  expected: a recipe for {kind}, such as {usual[kind]}"
        )
    if isinstance(data, CustomData):
        return CustomTask(data, fidelity, seed, numerics, group)
    if isinstance(data, TextData):
        return TextTask(data, fidelity, seed, numerics, group)
    return ImageTask(data, fidelity, seed, numerics, group, workers)


def _first_stop(checks: Sequence[TrainingStopper], state: State) -> Stop | None:
    for check in checks:
        if (stop := check.check(state)) is not None:
            return stop
    return None


def _memory(device: torch.device) -> int:
    """Return the bytes in use: of tensors on a GPU, or else of the process."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    return int(psutil.Process().memory_info().rss)


def _kind(error: BaseException) -> str:
    text = str(error)
    starved = isinstance(error, MemoryError) or "allocate" in text or "out of memory" in text
    return "out_of_memory" if starved else "runtime_error"


def _first_lines(error: BaseException) -> str:
    """Return the first lines of an error; torch appends its own stack traces."""
    lines = str(error).strip().splitlines()[:3]
    return "\n".join(lines) or type(error).__name__


def _random(device: torch.device) -> dict[str, torch.Tensor]:
    found = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(device)
    return found


def _set_random(states: dict[str, torch.Tensor]) -> None:
    if "cpu" in states:
        torch.set_rng_state(states["cpu"])
    if "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])


@contextmanager
def _private_seed(seed: int, device: torch.device) -> Iterator[None]:
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@contextmanager
def _terminations(wanted: bool) -> Iterator[threading.Event]:
    """Let SIGTERM set an event instead of ending the process, in the main thread."""
    event = threading.Event()
    with on_termination(event.set) if wanted else nullcontext():
        yield event


@contextmanager
def _reporter(progress: bool | Progress | None, steps: int) -> Iterator[Progress]:
    if callable(progress):
        yield progress
        return
    with bar("training", steps or _TICKS, bool(progress)) as advance:
        at = 0

        def report(state: State) -> None:
            nonlocal at
            now = round(state.done * (steps or _TICKS))
            advance(now - at)
            at = now

        yield report
