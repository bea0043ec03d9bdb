"""Kernels tuned by measurement: the schedule of compiled C++ with the least time on this machine.

The emitter's rules choose tiles, panels and their order for every machine at once. Here a model of
the cost proposes other choices, which are compiled and timed alternately with the rules' code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno._util import checks
from syno._util.threads import check_threads
from syno.codegen.native import FLAGS, Function, Variant, compile_functions, compile_operator
from syno.codegen.native.trial import trial
from syno.codegen.native.tuning_cache import Tuning, held_tuning, keep_tuning
from syno.measure.plans import LEAST_GAIN
from syno.measure.schedule_costs import Choice, CostModel, Machine, nests_of, tuning_text
from syno.measure.timing import WARM_UP, check_native, interleaved, speedup
from syno.operators.operator import Operator
from syno.operators.specification import Binding

# So many choices are compiled in one translation unit and timed in turns; then the model learns.
_BATCH = 6
# Rounds in which choices are compared, and in which the best ones are.
_QUICK_ROUNDS, _ROUNDS = 12, 60
_FINALISTS = 3
# Largest difference of results, relative to the largest: Winograd's products round otherwise.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class KernelTuning:
    """The tuning of a plan under a binding.

    tuning: as `emit_cpp` reads it, empty if the rules are as good; speedup: how many times as fast
    as the code of the rules, the median of common rounds in a run of its own; trials: how many
    choices were measured; from_cache: whether an earlier search found it.
    """

    tuning: str
    speedup: float
    trials: int
    from_cache: bool = False


def tune_kernel(
    operator: Operator,
    binding: Binding | str,
    *,
    plan: int = 1,
    fold_weights: bool = False,
    threads: int = 1,
    trials: int = 24,
    again: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> KernelTuning:
    """Search the schedule of a compiled operator by measurement, and keep it in the cache.

    Kernels that are compiled for this machine later use it, see `syno.compile`. The code of every
    choice is compared with the code of the rules, and that of the result with the interpreter; it
    first runs in a process of its own. A choice is taken if it is 1.03 times as fast in the median
    and in the best round, in two runs.

    Args:
        operator: the operator.
        binding: values of its variables.
        plan, fold_weights: as in `compile_operator`.
        threads: number of threads of the calls.
        trials: number of choices that are measured.
        again: search although the cache has the result of as many trials.
        progress: called with what is done.

    Raises:
        UserError: the operator does not fit the binding, there is no compiler, or code is wrong.
    """
    check_threads(threads)
    checks.whole("'trials'", trials, 1)
    sizes = operator.complete(binding)
    chosen = operator.numbered_plan(sizes, plan, fold_weights=fold_weights)
    if not again:
        held = held_tuning(chosen, threads)
        if held is not None and held.trials >= trials:
            return KernelTuning(held.text, held.speedup, held.trials, from_cache=True)
    search = _Search(operator, sizes, chosen, threads, progress)
    search.run(trials)
    best, gain = search.confirmed()
    if best:
        progress("checking the fastest one")
        _check(operator, sizes, plan, fold_weights, threads, best)
    keep_tuning(chosen, Tuning(best, gain, max(search.count, trials)), threads)
    return KernelTuning(best, gain, search.count)


class _Search:
    def __init__(
        self,
        operator: Operator,
        sizes: dict[str, int],
        plan: _core.Plan,
        threads: int,
        progress: Callable[[str], None],
    ) -> None:
        self._plan, self._threads, self._progress = plan, threads, progress
        self._formula = operator.formula()
        random = np.random.default_rng(0)
        shapes = operator.shapes(sizes)
        self._x = random.standard_normal(shapes.input, np.float32)
        self._weights = [random.standard_normal(shape, np.float32) for shape in shapes.weights]
        self.count = 0
        # By text of the tuning: its code, and how many times as fast it is as that of the rules.
        self._calls: dict[str, Callable[[], None]] = {}
        self._gains: dict[str, float] = {}
        (rules,) = self._built([""])
        self._expected = self._result(rules)
        self._calls[""] = self._prepared(rules)

    def run(self, trials: int) -> None:
        """Tune nest after nest, each with the best choices of those before it."""
        nests = nests_of(self._plan)
        machine = Machine.here(self._threads)
        chosen: dict[int, Choice] = {}
        total = sum(nest["macs"] for nest in nests) or 1
        for nest in nests:
            share = max(_BATCH, round(trials * nest["macs"] / total))
            number, model = nest["nest"], CostModel(nest, machine)
            others: list[Choice] = [{"form": "rows"}] if nest["form"] == "product" else []
            best, best_gain = chosen.get(number, {}), self._gains.get(tuning_text(chosen), 1.0)
            left = min(share, trials - self.count)
            while left > 0:
                proposed = [*others, *model.best(min(_BATCH, left) - len(others))]
                others = []
                if not proposed:
                    break
                gains = self._measured([tuning_text({**chosen, number: c}) for c in proposed])
                left -= len(proposed)
                model.learn([(c, 1 / g) for c, g in zip(proposed, gains, strict=True) if g > 0])
                for choice, gain in zip(proposed, gains, strict=True):
                    if gain > best_gain:
                        best, best_gain = choice, gain
            if best:
                chosen[number] = best

    def _measured(self, tunings: Sequence[str]) -> list[float]:
        """How many times as fast each is as the code of the rules; 0 for one that is wrong."""
        self._progress(f"{self.count} schedules measured")
        self.count += len(tunings)
        calls = {}
        for tuning, function in zip(tunings, self._built(tunings), strict=True):
            error = np.abs(self._result(function) - self._expected).max()
            if error <= _TOLERANCE * np.abs(self._expected).max():
                calls[tuning] = self._prepared(function)
        rules = self._calls[""]
        for call in (rules, *calls.values()):
            for _ in range(WARM_UP):
                call()
        base, *times = interleaved([rules, *calls.values()], _QUICK_ROUNDS)
        gains = {t: speedup(base, own) for t, own in zip(calls, times, strict=True)}
        self._gains |= gains
        self._calls |= calls
        return [gains.get(tuning, 0.0) for tuning in tunings]

    def confirmed(self) -> tuple[str, float]:
        """The fastest one, if it is clearly faster in two more runs, and its gain in the last."""
        self._progress("comparing the fastest ones")
        named = sorted(self._gains, key=lambda tuning: -self._gains[tuning])[:_FINALISTS]
        for _ in range(2):
            if not named:
                return "", 1.0
            base, *times = interleaved([self._calls[t] for t in ("", *named)], _ROUNDS)
            gains = {
                tuning: (min(speedup(base, own), min(base) / min(own)), speedup(base, own))
                for tuning, own in zip(named, times, strict=True)
            }
            best = max(gains, key=lambda tuning: gains[tuning][0])
            named = [best] if gains[best][0] >= LEAST_GAIN else []
        return (named[0], gains[best][1]) if named else ("", 1.0)

    def _built(self, tunings: Sequence[str]) -> list[Function]:
        sources, variants = [], [Variant(tuning=tuning) for tuning in tunings]
        for number, tuning in enumerate(tunings):
            name = f"syno_operator_{number}"
            text, manifest = _core.emit_cpp(
                self._plan, name=name, formula=self._formula, with_runtime=False, tuning=tuning
            )
            sources.append((name, text, json.loads(manifest)))
        functions = compile_functions(sources, variants=variants, flags=FLAGS)
        for function in functions:
            function.pack(self._weights)
        return functions

    def _result(self, function: Function) -> NDArray[np.float32]:
        return function(self._x, self._threads)

    def _prepared(self, function: Function) -> Callable[[], None]:
        return function.prepared(self._x, np.empty_like(self._expected), self._threads)


def _check(
    operator: Operator,
    sizes: Mapping[str, int],
    plan: int,
    fold_weights: bool,
    threads: int,
    tuning: str,
) -> None:
    """UserError if the code is wrong, or touches memory of others."""
    trial(operator, sizes, [plan], threads=threads, fold_weights=fold_weights, tuning=tuning)
    function = compile_operator(
        operator.canonical,
        dict(sizes),
        plan=plan,
        fold_weights=fold_weights,
        variant=Variant(tuning=tuning),
    )
    check_native(f"a tuning of {operator.structure[:8]}", operator, dict(sizes), function, threads)
