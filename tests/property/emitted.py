"""Emitted PyTorch modules held against the interpreter: value and every gradient."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from syno import _core
from syno.operators import zoo as known

ROOT = Path(__file__).resolve().parents[2]
# Rounding errors are measured against the sum of absolute terms.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Case:
    """An operator's text and a binding to run it under."""

    text: str
    binding: Mapping[str, int]

    @property
    def operator(self) -> _core.Operator:
        return _core.Operator.parse(self.text)

    def source(self, formula: str = "") -> str:
        plan = _core.Plan(self.operator, self.binding)
        return _core.emit_pytorch(plan, formula)[0]

    def plan_sources(self, limit: int, *, fold_weights: bool = False) -> list[str]:
        """The module of each of the cheapest plans."""
        plans = _core.plans(self.operator, self.binding, limit, fold_weights)
        return [_core.emit_pytorch(plan)[0] for plan in plans]

    def with_sizes(self, **sizes: int) -> Case:
        return Case(self.text, dict(self.binding) | sizes)


def zoo() -> dict[str, Case]:
    """The well-known operators, each with its small binding."""
    return {name: Case(known.load(name).text, known.binding(name)) for name in known.names()}


def random_case(seed: int) -> Case:
    """Every kind of graph, with a batch and causal windows in some."""
    operator, binding = _core.random_operator(
        seed,
        batch=seed % 3 == 0,
        causal_windows=0.3 if seed % 5 == 0 else 0.0,
        min_weights=seed % 2,
        max_terms=3000,
    )
    return Case(operator.text, binding)


def check_golden(path: Path, source: str) -> None:
    """Compares an emitted source with the one in git, or writes that anew where it is asked for."""
    if os.environ.get("SYNO_UPDATE_GOLDEN"):
        path.write_text(source)
    difference = "\n".join(
        difflib.unified_diff(
            path.read_text().splitlines(), source.splitlines(), "in git", "now", lineterm=""
        )
    )
    assert not difference, (
        f"SYNO_UPDATE_GOLDEN=1 pytest tests/property -k golden updates it\n{difference}"
    )


def printed(code: str, folder: Path) -> str:
    """What a process prints that runs `code` in a folder, where modules are found."""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def load(source: str) -> nn.Module:
    """An instance of the class that `source` defines."""
    namespace: dict[str, object] = {}
    exec(compile(source, "<emitted>", "exec"), namespace)
    return namespace["SynoOperator"]()


def run(module: nn.Module, x, weights, dy) -> list[np.ndarray]:
    """y and the gradients of sum(dy * y) for x and every weight, in the type of x."""
    module = module.to(torch.from_numpy(x).dtype)
    with torch.no_grad():
        for name, weight in zip(module.state_dict(), weights, strict=True):
            module.get_parameter(name).copy_(torch.from_numpy(weight))
    data = torch.from_numpy(x).requires_grad_()
    y = module(data)
    inputs = [data, *module.parameters()]
    grads = torch.autograd.grad(y, inputs, torch.from_numpy(dy), materialize_grads=True)
    return [y.detach().numpy(), *(grad.numpy() for grad in grads)]


def expected(case: Case, x, weights, dy) -> list[np.ndarray]:
    """The same by the interpreter."""
    y = _core.interpret(case.operator, case.binding, x, weights)
    of_x, of_weights = _core.gradients(case.operator, case.binding, x, weights, dy)
    return [y, of_x, *of_weights]


def differences(case: Case, source: str, seed: int = 0) -> list[str]:
    """What is wrong with `source`; empty when it computes the operator."""
    random = np.random.default_rng(seed)
    shapes = _core.operator_shapes(case.operator, case.binding)
    module = load(source)
    given = [tuple(p.shape) for p in module.parameters()]
    if given != [tuple(shape) for shape in shapes.weights]:
        return [f"weights {given}, expected {shapes.weights}"]
    wrong = []

    def compare(kind: str, found, wanted, bounds) -> None:
        names = ["value", "gradient of x"] + [f"gradient of w{t}" for t in range(len(given))]
        for name, f, w, bound in zip(names, found, wanted, bounds, strict=True):
            if f.shape != w.shape:
                wrong.append(f"{kind}: the {name} has shape {f.shape}, expected {w.shape}")
            elif not np.all(np.abs(f - w) <= bound):
                wrong.append(f"{kind}: the {name} is wrong by {np.max(np.abs(f - w))}")

    def draw(make):
        tensors = [make(shape) for shape in (shapes.input, shapes.output, *shapes.weights)]
        return tensors[0], tensors[2:], tensors[1]

    x, weights, dy = draw(lambda shape: random.integers(-3, 4, shape))
    floats = (x.astype(float), [w.astype(float) for w in weights], dy.astype(float))
    exact = expected(case, x, weights, dy)
    compare("integers", run(module, *floats), exact, [0] * len(exact))

    x, weights, dy = draw(lambda shape: random.standard_normal(shape, dtype=np.float32))
    doubles = (x.astype(float), [w.astype(float) for w in weights], dy.astype(float))
    absolute = (np.abs(doubles[0]), [np.abs(w) for w in doubles[1]], np.abs(doubles[2]))
    bounds = [TOLERANCE * bound for bound in expected(case, *absolute)]
    compare("float32", run(module, x, weights, dy), expected(case, *doubles), bounds)
    return wrong


def check(case: Case, source: str | None = None) -> None:
    """Fails with all that is needed to repeat the case."""
    plan = _core.Plan(case.operator, case.binding)
    source = source if source is not None else case.source()
    wrong = differences(case, source)
    assert not wrong, (
        f"{wrong}\nbinding {dict(case.binding)}\n{case.operator.text}\n{plan.text}\n{source}"
    )
