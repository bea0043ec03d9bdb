"""`train`: one network, one fidelity, one seed, one outcome."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from syno._errors import UserError
from syno.data import DataSet, Split
from syno.data.dataset import apportion, stratified
from syno.data.progress import bar
from syno.train.batches import TrainingBatches
from syno.train.evaluate import NonFiniteScoresError, accuracy
from syno.train.fidelities import Fidelity
from syno.train.outcome import EpochPoint, Outcome, Status
from syno.train.stoppers import AboveChance, Deadline, NonFinite, State, Stop, Stopper

Progress = Callable[[State], None]


def train(
    net: nn.Module,
    dataset: DataSet,
    fidelity: Fidelity,
    seed: int,
    *,
    deadline_s: float | None = None,
    progress: bool | Progress | None = None,
    stoppers: Sequence[Stopper] = (NonFinite(), AboveChance()),
) -> Outcome:
    """Trains `net` in place and measures its accuracy on images held out of the training split.

    net: [N, C, H, W] -> [N, classes]; its initial weights are the caller's. Left in evaluation
        mode.
    seed: of batch order, augmentation and dropout. The same network, seed and number of threads
        give the same outcome; torch's global generator is left as it was.
    deadline_s: wall-clock limit, looked at between steps.
    progress: True draws a bar on a terminal; a function is called with the State after every step.
    stoppers: what ends a hopeless training early.

    A network that fails while it runs (MemoryError, RuntimeError) gives an outcome `error`; other
    exceptions are programming errors and pass through. Raises UserError for a data set of another
    resolution than the fidelity's, for too few images, and for scores of another shape.
    """
    run = _Run(net, dataset, fidelity, seed)
    checks = [*stoppers] if deadline_s is None else [*stoppers, Deadline(deadline_s)]
    with _reporter(progress, fidelity, run.batches.steps) as report, _private_seed(seed):
        return run.execute(checks, report)


class _Run:
    """The state of one training.

    1. __init__   draws the images, sets up the optimiser
    2. execute    runs epochs until they are done or a stopper speaks, then evaluates
    3. _epoch     runs the steps of one epoch and asks the stoppers
    4. _step      forward, backward, update
    """

    def __init__(self, net: nn.Module, dataset: DataSet, fidelity: Fidelity, seed: int) -> None:
        self._started = time.perf_counter()
        self._net, self._dataset, self._fidelity, self._seed = net, dataset, fidelity, seed
        fit, self._held = _draw(dataset, fidelity)
        self.batches = TrainingBatches(
            fit,
            dataset,
            batch=fidelity.batch,
            crop=fidelity.crop,
            flip=fidelity.flip,
            seed=seed,
        )
        self._optimizer = torch.optim.SGD(
            _parameter_groups(net, fidelity.weight_decay),
            lr=fidelity.learning_rate,
            momentum=fidelity.momentum,
            nesterov=fidelity.momentum > 0,
        )
        self._parameters = [p for group in self._optimizer.param_groups for p in group["params"]]
        self._chance = math.log(len(dataset.classes))
        self._curve: list[EpochPoint] = []
        self._images_seen = 0

    def execute(self, checks: Sequence[Stopper], report: Progress) -> Outcome:
        """Trains, evaluates, and turns a failure of the network into a value."""
        self._net.train()
        try:
            for epoch in range(self._fidelity.epochs):
                stop = self._epoch(epoch, checks, report)
                if stop is not None:
                    return self._outcome(stop.status, stop.reason, stop.detail)
            quality = accuracy(self._net, self._held, self._dataset)
        except NonFiniteScoresError as error:
            return self._outcome("rejected", "non_finite_scores", str(error))
        except (NotImplementedError, RecursionError):
            raise  # subclasses of RuntimeError, but mistakes in code
        except (MemoryError, RuntimeError) as error:
            return self._outcome("error", _kind(error), _first_lines(error))
        finally:
            self._net.eval()
        return self._outcome("ok", "", "", quality)

    def _epoch(self, epoch: int, checks: Sequence[Stopper], report: Progress) -> Stop | None:
        losses: list[float] = []
        right = seen = 0
        steps = self.batches.steps
        for step, (images, labels) in enumerate(self.batches.epoch(epoch)):
            loss, hits = self._step(images, labels, epoch * steps + step)
            losses.append(loss)
            right, seen = right + hits, seen + len(labels)
            self._images_seen += len(labels)
            last = step + 1 == steps
            state = State(
                epoch=epoch,
                epochs=self._fidelity.epochs,
                step=step + 1,
                steps=steps,
                loss=loss,
                epoch_loss=float(np.mean(losses[steps // 2 :])) if last else None,
                chance=self._chance,
                seconds=time.perf_counter() - self._started,
            )
            report(state)
            for check in checks:
                if (stop := check.check(state)) is not None:
                    return stop
        self._curve.append(
            EpochPoint(epoch + 1, float(np.mean(losses)), right / seen, state.seconds)
        )
        return None

    def _step(self, images: torch.Tensor, labels: torch.Tensor, number: int) -> tuple[float, int]:
        total = self.batches.steps * self._fidelity.epochs
        rate = self._fidelity.learning_rate * schedule(number, total, self._fidelity.warmup)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad(set_to_none=True)
        scores = self._net(images)
        if scores.shape != (len(labels), len(self._dataset.classes)):
            raise UserError(
                f"the network gives scores of shape {list(scores.shape)}\n"
                f"  expected: [{len(labels)}, {len(self._dataset.classes)}], one score for each "
                f"class of '{self._dataset.name}'"
            )
        loss = functional.cross_entropy(
            scores, labels, label_smoothing=self._fidelity.label_smoothing
        )
        value = loss.item()
        if math.isfinite(value):  # otherwise a stopper speaks; the weights stay as they were
            loss.backward()
            nn.utils.clip_grad_norm_(self._parameters, self._fidelity.clip_norm)
            self._optimizer.step()
        return value, int((scores.argmax(dim=1) == labels).sum())

    def _outcome(
        self, status: Status, reason: str, detail: str, quality: float | None = None
    ) -> Outcome:
        return Outcome(
            status=status,
            reason=reason,
            detail=detail,
            accuracy=quality,
            curve=tuple(self._curve),
            loss_sum=sum(point.loss for point in self._curve),
            seconds=time.perf_counter() - self._started,
            epochs_done=len(self._curve),
            images_seen=self._images_seen,
            threads=torch.get_num_threads(),
            seed=self._seed,
            fidelity=self._fidelity.name,
        )


def schedule(step: int, steps: int, warmup: float) -> float:
    """Factor of the peak learning rate at `step` (from 0): a linear rise over the first
    `warmup * steps`, then a half cosine that ends at 0."""
    rise = warmup * steps
    if step < rise:
        return (step + 1) / (math.floor(rise) + 1)
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(steps - rise, 1)))


def _draw(dataset: DataSet, fidelity: Fidelity) -> tuple[Split, Split]:
    """(fit, held out): the held-out images depend on holdout and split_seed only, so they are the
    same at every fidelity that shares those."""
    if dataset.size != fidelity.resolution:
        raise UserError(
            f"fidelity '{fidelity.name}' trains at {fidelity.resolution} pixels, "
            f"'{dataset.name}' is loaded at {dataset.size}\n"
            f"  load it with size={fidelity.resolution}"
        )
    fit, held = dataset.holdout_index(fidelity.holdout, fidelity.split_seed)
    if fidelity.images is not None:
        if fidelity.images > len(fit):
            raise UserError(
                f"fidelity '{fidelity.name}' wants {fidelity.images} training images\n"
                f"  '{dataset.name}' has {len(fit)}, {len(held)} more are held out"
            )
        labels = dataset.train.labels[fit]
        counts = np.bincount(labels, minlength=len(dataset.classes))
        shares = apportion(counts, fidelity.images)
        fit = fit[stratified(labels, shares, fidelity.split_seed)]
    return dataset.train.take(fit), dataset.train.take(held)


def _parameter_groups(net: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Parameters with and without weight decay. Raises UserError for a network without any."""
    normalisations = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    seen: set[nn.Parameter] = set()
    for module in net.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter in seen or not parameter.requires_grad:
                continue
            seen.add(parameter)
            plain = isinstance(module, normalisations) or name == "bias"
            (free if plain else decayed).append(parameter)
    if not seen:
        raise UserError("the network has no parameters to train")
    groups = ((decayed, weight_decay), (free, 0.0))
    return [{"params": params, "weight_decay": decay} for params, decay in groups if params]


def _kind(error: BaseException) -> str:
    text = str(error)
    starved = isinstance(error, MemoryError) or "allocate" in text or "out of memory" in text
    return "out_of_memory" if starved else "runtime_error"


def _first_lines(error: BaseException) -> str:
    """Torch appends stack traces of its own; the first lines say what failed."""
    lines = str(error).strip().splitlines()[:3]
    return "\n".join(lines) or type(error).__name__


@contextmanager
def _private_seed(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def _reporter(
    progress: bool | Progress | None, fidelity: Fidelity, steps: int
) -> Iterator[Progress]:
    if callable(progress):
        yield progress
        return
    with bar("training", fidelity.epochs * steps, bool(progress)) as advance:
        yield lambda _: advance(1)
