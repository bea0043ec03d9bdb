"""What an adaptation has found, in the log of a study: each finding once, so that it resumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import flattened
from syno.runs import journal
from syno.store import Store, StudyRecord
from syno.store.findings import FINDING
from syno.store.records import ADAPTATION, canonical_json
from syno.study.evaluate.weights import Weights
from syno.study.heartbeat import driving

_PHASE = "phase"
# The kind of the event of a value that may differ from run to run, such as the time for all of it.
_CHANGE = "change"
# The finding that each adaptation begins with, and the one that says what goals limited first.
POOL = "pool"
_LIMITED = "limited"
# A setting that may differ when an adaptation is continued: further seeds are added.
_FREE = "options.seeds"
# Settings that adaptations of earlier versions lack, as they were then.
_EARLIER = {"options.widths": "false", "options.blocks": "false"}
# Plain values by their kind and key; those who store them know what they are.
Findings: TypeAlias = dict[tuple[str, str], Any]
Found = TypeVar("Found")
# Seconds after which the time of a phase is stored within a long step.
_TICK = 20.0


class AdaptationJournal:
    """Findings by kind and key. What is there is not computed again.

    folder: for weights and checkpoints; None for a store in memory. token: of the process as the
    driver of the study; what it writes after another one took over raises DriverLostError.
    """

    def __init__(self, store: Store, study: StudyRecord, token: int) -> None:
        self.study, self._log = study, store.findings(study, token)
        weights = Weights.of(store, study)
        self.folder: Path | None = None if weights is None else weights.folder
        found: Findings = {}
        changed: Findings = {}
        self.seconds: dict[str, float] = {}
        # The phase that runs, and from when on its time is not stored yet.
        self._phase: tuple[str, float] | None = None
        for event in store.events(study):
            data = event.data
            if event.kind in (FINDING, _CHANGE):
                values = found if event.kind == FINDING else changed
                values[data["what"], data["key"]] = data["value"]
            elif event.kind == _PHASE:
                name = data["name"]
                self.seconds[name] = self.seconds.get(name, 0.0) + data["seconds"]
        self.resumed = bool(found or changed)
        self._found = journal.Journal(found, lambda at, value: self._log.add(*at, value))
        self._changed = journal.Journal(changed, self._note_change)

    def get(self, what: str, key: str) -> Any:
        """The finding; None where there is none."""
        return self._changed.done.get((what, key), self._found.done.get((what, key)))

    def once(self, what: str, key: str, find: Callable[[], Found]) -> Found:
        """The finding, which `find` returns as plain values if there is none yet."""
        if (what, key) not in self._found.done:
            self.put(what, key, find())
        found: Found = self._found.done[what, key]
        return found

    def put(self, what: str, key: str, value: object) -> None:
        """Store a finding of plain values, and the time of the phase so far."""
        self._found.put((what, key), value)
        self._count()

    def change(self, what: str, key: str, value: object) -> None:
        """Store a value that takes the place of an earlier one."""
        self._changed.put((what, key), value)

    def _note_change(self, at: tuple[str, str], value: object) -> None:
        self._log.note(_CHANGE, {"what": at[0], "key": at[1], "value": value})

    def scope(self, limited: Sequence[str]) -> Scope:
        """The findings that depend on what goals limit, such as which candidates are kept."""
        text = " ".join(limited)
        # Findings of a store from before there were scopes belong to all goals.
        first = self.once(_LIMITED, "", lambda: text if self.get(POOL, "") is None else None)
        return Scope(self, tuple(limited), "" if first in (None, text) else f" ({text})")

    def spent(self, phase: str) -> float:
        """The seconds of a phase so far, those of earlier processes included."""
        running = 0.0
        if self._phase is not None and self._phase[0] == phase:
            running = time.perf_counter() - self._phase[1]
        return self.seconds.get(phase, 0.0) + running

    def tick(self) -> None:
        """Store the time of the phase so far, if much of it is not stored yet."""
        if self._phase is not None and time.perf_counter() - self._phase[1] > _TICK:
            self._count()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Store the time that the block takes, also if it ends with an error."""
        self._phase = name, time.perf_counter()
        try:
            yield
        finally:
            self._count()
            self._phase = None

    def _count(self) -> None:
        """Store the time of the phase since it was stored last."""
        if self._phase is None:
            return
        name, began = self._phase
        now = time.perf_counter()
        self._phase = name, now
        self.seconds[name] = self.seconds.get(name, 0.0) + now - began
        self._log.note(_PHASE, {"name": name, "seconds": now - began})

    def started(self) -> None:
        """Note that a process works on the adaptation."""
        self._log.note("resumed" if self.resumed else "started", {})

    def stopped(self, reason: str) -> None:
        """Note the end."""
        self._log.note("stopped", {"reason": reason})


@dataclass(frozen=True)
class Scope:
    """The findings of a journal that depend on what goals limit: `limited`, of `COSTS`."""

    journal: AdaptationJournal
    limited: tuple[str, ...]
    suffix: str

    def get(self, what: str, key: str) -> Any:
        """The finding; None where there is none."""
        return self.journal.get(what, key + self.suffix)

    def once(self, what: str, key: str, find: Callable[[], Found]) -> Found:
        """The finding, which `find` returns as plain values if there is none yet."""
        return self.journal.once(what, key + self.suffix, find)

    def put(self, what: str, key: str, value: object) -> None:
        """Store a finding of plain values."""
        self.journal.put(what, key + self.suffix, value)


@contextmanager
def open_journal(
    store: Store, name: str | None, usual: str, settings: Mapping[str, object], seed: int
) -> Iterator[AdaptationJournal]:
    """Create the study of an adaptation, or continue it. No other process works on it meanwhile.

    Args:
        store: where it is kept.
        name: of the study; None for a new one.
        usual: the beginning of the name of a new study.
        settings: as plain values. A study with others is not continued, but the number of seeds may
            differ.
        seed: of the random numbers.

    Raises:
        UserError: for an existing study that is no adaptation, or one with other settings, and if
            another process works on it.
    """
    study = _study(store, name, usual, {**settings, "method": ADAPTATION, "seed": seed}, seed)
    with driving(store, study, "adaptation") as token:
        yield AdaptationJournal(store, study, token)


def _study(
    store: Store, name: str | None, usual: str, settings: Mapping[str, object], seed: int
) -> StudyRecord:
    """The study of an adaptation, which is made if there is none."""
    found = _existing(store, name, settings)
    if found is not None:
        return found
    try:
        return store.create_study(
            name or f"adapt-{usual}-",
            specification=("adaptation", {"input": "[N]", "output": "[N]"}),
            settings=settings,
            seed=seed,
        )
    except UserError:
        found = _existing(store, name, settings)  # another process may have made it meanwhile
        if found is None:
            raise
        return found


def _existing(store: Store, name: str | None, settings: Mapping[str, object]) -> StudyRecord | None:
    known = {study.name: study for study in store.studies()}
    if name is None or name not in known:
        return None
    found: Mapping[str, object] = known[name].settings  # type: ignore[assignment]
    if found.get("method") != ADAPTATION:
        raise UserError(
            f"study '{name}' of the store '{store.name}' is no adaptation\n"
            "  what to do: choose another name"
        )
    _check_settings(name, found, settings)
    return known[name]


def _check_settings(name: str, found: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    before, now = (
        {key: canonical_json(value) for key, value in flattened(each).items()}
        for each in (found, wanted)
    )
    for key in _EARLIER.keys() & now.keys():
        before.setdefault(key, _EARLIER[key])
    parts = [
        f"  {key}: {_shown(before, key)}, now {_shown(now, key)}"
        for key in dict.fromkeys([*before, *now])
        if before.get(key) != now.get(key) and key != _FREE
    ]
    if parts:
        lines = "\n".join(parts)
        raise UserError(
            f"the adaptation '{name}' was started with other settings\n{lines}\n"
            "  what to do: repeat them, or choose another name"
        )


def _shown(settings: Mapping[str, str], key: str) -> str:
    return checks.short(settings[key]) if key in settings else "none"
