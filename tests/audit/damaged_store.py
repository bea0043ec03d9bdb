"""Reads a store, perhaps a damaged one, in every way in which Syno reads stores.

A reading is what a command printed or a function gave, or its refusal; `compare` says what is wrong
with the readings of a damaged store.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from syno import UserError
from syno.cli.main import cli
from syno.store import Store, StudySummary
from syno.store.errors import DamagedError
from syno.study import Study, run

from .sample_store import RESUMED_TO, FakeEvaluator, RealSpace

FILES = ("", "-wal", "-shm")
SILENT = "another result, in silence"
# An empty file is none of Syno's, and neither is a database that lost every sign of it.
_NOT_DAMAGED = re.compile(r"is not a Syno store: (it is empty|the file is not a SQLite database)")


@dataclass(frozen=True)
class Reading:
    """code: 0 for a result, 2 for a refusal by Syno, anything else is a fault."""

    code: int
    text: str


def copy(source: Path, target: Path) -> None:
    """The store with the files beside it."""
    for ending in FILES:
        beside = Path(f"{target}{ending}")
        beside.unlink(missing_ok=True)
        if Path(f"{source}{ending}").exists():
            shutil.copy(f"{source}{ending}", beside)


def readings(source: Path, folder: Path, key: str, *names: str) -> dict[str, Reading]:
    """Every reading, or those named, each of a copy of the store, which stays as it was."""
    folder.mkdir(exist_ok=True)
    store = folder / "read.db"
    page, chosen, code = (folder / name for name in ("report.html", "chosen", "op.py"))
    commands = {
        "status": ["status", store, "--json", "--operators"],
        "report": ["report", store, "--study", "search", "-o", page],
        "select": ["select", "--store", store, "--study", "search", "--out", chosen, "--json"],
        "show": ["show", key, "--store", store, "--json"],
        "export": ["export", key, "--store", store, "-o", code],
        "dry run": ["resume", store, "--study", "search", "--dry-run", "--json"],
    }
    before = {ending: _bytes(f"{source}{ending}") for ending in FILES}
    found = {}
    for name, words in commands.items():
        if names and name not in names:
            continue
        copy(source, store)
        shutil.rmtree(chosen, ignore_errors=True)
        page.unlink(missing_ok=True)
        code.unlink(missing_ok=True)
        done = CliRunner().invoke(cli, [str(word) for word in words])
        text = done.stdout if done.exit_code == 0 else done.output
        written = [page, code, *sorted(chosen.rglob("*.*"))]
        text += "".join(f.read_text() for f in written if f.is_file() and done.exit_code == 0)
        found[name] = Reading(done.exit_code, text)
    for name, function in (("summary", _summaries), ("resume", _resumed)):
        if not names or name in names:
            copy(source, store)
            found[name] = _called(function, store)
    assert before == {ending: _bytes(f"{source}{ending}") for ending in FILES}
    return found


def _bytes(path: str) -> bytes | None:
    return Path(path).read_bytes() if Path(path).exists() else None


def _called(function: object, store: Path) -> Reading:
    try:
        return Reading(0, function(store))  # type: ignore[operator]
    except UserError as error:
        return Reading(2, str(error))
    except Exception as error:
        return Reading(70, f"{type(error).__name__}: {error}")


def _summaries(path: Path) -> str:
    with Store.open(str(path), read_only=True) as store:
        return repr([store.summary(study).to_json() for study in store.studies()])


def _resumed(path: Path) -> str:
    """What a search comes to that goes on, without times."""
    with Store.open(str(path), create=False) as store:
        study = Study.load(store, "search", RealSpace(), evaluations=RESUMED_TO)
        run(study, FakeEvaluator())
        study.close()
        return repr(decided(store.summary("search")))


def decided(summary: StudySummary) -> list[tuple[object, ...]]:
    """All that a search decides, without times."""
    found = [*([summary.baseline] if summary.baseline else []), *summary.evaluations]
    return [(e.ask, e.key, e.text, e.status, e.accuracy, e.latency_ratio) for e in found]


def compare(expected: dict[str, Reading], found: dict[str, Reading]) -> list[str]:
    """What is wrong: a fault, another result, or a refusal that does not say that it is damaged."""
    wrong = []
    for name, reading in found.items():
        if reading.code == 0:
            if reading.text != expected[name].text:
                wrong.append(f"{name}: {SILENT}")
        elif reading.code != 2:
            wrong.append(f"{name}: exit code {reading.code}: {reading.text[-300:]}")
        elif "is damaged" not in reading.text and not _NOT_DAMAGED.search(reading.text):
            wrong.append(f"{name}: refused, but not as damaged: {reading.text[:300]}")
    return wrong


def is_earlier(damaged: Path, look: Path, whole: StudySummary) -> bool:
    """Whether a store reads as it was at an earlier moment, as after a loss of power."""
    copy(damaged, look)
    try:
        with Store.open(str(look), read_only=True) as store:
            if not any(study.name == "search" for study in store.studies()):
                return True
            found = store.summary("search")
    except DamagedError:
        return True
    events = [(e.sequence, e.kind, e.data, e.created) for e in found.events]
    expected = [(e.sequence, e.kind, e.data, e.created) for e in whole.events]
    answers = [row for row in decided(whole) if row in decided(found)]
    return events == expected[: len(events)] and decided(found) == answers
