"""Keeps so many workers running on a cluster: it places them, watches them, and starts them again.

Each worker has a place in a list. What happens to a place:

    waiting -> starting -> running -> waiting ...       the worker died
                                   -> ended             nothing to do, or given up

A place waits before each start, longer after each failure in a row. A worker that died with its
node has not failed. The results of a lost worker do not matter here: its lease in the store ends,
and another worker takes what it had.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.launch.cluster import Actor, Cluster, LostWorkerError, PendingCall
from syno.launch.room import CORES, GPUS, Demand
from syno.launch.starter import MISTAKE
from syno.runs.processes import signal_name
from syno.runs.supervise import Policy, Restarts

WAITING, STARTING, BEGINNING, RUNNING, ENDED = range(5)

LOOK_S = 0.5  # between two looks at a worker
# A worker that ended sooner after its start has failed once more in a row. One that lives longer
# had begun to work: machines that take workers away now and then must not end a search.
POLICY = Policy(most=5, early_s=20.0, first_s=1.0, most_s=60.0)  # of one place
EARLY_S = 60.0  # mistakes that workers report up to then are there from the start
_ROOM_S = 30.0  # of waiting for room, after which a note says so
_END_S = 30.0  # for what a worker does when it is asked to end
_LEFT = "its node left the cluster"


class _Answer(TypedDict, total=False):
    """What calls of `RayWorker` return.

    failure: of any call; node, host and versions: of `look_around`; process: of `begin`; code, said
    and lines: of `look`, where a code is that of a process that has ended.
    """

    failure: str
    node: str
    host: str
    process: int
    code: int | None
    said: str
    lines: list[str]


@dataclass
class _Place:
    """A worker, or where one will be."""

    number: int
    phase: int = WAITING
    actor: Actor | None = None
    call: PendingCall | None = None
    since: float = 0.0  # when this phase began
    next: float = 0.0  # when there is something to do
    restarts: Restarts = field(default_factory=lambda: Restarts(POLICY))
    node: str = ""
    host: str = ""
    process: int = 0
    lines: list[str] = field(default_factory=list)  # the last ones that it wrote

    @property
    def name(self) -> str:
        return f"worker {self.number}" + (f" on {self.host}" if self.host else "")


class Supervisor:
    """So many workers on a cluster. Call `step` a few times a second, and `end` at the end.

    Args:
        cluster: where they are placed.
        demand: what each of them needs.
        jobs: the number of workers.
        orders: what each of them is told, with `threads` and `folder` (see `RayWorker.begin`).
        identity: the versions of this process, which those of the nodes must equal.
        note: is called with what the user should know.
        clock: the time in seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        demand: Demand,
        jobs: int,
        orders: Mapping[str, Json],
        identity: Mapping[str, Json],
        note: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._demand, self._orders = cluster, demand, json.dumps(orders)
        self._idle = orders.get("idle_s") is not None
        self._identity = identity
        self._note, self._clock = note, clock
        self._places = [_Place(number + 1) for number in range(jobs)]
        self._has_run = False  # any worker: then a mistake of one of them does not end the others
        self._short_of_room = 0  # workers, as the last note about it said
        self._last_reason = ""
        self.evaluated = 0  # trials, by the workers that ended by themselves or were asked to

    @property
    def placed(self) -> list[dict[str, Json]]:
        """The workers that run: the number, the node, its host, and the process of each."""
        return [
            {
                "number": place.number,
                "node": place.node,
                "host": place.host,
                "process": place.process,
            }
            for place in self._places
            if place.phase == RUNNING
        ]

    @property
    def is_done(self) -> bool:
        """Whether all workers ended because nothing was left to do."""
        return all(place.phase == ENDED for place in self._places)

    def step(self) -> None:
        """Look at all workers, and do what is due.

        Raises:
            UserError: what a worker says about a mistake of the user before any worker ran, and if
                all workers are given up.
        """
        now = self._clock()
        for place in self._places:
            if place.phase != ENDED and now >= place.next:
                try:
                    self._advance(place, now)
                except LostWorkerError as error:
                    self._lost(place, error, now)
        self._tell_room(now)

    def end(self) -> None:
        """Ask all workers to end: they give back what they have. End those that do not."""
        running = [place for place in self._places if place.phase in (BEGINNING, RUNNING)]
        for place in running:
            assert place.actor is not None
            place.actor.call("end")
            place.call, place.phase = place.actor.call("look"), RUNNING
        until = self._clock() + _END_S
        while running and self._clock() < until:
            running = [place for place in running if not self._has_ended(place)]
            time.sleep(0.05)
        for place in self._places:
            self._leave(place, ENDED)

    def _has_ended(self, place: _Place) -> bool:
        """Whether a worker that was asked to end has ended, or is gone."""
        assert place.actor is not None
        if place.call is None:
            place.call = place.actor.call("look")
        try:
            found = self._answer(place)
        except LostWorkerError as error:
            if error.is_final:
                self._note(f"{place.name} was lost at the end: {error}")
            return error.is_final
        if found is None:
            return False
        self._count(found)
        return found.get("code") is not None or "failure" in found

    def _advance(self, place: _Place, now: float) -> None:
        if place.phase == WAITING:
            place.actor = self._cluster.start(self._demand)
            place.call, place.phase, place.since = place.actor.call("hello"), STARTING, now
        found = self._answer(place) if place.call is not None else None
        if found is not None and "failure" in found:
            raise LostWorkerError(str(found["failure"]))
        assert place.actor is not None
        if place.phase == STARTING and found is not None:
            place.node, place.host = str(found.get("node")), str(found.get("host"))
            wrong = self._other_versions(found)
            if wrong:
                self._mistake(place, wrong, now)
                return
            place.call, place.phase = place.actor.call("begin", self._orders), BEGINNING
        elif place.phase == BEGINNING and found is not None:
            place.phase, place.since, place.process = RUNNING, now, int(found["process"])
        elif place.phase == RUNNING:
            if found is not None:
                self._look(place, found, now)
            elif place.call is None:
                place.call = place.actor.call("look")

    def _answer(self, place: _Place) -> _Answer | None:
        """Return what the call of a place returned, None if it has not returned yet."""
        assert place.call is not None
        try:
            text = place.call.answer()
        except LostWorkerError as error:
            if not error.is_final:
                place.call = None
            raise
        if text is None:
            return None
        place.call = None
        try:
            found: _Answer = json.loads(text)
        except ValueError as error:
            raise LostWorkerError(f"it answered with what is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise LostWorkerError("it answered with what is no object of JSON")
        return found

    def _look(self, place: _Place, found: _Answer, now: float) -> None:
        """Take the lines of a worker, and its end."""
        for line in found.get("lines", ()):
            place.lines = [*place.lines, str(line)][-3:]
            self._note(f"{place.name}: {line}")
        code = found.get("code")
        if code is None:
            place.next = now + LOOK_S
            place.restarts.works(now - place.since)
            if now - place.since > EARLY_S:
                self._has_run = True
            return
        self._count(found)
        if code == MISTAKE:
            self._mistake(place, str(found.get("said")), now)
        elif code == 0 and self._idle:
            self._leave(place, ENDED)
        elif code == 0:
            self._note(f"{place.name} was asked to end by its system; it is started again")
            self._wait(place, now, 0.0)
        else:
            how = (
                f"was killed by {signal_name(-code)}"
                if code < 0
                else f"ended with exit code {code}"
            )
            last = f": {' / '.join(place.lines)}" if place.lines else ""
            self._failed(place, f"its process {how}{last}", now)

    def _count(self, found: _Answer) -> None:
        said = str(found.get("said"))
        if found.get("code") == 0 and said.isdecimal():
            self.evaluated += int(said)

    def _lost(self, place: _Place, error: LostWorkerError, now: float) -> None:
        """Note that an actor is gone, and start another one."""
        if not error.is_final and place.phase == RUNNING:
            place.next = now + LOOK_S
            return
        there = {node.id for node in self._cluster.nodes()}
        if error.with_node or (place.node and place.node not in there):
            self._note(f"{place.name} is lost: {_LEFT} ({error}); it is started again elsewhere")
            self._wait(place, now, 0.0)
            return
        self._failed(place, str(error), now)

    def _mistake(self, place: _Place, text: str, now: float) -> None:
        """End everything for a mistake that is there from the start; later, one worker failed."""
        if not self._has_run:
            raise UserError(f"{place.name}: {text}")
        self._failed(place, text, now)

    def _failed(self, place: _Place, reason: str, now: float) -> None:
        pause = place.restarts.failed(now - place.since if place.phase == RUNNING else 0.0)
        self._last_reason = f"{place.name}: {reason}"
        if pause is None:
            self._note(
                f"{place.name} is given up after {POLICY.most} failures in a row; the last: "
                f"{reason}"
            )
            self._leave(place, ENDED)
            self._check_any_left(
                f"all workers of the Ray cluster failed {POLICY.most} times in a row; the last "
                f"of them: {self._last_reason}\n"
                "  what to do: see the messages above; `syno worker` on a node shows more"
            )
            return
        self._note(f"{place.name} died: {reason}; it is started again in {pause:g} s")
        self._wait(place, now, pause)

    def _check_any_left(self, text: str) -> None:
        if self.is_done:
            raise UserError(text)

    def _wait(self, place: _Place, now: float, pause: float) -> None:
        self._leave(place, WAITING)
        place.since, place.next = now, now + pause

    def _leave(self, place: _Place, phase: int) -> None:
        """End the actor of a place."""
        if place.actor is not None:
            place.actor.kill()
        place.actor, place.call, place.phase = None, None, phase
        place.node = place.host = ""
        place.lines = []

    def _other_versions(self, found: _Answer) -> str:
        """Say how a node differs from this process; empty if it does not."""
        wrong = [
            f"{name} {found.get(name)} instead of {own}"
            for name, own in self._identity.items()
            if name != "host" and found.get(name) != own
        ]
        if not wrong:
            return ""
        return (
            f"this node has {', '.join(wrong)}\n"
            "  what to do: install the same version of Syno and of Python on all machines"
        )

    def _tell_room(self, now: float) -> None:
        """Say how many workers wait for room, if that has changed."""
        waits = [p for p in self._places if p.phase == STARTING and now - p.since > _ROOM_S]
        if len(waits) == self._short_of_room:
            return
        self._short_of_room = len(waits)
        if not waits:
            self._note("all workers of the Ray cluster have started")
            return
        free = f"{self._cluster.free(CORES):g} cores"
        if self._demand.gpus:
            free += f" and {self._cluster.free(GPUS):g} GPUs"
        self._note(
            f"{len(waits)} of {len(self._places)} workers of the Ray cluster have not started yet: "
            f"each needs {self._demand.in_words}, and {free} are free on all nodes together"
        )
