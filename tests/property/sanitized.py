"""Compiled operators under the address and undefined-behaviour sanitizers, and limits of threads.

    python tests/property/sanitized.py SEED,SEED,... KIND,KIND,... [SKIPPED ...]

checks the random operators of these seeds in the number formats KIND, with epilogues, schedules,
memory orders, several plans, weights folded or not, and as `training` with gradients. It prints a
line before each; the process ends at the first fault, which it reports on standard error. SKIPPED
are cases such as `17:int8` that are left out. The sanitizer's library has to be loaded before
Python is (`environment`). `findings` does all of that, and goes on behind each fault.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

if __name__ == "__main__":  # a script is no part of a package
    sys.path.insert(0, str(Path(__file__).parents[1]))
    __package__ = "property"
    import property  # noqa: F401

from syno import UserError, _core
from syno.codegen import native
from syno.codegen.native import function as native_function
from syno.codegen.native import training
from syno.codegen.verify.random_cases import random_case
from syno.measure.schedule_costs import Machine, choices_of, tuning_text

from .cpp_stored import Stored, of_bfloat16, to_bfloat16
from .cpp_variants import (
    ACTIVATIONS,
    EXACT,
    TOLERANCE,
    Emitted,
    drawn,
    ended,
    interpreted,
    random_kernel,
)

SANITIZERS = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# In `codes` what contractions give to others are codes, too.
KINDS = ("float32", "bfloat16", "int8", "codes", "training")
_PLAIN = tuple(flag for flag in native.QUICK_FLAGS if not flag.startswith("-march"))
# Vectors of this processor, shorter ones, and those that every processor has: the sanitizer does
# not see into the instructions with masks that the first two use.
_PROCESSORS = ("-march=native", "-mavx2 -mfma", "-msse2")
_BATCH = 20  # cases in a translation unit
_MOST_SAID = 4000  # characters of a report
# Threads that are asked for, and the most that OpenMP gives; 0 for no limit.
_THREADS = ((1, 0), (3, 0), (4, 1), (4, 2), (4, 3))
_PARTS = (1, 3)
_FEW = 4  # numbers of an image that are not zero, about
_MOST = 2**20  # of numbers that are exact in float32, and so in any order of sums
BFLOAT16 = 2.0**-8  # the largest error of rounding, relative to the value

# `limited` calls what it is given where OpenMP gives no team of more than `limit` threads, `nested`
# inside of a team of the caller's.
_LIMITS = """
extern "C" void limited(int limit, void (*call)()) {
#pragma omp teams num_teams(1) thread_limit(limit)
  call();
}
extern "C" void nested(void (*call)()) {
#pragma omp parallel num_threads(2)
#pragma omp master
  call();
}
extern "C" int granted(int threads) {
  int count = 0;
#pragma omp parallel num_threads(threads)
#pragma omp master
  count = omp_get_num_threads();
  return count;
}
"""


def available() -> bool:
    """Whether GCC with the sanitizers and OpenMP is here."""
    if shutil.which("g++") is None or not native.find_compiler("g++").threads:
        return False
    return all(Path(library).is_absolute() for library in environment()["LD_PRELOAD"].split(":"))


def environment() -> dict[str, str]:
    """The variables of a process that loads code with sanitizers."""
    compiler = native.find_compiler("g++").path
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    options = "detect_leaks=0:abort_on_error=0:exitcode=99"
    return os.environ | {
        "LD_PRELOAD": ":".join(libraries),
        "ASAN_OPTIONS": options,
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "OMP_NUM_THREADS": "1",
    }


def findings(seeds: Sequence[int], seconds: float, kinds: Sequence[str] = KINDS) -> list[str]:
    """What is said of each case that is wrong, ends its process, or does not come to an end.

    seconds: for all cases together.
    """
    found: list[str] = []
    skipped: list[str] = []
    left, end = list(seeds), time.monotonic() + seconds
    while True:
        command = [sys.executable, __file__, ",".join(map(str, left)), ",".join(kinds), *skipped]
        done = _ended(command, end - time.monotonic())
        lines = done.stdout.splitlines()
        if done.returncode == 0 and lines[-1:] == ["done"]:
            return found
        begun = [line.split()[1] for line in lines if line.startswith("begin ")]
        report = done.stderr
        if len(report) > _MOST_SAID:
            report = f"{report[: _MOST_SAID // 2]}\n...\n{report[-_MOST_SAID // 2 :]}"
        said = f"{done.returncode}\n{report}"
        if not begun or time.monotonic() > end:
            return [*found, f"{begun[-1:]}: the process failed with {said}"]
        found.append(f"{begun[-1]}: {said}")
        skipped.append(begun[-1])
        left = left[left.index(int(begun[-1].split(":")[0])) :]


def _ended(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode()
        return subprocess.CompletedProcess(command, 1, said, f"no end within {seconds:.0f} s")


@dataclass(frozen=True)
class Trial:
    """A case. source: its code without the runtime; check: of its library."""

    name: str
    source: str
    check: Callable[[ctypes.CDLL], None]


def trials(seed: int, kinds: Sequence[str]) -> Iterator[Trial]:
    """The cases of a seed."""
    kernel = random_kernel(seed)
    for kind in kinds:
        name = f"op_{seed}_{kind}"
        made = _training(seed, name) if kind == "training" else _stored(seed, kind, name, kernel)
        yield Trial(f"{seed}:{kind}", *made)


# --- operators -----------------------------------------------------------------------------------


def _stored(
    seed: int, kind: str, name: str, kernel: Emitted
) -> tuple[str, Callable[[ctypes.CDLL], None]]:
    rng = random.Random(f"{seed} {kind}")
    exact = rng.random() < 0.7  # the activation, if there is one
    variant = kernel.variant
    *parts, last = variant.epilogue.split("+")
    formats = {
        "float32": ("float32", ("float32",)),
        "bfloat16": (rng.choice(("float32", "bfloat16")), ("float32", "bfloat16")),
        "int8": ("uint8", ("float32", "uint8")),
        "codes": ("uint8", ("float32", "uint8")),
    }[kind]
    coded = kind == "codes"
    output = rng.choice(formats[1])
    if last in ACTIVATIONS and last not in EXACT and (exact or output == "uint8"):
        last = "relu"
    epilogue = "+".join([*parts, last])
    options = asdict(replace(variant, epilogue=epilogue, precision="int8" if coded else kind))
    options |= {"input_format": formats[0], "output_format": output}
    if coded:
        options["value_format"] = "uint8"
    folded = formats[0] != "uint8" and rng.random() < 0.3
    case = kernel.case
    plan = rng.choice(case.operator.plans(case.binding, 3, fold_weights=folded))
    emit = functools.partial(
        _core.emit_cpp, plan, name=name, with_runtime=False, cache_floats=kernel.cache_floats
    )
    if kind == "float32" and rng.random() < 0.5:
        options = _tuned(options, plan, emit, rng)
    source, manifest = emit(**options)
    ready = replace(kernel, variant=replace(variant, epilogue=epilogue))
    if coded:
        options["codes"] = json.loads(manifest).get("codes", [])
    return source, lambda library: _check(ready, Stored(library, name, options), seed)


def _tuned(
    options: dict[str, Any], plan: _core.Plan, emit: Callable[..., object], rng: random.Random
) -> dict[str, Any]:
    """The options with a random schedule, if it fits the memory orders and the cache."""
    nests = [nest for nest in json.loads(_core.cpp_choices(plan)) if len(nest["forms"]) > 1]
    chosen = {nest["nest"]: rng.choice(choices_of(nest, Machine(16, 32, 2))) for nest in nests}
    tuned = options | {"tuning": tuning_text(chosen)}
    try:
        emit(**tuned)
    except UserError:
        return options
    return tuned


def _check(kernel: Emitted, function: Stored, seed: int) -> None:
    batch = 5 if kernel.batched else 1
    case = _Case(kernel, function, batch, seed)
    for threads, limit in _THREADS:
        y = case.output()
        _limited(
            function.library,
            limit,
            lambda y=y, threads=threads: function(
                case.x, case.weights, y, threads, case.channel, case.residual
            ),
        )
        case.compare(y, f"{threads} threads of which OpenMP gives {limit or 'all'}")
    y = case.output()
    arguments = (case.x, case.weights, y, 1, case.channel, case.residual)
    _called(function.library.nested, lambda: function(*arguments))
    case.compare(y, "one thread in a team of the caller's")
    for count in _PARTS if not kernel.batched else ():
        y = case.output()
        function.by_phases(case.x, case.weights, y, count, case.channel, case.residual)
        case.compare(y, f"{count} parts")
    _compare_phases(case)


def _compare_phases(case: _Case) -> None:
    """Image by image, in parts."""
    if not case.kernel.batched:
        return
    for count in _PARTS:
        y = case.output()
        for n in range(len(case.x)):
            residual = None if case.residual is None else case.residual[n : n + 1]
            x, one = case.x[n : n + 1].copy(), y[n : n + 1].copy()
            case.function.by_phases(x, case.weights, one, count, case.channel, residual)
            y[n : n + 1] = one
        case.compare(y, f"{count} parts")


class _Case:
    """Arguments as they are stored, and what the operator gives by definition."""

    def __init__(self, kernel: Emitted, function: Stored, batch: int, seed: int) -> None:
        self.kernel, self.function = kernel, function
        options = function.options
        rng = np.random.default_rng(seed)
        x, self.weights, parts = drawn(kernel, batch, seed)
        values = []
        before, after = function.orders
        self.x: NDArray[Any]
        residual = parts.get("residual")
        if options["input_format"] == "uint8":
            codes = rng.integers(0, 256, x.shape).astype(np.uint8) % 9
            zero = int(rng.integers(0, 9))
            if "codes" in options:  # few numbers, so that no sum between contractions saturates
                codes = np.where(rng.random(x.shape) < _FEW / max(1, x[0].size), codes, zero)
                codes = np.clip(codes, max(0, zero - 1), zero + 1).astype(np.uint8)
                self.weights = [np.sign(weight) for weight in self.weights]
            x = codes.astype(np.float32) - zero
            values = [zero, 0.0, 1.0, 3.0, 0.5]
            values += [128.0, 1.0, 1.0] * len(options.get("codes", ()))
            self.x = _laid(codes, before)
        else:
            self.x = _laid(x, before)
        self.factor, self.shift = 0.5, 3.0
        self.residual: NDArray[Any] | None = None
        if residual is not None:
            if options["output_format"] == "uint8":
                codes = rng.integers(0, 256, residual.shape).astype(np.uint8)
                values[1:3] = [100.0, 0.5]
                parts["residual"] = (codes.astype(np.float32) - 100) * np.float32(0.5)
                self.residual = _laid(codes, after)
            else:
                self.residual = _laid(residual, after)
        if options["input_format"] == "bfloat16":
            self.x = to_bfloat16(self.x)
        if options["output_format"] == "bfloat16" and self.residual is not None:
            self.residual = to_bfloat16(self.residual)
        sums = interpreted(kernel, x, self.weights)
        assert np.abs(sums).max(initial=0) < _MOST
        self.wanted = ended(kernel.variant, sums, parts)
        self.bound = self._bound(x, sums, parts)
        self.channel = self._channels(parts, values, self.wanted.shape)

    def _channels(self, parts: dict[str, Any], values: list[float], shape: Any) -> Any:
        found = []
        if "scale" in parts or "bias" in parts:
            channels = shape[self.kernel.variant.channel]
            found.append(parts.get("bias", np.zeros(channels)))
            if "scale" in parts:
                found.append(parts["scale"])
        return np.concatenate([*found, np.array(values)]).astype(np.float32)

    def _bound(self, x: Any, sums: Any, parts: dict[str, Any]) -> Any:
        """The largest error; see test_cpp_formats for what rounds in bfloat16."""
        last = self.kernel.variant.epilogue.split("+")[-1]
        inexact = last in ACTIVATIONS and last not in EXACT
        bound = (TOLERANCE if inexact else 0.0) * np.maximum(1, np.abs(self.wanted))
        if self.function.options["precision"] == "bfloat16":
            sizes = interpreted(self.kernel, np.abs(x), [np.abs(w) for w in self.weights])
            scale = np.ones(())
            if "scale" in parts:
                along = [1] * sums.ndim
                along[self.kernel.variant.channel] = -1
                scale = np.abs(parts["scale"]).reshape(along)
            rounds = (1 + BFLOAT16) ** (2 * len(self.weights)) - 1
            bound = bound + 1.2 * rounds * sizes * scale
        if self.function.options["output_format"] == "bfloat16":
            bound = bound + BFLOAT16 * (np.abs(self.wanted) + bound)
        return bound

    def output(self) -> NDArray[Any]:
        """Memory for y, as it is stored."""
        shape = self.wanted.shape
        order = self.function.options.get("output_order") or tuple(range(len(shape)))
        kind = {"float32": np.float32, "bfloat16": np.uint16, "uint8": np.uint8}
        y = np.empty([shape[d] for d in order], kind[self.function.options["output_format"]])
        y.fill(np.nan if y.dtype == np.float32 else 0xFF)
        return y

    def compare(self, y: NDArray[Any], how: str) -> None:
        """AssertionError unless y is right."""
        wanted, bound = (_laid(each, self.function.orders[1]) for each in (self.wanted, self.bound))
        found = of_bfloat16(y) if y.dtype == np.uint16 else y.astype(np.float64)
        if y.dtype == np.uint8:
            wanted = np.clip(np.rint(wanted * self.factor) + self.shift, 0, 255)
        wrong = ~(np.abs(found - wanted) <= bound)
        if wrong.any():
            place = tuple(np.argwhere(wrong)[0])
            raise AssertionError(
                f"{how}: y{list(map(int, place))} = {found[place]}, expected {wanted[place]}\n"
                f"{self.function.options}\n{self.kernel.case.operator.text}"
            )


def _laid(array: NDArray[Any], order: tuple[int, ...] | None) -> NDArray[Any]:
    return np.ascontiguousarray(array.transpose(order) if order else array)


# --- gradients -----------------------------------------------------------------------------------


def _training(seed: int, name: str) -> tuple[str, Callable[[ctypes.CDLL], None]]:
    case = random_case(seed).case
    rng = random.Random(f"{seed} training")
    plan = case.operator.plans(case.binding, 1)[0]
    source, manifest = _core.emit_training(
        plan, name=name, with_runtime=False, images=rng.choice((0, 1, 3))
    )

    def check(library: ctypes.CDLL) -> None:
        function = training.TrainingKernel(library, name, source, json.loads(manifest))
        kernel = Emitted(case)
        x, weights, _ = drawn(kernel, 5 if function.batched else 1, seed)
        sums = interpreted(kernel, x, weights)
        dy = np.random.default_rng(seed).integers(-2, 3, sums.shape).astype(np.float32)
        first: list[NDArray[Any]] = []

        def call(threads: int, results: list[NDArray[Any]]) -> None:
            y, _ = training.on_arrays(function, x, weights, None, threads)
            dx, dweights = training.on_arrays(function, x, weights, dy, threads)
            results += [y, dx, *dweights]

        hows = [functools.partial(_limited, library, limit) for _, limit in _THREADS]
        hows.append(functools.partial(_called, library.nested))
        for (threads, _), how in zip((*_THREADS, (1, 0)), hows, strict=True):
            results: list[NDArray[Any]] = []
            how(functools.partial(call, threads, results))
            if not first:
                first = results
                assert np.array_equal(first[0], sums), case.operator.text
            for one, other in zip(first, results, strict=True):
                assert np.array_equal(one, other), f"{threads} threads\n{case.operator.text}"

    return source, check


# --- a process -----------------------------------------------------------------------------------


def _called(function: Any, call: Callable[[], None]) -> None:
    """Lets C++ code call what raises."""
    raised: list[BaseException] = []

    def caught() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    function(ctypes.CFUNCTYPE(None)(caught))
    if raised:
        raise raised[0]


def _limited(library: ctypes.CDLL, limit: int, call: Callable[[], None]) -> None:
    if limit == 0:
        return call()
    return _called(functools.partial(library.limited, limit), call)


def _exact(count: int) -> NDArray[np.float32]:
    """Memory that ends where the sanitizer sees it, and holds no numbers."""
    return np.full(count, np.nan, np.float32)


def main() -> None:
    os.environ.pop("LD_PRELOAD", None)  # the compiler runs without
    listed, kinds, *skipped = sys.argv[1:]
    native_function._aligned = training._aligned = _exact  # type: ignore[attr-defined]
    seeds = [int(seed) for seed in listed.split(",")]
    for begin in range(0, len(seeds), _BATCH):
        batch = seeds[begin : begin + _BATCH]
        held = [trial for seed in batch for trial in trials(seed, kinds.split(","))]
        text = "\n".join([_core.training_runtime(), _LIMITS, *(t.source for t in held)])
        processor = _PROCESSORS[batch[0] // _BATCH % len(_PROCESSORS)].split()
        library = native.find_compiler("g++").library(text, [*_PLAIN, *processor, *SANITIZERS])
        assert library.granted(4) == 4, "OpenMP gives no threads here"
        for trial in held:
            if trial.name in skipped:
                continue
            print("begin", trial.name, flush=True)
            trial.check(library)
    print("done", flush=True)


if __name__ == "__main__":
    cast(Any, main)()
