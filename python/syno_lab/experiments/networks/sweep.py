"""All networks in all engines, in a file that is gone on with where it stopped."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syno._util import checks
from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno._util.threads import check_threads
from syno.engines import engine as engines
from syno.runs.file_lock import one_writer
from syno.runs.files import write_json
from syno.runs.journal import Journal
from syno_lab.experiments.child import ProcessLimits, answer_of
from syno_lab.experiments.environment import check_environment, known_environment
from syno_lab.experiments.networks import zoo
from syno_lab.experiments.networks.process import EngineTime, ProcessTimes

FORMAT = "syno networks 1"
ENGINES = ("onnxruntime", "openvino", "inductor", "syno", "syno-cpp")
MOST_IMAGES = 1024
_MODULE = "syno_lab.experiments.networks.process"
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, order=True)
class Setting:
    """Of a measurement: images in a call, and threads."""

    batch: int
    threads: int


@dataclass(frozen=True)
class Visit:
    """What one process measures.

    engines: one, which is alone, or several in turns; repetition: the number of the process among
    those that measure the same.
    """

    network: str
    setting: Setting
    engines: tuple[str, ...]
    repetition: int = 0

    @property
    def key(self) -> str:
        """How results name it."""
        batch, threads = dataclasses.astuple(self.setting)
        return f"{self.network} {batch} {threads} {'+'.join(self.engines)} {self.repetition}"


@dataclass(frozen=True)
class NetworksSweep:
    """What `measure` measures.

    networks: by name; settings: of each; engines: by name; passes: processes for each engine alone;
    in_turns: whether all engines also run in turns in one process; rounds: times in each process.
    """

    networks: Sequence[str] = zoo.names()
    settings: Sequence[Setting] = tuple(Setting(b, t) for t in (2, 1) for b in (1, 8))
    engines: Sequence[str] = ENGINES
    passes: int = 2
    in_turns: bool = True
    rounds: int = 30
    limits: ProcessLimits = field(default_factory=lambda: ProcessLimits(16 << 30, 1800.0))

    def visits(self) -> Iterator[Visit]:
        """All processes in the order in which they run: the engines of a pass follow each other."""
        for setting in self.settings:
            for network in self.networks:
                for repetition in range(self.passes):
                    for each in self.engines:
                        yield Visit(network, setting, (each,), repetition)
                if self.in_turns:
                    yield Visit(network, setting, tuple(self.engines))


@dataclass
class NetworksTimes:
    """What was measured. environment: machine and versions. visits: each with what its process
    measured, or the reason why there is nothing."""

    environment: JsonObject
    visits: list[tuple[Visit, ProcessTimes | str]] = field(default_factory=list)

    def settings(self) -> list[Setting]:
        """Those that something was measured with."""
        return list(dict.fromkeys(visit.setting for visit, _ in self.visits))

    def networks(self, setting: Setting) -> list[str]:
        """Those that something was measured of."""
        return list(dict.fromkeys(v.network for v, _ in self.visits if v.setting == setting))

    def engines(self) -> list[str]:
        """Those that something was measured in."""
        found = dict.fromkeys(name for visit, _ in self.visits for name in visit.engines)
        usual = [name for name in ENGINES if name in found]
        return [*usual, *(name for name in found if name not in ENGINES)]

    def alone(self, setting: Setting, network: str, engine: str) -> list[EngineTime | str]:
        """The times of an engine that was alone in its process, or why there is none."""
        return [
            found if isinstance(found, str) else found.engines[engine]
            for visit, found in self.visits
            if (visit.setting, visit.network, visit.engines) == (setting, network, (engine,))
        ]

    def ms(self, setting: Setting, network: str, engine: str) -> float | None:
        """The time of an engine alone in milliseconds: the least median of its processes."""
        times = [
            each.median_ms
            for each in self.alone(setting, network, engine)
            if isinstance(each, EngineTime) and not each.reason
        ]
        return min(times, default=None)

    def turns_ms(self, setting: Setting, network: str, engine: str) -> float | None:
        """The median time of an engine in turns with others in milliseconds."""
        for visit, found in self.visits:
            is_of_it = (visit.setting, visit.network) == (setting, network)
            if is_of_it and len(visit.engines) > 1 and engine in visit.engines:
                each = None if isinstance(found, str) else found.engines[engine]
                return None if each is None or each.reason else each.median_ms
        return None

    def ratio(self, setting: Setting, network: str) -> float | None:
        """How many times as fast the fastest of Syno's engines is as the fastest other one.

        Engines may have number formats of their own.
        """
        times: dict[bool, list[float]] = {True: [], False: []}
        for each in self.engines():
            if (ms := self.ms(setting, network, each)) is not None:
                times[engines.get(each).own].append(ms)
        own, rival = (min(each, default=None) for each in (times[True], times[False]))
        return None if rival is None or own is None else rival / own

    def mean_ratio(self, setting: Setting) -> float | None:
        """The geometric mean of the ratios of all networks that have one."""
        ratios = [r for name in self.networks(setting) if (r := self.ratio(setting, name))]
        return statistics.geometric_mean(ratios) if ratios else None

    def to_json(self) -> JsonObject:
        """As the file holds it."""
        return {
            "format": FORMAT,
            "environment": self.environment,
            "visits": [
                {
                    **dataclasses.asdict(visit),
                    "found": found if isinstance(found, str) else dataclasses.asdict(found),
                }
                for visit, found in self.visits
            ],
        }


def read(path: Path) -> NetworksTimes:
    """What `measure` wrote. UserError for another file."""
    try:
        content = parsed_json(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is '{content['format']}'")
        return NetworksTimes(content["environment"], list(map(_visit, content["visits"])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"the file '{path}' holds no times of networks: {error}\n"
            f"  expected: one that `syno bench engines` wrote ({FORMAT}), or a new file"
        ) from error


def _visit(content: dict[str, Any]) -> tuple[Visit, ProcessTimes | str]:
    found = content.pop("found")
    visit = Visit(
        content["network"],
        Setting(**content["setting"]),
        tuple(content["engines"]),
        content["repetition"],
    )
    return visit, found if isinstance(found, str) else _times(found)


def _times(content: dict[str, Any]) -> ProcessTimes:
    times = {name: EngineTime(**each) for name, each in content["engines"].items()}
    return ProcessTimes(**{**content, "engines": times})


@one_writer
def measure(
    path: Path, given: NetworksSweep, *, progress: Progress = lambda *_: None
) -> NetworksTimes:
    """Measure networks in engines, and keep the result of each process as soon as it is there.

    Args:
        path: file of the results (JSON). What is in it is not measured again.
        given: what is measured.
        progress: called with (finished processes, all processes, description).

    Raises:
        UserError: a network or an engine is unknown or not available, a setting is out of range,
            or the file is of other versions, another machine or other sources.
    """
    for name in given.networks:
        zoo.check(name)
    for name in given.engines:
        engines.get(name)
    for setting in given.settings:
        checks.whole("'batch'", setting.batch, 1, MOST_IMAGES)
        check_threads(setting.threads)
    environment = known_environment()
    found = _opened(path, environment)

    def keep(key: str, each: tuple[Visit, ProcessTimes | str]) -> None:
        found.visits.append(each)
        write_json(path, found.to_json(), "the results", "--out")

    journal = Journal({visit.key: (visit, times) for visit, times in found.visits}, keep)
    by_key = {visit.key: visit for visit in given.visits()}
    waiting = list(journal.waiting(by_key))
    for number, key in enumerate(waiting):
        visit = by_key[key]
        progress(number, len(waiting), f"{visit.network} in {', '.join(visit.engines)}")
        journal.put(key, (visit, _measured(visit, given)))
    progress(len(waiting), len(waiting), "done")
    return found


def _opened(path: Path, environment: JsonObject) -> NetworksTimes:
    """The results in a file, or none yet."""
    if not path.exists():
        return NetworksTimes(environment)
    found = read(path)
    names, again = ("libraries", "device", "commit"), "measure everything again"
    check_environment(path, found.environment, environment, *names, again=again)
    return found


def _measured(visit: Visit, given: NetworksSweep) -> ProcessTimes | str:
    """What the process of a visit answers, or how it ended."""
    orders = {
        "network": visit.network,
        "engines": visit.engines,
        **dataclasses.asdict(visit.setting),
        "rounds": given.rounds,
    }
    answer, reason = answer_of(_MODULE, orders, given.limits)
    return _times(answer) if reason is None else reason
