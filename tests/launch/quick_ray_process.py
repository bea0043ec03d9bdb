"""Stands for the process that speaks with a Ray cluster, and does what the address says.

`mistake:1` prints a mistake, `crash:1` ends with exit code 1, `mute:1` says nothing, `later:1` is
ready and then ends as if the cluster were gone; `gone:1` is ready once, and then finds no cluster,
with a file `data_dir` as its memory; `fine:1` prints what it was given, and waits.
"""

from __future__ import annotations

import json
import os
import sys


def say(**message: object) -> None:
    print(json.dumps(message), flush=True)


def main() -> None:
    given = json.loads(sys.stdin.readline())
    what = given["address"].partition(":")[0]
    if what == "mistake":
        say(kind="mistake", text="no room\n  what to do: add nodes")
        sys.exit(2)
    if what == "crash":
        sys.exit("the library of Ray is broken")
    if what == "mute":
        sys.stdin.read()
        return
    if what == "gone" and os.path.exists(given["orders"]["data_dir"]):
        say(kind="mistake", text="nothing answers\n  what to do: ray status")
        sys.exit(2)
    say(kind="ready", workers=2, nodes=1)
    if what == "gone":
        open(given["orders"]["data_dir"], "x").close()
        sys.exit(1)
    if what == "later":
        print('{"kind": "no', end="", flush=True)
        sys.exit("Failed to connect to GCS within 60 seconds")
    say(kind="note", text=json.dumps(given | {"cwd": os.getcwd(), "argv": sys.argv}))
    say(kind="placed", workers=[{"number": 1, "node": "a", "host": "b", "process": 3}])
    sys.stdin.read()
    say(kind="note", text="all workers ended")
