"""Which operators `syno bench kernels` times, and what the times come to."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from syno._util.errors import UserError
from syno.codegen.native import find_compiler
from syno.measure import kernels
from syno.measure.kernels import BASELINE, FROZEN, RESNET18_LAYERS, STRAIGHTFORWARD, KernelRun
from syno.operators import zoo
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.space import Space
from syno.store.environment import capture_environment

FORMS = ("eager", "frozen", "straightforward")
_PRESET = "paper/resnet18"
_DRAWN_DEPTH = 8  # primitives of drawn operators, at most: listed in seconds


def forms_named(names: str) -> list[str]:
    """The forms of PyTorch, with commas between them; `none` is none."""
    wanted = [] if names == "none" else [form.strip() for form in names.split(",")]
    for form in wanted:
        if form not in FORMS:
            raise UserError(f"unknown form '{form}'\n  expected: {', '.join(FORMS)}, or none")
    return wanted


def layers_named(names: str) -> list[tuple[int, int]]:
    """The layers of ResNet-18 that `CHANNELS@SIZE,...` names, or all of them."""
    known = {f"{channels}@{size}": (channels, size) for channels, size in RESNET18_LAYERS}
    wanted = list(known) if names == "all" else [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise UserError(f"unknown layer '{name}'\n  expected: {', '.join(known)}, or all")
    return [known[name] for name in dict.fromkeys(wanted)]


def zoo_operators(names: str) -> dict[str, Operator]:
    """The operators of the zoo that are named, with commas between them; `zoo` is all of it."""
    wanted = zoo.names() if names == "zoo" else [name.strip() for name in names.split(",")]
    return {name: zoo.load(name) for name in wanted}


def sampled_operators(count: int, seed: int) -> dict[str, Operator]:
    """So many operators of the paper's space for ResNet-18."""
    if count == 0:
        return {}
    space = Space.enumerate(Specification.preset(_PRESET), depth=_DRAWN_DEPTH)
    return {f"drawn-{op.key[:8]}": op for op in space.sample(count, seed)}


def described(runs: list[KernelRun], batches: tuple[int, ...], rounds: int) -> dict[str, object]:
    """Everything that was measured, as plain values, on which machine."""
    return {
        "batches": [
            {"batch": batch, "summary": speedups(run, batch)}
            | dataclasses.asdict(run)
            | {"noisy": run.noisy, "tuned_speedup": run.tuned_speedup()}
            for batch, run in zip(batches, runs, strict=True)
        ],
        "rounds": rounds,
        "compiler": find_compiler().version,
        "environment": dataclasses.asdict(capture_environment(threads=runs[0].threads, rules="")),
    }


def speedups(run: KernelRun, batch: int) -> dict[str, dict[str, float | None]]:
    """Geometric means over the layers, by kernel: over convolutions, of the roofline, ..."""
    names = list(dict.fromkeys(time.kernel for time in run.times))
    return {
        name: {
            "over_conv2d": run.speedup(name, batch),
            "over_best_conv2d": run.speedup(name, batch, (BASELINE, FROZEN, "conv2d cpp")),
            "roofline": run.roofline_share(name, batch),
            "measured_plan": run.plan_speedup(name),
            "over_straightforward": _over_straightforward(run, name, batch),
        }
        for name in names
    }


def _over_straightforward(run: KernelRun, kernel: str, batch: int) -> float | None:
    return run.speedup(kernel, batch, (f"{kernel.split(' ')[0]} {STRAIGHTFORWARD}",))


def measured(
    operators: Mapping[str, Operator],
    batches: Sequence[int],
    *,
    layers: Sequence[tuple[int, int]] | None = None,
    threads: int,
    rounds: int,
    torch_forms: Sequence[str] = (),
    form_seconds: float | None = None,
    measured_plans: int = 0,
    tuning_trials: int = 0,
    watched: Callable[[int, int], AbstractContextManager[Callable[[int, str], object]]],
) -> list[KernelRun]:
    """Time operators as compiled code in layers of ResNet-18, a run for each batch size.

    layers: (channels, size) of each; None for all. watched: gives, for a batch size and the number
    of its steps, what is told of each step that is done.
    """
    runs = []
    layers = layers or RESNET18_LAYERS
    for batch in batches:
        bindings = {
            f"{channels}@{size}": kernels.bindings_of(operators, channels, size, batch)
            for channels, size in layers
        }
        each = 1 + len(torch_forms) + (measured_plans > 0) * (1 + ("eager" in torch_forms))
        each += tuning_trials > 0
        steps = sum(each * len(of_layer) + 1 for of_layer in bindings.values())
        done = itertools.count()
        with watched(batch, steps) as move:
            runs.append(
                kernels.bench_kernels(
                    operators,
                    bindings=bindings,
                    threads=threads,
                    rounds=rounds,
                    torch_forms=torch_forms,
                    form_seconds=form_seconds,
                    measured_plans=measured_plans,
                    tuning_trials=tuning_trials,
                    convolutions={f"{c}@{s}": (c, s) for c, s in layers},
                    progress=functools.partial(_advance, move, done),
                )
            )
    return runs


def _advance(move: Callable[[int, str], object], done: Iterator[int], remark: str) -> None:
    move(next(done), remark)
