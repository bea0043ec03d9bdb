"""A hundred kills of searches, of what they start, and stops: the table is as if there were none.

SYNO_KILLS is their number, SYNO_KILLS_SEED the seed; both are printed. A kill that an evaluation
cannot be told apart from (of its process, or of the one that forks) hits each operator at most
once: twice means quarantine, as it should.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from e2e.killing import Search
from e2e.test_kill import content
from e2e.test_kill_ladder import decisions, results
from syno.runs import processes
from syno.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not processes.is_supported(), reason="needs Linux"),
]

KILLS = int(os.environ.get("SYNO_KILLS", "100"))
SEED = int(os.environ.get("SYNO_KILLS_SEED", "0")) or int(time.time())
SECONDS = 0.08  # an evaluation
# Kinds of kills, and how many of ten.
ALONE = {"kill": 4, "terminate": 1}
ISOLATED = {
    "kill": 3,
    "interrupt": 1,
    "interrupt twice": 1,
    "child": 4,
    "stop child": 1,
    "server": 3,
    "stop server": 1,
    "kill with a stopped server": 1,
    "suspend all": 1,
}


def within(seconds: float, condition: Callable[[], object]) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.003)
    return True


@dataclass
class Harm:
    """Does harm to a search, run after run."""

    search: Search
    moments: random.Random
    done: Counter[str] = field(default_factory=Counter)
    hit: set[str] = field(default_factory=set)  # operators that must not fail once more
    left: set[int] = field(default_factory=set)  # processes that must not stay
    process: subprocess.Popen[bytes] | None = None
    isolated: bool = False

    def one(self) -> None:
        """One more kill, of a search that is started where none runs."""
        if self.process is None:
            self.isolated = self.moments.random() < 0.4
            self.process = self.search.start(
                isolated=self.isolated, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        weights = ISOLATED if self.isolated else ALONE
        (kind,) = self.moments.choices(list(weights), list(weights.values()))
        # Two further evaluations: whatever happens, the search comes on.
        self.wait_for(self.moments.randint(2, 3))
        time.sleep(self.moments.uniform(0, SECONDS))
        self.left |= {self.process.pid, *processes.descendants(self.process.pid)}
        if getattr(self, kind.replace(" ", "_"))():
            self.done[("isolated " if self.isolated else "alone ") + kind] += 1

    def wait_for(self, more: int) -> None:
        wanted = len(self.search.lines("begin")) + more
        assert within(90, lambda: len(self.search.lines("begin")) >= wanted), "it does not go on"

    def finished(self) -> None:
        """The search has ended by what was done to it, and all that it started with it."""
        assert self.process is not None
        self.process.wait(timeout=30)
        self.process = None
        gone = lambda: all(processes.activity(p).has_ended for p in self.left)  # noqa: E731
        assert within(20, gone), "something of it stays"
        self.left.clear()

    def server(self) -> bool:
        return self._to_server(signal.SIGKILL)

    def stop_server(self) -> bool:
        return self._to_server(signal.SIGSTOP)

    def _server(self) -> int | None:
        assert self.process is not None
        found = processes.descendants(self.process.pid)
        return found[0] if found else None

    def _to_server(self, number: int) -> bool:
        key, server = self._now()[0], self._server()
        if key in self.hit or server is None:
            return False
        os.kill(server, number)
        # It may have hit the operator that came next, which has not even begun where nothing ran.
        self.hit |= {key, self._now()[0]}
        self.wait_for(1)
        self.hit.add(self._now()[0])
        return True

    def child(self) -> bool:
        return self._to_child(signal.SIGKILL)

    def stop_child(self) -> bool:
        return self._to_child(signal.SIGSTOP)

    def _to_child(self, number: int) -> bool:
        key, child = self._now()
        if key in self.hit or processes.activity(child).has_ended:
            return False
        self.hit.add(key)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
            return True
        return False

    def _now(self) -> tuple[str, int]:
        """The operator that began last, and its process."""
        _, key, process = self.search.lines("begin")[-1].split()
        return key.partition("@")[0], int(process)

    def kill(self) -> bool:
        return self._end(signal.SIGKILL)

    def terminate(self) -> bool:
        return self._end(signal.SIGTERM)

    def interrupt(self) -> bool:
        return self._end(signal.SIGINT)

    def interrupt_twice(self) -> bool:
        return self._end(signal.SIGINT, signal.SIGINT)

    def kill_with_a_stopped_server(self) -> bool:
        server = self._server()
        if server is None:
            return False
        os.kill(server, signal.SIGSTOP)
        return self._end(signal.SIGKILL)

    def _end(self, *numbers: int) -> bool:
        assert self.process is not None
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(self.moments.uniform(0, 0.02))
        self.finished()
        return True

    def suspend_all(self) -> bool:
        """As a batch system does; in any order."""
        assert self.process is not None
        pids = [self.process.pid, *processes.descendants(self.process.pid)]
        self.hit |= {self._now()[0]}
        for number in (signal.SIGSTOP, signal.SIGCONT):
            self.moments.shuffle(pids)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(self.moments.uniform(0, 1.5) if number == signal.SIGSTOP else 0)
        self.hit |= {self._now()[0]}
        return True


@pytest.mark.parametrize(("ladder", "share"), [(False, 0.8), (True, 0.2)])
def test_the_final_table_of_a_search_that_was_killed_is_that_of_one_left_alone(
    tmp_path, ladder, share
):
    kills = max(1, round(share * KILLS))
    moments = random.Random(SEED)
    # A kill comes every two or three evaluations; some operators are evaluated twice or higher up.
    evaluations = max(14, 3 * kills)
    whole, cut = (
        Search(tmp_path / name, evaluations, ladder=ladder, seconds=seconds)
        for name, seconds in (("whole", 0.0), ("cut", SECONDS))
    )
    whole.finish()

    began = time.monotonic()
    harm = Harm(cut, moments)
    while harm.done.total() < kills:
        harm.one()
    if harm.process is not None:
        harm._end(signal.SIGKILL)
    assert cut.start().wait(timeout=300) == 0
    print(
        f"\n{harm.done.total()} kills (seed {SEED}, SYNO_KILLS={KILLS}, ladder: {ladder}) in "
        f"{time.monotonic() - began:.0f} s: {dict(harm.done)}"
    )

    found, expected = (_stored(search) for search in (cut, whole))
    assert found.quarantined == ()
    assert found.open_asks == ()
    assert found.stop_reason == expected.stop_reason == "evaluations"
    assert content(found) == content(expected), f"seed {SEED}"
    assert results(cut) == results(whole), f"seed {SEED}"
    if ladder:
        assert decisions(cut) == decisions(whole), f"seed {SEED}"
    told = [(e.data["ask"], e.data.get("rung", 0)) for e in found.events if e.kind == "told"]
    assert len(told) == len(set(told))


def _stored(search: Search):
    with Store.open(str(search.store), read_only=True) as store:
        return store.summary("study")


def test_two_searches_of_one_study_that_are_killed_share_the_table(tmp_path):
    kills = max(2, KILLS // 5)
    moments = random.Random(SEED)
    evaluations = 4 * kills
    whole, both = (
        Search(tmp_path / name, evaluations, method="uniform", seconds=seconds)
        for name, seconds in (("whole", 0.0), ("both", SECONDS))
    )
    whole.finish()
    both.kill_after(2, 0.0)
    runs = [both.start() for _ in range(2)]
    done = 0
    while done < kills:
        time.sleep(moments.uniform(1.0, 2.0))
        victim = moments.randrange(2)
        if runs[victim].poll() is not None:
            break
        runs[victim].kill()
        runs[victim].wait()
        done += 1
        runs[victim] = both.start()
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    print(f"\n{done} kills of one of two searches (seed {SEED})")
    assert done > 0
    assert content(_stored(both)) == content(_stored(whole)), f"seed {SEED}"
