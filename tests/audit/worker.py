"""Runs mutated inputs of one entry, and says on a pipe what becomes of each.

python -m tests.audit.worker ENTRIES SEED FIRST LAST PIPE

ENTRIES are names with semicolons between them. A line for each entry: its name. A line for each
input: its number, before it is tried. A line of JSON for a failure. The parent notices when no line
comes for too long, and starts another worker behind that input.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import traceback
from typing import Any, TextIO

from tests.audit.entries import ENTRIES
from tests.audit.mutations import smaller

from syno import UserError

MOST_BYTES = 2 << 30  # above what the imports take
MOST_TRIES = 300  # of the shrinker
MOST_SHRINKING = 5.0  # seconds
LONG = 600  # characters of an input that a report repeats


def stream(entry: str, seed: int, number: int) -> random.Random:
    """The random numbers of one input."""
    return random.Random(f"{entry} {seed} {number}")


def failure(call: Any, value: Any) -> BaseException | None:
    """What is wrong with the answer of an entry to an input; None for a result or a UserError."""
    try:
        call(value)
    except UserError:
        return None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
    return None


def signature(error: BaseException) -> str:
    """Type and place of an exception: failures of one signature are one."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/syno/" in f.filename] or frames
    where = f"{os.path.basename(ours[-1].filename)}:{ours[-1].name}" if ours else "?"
    return f"{type(error).__name__} in {where}"


def shrunk(call: Any, value: Any, wanted: str) -> Any:
    """A smaller input that fails in the same way, as far as it is found in a moment."""
    tries, end = 0, time.monotonic() + MOST_SHRINKING
    while True:
        for part in smaller(value):
            tries += 1
            if tries > MOST_TRIES or time.monotonic() > end:
                return value
            error = failure(call, part)
            if error is not None and signature(error) == wanted:
                value = part
                break
        else:
            return value


def shown(value: Any) -> str:
    """An input in a report."""
    sys.set_int_max_str_digits(0)
    try:
        text = ascii(value)
    except RecursionError:
        text = f"a {type(value).__name__} that is nested deeply"
    sys.set_int_max_str_digits(4300)
    return text if len(text) <= LONG else f"{text[:LONG]}... ({len(text)} characters)"


def limit_memory() -> None:
    """Address space: what there is now, and MOST_BYTES."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    names, (seed, first, last, pipe) = sys.argv[1].split(";"), map(int, sys.argv[2:6])
    seeds = {name: ENTRIES[name].seeds() for name in names}
    for name in names:
        for value in seeds[name]:
            ENTRIES[name].call(value)  # a valid input gives a result
    limit_memory()
    with os.fdopen(pipe, "w", buffering=1) as out:
        for name in names:
            print(f"entry {name}", file=out)
            _try(name, seeds[name], seed, range(first, last), out)
        print("done", file=out)


def _try(name: str, seeds: list[Any], seed: int, numbers: range, out: TextIO) -> None:
    entry = ENTRIES[name]
    known: set[str] = set()
    for number in numbers[:: entry.share]:
        rng = stream(name, seed, number)
        value = entry.mutated(rng.choice(seeds), rng)
        print(number, file=out)
        error = failure(entry.call, value)
        if error is None:
            continue
        kind = signature(error)
        found = {"number": number, "kind": kind, "error": str(error)[:LONG]}
        if kind not in known:
            known.add(kind)
            print(json.dumps(found | {"input": shown(value)}), file=out)
            found["input"] = shown(shrunk(entry.call, value, kind))
        print(json.dumps(found), file=out)


if __name__ == "__main__":
    main()
