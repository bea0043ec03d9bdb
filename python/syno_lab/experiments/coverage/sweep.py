"""All families, each in a process of its own, in a file that is gone on with where it stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syno._util.checks import parsed_json
from syno._util.errors import UserError, nearest
from syno._util.json_types import JsonObject
from syno.runs.file_lock import one_writer
from syno.runs.files import write_json
from syno.runs.journal import Journal
from syno_lab.experiments.child import ProcessLimits, answer_of
from syno_lab.experiments.coverage.examine import ComparedLibrary, Covered
from syno_lab.experiments.coverage.families import TIMM, TORCHVISION, Family, families
from syno_lab.experiments.environment import check_environment, known_environment

FORMAT = "syno coverage 1"
_MODULE = "syno_lab.experiments.coverage.examine"
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class CoverageSweep:
    """What `cover` examines, and how.

    only: families by name, or by the beginning of it; empty for all. compiled: also compile the
    network libraries and compare them with PyTorch. limits: of each process.
    """

    only: Sequence[str] = ()
    compiled: bool = False
    limits: ProcessLimits = field(default_factory=ProcessLimits)


@dataclass
class Coverage:
    """What is known of all families; environment: machine and versions."""

    environment: JsonObject
    networks: list[Covered] = field(default_factory=list)

    @property
    def whole(self) -> int:
        """How many networks the library covers."""
        return sum(each.whole for each in self.networks)

    def missing(self) -> dict[str, list[Covered]]:
        """The networks that lack each operator, those that most of them lack first."""
        found: dict[str, list[Covered]] = {}
        for each in self.networks:
            for operator in each.missing:
                found.setdefault(operator, []).append(each)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    def to_json(self) -> JsonObject:
        """As the file holds it."""
        return {"format": FORMAT, **dataclasses.asdict(self)}


def read(path: Path) -> Coverage:
    """What `cover` wrote. UserError for another file."""
    try:
        content = parsed_json(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is '{content['format']}'")
        return Coverage(content["environment"], [_covered(each) for each in content["networks"]])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the file '{path}' holds no coverage of networks: {error}\n"
            f"  expected: one that `syno bench coverage` wrote ({FORMAT}), or a new file"
        ) from error


def _covered(content: Any) -> Covered:
    compiled = content["compiled"]
    return Covered(
        **{
            **content,
            "input": tuple(content["input"]),
            "compiled": None if compiled is None else ComparedLibrary(**compiled),
        }
    )


@one_writer
def cover(path: Path, given: CoverageSweep, *, progress: Progress = lambda *_: None) -> Coverage:
    """Examine the smallest network of each family, and keep each result as soon as it is there.

    Args:
        path: file of the results (JSON). What is in it is not examined again, but for networks that
            other sources did not cover.
        given: what is examined.
        progress: called with (finished families, all families, description).

    Raises:
        UserError: a family is unknown, or the file is of other versions or another machine.
    """
    known = families()
    wanted = _wanted(known, given.only)
    environment = known_environment()
    commit = str(environment.pop("commit"))
    found = _opened(path, environment)
    order = [family.key for family in known]

    def keep(key: str, each: Covered) -> None:
        others = [other for other in found.networks if other.family != key]
        found.networks = sorted([*others, each], key=lambda one: order.index(one.family))
        write_json(path, found.to_json(), "the results", "--out")

    def is_done(each: Covered) -> bool:
        if not each.whole:
            return each.commit == commit
        return each.compiled is not None or not given.compiled

    done = {each.family: each for each in found.networks if is_done(each)}
    journal = Journal(done, keep)
    by_key = {family.key: family for family in wanted}
    waiting = list(journal.waiting(by_key))
    progress(0, len(waiting), "tracing")
    for number, key in enumerate(waiting, 1):
        each = dataclasses.replace(_examined(by_key[key], given), commit=commit)
        journal.put(key, each)
        what = "covered" if each.whole else each.reason
        progress(number, len(waiting), f"{each.network or key}: {what}")
    return found


def _wanted(known: Sequence[Family], only: Sequence[str]) -> list[Family]:
    """The families of these names."""
    for name in only:
        if not any(family.key.startswith(name) for family in known):
            keys = [family.key for family in known]
            raise UserError(
                f"there is no family '{name}'{nearest(name, keys)}\n"
                f"  expected: one such as {TIMM}/resnet or {TORCHVISION}/vgg, or its beginning"
            )
    return [f for f in known if not only or any(f.key.startswith(name) for name in only)]


def _opened(path: Path, environment: JsonObject) -> Coverage:
    """The results in a file, or none yet."""
    if not path.exists():
        return Coverage(environment)
    found = read(path)
    again = "examine all families again"
    check_environment(path, found.environment, environment, "libraries", "device", again=again)
    return found


def _examined(family: Family, given: CoverageSweep) -> Covered:
    """What the process for a family answers, or how it ended."""
    orders = {
        "family": [family.package, family.name, family.networks],
        "compile": given.compiled,
    }
    answer, reason = answer_of(_MODULE, orders, given.limits)
    return Covered(family.key, reason=reason) if reason else _covered(answer)
