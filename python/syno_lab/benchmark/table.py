"""Tables of trained operators: every operator of a space with its results, in one file.

A file `NAME.jsonl.gz` has one JSON document in a line: a head, then an operator in a line, then a
training in a line, then a latency in a line. The operators are in the random order in which they
are trained, so that the operators of an unfinished table are a uniform sample of the space.
"""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from syno._util import checks
from syno._util.checks import json_content, parsed_json, shown
from syno._util.errors import UserError
from syno._util.json_record import json_record
from syno._util.packed import packed_lines
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.runs.files import write_whole
from syno.runs.journal import json_line
from syno.space.orbits import orbits
from syno.store.objective import ACCURACY, LOSS, Objective
from syno.store.records import OK
from syno.study.members import Members
from syno.study.methods.history import Trial
from syno_lab.benchmark.configuration import Configuration

FORMAT = "syno table"
VERSION = 1
SUFFIX = ".jsonl.gz"
# The number of the original network in the place of an operator.
BASELINE = -1
# Characters of a line of a file and of all lines, which a small compressed file may exceed by far.
MOST_LINE, MOST_ALL = 1 << 20, 1 << 27
# Where the tables of the source tree are.
FOLDER = Path(__file__).resolve().parents[3] / "bench" / "tabular"


@dataclass(frozen=True)
class TableRow:
    """An operator.

    macs, params: of all layers that it replaces, for one sample.
    orbit: the number of the first operator that the symmetries of the configuration map it to; None
        without symmetries.
    """

    key: str
    text: str
    macs: int
    params: int
    orbit: int | None = None


@dataclass(frozen=True)
class TableResult:
    """A training.

    operator: the number of the operator, or BASELINE.
    seed: of the initial weights, the order of batches and the augmentation.
    accuracy: on the validation split, from 0 to 1; None for a failure.
    curve: the validation accuracy after each epoch in which it was measured, the last included.
    losses: the mean training loss of each epoch.
    seconds: processor time of training and evaluation on one thread.
    status, reason: as in `syno.train.TrainingOutcome`.
    loss: on the validation split, for text.
    """

    operator: int
    seed: int
    accuracy: float | None
    curve: tuple[float, ...]
    losses: tuple[float, ...]
    seconds: float
    status: str = "ok"
    reason: str = ""
    loss: float | None = None


@dataclass(frozen=True)
class Latency:
    """The median latency of the compiled network with the operator, in milliseconds.

    ratio: the latency divided by that of the original network, measured alternately; None with a
    reason where it could not be measured.
    """

    operator: int
    ms: float | None
    ratio: float | None
    reason: str = ""


@dataclass
class BenchmarkTable:
    """The operators of a space and their results.

    Trials, best operators and members are those of the operators that have a result; the others
    are still to be trained (`is_complete`).
    """

    configuration: Configuration
    specification: Specification
    environment: Mapping[str, object]
    rows: Sequence[TableRow]
    baseline_macs: int
    baseline_params: int
    results: list[TableResult] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.configuration.name

    @cached_property
    def objective(self) -> Objective:
        """What is compared: the loss of text, otherwise the accuracy."""
        return LOSS if self.configuration.made_fidelity().task == "text" else ACCURACY

    @cached_property
    def by_operator(self) -> dict[int, dict[int, TableResult]]:
        """The results of each operator by seed, in the order of the operators."""
        found: dict[int, dict[int, TableResult]] = {}
        for result in sorted(self.results, key=lambda r: (r.operator, r.seed)):
            found.setdefault(result.operator, {})[result.seed] = result
        return found

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each operator that has a result, by key."""
        return {self.rows[i].key: i for i in self.by_operator if i != BASELINE}

    @property
    def is_complete(self) -> bool:
        """Whether every operator has a result."""
        return len(self.numbers) == len(self.rows)

    def restricted(self, numbers: Iterable[int]) -> BenchmarkTable:
        """Return a table without the results of other operators than these.

        The original network stays.
        """
        kept = {BASELINE, *numbers}
        results = [result for result in self.results if result.operator in kept]
        latencies = [latency for latency in self.latencies if latency.operator in kept]
        return replace(self, results=results, latencies=latencies)

    def with_orbits(self, symmetries: Sequence[str]) -> BenchmarkTable:
        """Return a table with other symmetries, which say which operators are one orbit.

        Raises:
            UserError: for symmetries that the shapes do not have.
        """
        texts = [Operator.from_text(row.text, self.specification) for row in self.rows]
        rows = [replace(row, orbit=None) for row in self.rows]
        if symmetries:
            changed = self.specification.with_changes(symmetries=list(symmetries))
            for orbit in orbits(texts, changed):
                for number in orbit:
                    rows[number] = replace(rows[number], orbit=orbit[0])
        configuration = replace(self.configuration, symmetries=tuple(symmetries))
        return replace(self, configuration=configuration, rows=rows)

    @cached_property
    def orbits(self) -> list[list[int]]:
        """The numbers of the operators of each orbit; nothing without symmetries."""
        found: dict[int, list[int]] = {}
        for number, row in enumerate(self.rows):
            if row.orbit is not None:
                found.setdefault(row.orbit, []).append(number)
        return list(found.values())

    @property
    def trained_orbits(self) -> list[list[int]]:
        """The numbers of the operators with a result, of each orbit that has one."""
        trained = ([n for n in orbit if n in self.by_operator] for orbit in self.orbits)
        return [orbit for orbit in trained if orbit]

    def one_of_each_orbit(self) -> BenchmarkTable:
        """Return a table with the first operator of each orbit that has a result.

        Raises:
            UserError: if the table has no symmetries.
        """
        if not self.orbits:
            raise UserError(
                f"table '{self.name}' names no symmetries, so that its operators have no orbits\n"
                "  what to do: add `symmetries` to its configuration, and give that to `syno bench "
                "table --configuration`"
            )
        return self.restricted(orbit[0] for orbit in self.trained_orbits)

    @cached_property
    def operators(self) -> list[Operator]:
        """The operators that have a result."""
        texts = [self.rows[i].text for i in self.numbers.values()]
        return [Operator.from_text(text, self.specification) for text in texts]

    @cached_property
    def members(self) -> Members:
        """The operators that have a result, as search methods take them."""
        return Members(TableSpace(self))

    @property
    def keys(self) -> list[str]:
        """The semantic keys of the operators that have a result."""
        return list(self.numbers)

    def seeds(self, key: str) -> list[int]:
        """Return the seeds that an operator was trained with."""
        return list(self.by_operator[self._number(key)])

    def results_of(self, key: str) -> dict[int, TableResult]:
        """Return the trainings of an operator by seed."""
        return dict(self.by_operator[self._number(key)])

    def trial(self, key: str, seed: int) -> Trial:
        """Return the result of one training, as search methods see it.

        Raises:
            UserError: if the table has no such operator, or no training of it with this seed.
        """
        number = self._number(key)
        found = self.by_operator[number].get(seed)
        if found is None:
            raise UserError(
                f"table '{self.name}' has no training of {key[:12]} with seed {seed}\n"
                f"  expected: one of {', '.join(map(str, self.seeds(key)))}"
            )
        row = self.rows[number]
        return self._trial(found, row.macs, row.params, self._latency.get(number))

    def _trial(self, found: TableResult, macs: int, params: int, latency: Latency | None) -> Trial:
        return Trial(
            rung=0,
            status=found.status,
            reason=found.reason,
            objective=self.value(found),
            accuracy=found.accuracy,
            loss=found.loss,
            losses=found.losses,
            latency_ms=None if latency is None else latency.ms,
            latency_ratio=None if latency is None else latency.ratio,
            macs=macs,
            params=params,
            seed=found.seed,
            seconds=found.seconds,
        )

    @cached_property
    def scores(self) -> dict[str, float]:
        """The true score of each operator: its mean over the seeds, greater is better.

        It is the accuracy, or for text the loss with a minus sign. An operator that failed with any
        seed has minus infinity.
        """
        found = {}
        for key, number in self.numbers.items():
            values = [self.value(result) for result in self.by_operator[number].values()]
            good = [value for value in values if value is not None]
            whole = len(good) == len(values)
            found[key] = self.objective.score(statistics.fmean(good)) if whole else -math.inf
        return found

    def mean_trial(self, key: str) -> Trial | None:
        """Return the mean of an operator's trainings as one trial; None if one of them failed."""
        results = list(self.by_operator[self._number(key)].values())
        return self._mean_trial(results, self.trial(key, results[0].seed))

    @cached_property
    def original(self) -> Trial | None:
        """The mean of the original network's trainings as one trial; None without one."""
        results = self.baseline_trials()
        if not results:
            return None
        ratios = [x.ms / x.ratio for x in self.latencies if x.ms is not None and x.ratio]
        first = self._trial(
            results[0],
            self.baseline_macs,
            self.baseline_params,
            Latency(BASELINE, statistics.median(ratios) if ratios else None, 1.0),
        )
        return self._mean_trial(results, first)

    def _mean_trial(self, results: Sequence[TableResult], like: Trial) -> Trial | None:
        if any(result.status != OK for result in results):
            return None
        accuracies = [result.accuracy for result in results if result.accuracy is not None]
        losses = [result.loss for result in results if result.loss is not None]
        values = [value for result in results if (value := self.value(result)) is not None]
        return replace(
            like,
            accuracy=statistics.fmean(accuracies) if accuracies else None,
            loss=statistics.fmean(losses) if losses else None,
            objective=statistics.fmean(values) if values else None,
        )

    @cached_property
    def ranking(self) -> list[str]:
        """The keys from the best to the worst true score."""
        return sorted(self.scores, key=lambda key: (-self.scores[key], key))

    def best(self, share: float) -> list[str]:
        """Return the keys of the best operators by their true score, at least one.

        Args:
            share: of the operators that have a result, from 0 to 1.
        """
        return self.ranking[: max(1, round(share * len(self.ranking)))]

    def baseline_trials(self) -> list[TableResult]:
        """Return the trainings of the original network."""
        return list(self.by_operator.get(BASELINE, {}).values())

    @cached_property
    def _latency(self) -> dict[int, Latency]:
        return {latency.operator: latency for latency in self.latencies}

    def value(self, result: TableResult) -> float | None:
        """Return the value of the objective in a training; None for a failure."""
        return self.objective.of(result.accuracy, {"loss": result.loss})

    def _number(self, key: str) -> int:
        try:
            return self.numbers[key]
        except KeyError:
            raise UserError(
                f"table '{self.name}' has no result of an operator '{key[:12]}'\n"
                f"  it has results of {len(self.numbers):,} of {len(self.rows):,} operators"
            ) from None

    def write(self, path: Path) -> None:
        """Write the file in place of an existing one. Equal tables give equal bytes."""
        head = {
            "format": FORMAT,
            "version": VERSION,
            "configuration": self.configuration.to_json(),
            "specification": self.specification.to_json(),
            "environment": dict(self.environment),
            "baseline_macs": self.baseline_macs,
            "baseline_params": self.baseline_params,
        }
        lines: list[Mapping[str, object]] = [head]
        lines += [as_line(row) for row in self.rows]
        lines += [as_line(result) for result in self.results]
        lines += [as_line(latency) for latency in self.latencies]
        raw = "".join(json_line(line) for line in lines).encode()

        def write(to: Path) -> None:
            with to.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
                packed.write(raw)

        write_whole(path, write, "the table", "--out")

    @staticmethod
    def read(path: Path) -> BenchmarkTable:
        """Read a file.

        Raises:
            UserError: if it cannot be read, is not a table, or has another version.
        """
        lines = packed_lines("table", path, line=MOST_LINE, total=MOST_ALL)
        try:
            head = parsed_json(next(lines, "null"))
        except ValueError as error:
            raise UserError(f"cannot read table '{path}': {error}") from error
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise UserError(f"'{path}' is not a table of `syno bench table`")
        if head.get("version") != VERSION:
            raise UserError(
                f"table '{path}' has version {shown(head.get('version'))}\n"
                f"  expected: version {VERSION}, which this version of Syno reads"
            )
        try:
            return _table(head, lines)
        except UserError as error:
            raise UserError(f"table '{path}' is damaged: {error}") from error


class TableSpace:
    """The operators of a table that have a result, as the space of a study."""

    def __init__(self, table: BenchmarkTable) -> None:
        self._specification = table.specification
        self.operators: Sequence[Operator] = table.operators
        self.specification = (table.specification.key, json.loads(table.specification.to_json()))
        self.rules = str(table.environment.get("rules", ""))

    def rejections(self) -> dict[str, int]:
        """Return no reasons, because a table lists accepted operators only."""
        return {}

    def parse(self, text: str) -> Operator:
        """Read an operator from its text."""
        return Operator.from_text(text, self._specification)


def load(name_or_path: str | Path) -> BenchmarkTable:
    """Load a table.

    Args:
        name_or_path: `images`, or another table in `bench/tabular/` of the source tree, or the path
            of a file.

    Raises:
        UserError: if there is no such table, or it cannot be read.
    """
    path = Path(name_or_path)
    if path.name == str(name_or_path) and not path.name.endswith(SUFFIX):
        path = FOLDER / f"{name_or_path}{SUFFIX}"
    if not path.is_file():
        known = sorted(file.name.removesuffix(SUFFIX) for file in FOLDER.glob(f"*{SUFFIX}"))
        raise UserError(
            f"there is no table '{name_or_path}'\n"
            f"  expected: a {SUFFIX} file, or one of {', '.join(known) or 'no tables'} in the "
            "source tree"
        )
    return BenchmarkTable.read(path)


def as_line(record: TableRow | TableResult | Latency) -> dict[str, object]:
    """Return a record as a line of the file, without what has its default."""
    content = asdict(record)
    for name, usual in (("status", "ok"), ("reason", ""), ("loss", None), ("orbit", None)):
        if name in content and content[name] == usual:
            del content[name]
    return content


def from_line(what: str, line: object) -> TableRow | TableResult | Latency:
    """Read a line of `as_line`; what: the line in words.

    Raises:
        UserError: it is none.
    """
    if isinstance(line, dict) and "text" in line:
        return json_record(TableRow, what, line)
    if isinstance(line, dict) and "ratio" in line:
        return json_record(Latency, what, line)
    return json_record(TableResult, what, line, infinite=("losses",))


@dataclass(frozen=True)
class _Head:
    """The first line of a file."""

    format: str
    version: int
    configuration: Mapping[str, Any]
    specification: str
    environment: Mapping[str, Any]
    baseline_macs: int
    baseline_params: int


def _table(head: object, lines: Iterable[str]) -> BenchmarkTable:
    given = json_record(_Head, "line 1", head)
    rows: list[TableRow] = []
    results: list[TableResult] = []
    latencies: list[Latency] = []
    for number, line in enumerate(lines, start=2):
        record = from_line(f"line {number}", json_content(f"line {number}", line))
        if isinstance(record, TableRow):
            rows.append(record)
        elif isinstance(record, TableResult):
            results.append(record)
        else:
            latencies.append(record)
    numbers = {each.operator for each in results} | {each.operator for each in latencies}
    for number in numbers:
        checks.whole("the number of an operator", number, BASELINE, len(rows) - 1)
    return BenchmarkTable(
        Configuration.from_json(given.configuration),
        Specification.from_json(given.specification),
        given.environment,
        rows,
        given.baseline_macs,
        given.baseline_params,
        results,
        latencies,
    )
