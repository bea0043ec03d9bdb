"""A real search on a PostgreSQL server whose workers are killed, one every half minute.

    python bench/killed_workers.py --data-dir DIR --out killed.json
    python bench/killed_workers.py --data-dir DIR --ray --out killed-ray.json

A server of Debian's package is started, and `syno search` with two workers on it, with `--ray` on a
Ray cluster of this machine. Every `--every` seconds one of the workers, in turns, is killed with
`kill -9`. Nothing else is done until the search ends. Then the store is opened, which checks all
rows, and each operator has to be evaluated once.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from machine_report import report

from syno import UserError
from syno.store import Store

SYNO = [sys.executable, "-m", "syno"]
_RAY = Path(sys.executable).with_name("ray")


def command(url: str, given: argparse.Namespace) -> list[str]:
    """The search, as a user starts it."""
    where = ["--ray", "auto"] if given.ray else []
    return [
        *SYNO,
        *("search", "--store", url, "--name", "killed", "--method", "uniform"),
        *("--model", "resnet-small", "--data", "cifar10", "--data-dir", str(given.data_dir)),
        *("--fidelity", "tiny", "--images", "2000", "--epochs", "1"),
        *("--evaluations", "100000", "--seconds", str(given.seconds)),
        *("--jobs", "2", *where, *given.option),
    ]


def worker_processes(url: str) -> list[int]:
    """The process numbers of the workers that are there, the oldest first."""
    with contextlib.suppress(UserError), Store.open(url, read_only=True) as store:
        there = sorted(store.workers(), key=lambda each: each.started)
        return [int(each.short_name.rsplit(":", 1)[1]) for each in there if each.is_alive]
    return []  # the store is not there yet


def killed(process: int) -> bool:
    """Kill a process; False if it is gone already, for instance by the kill before."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
        return True
    return False


def kill_in_turns(search: subprocess.Popen[str], url: str, every: float) -> int:
    """Kill the oldest worker every so many seconds; return how many were killed."""
    kills = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            search.wait(every)
            return kills
        kills += any(killed(process) for process in worker_processes(url))


def outcome(url: str) -> dict[str, Any]:
    """What the study holds. AssertionError if an operator was counted twice."""
    with Store.open(url, read_only=True) as store:  # it checks all rows
        study = store.study()
        summary = store.summary(study)
        events = Counter(event.kind for event in store.events(study))
        evaluated = Counter(each.key for each in summary.evaluations if each.is_evaluated)
        assert max(evaluated.values(), default=0) <= 1, evaluated.most_common(3)
        return {
            "baseline": None if summary.baseline is None else summary.baseline.value,
            "evaluated": len(evaluated),
            "statuses": Counter(each.status for each in summary.evaluations),
            "quarantined": len(summary.quarantined),
            "events": events,
            "workers": len(store.workers()),
        }


@contextlib.contextmanager
def ray_cluster() -> Iterator[None]:
    """A cluster of this machine, which Syno finds as `auto`."""
    options = ["--num-cpus", "2", "--include-dashboard=false", "--disable-usage-stats"]
    subprocess.run([_RAY, "start", "--head", *options], check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([_RAY, "stop"], check=True, stdout=subprocess.DEVNULL)


def measured(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Search on a server in a folder, kill workers, and return what came out."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from postgresql import server

    with server() as made:
        made.start(durable=True)
        address = urlsplit(made.url)
        # The password travels in a file, as the documentation advises for Ray.
        passwords = folder / "passwords"
        passwords.write_text(f"*:*:*:{address.username}:{address.password}\n", encoding="utf-8")
        passwords.chmod(0o600)
        os.environ["PGPASSFILE"] = str(passwords)
        url = f"postgresql://{address.username}@{address.hostname}:{address.port}{address.path}"
        with ray_cluster() if given.ray else contextlib.nullcontext():
            began = time.monotonic()
            with (folder / "log").open("w", encoding="utf-8") as log:
                search = subprocess.Popen(
                    command(url, given), stdout=log, stderr=subprocess.STDOUT, text=True
                )
                try:
                    kills = kill_in_turns(search, url, given.every)
                finally:
                    search.kill()
                    search.wait()
            seconds = time.monotonic() - began
        said = (folder / "log").read_text(encoding="utf-8")
        print(said, file=sys.stderr)
        found = {"ray": given.ray, "seconds": seconds, "every": given.every, "kills": kills}
        found |= {"exit_code": search.returncode} | outcome(url)
        made.stop()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print or write JSON; exit code 1 unless the search ended by itself."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--ray", action="store_true", help="workers on a Ray cluster")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long it searches")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two kills")
    parser.add_argument("--option", action="append", default=[], help="a further one of the search")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: print")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="syno-killed-") as folder:
        found = measured(Path(folder), given)
    report(found, given.out)
    sys.exit(0 if found["exit_code"] == 0 else 1)


if __name__ == "__main__":
    main()
