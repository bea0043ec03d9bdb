"""Differential tests: emitters against the interpreter on many random operators."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace

from syno._util import checks
from syno._util.errors import InternalError
from syno._util.json_types import JsonObject
from syno._util.torch_threads import torch_threads
from syno.codegen.emitters import Case, Code, Emitter
from syno.codegen.verify.check import (
    CodeComparison,
    MismatchError,
    build,
    described,
    free_sizes,
    usable,
)
from syno.codegen.verify.random_cases import random_case
from syno.codegen.verify.shrink import shrink
from syno.codegen.verify.traits import TRAITS, traits
from syno.operators.operator import Operator
from syno.runs.pool import spawned

# Cases that are built in one go.
CHUNK = 50
# Mismatches of one emitter that are reduced; the others are reported as they are.
_SMALL = 3
# The trait of cases that are made as convolutions, in addition to TRAITS.
_CONVOLUTION = "like a convolution"


@dataclass(frozen=True)
class Mismatch:
    """A case in which an emitter's code differs from the interpreter.

    seed: the seed of the case, which `random_check(1, seed)` repeats; failure: what differs, with
    binding and operator; smallest: the same for the reduced case, empty if it was not reduced.
    """

    emitter: str
    seed: int
    operator: str
    binding: dict[str, int]
    failure: str
    smallest: str = ""


@dataclass
class RandomCheck:
    """What a differential test found.

    operators: number of cases, each checked with every emitter; mix: number of cases with each
    trait of `TRAITS`; max_error: the largest error in float32 relative to the sum of the absolute
    terms, by emitter; emitter_seconds: time of each emitter, summed over all processes.
    """

    seed: int
    emitters: tuple[str, ...]
    operators: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    mix: Counter[str] = field(default_factory=Counter)
    max_error: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    emitter_seconds: dict[str, float] = field(default_factory=dict)

    def add(self, part: RandomCheck) -> None:
        """Add the findings of a part."""
        self.operators += part.operators
        self.mismatches += part.mismatches
        self.mix.update(part.mix)
        for name in self.emitters:
            error = max(self.max_error.get(name, 0.0), part.max_error.get(name, 0.0))
            self.max_error[name] = error
            seconds = part.emitter_seconds.get(name, 0.0)
            self.emitter_seconds[name] = self.emitter_seconds.get(name, 0.0) + seconds

    def to_json(self) -> JsonObject:
        """Return the output of `syno verify --random --json`; `mismatches` is a number."""
        count = max(1, self.operators)
        return {
            "operators": self.operators,
            "seed": self.seed,
            "emitters": list(self.emitters),
            "mismatches": len(self.mismatches),
            "mix": {name: {"count": n, "share": round(n / count, 4)} for name, n in self.counted()},
            "max_error": self.max_error,
            "seconds": round(self.seconds, 2),
            "emitter_seconds": {name: round(s, 2) for name, s in self.emitter_seconds.items()},
            "failures": [vars(mismatch) for mismatch in self.mismatches],
        }

    def counted(self) -> list[tuple[str, int]]:
        """Return the mix in its fixed order, including traits of no case."""
        return [(name, self.mix[name]) for name in (_CONVOLUTION, *TRAITS)]


# Fewer operators are done before more processes have started.
_EACH = 250


def processes_for(count: int) -> int:
    """Return the number of processes that check `count` operators fastest."""
    return max(1, min(os.cpu_count() or 1, count // _EACH))


def random_check(
    count: int,
    seed: int,
    emitters: Sequence[str] = ("pytorch",),
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> RandomCheck:
    """Compare `count` random operators with the interpreter: values and all gradients.

    Case number i is `random_case(seed + i)`, so that a single case can be repeated. Each is
    compared as `verify` does, and once more with another batch size if the code accepts any. The
    first mismatches of each emitter are reduced to smaller cases.

    Args:
        count: number of operators.
        seed: seed of the first case.
        emitters: names of the emitters to check.
        jobs: number of processes; 1 runs in this process.
        progress: called regularly with (done, mismatches).

    Raises:
        UserError: an emitter is unknown or cannot run here.
    """
    seed = checks.whole("'seed'", seed, least=0)
    began = time.perf_counter()
    for name in emitters:
        usable(name)
    result = RandomCheck(seed, tuple(emitters))
    starts = range(seed, seed + count, CHUNK)
    parts = [(start, min(CHUNK, seed + count - start), result.emitters) for start in starts]
    for part in _in_process(parts) if jobs == 1 or len(parts) == 1 else _in_pool(parts, jobs):
        result.add(part)
        if progress is not None:
            progress(result.operators, len(result.mismatches))
    result.mismatches.sort(key=lambda m: (result.emitters.index(m.emitter), m.seed))
    for name in result.emitters:
        first = [i for i, m in enumerate(result.mismatches) if m.emitter == name][:_SMALL]
        for i in first:
            result.mismatches[i] = _made_small(result.mismatches[i])
    result.seconds = time.perf_counter() - began
    return result


def _in_process(parts: Sequence[tuple[int, int, tuple[str, ...]]]) -> Iterator[RandomCheck]:
    with torch_threads(1):  # tiny operators are slower on several
        for part in parts:
            yield _part(*part)


def _in_pool(parts: Sequence[tuple[int, int, tuple[str, ...]]], jobs: int) -> Iterator[RandomCheck]:
    """Parts as they are done."""
    try:
        with spawned(min(jobs, len(parts)), _start_worker) as pool:
            for done in as_completed([pool.submit(_part, *part) for part in parts]):
                yield done.result()
    except BrokenProcessPool as error:
        raise InternalError(
            "generated code ended the process that ran it\n"
            "  what to do: find the case with jobs=1 (--jobs 1) and fewer seeds"
        ) from error


def _start_worker() -> None:
    # Ctrl-C reaches the workers too; what to do about it is for the main process to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)


def _part(first: int, count: int, names: tuple[str, ...]) -> RandomCheck:
    """The cases first .. first + count - 1, without reducing mismatches."""
    result = RandomCheck(first, names)
    sampled = [random_case(seed) for seed in range(first, first + count)]
    result.operators = count
    for one in sampled:
        result.mix.update(traits(one.case))
        result.mix[_CONVOLUTION] += one.convolution
    for name in names:
        began = time.perf_counter()
        emitter = usable(name)
        cases = [one.case for one in sampled]
        for one, function in zip(sampled, _functions(emitter, cases), strict=True):
            failure, error = _difference(emitter, one.case, one.seed, function)
            result.max_error[name] = max(result.max_error.get(name, 0.0), error)
            if failure:
                operator, binding = one.case
                result.mismatches.append(Mismatch(name, one.seed, operator.text, binding, failure))
        result.emitter_seconds[name] = time.perf_counter() - began
    return result


def _functions(emitter: Emitter, cases: list[Case]) -> Sequence[Code | MismatchError]:
    """All in one go; one by one where that fails, to know which ones fail."""
    try:
        return build(emitter, cases)
    except MismatchError:
        return [_function(emitter, case) for case in cases]


def _function(emitter: Emitter, case: Case) -> Code | MismatchError:
    try:
        return build(emitter, [case])[0]
    except MismatchError as mismatch:
        return mismatch


def _difference(
    emitter: Emitter, case: Case, seed: int, function: Code | MismatchError
) -> tuple[str, float]:
    """What differs, empty for nothing, and the largest error in float32."""
    if isinstance(function, MismatchError):
        return str(function), 0.0
    operator, binding = case
    other = {name: binding[name] % 3 + 1 for name in free_sizes(emitter, operator)}
    largest = 0.0
    for run in (case, Case(operator, binding | other))[: 2 if other else 1]:
        comparison = CodeComparison(emitter, run, seed)
        try:
            comparison.check(function)
        except MismatchError as mismatch:
            remark = "" if run is case else f"\n  run in binding {run.binding}"
            return f"{mismatch}{remark}", comparison.max_error
        largest = max(largest, comparison.max_error)
    return "", largest


def _made_small(mismatch: Mismatch) -> Mismatch:
    """The same with its smallest case."""
    emitter, seed = usable(mismatch.emitter), mismatch.seed

    def failure(case: Case) -> str:
        return _difference(emitter, case, seed, _function(emitter, case))[0]

    case = Case(Operator.from_text(mismatch.operator), mismatch.binding)
    smallest = shrink(case, lambda smaller: bool(failure(smaller)))
    return replace(mismatch, smallest=described(smallest, seed, failure(smallest)))
