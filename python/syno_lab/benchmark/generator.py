"""Generates a table: enumerates its space, then trains every operator with a fixed recipe.

Results are appended to `NAME.jsonl.gz.journal` as they come, and packed into the table now and
then, so that a killed run continues where it was (`TableFile`).
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from syno._util.checks import json_content
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.runs.file_lock import one_writer
from syno.runs.journal import Journal, Lines, whole_lines
from syno_lab.benchmark.configuration import Configuration
from syno_lab.benchmark.table import (
    BASELINE,
    BenchmarkTable,
    Latency,
    TableResult,
    TableRow,
    as_line,
    from_line,
)

if TYPE_CHECKING:
    from syno.study.evaluate.loading import NamedData
    from syno.study.evaluate.network import Network
    from syno.train import Fidelity

PACK = 25
# A job whose process ended this often is a failure.
MOST_STARTS = 3
# The enumeration must end before this number of nodes.
_MAX_NODES = 20_000_000

# The number of an operator, and a seed.
Job = tuple[int, int]
R = TypeVar("R", TableResult, Latency)
Progress = Callable[[int, int, str], None]


def new_table(configuration: Configuration, data_dir: str | None = None) -> BenchmarkTable:
    """Enumerate the space of a configuration. Nothing is trained.

    Raises:
        UserError: if the space is too large to be enumerated, or empty.
    """
    from syno.network.sampler import Sampler
    from syno.network.surgery import slot_bindings
    from syno.operators.specification import Specification
    from syno.store import capture_environment

    network = Trainer(configuration, data_dir).network(0)
    given = dict(configuration.specification)
    given["passed_through"] = [tuple(pair) for pair in given.get("passed_through", [])]
    layers = slot_bindings(network.template, Specification(**given))
    specification = configuration.specification_for(layers, network.macs or 0)
    sampler = Sampler.from_specification(specification, max_nodes=_MAX_NODES)
    if not sampler.statistics()["exhausted"]:
        raise UserError(
            f"the space of table '{configuration.name}' was not enumerated completely with "
            f"{_MAX_NODES:,} nodes\n  what to do: a smaller max_depth, or smaller budgets"
        )
    first: dict[str, Operator] = {}
    for operator in sampler.operators:
        first.setdefault(operator.key, operator)
    if not first:
        raise UserError(f"the space of table '{configuration.name}' has no operator")
    keys = sorted(first)
    random.Random(configuration.order_seed).shuffle(keys)
    rows = []
    for key in keys[: configuration.operators]:
        _, report = network.with_operator(first[key])
        macs, params = network.cost(first[key], report)
        rows.append(TableRow(key, first[key].text, macs or 0, params))
    environment = asdict(capture_environment(threads=1, rules=sampler.rules))
    environment["space"] = len(keys)
    made = BenchmarkTable(
        configuration, specification, environment, rows, network.macs or 0, network.params
    )
    return made.with_orbits(configuration.symmetries)


def adopt(path: Path, configuration: Configuration) -> None:
    """Give the symmetries of a configuration to an existing table.

    Raises:
        UserError: if the configuration differs from that of the table in anything else.
    """
    table, _ = recovered(path)
    plain = [
        c.to_json() | {"symmetries": [], "summary": ""}
        for c in (table.configuration, configuration)
    ]
    before, after = (json.loads(json.dumps(content)) for content in plain)
    if before != after:
        other = ", ".join(name for name in after if after[name] != before.get(name))
        raise UserError(
            f"table '{path}' was made with another configuration\n"
            f"  different: {other}\n"
            "  what to do: name another file with --out, or leave out --configuration"
        )
    with TableFile(path) as file:
        file.table = file.table.with_orbits(configuration.symmetries)


def jobs(table: BenchmarkTable) -> Iterator[Job]:
    """Yield all trainings of a table that are known so far, in their order.

    First the original network, then every operator with seed 0. When these are done, those at the
    start of the order and the best ones with more seeds.
    """
    given = table.configuration
    count = len(table.rows)
    yield from ((BASELINE, seed) for seed in range(given.best_repeats))
    yield from ((number, 0) for number in range(count))
    first = {r.operator: r for r in table.results if r.seed == 0 and r.operator != BASELINE}
    if len(first) < count:
        return
    for number in range(min(given.repeated, count)):
        yield from ((number, seed) for seed in range(given.repeats))
    values = {i: table.objective.of(r.accuracy, {"loss": r.loss}) for i, r in first.items()}
    good = {i: table.objective.score(v) for i, v in values.items() if v is not None}
    order = sorted(good, key=lambda i: (-good[i], i))
    for number in sorted(order[: given.best]):
        yield from ((number, seed) for seed in range(given.best_repeats))


class Trainer:
    """Trains the operators of a table; data and networks are built once."""

    def __init__(self, configuration: Configuration, data_dir: str | None = None) -> None:
        from syno.study.evaluate.loading import load_for

        self._configuration = configuration
        self._fidelity: Fidelity = configuration.made_fidelity()
        self.data: NamedData = load_for(
            configuration.data,
            data_dir,
            self._fidelity,
            configuration.tokenizer,
            progress=False,
        )
        self._networks: dict[int, Network] = {}

    def network(self, seed: int) -> Network:
        """Return the network with the initial weights of a seed."""
        from syno.study.evaluate.network import Network

        if seed not in self._networks:
            self._networks[seed] = Network.named(
                self._configuration.model,
                self._configuration.model_options,
                self.data,
                seed,
                size=self._fidelity.resolution,
                context=self._fidelity.context,
            )
        return self._networks[seed]

    def train(self, table: BenchmarkTable, job: Job) -> TableResult:
        """Train one operator, or the original network, with one seed."""
        from syno.train import DEFAULT_STOPPERS, ProcessorTimeLimit, train

        number, seed = job
        network = self.network(seed)
        if number == BASELINE:
            net = network.original()
        else:
            text = table.rows[number].text
            net, _ = network.with_operator(Operator.from_text(text, table.specification))
        began = time.process_time()
        stoppers = (*DEFAULT_STOPPERS, ProcessorTimeLimit(self._configuration.deadline_s, began))
        outcome = train(net, self.data, self._fidelity, seed, stoppers=stoppers)
        curve = [_rounded(point.accuracy) for point in outcome.curve]
        if outcome.ok:
            curve.append(_rounded(outcome.accuracy))
        return TableResult(
            operator=number,
            seed=seed,
            accuracy=_rounded(outcome.accuracy) if outcome.ok else None,
            curve=tuple(value for value in curve if value is not None),
            losses=tuple(round(point.loss, 4) for point in outcome.curve),
            seconds=round(time.process_time() - began, 2),
            status=outcome.status,
            reason=outcome.why,
            loss=None if outcome.loss is None else round(outcome.loss, 5),
        )


@one_writer
def generate(
    path: Path,
    *,
    data_dir: str | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> BenchmarkTable:
    """Train what the table in a file still lacks.

    Args:
        path: the file, which `new_table` and `BenchmarkTable.write` made.
        data_dir: the folder of the data.
        limit: the maximum number of trainings.
        progress: called after each training with (done, known trainings, what was done).
    """
    import torch

    torch.set_num_threads(1)
    with TableFile(path) as file:
        table = file.table
        trainer = Trainer(table.configuration, data_dir)
        for _ in itertools.count() if limit is None else range(limit):
            known = dict.fromkeys(jobs(table))
            job = next(file.results.waiting(known), None)
            if job is None:
                break
            result = file.results.once(job, partial(_trained, file, trainer, job))
            if progress is not None:
                progress(len(file.results.done), len(known), _shown(table, result))
    return table


def _trained(file: TableFile, trainer: Trainer, job: Job) -> TableResult:
    if file.started[job] >= MOST_STARTS:
        why = f"the process ended {file.started[job]} times during the training"
        return TableResult(*job, None, (), (), 0.0, "error", why)
    file.begin(job)
    return trainer.train(file.table, job)


class TableFile:
    """A table that is being filled, with the lines beside its file that it does not hold yet.

    One process at a time has it. The lines are packed into the table after every `PACK` of them,
    and at the end of a block.

    Args:
        path: the file of the table.
    """

    def __init__(self, path: Path) -> None:
        self.table, self.started = recovered(path)
        table = self.table
        self._path, self._lines, self._added = path, Lines(journal_of(path)), 0
        self.results = Journal({(r.operator, r.seed): r for r in table.results}, self._add_result)
        self.latencies = Journal({each.operator: each for each in table.latencies}, self._add)

    def __enter__(self) -> TableFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._lines:
            if kind is None:
                self._pack()

    def begin(self, job: Job) -> None:
        """Note that a training begins, which may end the process."""
        self._lines.add({"started": list(job)})

    def _add_result(self, _: Job, result: TableResult) -> None:
        self._keep(self.table.results, result)

    def _add(self, _: int, latency: Latency) -> None:
        self._keep(self.table.latencies, latency)

    def _keep(self, records: list[R], record: R) -> None:
        records.append(record)
        self._lines.add(as_line(record))
        self._added += 1
        if self._added % PACK == 0:
            self._pack()

    def _pack(self) -> None:
        self.table.write(self._path)
        self._lines.clear()


def journal_of(path: Path) -> Path:
    """Return the path of the lines beside a table."""
    return path.with_name(path.name + ".journal")


def recovered(path: Path) -> tuple[BenchmarkTable, Counter[Job]]:
    """Read a table with what the lines beside it add.

    Returns:
        The table, and how often each training was started without a result.
    """
    table = BenchmarkTable.read(path)
    results = {(r.operator, r.seed): r for r in table.results}
    latencies = {latency.operator: latency for latency in table.latencies}
    started: Counter[Job] = Counter()
    file = journal_of(path)
    for number, line in enumerate(whole_lines(file) if file.is_file() else [], start=1):
        what = f"line {number} of the journal '{file}'"
        content = json_content(what, line)
        if isinstance(content, dict) and "started" in content:
            started[_started(what, content)] += 1
            continue
        record = from_line(what, content)
        if isinstance(record, Latency):
            latencies[record.operator] = record
        elif isinstance(record, TableResult):
            results[record.operator, record.seed] = record
    for job in results:
        started.pop(job, None)
    table.results, table.latencies = list(results.values()), list(latencies.values())
    return table, started


def _started(what: str, content: dict[str, object]) -> Job:
    match content["started"]:
        case [int(operator), int(seed)]:
            return operator, seed
    raise UserError(f"{what} names no training that was started")


def _shown(table: BenchmarkTable, result: TableResult) -> str:
    name = "original" if result.operator == BASELINE else table.rows[result.operator].key[:8]
    value = result.reason if result.accuracy is None else f"{result.accuracy:.4f}"
    return f"{name} seed {result.seed}: {value} in {result.seconds:.1f} s"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
