"""`syno verify --random`: emitters against the interpreter on random operators."""

from __future__ import annotations

import os

from syno.cli import framework, output
from syno.codegen.verify import Mismatch, RandomCheck, random_check
from syno.report import format as fmt

# Fewer operators are done before more processes have started.
_EACH = 250
# Mismatches that are printed; --json has them all.
_PRINTED = 10


def run(count: int, seed: int, names: tuple[str, ...], jobs: int | None, *, as_json: bool) -> int:
    """Check, print and say by the exit code whether anything differs."""
    processes = jobs or max(1, min(os.cpu_count() or 1, count // _EACH))
    with output.progress("operators", count) as move:

        def moved(done: int, mismatches: int) -> None:
            move(done, f"{mismatches:,} mismatches")

        result = random_check(count, seed, names, jobs=processes, progress=moved)
    if as_json:
        output.print_json(result.to_json())
    else:
        _print(result)
    return framework.NEGATIVE if result.mismatches else framework.OK


def _print(result: RandomCheck) -> None:
    screen = output.console()
    count = result.operators
    mix = [[name, f"{n:,}", f"{100 * n / count:.0f} %"] for name, n in result.counted()]
    columns = [("in the mix", "left"), ("operators", "right"), ("share", "right")]
    screen.print(output.table(columns, mix))
    rows = []
    for name in result.emitters:
        wrong = sum(mismatch.emitter == name for mismatch in result.mismatches)
        error, seconds = result.max_error[name], result.emitter_seconds[name]
        rows.append([name, f"{count:,}", f"{wrong:,}", f"{error:.1e}", fmt.duration(seconds)])
    columns = [("emitter", "left"), ("operators", "right"), ("mismatches", "right")]
    columns += [("largest error", "right"), ("at work", "right")]
    screen.print(output.table(columns, rows))
    for mismatch in result.mismatches[:_PRINTED]:
        screen.print(output.indented(_told(mismatch), 0), soft_wrap=True)
    if len(result.mismatches) > _PRINTED:
        output.say(f"... and {len(result.mismatches) - _PRINTED:,} more; --json lists them all")


def _told(mismatch: Mismatch) -> str:
    """A mismatch with its smallest case, where there is one, and how to see it again."""
    again = f"syno verify --random 1 --seed {mismatch.seed} --emitters {mismatch.emitter}"
    if mismatch.smallest:
        return f"{mismatch.emitter}, made small ({again}):\n{mismatch.smallest}"
    return (
        f"{mismatch.emitter} ({again}):\n{mismatch.failure}\n  in binding {mismatch.binding}\n"
        f"  of operator\n{mismatch.operator}"
    )
