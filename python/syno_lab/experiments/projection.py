"""A projection of a language model beside its original: at equal steps, and at equal time.

Each is trained for the same steps. Then the operator is trained once more, for as many steps as
take the time that the original's took: by the ratio of their steps, measured in turns in one
process, not by a clock. What else the machine does then changes neither how long anything is
trained nor what it learns, so the result is the same whenever it is asked for.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.torch_threads import torch_threads
from syno.runs.file_lock import one_writer
from syno.runs.files import write_json
from syno.runs.journal import Journal
from syno.study.training.comparison import Paired, Spread, paired

if TYPE_CHECKING:
    from torch import nn

    from syno.data import TextData
    from syno.operators.operator import Operator
    from syno.study.evaluate.network import Network
    from syno.study.training.trainings import Trainings
    from syno.train import Fidelity

FORMAT = "syno projection 1"
ORIGINAL, OPERATOR = "original", "operator"
STEPS, TIME = "steps", "time"
# What is trained: at equal time the original has as many steps as before, so it is not done twice.
WAYS = ((ORIGINAL, STEPS), (OPERATOR, STEPS), (OPERATOR, TIME))
ROUNDS = 30
# What is trained, in which way, with which seed.
Job = tuple[str, str, int]
_WARMUP = 3


@dataclass(frozen=True)
class StepParts:
    """Medians over rounds of a training step of one batch, in milliseconds: forward pass with the
    loss, backward pass, and the update of the weights with the clipping of gradients."""

    forward_ms: float
    backward_ms: float
    update_ms: float

    @property
    def step_ms(self) -> float:
        """All three."""
        return self.forward_ms + self.backward_ms + self.update_ms


@dataclass(frozen=True)
class StepTimes:
    """Steps of both networks, measured in turns; `ratio` is the median over rounds of the time of
    the operator's whole step to the original's, below 1 where it is faster."""

    original: StepParts
    operator: StepParts
    ratio: float
    rounds: int


@dataclass(frozen=True)
class ProjectionRun:
    """One training.

    what: `original` or `operator`; way: equal `steps`, or equal `time`; loss (nats a token),
    perplexity and bits_a_byte on the validation tokens; losses: mean training loss of each
    twentieth.
    """

    what: str
    way: str
    seed: int
    status: str
    reason: str
    steps: int
    loss: float | None
    perplexity: float | None
    bits_a_byte: float | None
    losses: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class ProjectionRow:
    """All seeds of one network in one way.

    loss: on the validation split, in nats a token; beside: its difference from the original's.
    """

    what: str
    way: str
    steps: int
    loss: Spread | None
    beside: Paired | None


@dataclass
class ProjectionComparison:
    """All that was measured; `settings` say what depends on what."""

    settings: dict[str, Any]
    timing: StepTimes | None = None
    runs: list[ProjectionRun] = field(default_factory=list)
    environment: dict[str, object] = field(default_factory=dict)

    def run(self, what: str, way: str, seed: int) -> ProjectionRun | None:
        """The training, where it was done; the original's at equal time is that at equal steps."""
        way = STEPS if what == ORIGINAL else way
        return next((r for r in self.runs if (r.what, r.way, r.seed) == (what, way, seed)), None)

    def seeds(self) -> list[int]:
        """Those of which anything was trained."""
        return sorted({run.seed for run in self.runs})

    def values(self, what: str, way: str, measure: str = "loss") -> dict[int, float]:
        """A measure of the trainings that succeeded, by seed."""
        runs = [self.run(what, way, seed) for seed in self.seeds()]
        found = {run.seed: getattr(run, measure) for run in runs if run and run.status == "ok"}
        return {seed: value for seed, value in found.items() if value is not None}

    def rows(self) -> list[ProjectionRow]:
        """A row for each of WAYS."""
        originals = self.values(ORIGINAL, STEPS)
        rows = []
        for what, way in WAYS:
            values = self.values(what, way)
            steps = next((run.steps for run in self.runs if (run.what, run.way) == (what, way)), 0)
            pair = paired(values, originals, greater_is_better=False) if what == OPERATOR else None
            rows.append(ProjectionRow(what, way, steps, Spread.of(list(values.values())), pair))
        return rows

    def as_json(self) -> dict[str, object]:
        """What it comes to, as plain values."""
        timing = None if self.timing is None else dataclasses.asdict(self.timing)
        rows = [dataclasses.asdict(row) for row in self.rows()]
        return {"timing": timing, "rows": rows, "seeds": self.seeds()}

    def to_json(self) -> dict[str, object]:
        """As the file holds it."""
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @staticmethod
    def from_json(content: dict[str, Any]) -> ProjectionComparison:
        """The inverse of `to_json`."""
        timing = content["timing"]
        return ProjectionComparison(
            # In files from before there was a choice, it was the processor.
            settings={"device": "cpu", **content["settings"]},
            timing=None
            if timing is None
            else StepTimes(
                StepParts(**timing["original"]),
                StepParts(**timing["operator"]),
                timing["ratio"],
                timing["rounds"],
            ),
            runs=[
                ProjectionRun(**{**run, "losses": tuple(run["losses"])}) for run in content["runs"]
            ],
            environment=content["environment"],
        )


class PausedError(Exception):
    """SIGTERM came; the same call goes on from where it was."""


@one_writer
def compare_projection(
    networks: Callable[[int], Network],
    operator: Operator,
    data: TextData,
    fidelity: Fidelity,
    *,
    seeds: Sequence[int],
    path: Path,
    settings: Mapping[str, object],
    threads: int = 1,
    device: str = "cpu",
    rounds: int = ROUNDS,
    progress: Callable[[int, int, str], None] | None = None,
) -> ProjectionComparison:
    """Trains and times both, and keeps every result in the file at `path` as soon as it is known.

    networks: the network with the initial weights of a seed; settings: what the file is about,
    beside fidelity, data and operator; device: where both are trained and timed. A file that is
    there is continued: nothing is trained twice, and a training that was interrupted continues from
    its last checkpoint beside the file.
    progress: called with (trainings done, of how many, what is going on).

    UserError for a file of other settings, for a fidelity that is measured in seconds, and for an
    operator that reads later positions. Raises
    PausedError.
    """
    if fidelity.steps is None:
        raise UserError(
            f"fidelity '{fidelity.name}' lasts {fidelity.seconds} seconds: equal steps need steps\n"
            "  expected: a fidelity with steps, such as fast/text; or --steps"
        )
    network = networks(seeds[0])
    leak = network.future_read(_with(network, operator), operator)
    if leak is not None:
        raise UserError(
            f"the operator cannot be compared: {leak}\n"
            "  expected: an operator whose outputs read their own position and earlier ones"
        )
    found = _opened(path, _settings(operator, data, fidelity, settings))
    jobs = [(what, way, seed) for seed in seeds for what, way in WAYS]
    report = progress or (lambda done, total, remark: None)
    if found.timing is None:
        report(0, len(jobs), "timing steps")
        found.timing = _timed(network, operator, data, fidelity, threads, device, rounds)
        found.environment = _environment(threads, device)
        write(found, path)

    def keep(_: Job, run: ProjectionRun) -> None:
        found.runs.append(run)
        write(found, path)

    journal = Journal({(run.what, run.way, run.seed): run for run in found.runs}, keep)
    for job in list(journal.waiting(jobs)):
        what, way, seed = job

        def moved(share: float, job: Job = job) -> None:
            remark = f"{job[0]} at equal {job[1]}, seed {job[2]}: {share:.0%}"
            report(jobs.index(job), len(jobs), remark)

        checkpoint = path.with_name(f"{path.stem}-{what}-{way}-{seed}.ckpt")
        amount = fidelity
        if way == TIME:
            steps = max(round(fidelity.steps / found.timing.ratio), 1)
            amount = fidelity.changed(steps=steps)
        net = networks(seed).original() if what == ORIGINAL else _with(networks(seed), operator)
        journal.put(job, _trained(net, data, amount, job, threads, device, checkpoint, moved))
        checkpoint.unlink(missing_ok=True)
    return found


def write(found: ProjectionComparison, path: Path) -> None:
    """Replaces the file at once: it is whole at every moment."""
    write_json(path, found.to_json(), "the results", "--out")


def read(path: Path) -> ProjectionComparison:
    """What `write` wrote. UserError for another file."""
    try:
        content = parsed_json(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is '{content['format']}'")
        return ProjectionComparison.from_json(content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the file '{path}' holds no results of this experiment: {error}\n"
            f"  expected: one that the same command wrote ({FORMAT}), or a new file"
        ) from error


def _opened(path: Path, settings: Mapping[str, object]) -> ProjectionComparison:
    if not path.exists():
        return ProjectionComparison(dict(settings))
    found = read(path)
    for name, value in settings.items():
        before = found.settings.get(name)
        if before != value:
            raise UserError(
                f"the results in '{path}' are of another {name}\n"
                f"  expected: {before}      got: {value}\n"
                "  what to do: take another file, or the options that it was begun with"
            )
    return found


def _settings(
    operator: Operator, data: TextData, fidelity: Fidelity, settings: Mapping[str, object]
) -> dict[str, object]:
    content = {
        **settings,
        "operator": operator.text,
        "data": {"name": Path(data.name).name, "fingerprint": data.fingerprint},
        "fidelity": fidelity.to_json(),
    }
    return dict(json.loads(json.dumps(content)))


def _environment(threads: int, device: str) -> dict[str, object]:
    import torch

    from syno.space.rules import rule_set
    from syno.store import capture_environment

    name = None if device == "cpu" else torch.cuda.get_device_name(device)
    found = capture_environment(threads=threads, rules=rule_set((), ()).version, device=name)
    return dataclasses.asdict(found)


def _with(network: Network, operator: Operator) -> nn.Module:
    net, _ = network.with_operator(operator)
    return net


def _timed(
    network: Network,
    operator: Operator,
    data: TextData,
    fidelity: Fidelity,
    threads: int,
    device: str,
    rounds: int,
) -> StepTimes:
    """Steps of both in turns, so that what disturbs the machine disturbs both."""
    nets = [network.original(), _with(network, operator)]
    steppers = [_Stepper(net, data, fidelity, device) for net in nets]
    with torch_threads(threads):
        taken = [[stepper.step() for stepper in steppers] for _ in range(_WARMUP + rounds)]
    taken = taken[_WARMUP:]
    ratios = [sum(own) / sum(original) for original, own in taken]
    medians = [
        StepParts(*(statistics.median(r[n][part] * 1e3 for r in taken) for part in range(3)))
        for n in range(2)
    ]
    return StepTimes(medians[0], medians[1], statistics.median(ratios), rounds)


class _Stepper:
    """Takes training steps as the trainer does, part by part."""

    def __init__(self, net: nn.Module, data: TextData, fidelity: Fidelity, device: str) -> None:
        import torch

        from syno.train.optimizers import make_optimizer

        assert fidelity.context is not None
        self._net = net.to(device).train()
        self._device = device
        self._recipe = fidelity.recipe
        self._optimizer = make_optimizer(net, fidelity.recipe)
        inputs, targets = next(data.batches(fidelity.context, fidelity.batch, 0))
        self._inputs = torch.from_numpy(inputs).to(device)
        self._targets = torch.from_numpy(targets).to(device)

    def step(self) -> tuple[float, float, float]:
        """Seconds of the forward pass, of the backward pass and of the update."""
        from torch import nn

        self._optimizer.zero_grad(set_to_none=True)
        marks = [self._now()]
        scores = self._net(self._inputs).flatten(0, 1)
        loss = nn.functional.cross_entropy(scores, self._targets.flatten())
        marks.append(self._now())
        loss.backward()
        marks.append(self._now())
        if self._recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self._net.parameters(), self._recipe.clip_norm)
        self._optimizer.step()
        marks.append(self._now())
        return marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2]

    def _now(self) -> float:
        """The time when the device has done what was asked of it."""
        import torch

        if self._device != "cpu":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def _trained(
    net: nn.Module,
    data: TextData,
    fidelity: Fidelity,
    job: tuple[str, str, int],
    threads: int,
    device: str,
    checkpoint: Path,
    moved: Callable[[float], None],
) -> ProjectionRun:
    from syno.train import State, train

    what, way, seed = job

    def report(state: State) -> None:
        if state.epoch_loss is not None:
            moved(state.done)

    with torch_threads(threads):
        outcome = train(
            net, data, fidelity, seed, progress=report, checkpoint=checkpoint, device=device
        )
    if outcome.status == "paused":
        raise PausedError
    return ProjectionRun(
        what=what,
        way=way,
        seed=seed,
        status=outcome.status,
        reason=outcome.why,
        steps=outcome.steps,
        loss=outcome.loss,
        perplexity=outcome.perplexity,
        bits_a_byte=outcome.bits_a_byte,
        losses=tuple(point.loss for point in outcome.curve),
        seconds=outcome.seconds,
    )


def prepared(trainings: Trainings, op: str) -> dict[str, Any]:
    """Loads the data, builds the network and takes the one operator in; the settings of a
    comparison that is made of them."""
    from syno.operands.layers import layer_specification
    from syno.operands.lookup import named_operators

    trainings.prepare()
    layers = layer_specification(trainings.network(trainings.seeds[0]).template, trainings.sizes)
    chosen = named_operators([op], layers=layers)
    if len(chosen) != 1:
        raise UserError(f"'{op}' names {len(chosen)} operators\n  expected: one")
    trainings.adopt(chosen)
    return {
        "model": trainings.model,
        "model_options": trainings.options.model_options,
        "name": chosen[0].name,
        "sizes": dict(trainings.sizes),
        "threads": trainings.options.timing.threads,
        "device": trainings.options.device,
    }
