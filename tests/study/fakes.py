"""A space and an evaluator with no network and no C++: the loop is tested with these alone.

Everything they say follows from the operator's key, so every run gives the same answers.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from syno.store import (
    BaselineLatency,
    MeasurementResult,
    Outcome,
    VerificationResult,
)
from syno.study import Ladder, Rung
from syno.study.evaluate.checkpoints import Checkpoints


def number(text: str, below: int) -> int:
    """A number in [0, below) that follows from `text`."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % below


@dataclass(frozen=True)
class FakeOperator:
    text: str

    @property
    def key(self) -> str:
        return hashlib.sha256(self.text.removesuffix(" again").encode()).hexdigest()[:32]

    def macs(self) -> int:
        return 1000 << number(self.text + "macs", 8)

    def params(self) -> int:
        return 100 << number(self.text + "params", 8)

    def primitives(self) -> dict[str, int]:
        # One in five has a window, one in ten has two weights.
        return {
            "reduce": 1 + number(self.text + "reduce", 3),
            "unfold": int(number(self.text + "unfold", 5) == 0),
            "split": number(self.text + "split", 2),
            "contract": 2 if number(self.text + "weights", 10) == 0 else 1,
        }

    @property
    def _core(self) -> SimpleNamespace:
        """What a search reads of an operator in C++."""
        counts = self.primitives()
        return SimpleNamespace(windows=counts["unfold"], weights=counts["contract"])


class FakeSpace:
    """`count` operators with distinct keys, and one more whose key repeats."""

    rules = "1"

    def __init__(self, count: int = 100) -> None:
        self.operators = [FakeOperator(f"operator {i}") for i in range(count)]
        self.operators.insert(1, FakeOperator("operator 0 again"))
        self.specification = ("5bec", {"input": "[H]", "count": count})

    def rejections(self) -> dict[str, int]:
        return {"pooling": 17, "window_ratio": 4}

    def parse(self, text: str) -> FakeOperator:
        return FakeOperator(text)


class RealSpace:
    """The operators of a small specification: 1-D convolutions of up to 7 primitives."""

    rules = "1"

    def __init__(self) -> None:
        from syno import Space, Specification  # not for every process of a test

        specification = Specification(
            "[N, C_in: unordered, H]",
            "[N, C_out: unordered, H]",
            ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
            ["k=3: 2", "s=2: 1"],
            bindings=["C_in=16, C_out=16, H=32"],
            passed_through=[(0, 0)],
            max_depth=7,
        )
        self._space = Space.enumerate(specification, threads=1)
        self.operators = list(self._space)
        self.specification = (specification.key, {})

    def rejections(self) -> dict[str, int]:
        return {}

    def parse(self, text: str) -> Any:
        from syno import Operator

        return Operator.from_text(text, self._space.specification)


def fake_ladder(eta: int = 2) -> Ladder:
    """Three rungs of 1, 2 and 4 epochs."""
    from syno.train import Fidelity, recipe  # takes seconds: not for every process of a test

    rungs = [
        Rung(
            Fidelity(
                f"rung {n}", images=100, resolution=8, epochs=1 << n, recipe=recipe("fast/steady")
            )
        )
        for n in range(3)
    ]
    return Ladder("fake", tuple(rungs), eta)


class FakeEvaluator:
    """Answers after `seconds`; one operator in eight is rejected, one in eight diverges.

    Each evaluation that began and each that ended is a line in `trace`, when that is given, with
    the process it ran in.
    """

    def __init__(self, seconds: float = 0.0, trace: Path | None = None) -> None:
        self._seconds = seconds
        self._trace = trace
        self.evaluated: list[str] = []

    def _note(self, what: str, key: str) -> None:
        if self._trace is not None:
            with self._trace.open("a") as stream:
                stream.write(f"{what} {key} {os.getpid()}\n")

    def baseline(self) -> Outcome:
        self._note("begin", "baseline")
        time.sleep(self._seconds)
        self._note("end", "baseline")
        return Outcome("ok", accuracy=0.9, macs=64000, latency=BaselineLatency(2.0, 0.1))

    def evaluate(self, operator: Any) -> Outcome:
        self._note("begin", operator.key)
        self.evaluated.append(operator.key)
        time.sleep(self._seconds)
        self._note("end", operator.key)
        return self._made(operator)

    def repeat(self, operator: Any, seed: int) -> Outcome:
        self._note("repeat", operator.key)
        accuracy = number(f"{operator.key} accuracy {seed}", 1000) / 1000
        if number(f"{operator.key} fate {seed}", 8) == 0:
            return Outcome("error", reason="diverged", seed=seed)
        return Outcome("ok", accuracy=accuracy, seed=seed, seconds=1.0)

    def _made(self, operator: Any) -> Outcome:
        fate = number(operator.key + "fate", 8)
        if fate == 0:
            return Outcome("rejected", reason="fits no slot")
        if fate == 1:
            return Outcome("error", reason="diverged in epoch 1", recipe={"epochs": 3})
        ratio = (1 + number(operator.key + "latency", 100)) / 50
        return Outcome(
            "ok",
            accuracy=number(operator.key + "accuracy", 1000) / 1000,
            macs=operator.macs(),
            primitives=operator.primitives(),
            recipe={"epochs": 3},
            verification=VerificationResult(
                source_hash=operator.key,
                bindings=[{"H": 8}],
                emitter="fake",
                seed=0,
                passed=True,
                max_error=0.0,
            ),
            measurement=MeasurementResult(
                median_ms=2.0 * ratio,
                spread_ms=0.1,
                ratio=ratio,
                baseline=BaselineLatency(2.0, 0.1),
                threads=1,
                repeats=3,
            ),
        )


class FakeRungs(FakeEvaluator):
    """The same at the rungs of `fake_ladder`: a score of its own at each, one in eight fails at a
    higher one. `evaluated` holds (key, rung), "baseline" for the original network.

    checkpoints: a file is left in this folder for each evaluation, as a training would.
    """

    def __init__(
        self,
        seconds: float = 0.0,
        trace: Path | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        super().__init__(seconds, trace)
        self.evaluated: list[tuple[str, int]] = []  # type: ignore[assignment]
        self._checkpoints = checkpoints
        self.found: list[tuple[str, int, bool]] = []  # (key, rung, whether its file was there)

    def _leave(self, key: str, rung: int) -> None:
        if self._checkpoints is not None:
            file = self._checkpoints.path(key, 0)
            self.found.append((key, rung, file.exists()))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(rung))

    def baseline(self, rung: int) -> Outcome:  # type: ignore[override]
        self._note("begin", f"baseline@{rung}")
        self.evaluated.append(("baseline", rung))
        time.sleep(self._seconds)
        self._leave("baseline", rung)
        self._note("end", f"baseline@{rung}")
        recipe = {"rung": rung}
        return Outcome("ok", accuracy=0.5 + rung / 10, rung=f"rung {rung}", recipe=recipe)

    def evaluate(self, operator: Any, rung: int) -> Outcome:  # type: ignore[override]
        self._note("begin", f"{operator.key}@{rung}")
        self.evaluated.append((operator.key, rung))
        time.sleep(self._seconds)
        self._leave(operator.key, rung)
        self._note("end", f"{operator.key}@{rung}")
        fate = number(f"{operator.key} fate {rung}", 8)
        if fate == 0 and rung == 0:
            return Outcome("rejected", reason="fits no slot")
        found = {"rung": f"rung {rung}", "recipe": {"rung": rung}}
        if fate == 1:
            return Outcome("error", reason=f"diverged at rung {rung}", **found)
        score = number(f"{operator.key} accuracy {rung}", 20) / 20
        return Outcome("ok", accuracy=score, macs=operator.macs(), seconds=1.0 + rung, **found)
