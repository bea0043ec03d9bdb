"""How well a cheap training ranks operators: the same operators at two rungs, with several seeds.

The table is a file of JSON lines, written as results come, so that a run that was ended in any way
goes on where it was: a head, an operator a line, then a training a line. `RankingFile.read` reads
it; a benchmark of search methods can look accuracies up in it.
"""

from __future__ import annotations

import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syno._util import checks
from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.json_record import json_record
from syno.runs.file_lock import one_writer
from syno.runs.files import write_text
from syno.runs.journal import Lines, json_line, whole_lines
from syno.runs.pool import spawned

if TYPE_CHECKING:
    from torch import nn

    from syno.data import DataSet
    from syno.operators.operator import Operator
    from syno.study.evaluate.network import Network
    from syno.train import Fidelity

FORMAT = "syno ranking 1"
LOW, HIGH = "low", "high"
# How operators' first weights and rates are chosen: as ever (operators/initialization.py), with
# the first weights alone, or with neither.
SCALED, INITIAL, PLAIN = "scaled", "initial", "plain"
# Samples in a training step that is timed.
_BATCH = 64


@dataclass(frozen=True)
class Settings:
    """What a table is of; two runs add to one table only when these are equal.

    model, data: names; low, high: fidelities as JSON; seeds: of the low rung, from 0 on; part: one
    of so many operators is trained at the high rung, by strata of the low rung's first seed; arms:
    so many operators are trained at the low rung with other scales, too; draw: the seed of all
    draws; max_slowdown: drawn operators whose training step takes longer than so many of the
    original's are left out, as a search does; train_images: what the data has for training, the
    validation split excluded.
    """

    model: str
    model_options: dict[str, int]
    data: str
    low: dict[str, Any]
    high: dict[str, Any]
    seeds: int = 2
    part: int = 3
    arms: int = 30
    draw: int = 0
    max_slowdown: float = 2.0
    train_images: int = 45_000  # CIFAR-10's, for tables of before


@dataclass(frozen=True)
class RankingEntry:
    """An operator of the table. name: in the zoo, empty for a drawn one; specification: as JSON;
    macs, params: of the layers that it replaces and of those that kept their layer, for one sample;
    slowdown: its training step's time over the original's, on the machine of the table."""

    name: str
    key: str
    text: str
    specification: str
    macs: int
    params: int
    slowdown: float


@dataclass(frozen=True)
class RankingRun:
    """A training. operator: its place in the table; losses: mean training loss of each epoch;
    accuracy: on the validation split, 0 to 1, None with a reason where there is none."""

    operator: int
    rung: str
    scales: str
    seed: int
    accuracy: float | None
    losses: tuple[float, ...]
    seconds: float
    reason: str = ""

    @property
    def job(self) -> Job:
        """What was asked for."""
        return self.operator, self.rung, self.scales, self.seed


# operator, rung, scales, seed
Job = tuple[int, str, str, int]


@dataclass
class RankingFile:
    """All that a file holds."""

    settings: Settings
    environment: dict[str, object]
    entries: list[RankingEntry] = field(default_factory=list)
    runs: list[RankingRun] = field(default_factory=list)

    @staticmethod
    def read(path: Path) -> RankingFile:
        """Reads a file; a last line that was cut off is left out. UserError for anything else."""
        lines = _lines(path)
        if not lines or not isinstance(lines[0], dict) or lines[0].get("format") != FORMAT:
            raise UserError(f"'{path}' is no table of `syno experiment ranking`")
        try:
            return _table(*lines)
        except UserError as error:
            raise UserError(f"'{path}' is damaged: {error}") from error

    def write(self, path: Path) -> None:
        """Writes all of it, in the place of what is there."""
        specifications = list(dict.fromkeys(entry.specification for entry in self.entries))
        head = {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "environment": self.environment,
            "specifications": specifications,
        }
        lines: list[Mapping[str, object]] = [head]
        for entry in self.entries:
            lines.append(
                asdict(entry) | {"specification": specifications.index(entry.specification)}
            )
        lines += [asdict(run) for run in self.runs]
        write_text(path, "".join(map(json_line, lines)), "the table", "--out")

    def accuracies(self, rung: str, seed: int = 0, scales: str = SCALED) -> dict[int, float]:
        """Accuracy by operator, of the trainings that succeeded."""
        return {
            run.operator: run.accuracy
            for run in self.runs
            if (run.rung, run.seed, run.scales) == (rung, seed, scales) and run.accuracy is not None
        }

    def seconds(self, rung: str) -> list[float]:
        """Wall-clock seconds of the trainings at a rung."""
        return [run.seconds for run in self.runs if run.rung == rung and run.accuracy is not None]

    def waiting(self) -> Iterator[Job]:
        """Trainings still to do, in order. The high rung's wait for the low rung's first seed."""
        done = {run.job for run in self.runs}
        for job in self._jobs():
            if job not in done:
                yield job

    def _jobs(self) -> Iterator[Job]:
        count = range(len(self.entries))
        seeds = range(self.settings.seeds)
        yield from ((i, LOW, SCALED, seed) for seed in seeds for i in count)
        if len({run.operator for run in self.runs if run.job[1:] == (LOW, SCALED, 0)}) == len(
            count
        ):
            yield from ((i, HIGH, SCALED, 0) for i in self.stratified())
        arms = random.Random(self.settings.draw).sample(count, min(self.settings.arms, len(count)))
        for scales in (PLAIN, INITIAL):
            yield from ((i, LOW, scales, seed) for seed in seeds for i in arms)

    def stratified(self) -> list[int]:
        """One operator of each `part` neighbours in the order of the low rung's first seed."""
        found = self.accuracies(LOW)
        order = sorted(found, key=lambda i: (-found[i], i))
        draw = random.Random(self.settings.draw)
        size = self.settings.part
        picked = [draw.choice(order[at : at + size]) for at in range(0, len(order), size)]
        draw.shuffle(picked)  # what is there of a run that is not finished covers all strata
        return picked


@dataclass(frozen=True)
class _Head:
    """The first line of a file; provenance: marks of a committed one (tools/check_results.py)."""

    format: str
    settings: Mapping[str, Any]
    environment: dict[str, Any]
    specifications: list[str]
    provenance: Mapping[str, str] = field(default_factory=dict)


def _table(first: object, *rest: object) -> RankingFile:
    head = json_record(_Head, "line 1", first)
    table = RankingFile(json_record(Settings, "the settings", head.settings), head.environment)
    for number, line in enumerate(rest, start=2):
        what = f"line {number}"
        if isinstance(line, dict) and "text" in line:
            most = len(head.specifications) - 1
            which = checks.whole(f"'specification' of {what}", line.get("specification"), 0, most)
            content = {**line, "specification": head.specifications[which]}
            table.entries.append(json_record(RankingEntry, what, content))
        else:
            table.runs.append(json_record(RankingRun, what, line, infinite=("losses",)))
    for run in table.runs:
        checks.whole("the number of an operator", run.operator, 0, len(table.entries) - 1)
    return table


def _lines(path: Path) -> list[Any]:
    try:
        lines = whole_lines(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read '{path}': {error}") from error
    try:
        return [parsed_json(line) for line in lines]
    except ValueError as error:
        raise UserError(f"'{path}' is damaged: {error}") from error


Progress = Callable[[int, int, str], None]


def select_operators(
    network: Network,
    samples: Sequence[Operator],
    named: Sequence[tuple[str, Operator]],
    settings: Settings,
    count: int,
    progress: Progress | None = None,
) -> list[RankingEntry]:
    """Select the operators of a table: the named ones, then `count` of the samples.

    Samples that are slower than `max_slowdown`, or equal to an earlier operator, are skipped;
    named operators are included even if they are slow.

    Raises:
        UserError: there are too few samples.
    """
    entries: list[RankingEntry] = []
    keys: set[str] = set()
    for name, operator in named:
        entries.append(_entry(network, name, operator))
        keys.add(operator.key)
    order = list(samples)
    random.Random(settings.draw).shuffle(order)
    drawn = 0
    for operator in order:
        if drawn == count:
            return entries
        if operator.key in keys:
            continue
        keys.add(operator.key)
        entry = _entry(network, "", operator)
        if entry.slowdown <= settings.max_slowdown:
            entries.append(entry)
            drawn += 1
            if progress is not None:
                progress(drawn, count, f"{entry.slowdown:.2f} of the original's step")
    if drawn == count:
        return entries
    raise UserError(
        f"only {drawn} of {count} operators take at most {settings.max_slowdown:g} times the "
        "original's step\n  what to do: ask for fewer, or raise --max-slowdown"
    )


def _entry(network: Network, name: str, operator: Operator) -> RankingEntry:
    if operator.specification is None:
        raise UserError(f"operator '{name or operator.key[:8]}' comes without a specification")
    from syno.measure import step_slowdown

    net, report = network.with_operator(operator)
    macs, params = network.cost(operator, report)
    return RankingEntry(
        name=name,
        key=operator.key,
        text=operator.text,
        specification=operator.specification.to_json(),
        macs=macs or 0,
        params=params,
        slowdown=round(step_slowdown(network.original(), net, network.inputs(_BATCH)), 3),
    )


@one_writer
def run(
    path: Path,
    *,
    data_dir: str | None = None,
    jobs: int = 1,
    limit: int | None = None,
    progress: Progress | None = None,
) -> RankingFile:
    """Does what the table in the file still lacks, and adds each training as it ends.

    jobs: processes, of one thread each; limit: so many trainings at most.
    """
    table = RankingFile.read(path)
    total = len(table.runs) + len(list(table.waiting()))
    left = math.inf if limit is None else limit
    with spawned(jobs, _start, str(path), data_dir, os.getpid()) as pool, Lines(path) as lines:
        running: dict[Future[RankingRun], Job] = {}
        while True:
            taken = set(running.values())
            free = [job for job in table.waiting() if job not in taken]
            while free and len(running) < jobs and left > 0:
                job = free.pop(0)
                running[pool.submit(_train, job)] = job
                left -= 1
            if not running:
                return table
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                running.pop(future)
                found = future.result()
                table.runs.append(found)
                lines.add(asdict(found))
                total = max(total, len(table.runs) + len(list(table.waiting())))
                if progress is not None:
                    progress(len(table.runs), total, _shown(table, found))


def _shown(table: RankingFile, found: RankingRun) -> str:
    entry = table.entries[found.operator]
    result = found.reason if found.accuracy is None else f"{found.accuracy:.4f}"
    return f"{entry.name or entry.key[:8]} {found.rung} {found.scales} {found.seed}: {result}"


@dataclass(frozen=True)
class _Held:
    """What a process of the pool holds: data by the size of images."""

    table: RankingFile
    fidelities: dict[str, Fidelity]
    data: dict[int | None, DataSet]


_held: _Held | None = None


def _start(path: str, data_dir: str | None, parent: int) -> None:
    """Loads what every training needs; the process ends when its parent is gone."""
    import torch

    from syno.data import load
    from syno.train import Fidelity

    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    torch.set_num_threads(1)
    table = RankingFile.read(Path(path))
    settings = table.settings
    fidelities = {
        rung: Fidelity.from_json(each)
        for rung, each in ((LOW, settings.low), (HIGH, settings.high))
    }
    sizes = {fidelity.loaded_at for fidelity in fidelities.values()}
    data = {
        size: load(settings.data, data_dir=data_dir, size=size, progress=False) for size in sizes
    }
    global _held
    _held = _Held(table, fidelities, data)


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _train(job: Job) -> RankingRun:
    from syno.train import train

    which, rung, scales, seed = job
    assert _held is not None
    table, fidelity = _held.table, _held.fidelities[rung]
    if scales != SCALED:
        fidelity = fidelity.changed(step_scales=False)
    net = _net(table, which, rung, scales, seed)
    outcome = train(net, _held.data[fidelity.loaded_at], fidelity, seed)
    return RankingRun(
        operator=which,
        rung=rung,
        scales=scales,
        seed=seed,
        accuracy=None if not outcome.ok or outcome.accuracy is None else round(outcome.accuracy, 5),
        losses=tuple(round(point.loss, 5) for point in outcome.curve),
        seconds=round(outcome.seconds, 2),
        reason=outcome.why,
    )


def _net(table: RankingFile, which: int, rung: str, scales: str, seed: int) -> nn.Module:
    """The network of a seed with the operator in it."""
    from syno.operators.operator import Operator
    from syno.operators.specification import Specification
    from syno.study.evaluate.network import Network

    entry = table.entries[which]
    assert _held is not None
    fidelity = _held.fidelities[rung]
    network = Network.named(
        table.settings.model,
        table.settings.model_options,
        _held.data[fidelity.loaded_at],
        seed,
        size=fidelity.resolution,
    )
    operator = Operator.from_text(entry.text, Specification.from_json(entry.specification))
    return network.with_operator(operator, scaled=scales != PLAIN)[0]
