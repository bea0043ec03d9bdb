"""Runs workers over mutated inputs, and gathers what failed, hung or died."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 10.0  # of processor time, or of a wait, for one input
STALL_S = 60.0  # of wall-clock time, where other processes keep the worker from running
START_S = 120.0  # for the imports and the valid inputs of an entry
MOST_ENDS = 25  # workers that hang or die before an entry is given up


@dataclass
class Found:
    """Failures by kind: how many, and the smallest input that was found."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, dict] = field(default_factory=dict)
    entry: str = ""  # that was tried last

    def add(self, failure: dict) -> None:
        kind = f"{failure['kind']}, entry '{self.entry}'"
        self.counts[kind] = self.counts.get(kind, 0) + 1
        shortest = self.first.setdefault(kind, failure)
        if len(failure.get("input", shortest["input"])) < len(shortest["input"]):
            self.first[kind] = failure

    def text(self, seed: int) -> str:
        lines = []
        for kind, count in sorted(self.counts.items(), key=lambda item: -item[1]):
            one = self.first[kind]
            lines += [
                f"{count} x {kind}: {one['error']}",
                f"    seed {seed}, input {one['number']}: {one['input']}",
            ]
        return "\n".join(lines)


def run(name: str, seed: int, count: int, folder: Path) -> Found:
    """What goes wrong among the first `count` mutated inputs of an entry."""
    found, first, ends = Found(), 0, 0
    while first < count:
        last, why = _run_worker(name, seed, first, count, folder, found)
        if why is None:
            break
        if last < first:
            raise AssertionError(f"the worker of '{name}' did not start: {why}")
        text = _input(name, seed, last, folder)
        found.add({"number": last, "kind": why, "error": "", "input": text})
        first, ends = last + 1, ends + 1
        if ends == MOST_ENDS:
            found.add({"number": last, "kind": "given up", "error": "", "input": ""})
            break
    return found


def run_few(names: list[str], seed: int, count: int, folder: Path) -> str:
    """What goes wrong among the first `count` inputs of several entries, in one worker."""
    found = Found()
    last, why = _run_worker(";".join(names), seed, 0, count, folder, found)
    ended = "" if why is None else f"\nthe worker {why} at input {last}"
    return f"{found.text(seed)}{ended}"


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.audit.worker", *map(str, arguments)]


def _run_worker(
    name: str, seed: int, first: int, count: int, folder: Path, found: Found
) -> tuple[int, str | None]:
    """The last input that was tried, and how the worker ended; None for as it should."""
    reads, writes = os.pipe()
    log = folder / "worker.log"
    with log.open("wb") as output, os.fdopen(reads, "rb", buffering=0) as pipe:
        worker = subprocess.Popen(
            _command(name, seed, first, count, writes),
            cwd=ROOT,
            env=os.environ | {"SYNO_AUDIT_FOLDER": str(folder), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[writes],
        )
        os.close(writes)
        last, limit, rest, done = first - 1, START_S, b"", False
        waited, spent = 0.0, 0.0
        try:
            while True:
                if not select.select([pipe], [], [], limit)[0]:
                    waited += limit
                    if limit == DEADLINE_S and waited < STALL_S and _is_starved(worker.pid, spent):
                        continue
                    return last, f"more than {limit:g} s"
                data = pipe.read(1 << 16)
                if not data:
                    break
                waited, spent = 0.0, _processor_seconds(worker.pid)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line.startswith(b"{"):
                        found.add(json.loads(line))
                    elif line.isdigit():
                        last, limit = int(line), DEADLINE_S
                    elif line.startswith(b"entry "):
                        found.entry = line[6:].decode()
                    done |= line == b"done"
            worker.wait()
        finally:
            worker.kill()
            worker.wait()
    if done:
        return last, None
    tail = log.read_bytes()[-1500:].decode(errors="replace")
    return last, f"ended with {worker.returncode}" + (tail if last < first else "")


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_starved(process: int, before: float) -> bool:
    """Whether the worker wants to run and got less than its deadline since `before`."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return fields[0] in ("R", "D") and _processor_seconds(process) - before < DEADLINE_S


def _input(name: str, seed: int, number: int, folder: Path) -> str:
    """The input with a number, as a worker would make it; the worker is gone."""
    code = (
        "import sys; from tests.audit.entries import ENTRIES; from tests.audit import worker\n"
        f"entry = ENTRIES[{name!r}]; rng = worker.stream({name!r}, {seed}, {number})\n"
        "print(worker.shown(entry.mutated(rng.choice(entry.seeds()), rng)))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"SYNO_AUDIT_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return made.stdout.strip().rpartition("\n")[2] or made.stderr[-500:]
