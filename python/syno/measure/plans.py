"""The fastest of the cheapest plans of an operator on this machine.

MACs do not determine the time: of two plans with nearly the same MACs, one may use vector
instructions well and the other not. The code of the cheapest plans is therefore verified against
the interpreter and timed alternately in one run, and the result is cached on disk.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from syno import _core
from syno._util import checks
from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.threads import check_threads
from syno._util.torch_threads import torch_threads
from syno.codegen.native import FLAGS, compile_operator, find_compiler, processor
from syno.codegen.native.trial import trial
from syno.codegen.verify import verify
from syno.measure import timing
from syno.measure.roofline import checked_time, measure_roofline, reachable
from syno.measure.timing import (
    CPP,
    NOISE,
    WARM_UP,
    Timing,
    check_native,
    control,
    interleaved,
)
from syno.operators.emitted import load_module, source_hash
from syno.operators.operator import Operator
from syno.operators.specification import Binding
from syno.operators.value import MOST_PLANS
from syno.runs.cache_folder import cache_folder, write_cached
from syno.runs.private_files import check_folder, read_private

PYTORCH = "pytorch"
# Emitters whose plans can be timed here.
EMITTERS = (CPP, PYTORCH)
LEAST_ROUNDS = 20
# A plan takes the place of the cheapest one when it is so many times as fast, in the median over
# the rounds and in the best round: less may be noise.
LEAST_GAIN = 1.03
# A plan that takes so many times as long as the best in the warm-up is not timed any further.
_HOPELESS = 3.0
# Timing takes about so long at most; then there are fewer rounds, down to a fifth.
_SECONDS = 20.0
# A plan that holds more bytes than this, and than four times those of the cheapest, is left out.
_MOST_BYTES = 1 << 30
# Of the files in the cache. Another number: other content.
_FORMAT = 1


@dataclass(frozen=True)
class PlanTime:
    """The times of a plan in milliseconds.

    number: number in `Operator.plans`; 1 is the cheapest. macs, bytes_moved, peak_bytes: costs of
    the plan. best_ms, median_ms, spread_ms: best time, median and interquartile range over
    `rounds`. speedup: median of the speedup over plan 1 in common rounds. source_hash: digest of
    the source; same_as: an earlier plan with the same source, whose times are used. outputs: number
    of outputs that were compared with the interpreter.
    """

    number: int
    macs: int
    bytes_moved: int
    peak_bytes: int
    best_ms: float
    median_ms: float
    spread_ms: float
    speedup: float
    rounds: int
    source_hash: str
    same_as: int | None
    outputs: int


@dataclass(frozen=True)
class PlanChoice:
    """The fastest plan of an operator under a binding, and the measurements.

    number: number of the plan; times: times of all measured plans by number. noisy: whether other
    processes used the machine. from_cache: whether the measurements are from the cache.
    """

    number: int
    times: tuple[PlanTime, ...]
    emitter: str
    binding: dict[str, int]
    threads: int
    fold_weights: bool
    control_spread: float
    from_cache: bool

    @property
    def noisy(self) -> bool:
        """Whether a fixed computation beside varied by more than a tenth of its median."""
        return self.control_spread > NOISE

    @property
    def speedup(self) -> float:
        """How many times as fast as the cheapest plan the chosen one is; 1 where it is that."""
        return next(time.speedup for time in self.times if time.number == self.number)


def choose_plan(
    operator: Operator,
    binding: Binding | str,
    *,
    emitter: str = CPP,
    limit: int = 4,
    threads: int = 1,
    rounds: int = 30,
    fold_weights: bool = False,
    again: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> PlanChoice:
    """Measure the cheapest plans of an operator in one run, and select the fastest.

    The measured code is verified against the interpreter: compiled code for "cpp", which first runs
    in a separate process, and the eager module for "pytorch". Plans with the same source are timed
    once. The cheapest plan is selected unless another one is 1.03 times as fast, both in the median
    and in the best round. Pass `choice.number` to `native.compile_operator(plan=...)`,
    `Operator.source` or `Operator.kernel_pack`. The result is cached below `SYNO_CACHE` by
    operator, binding, emitter, threads, sources, processor and versions.

    Args:
        operator: the operator.
        binding: values of its variables.
        limit: number of plans to measure.
        emitter: "cpp" or "pytorch".
        threads: number of threads of the code.
        rounds: number of measurements of each plan, at least 20; fewer if they take longer than
            about 20 seconds.
        fold_weights: as in `Operator.plans`.
        again: ignore cached results.

    Raises:
        UserError: the emitter cannot be timed here, the code differs from the interpreter, or as in
            `Operator.plans`.
    """
    _check(emitter, limit, threads, rounds)
    sizes = operator.complete(binding)
    plans = measurable_plans(operator, sizes, limit, fold_weights=fold_weights)
    sources = {number: _source(operator, plan, emitter) for number, plan in plans.items()}
    asked = {
        "format": _FORMAT,
        "operator": operator.text,
        "binding": sorted(sizes.items()),
        "emitter": emitter,
        "limit": limit,
        "threads": threads,
        "fold_weights": fold_weights,
        "sources": [(number, source_hash(text)) for number, text in sources.items()],
        "processor": processor(),
        "built_with": _versions(emitter),
    }
    path = _file(asked)
    if not again:
        found = _read(path, plans)
        if found is not None:
            return found
    selected = _measure(
        operator, sizes, plans, sources, emitter, threads, rounds, fold_weights, progress
    )
    _write(path, selected)
    return selected


# --- what is timed --------------------------------------------------------------------------------


def _check(emitter: str, limit: int, threads: int, rounds: int) -> None:
    if emitter not in EMITTERS:
        raise UserError(
            f"plans cannot be timed with the emitter '{emitter}'\n"
            f"  expected: {' or '.join(EMITTERS)}"
        )
    check_threads(threads)
    checks.whole("'limit'", limit, 1, MOST_PLANS)
    checks.whole("'rounds'", rounds, LEAST_ROUNDS)


def measurable_plans(
    operator: Operator, sizes: dict[str, int], limit: int, *, fold_weights: bool = False
) -> dict[int, _core.Plan]:
    """The plans by number, without those that would fill the memory."""
    found = operator.plans(sizes, limit, fold_weights=fold_weights)
    most = max(4 * found[0].peak_bytes, _MOST_BYTES)
    return {n: plan for n, plan in enumerate(found, 1) if n == 1 or plan.peak_bytes <= most}


def _source(operator: Operator, plan: _core.Plan, emitter: str) -> str:
    if emitter == CPP:
        return _core.emit_cpp(plan, formula=operator.formula())[0]
    return _core.emit_pytorch(plan, operator.formula())[0]


def _versions(emitter: str) -> list[str]:
    """What decides how fast the same source runs, beside the processor."""
    if emitter == PYTORCH:
        return [torch.__version__]
    compiler = find_compiler()
    return [compiler.path, compiler.version, str(compiler.threads), *FLAGS]


@dataclass(frozen=True)
class _Code:
    """One plan's code, checked: `call` runs it."""

    number: int
    call: Callable[[], object]
    outputs: int
    bytes: int
    # What a compiled call reads and writes, by address.
    arrays: tuple[object, ...] = ()


def _built(
    operator: Operator,
    sizes: dict[str, int],
    number: int,
    source: str,
    emitter: str,
    threads: int,
    fold_weights: bool,
) -> _Code:
    """UserError where the code is wrong."""
    random = np.random.default_rng(0)
    shapes = operator.shapes(sizes)
    x = random.standard_normal(shapes.input, np.float32)
    weights = [random.standard_normal(shape, np.float32) for shape in shapes.weights]
    outputs = int(np.prod(shapes.output, dtype=np.int64))
    moved = 4 * (x.size + outputs + sum(weight.size for weight in weights))
    if emitter == CPP:
        function = compile_operator(
            operator.canonical, sizes, plan=number, fold_weights=fold_weights
        )
        assert function.source == source
        name = f"plan {number} of {operator.structure[:8]}"
        checked = check_native(name, operator, sizes, function, threads)
        function.pack(weights)
        y = np.empty(function.output_shape, np.float32)
        call = function.prepared(x, y, threads)
        return _Code(number, call, checked, moved, (function, x, y))
    verification = verify(operator, sizes, emitter=PYTORCH, source=source)
    if not verification.passed:
        raise UserError(f"the code of plan {number} is wrong: {verification.failure}")
    with torch.random.fork_rng(devices=[]):
        module = load_module(source, keep=False)().eval()
    data = torch.from_numpy(x)
    return _Code(number, lambda: module(data), verification.outputs, moved)


# --- timing ---------------------------------------------------------------------------------------


def _measure(
    operator: Operator,
    sizes: dict[str, int],
    plans: Mapping[int, _core.Plan],
    sources: Mapping[int, str],
    emitter: str,
    threads: int,
    rounds: int,
    fold_weights: bool,
    progress: Callable[[str], None],
) -> PlanChoice:
    first_with: dict[str, int] = {}
    for number, text in sources.items():
        first_with.setdefault(text, number)
    codes = []
    if emitter == CPP:
        progress("running each plan in a process of its own")
        numbers = list(first_with.values())
        trial(operator, sizes, numbers, threads=threads, fold_weights=fold_weights)
    with torch_threads(threads), torch.inference_mode(mode=False):
        for number in first_with.values():
            progress(f"plan {number}: building and checking")
            text = sources[number]
            codes.append(_built(operator, sizes, number, text, emitter, threads, fold_weights))
    progress("timing")
    with torch_threads(threads), torch.inference_mode():
        times, spread = _times(codes, rounds)
    if emitter == CPP:
        _check_reachable(codes, plans, times, threads)
    rows = []
    for number, plan in plans.items():
        timed = first_with[sources[number]]
        code = next(code for code in codes if code.number == timed)
        rows.append(_row(number, plan, timed, sources[number], code.outputs, times))
    return PlanChoice(
        number=_fastest(rows),
        times=tuple(rows),
        emitter=emitter,
        binding=dict(sizes),
        threads=threads,
        fold_weights=fold_weights,
        control_spread=spread,
        from_cache=False,
    )


def _fastest(rows: Sequence[PlanTime]) -> int:
    """The number of the fastest plan; 1 where none is clearly faster."""

    def gain(row: PlanTime) -> float:
        return min(row.speedup, rows[0].best_ms / row.best_ms)

    best = max(rows, key=gain)
    return best.number if gain(best) >= LEAST_GAIN else 1


def _times(codes: list[_Code], rounds: int) -> tuple[dict[int, list[float]], float]:
    """Seconds by number, those of the warm-up where a plan has no chance; the control's spread."""
    beside = control()
    warm = interleaved([code.call for code in codes], WARM_UP)
    quickest = [min(own) for own in warm]
    kept = [
        which
        for which, own in enumerate(quickest)
        if which == 0 or own <= _HOPELESS * min(quickest)
    ]
    # Each call runs twice a round.
    fitting = int(_SECONDS / (2 * sum(quickest[which] for which in kept)))
    rounds = max(min(rounds, fitting), rounds // 5)
    beside()
    *timed, of_control = interleaved([*(codes[which].call for which in kept), beside], rounds)
    found = {codes[which].number: own for which, own in zip(kept, timed, strict=True)}
    for which, code in enumerate(codes):
        found.setdefault(code.number, warm[which])
    return found, Timing.of(of_control).spread


def _row(
    number: int,
    plan: _core.Plan,
    timed: int,
    source: str,
    outputs: int,
    times: Mapping[int, list[float]],
) -> PlanTime:
    own, first = times[timed], times[1]
    found = Timing.of(own)
    if len(own) == len(first):
        speedup = timing.speedup(first, own)
    else:
        speedup = statistics.median(first) / statistics.median(own)
    return PlanTime(
        number=number,
        macs=plan.macs,
        bytes_moved=plan.bytes_moved,
        peak_bytes=plan.peak_bytes,
        best_ms=min(own) * 1e3,
        median_ms=found.median_ms,
        spread_ms=found.spread_ms,
        speedup=speedup,
        rounds=len(own),
        source_hash=source_hash(source),
        same_as=None if timed == number else timed,
        outputs=outputs,
    )


def _check_reachable(
    codes: list[_Code],
    plans: Mapping[int, _core.Plan],
    times: Mapping[int, list[float]],
    threads: int,
) -> None:
    """ImpossibleTimeError for a time below what the machine can do."""
    if not find_compiler().threads:
        return  # the micro-benchmark needs OpenMP
    roofline = measure_roofline(threads)
    for code in codes:
        best, macs = min(times[code.number]), plans[code.number].macs_in_bounds
        roofline = reachable(roofline, best, macs, code.bytes)
        checked_time(f"plan {code.number}", best, roofline.least_time(macs, code.bytes))


# --- the cache ------------------------------------------------------------------------------------


def _file(asked: Mapping[str, object]) -> Path:
    content = json.dumps(asked, sort_keys=True).encode()
    return cache_folder() / "plans" / f"{hashlib.sha256(content).hexdigest()[:40]}.json"


def _write(path: Path, choice: PlanChoice) -> None:
    content = dataclasses.asdict(choice)
    text = json.dumps({"choice": content, "sum": _sum(content)}, indent=1)
    write_cached(path, text, "the choice of a plan")


def _read(path: Path, plans: Mapping[int, _core.Plan]) -> PlanChoice | None:
    """What was measured earlier; None where that is not there, damaged, or of other plans.

    UserError where somebody else could have written it.
    """
    try:
        check_folder(path.parent)
        held = parsed_json(read_private(path).decode("utf-8"))
        content = held["choice"]
        if held["sum"] != _sum(content):
            return None
        times = tuple(PlanTime(**row) for row in content.pop("times"))
        choice = PlanChoice(**{**content, "times": times, "from_cache": True})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # it is measured again and written anew
    return choice if [time.number for time in times] == list(plans) else None


def _sum(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
