"""Stands for the process of a worker: it starts at once, and does what the name of its study says.

`mistake` prints a mistake, `failure` ends with exit code 1, `done` has done two trials;
anything else waits for the end of its input, or SIGTERM.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    given = json.loads(sys.stdin.readline())
    if given["study"] == "mistake":
        print("there is no data here\n  what to do: mount it", end="", flush=True)
        sys.exit(2)
    if given["study"] == "failure":
        sys.exit(1)
    if given["study"] == "done":
        print(2, end="")
        return
    print(json.dumps(given | {"threads": os.environ["OMP_NUM_THREADS"]}), flush=True)
    sys.stdin.read()
