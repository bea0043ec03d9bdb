"""Public functions with valid arguments, of which one or two are replaced by other values.

An input is the name of a function, and for some of its arguments the name of a value in hostile.py.
"""

from __future__ import annotations

import contextlib
import functools
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tests.audit.hostile import HOSTILE
from tests.audit.valid import folder, specification
from torch import nn

import syno
from syno import UserError
from syno.codegen import export as exports
from syno.codegen import native
from syno.codegen.torch_op import Kernel, ResizableLayer
from syno.codegen.verify import verify
from syno.features import features
from syno.operators import zoo
from syno.space.rules import load_rules

RULES = """
import syno

@syno.rule("U1", "no-shift", kind="restriction", steps=["shift"])
def no_shift(graph, step):
    return False
"""
NAMES = sorted(HOSTILE)
SIZES = {"N": 2, "C_in": 3, "C_out": 4, "H": 8, "W": 8, "k": 3}


@dataclass(frozen=True)
class Callee:
    """function: what is called; arguments: makes valid ones; kept: those that stay as they are.

    most: integers above it are not tried: what is asked for would be done.
    """

    function: Callable[..., Any]
    arguments: Callable[[], dict[str, Any]]
    most: int | None = None


def operator() -> syno.Operator:
    return zoo.load("conv2d")


def weights() -> list[np.ndarray]:
    return [np.ones(shape) for shape in operator().weight_shapes(SIZES)]


def x() -> torch.Tensor:
    return torch.ones(2, 3, 8, 8)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * 64, 3)).eval()


def bound() -> syno.Operator:
    return zoo.load("conv2d", maps())


def maps() -> syno.Specification:
    return syno.Specification(
        "[N, C_in: unordered, H, W]",
        "[N, C_out: unordered, H, W]",
        ["N: 0", "C_in: 1", "C_out: 1", "H: 0", "W: 0"],
        ["k=3: 2"],
        passed_through=[(0, 0)],
    )


def slotted() -> nn.Module:
    return syno.substitute(net(), syno.conv2d(kernel=3), x())


@functools.cache
def function() -> native.Function:
    made = native.compile_operator(operator(), SIZES, flags=native.QUICK_FLAGS)
    made.pack(weights())
    return made


@functools.cache
def kernel() -> Kernel:
    return Kernel.of(operator(), SIZES)


@functools.cache
def packed() -> torch.Tensor:
    return kernel().pack([torch.from_numpy(w).float() for w in weights()])


def _bound(**more: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"operator": operator(), "binding": SIZES, **more}


def _on(name: str, **more: Any) -> Callee:
    """A method of an operator under a binding."""
    return Callee(lambda **given: getattr(operator(), name)(**given), lambda: {**more})


def _exported(**more: Any) -> dict[str, Any]:
    return {"path": "made", "binding": SIZES, "format": "torch", "seed": 0, "plan": 1, **more}


def _filter(name: str) -> Callee:
    keep = {"name": "*", "minimum": 4}
    more = {} if name == "linear" else {"kernel": 3, "groups": 1, "stride": 1}
    return Callee(
        lambda **given: syno.substitute(net(), [getattr(syno, name)(**given), syno.conv2d()], x()),
        lambda: keep | more,
    )


FEW = {"max_nodes": 100}

CALLEES: dict[str, Callee] = {
    # Operators.
    "Operator.from_text": Callee(
        syno.Operator.from_text, lambda: {"text": operator().text, "specification": None}
    ),
    "Operator.shapes": _on("shapes", binding=SIZES),
    "Operator.macs": _on("macs", binding=SIZES),
    "Operator.params": _on("params", binding=SIZES),
    "Operator.plan": _on("plan", binding=SIZES),
    "Operator.plans": _on("plans", binding=SIZES, limit=2, fold_weights=False),
    "Operator.numbered_plan": _on("numbered_plan", binding=SIZES, number=1, fold_weights=False),
    "Operator.source": _on("source", binding=SIZES),
    "Operator.mean_square": _on("mean_square", binding=SIZES, seed=0),
    "Operator.kernel_pack": _on("kernel_pack", binding=SIZES),
    "Operator.formula": _on("formula", stages=True),
    "Operator.refusals": _on("refusals", specification=specification()),
    "Operator.with_specification": _on("with_specification", specification=specification()),
    "Operator.interpret": Callee(
        lambda **given: operator().interpret(**given),
        lambda: {"binding": SIZES, "x": x().numpy(), "weights": weights()},
    ),
    "Operator.gradients": Callee(
        lambda **given: operator().gradients(**given),
        lambda: {
            "binding": SIZES, "x": x().numpy(), "weights": weights(), "dy": np.ones((2, 4, 8, 8)),
        },
    ),
    "Operator.interpret_at": Callee(
        lambda **given: operator().interpret_at(**given),
        lambda: {"binding": SIZES, "x": x().numpy(), "weights": weights(), "positions": [0, 1]},
    ),
    "features": Callee(features, lambda: {"operator": _space()[1], "seed": 0}),
    "zoo.load": Callee(zoo.load, lambda: {"name": "conv2d"}),
    "zoo.binding": Callee(zoo.binding, lambda: {"name": "conv2d"}),
    "verify": Callee(verify, _bound(emitter="pytorch", seed=0)),
    # Specifications and spaces.
    "Space.enumerate": Callee(
        syno.Space.enumerate,
        lambda: {
            "specification": specification(), "depth": 2, "max_nodes": 100, "max_memory": 0,
            "max_seconds": 0.0, "threads": 1, "rules_off": (), "rules": (), "bound": "full",
        },
        most=200,
    ),
    "Space.save": Callee(lambda **given: _space().save(**given), lambda: {"path": "a.space"}),
    "Space.load": Callee(
        syno.Space.load, lambda: {"path": _saved(), "specification": specification()}
    ),
    "Space.sample": Callee(
        lambda **given: _space().sample(**given),
        lambda: {"count": 2, "seed": 1, "stratify": "macs"},
        most=200,
    ),
    "walk": Callee(
        syno.walk,
        lambda: {
            "specification": specification(), "count": 20, "seconds": 0.0, "seed": 0, "depth": 3,
            "width": 4, "max_operators": 5, "threads": 1, "rules_off": (), "bound": "full",
        },
        most=200,
    ),
    "explain": Callee(
        syno.explain,
        lambda: {"operator": _space()[1], "specification": specification(), "rules_off": ()},
    ),
    "why_not": Callee(
        syno.why_not,
        lambda: {
            "operator": _space()[1], "specification": specification(), "rules_off": (),
            "max_nodes": 100, "max_seconds": 1.0,
        },
        most=200,
    ),
    "check_rule": Callee(
        syno.check_rule,
        lambda: {
            "rule": "R1a", "specification": specification(), "trials": 2, "max_graphs": 20,
            "seed": 0, "rules": (),
        },
        most=200,
    ),
    "Tree": Callee(
        syno.Tree,
        lambda: {
            "specification": specification(), "space": None, "depth": 2, "rules_off": (),
            "rules": (), "bound": "full",
        },
        most=200,
    ),
    "Sampler": Callee(
        syno.Sampler,
        lambda: {
            "input": "[H]", "output": "[H]", "primary": ["H: 1"], "coefficient": ["k=3: 1"],
            "seed": 0, "bindings": ["H=8"], "max_nodes": 100, "rules_off": (), "rules": (),
        },
        most=200,
    ),
    "SpaceOptions": Callee(
        syno.SpaceOptions,
        lambda: {"max_nodes": 100, "rules_off": (), "symmetry": (), "limits": {"max_depth": 3}},
    ),
    "TrainOptions": Callee(
        syno.TrainOptions,
        lambda: {
            "fidelity": None, "ladder": None, "eta": None, "tokenizer": "bytes", "deadline_s": 1.0,
            "max_slowdown": 2.0, "kernels": "eager", "weights_limit": 0,
        },
    ),
    "TimingOptions": Callee(
        syno.TimingOptions,
        lambda: {"repeats": 20, "warmup": 1, "threads": 1, "latency": "eager", "predictor": None},
    ),
    "IsolationOptions": Callee(
        syno.IsolationOptions,
        lambda: {"isolate": False, "memory_limit": 1 << 30, "max_attempts": 2},
    ),
    "RayOptions": Callee(
        syno.RayOptions,
        lambda: {"ray": None, "cores_per_worker": 1, "gpus_per_worker": 0.0, "worker_tags": ()},
    ),
    "AdaptOptions": Callee(
        syno.AdaptOptions,
        lambda: {"zoo": True, "samples": 2, "keep": 2, "score": "both", "threads": 1, "rounds": 30},
    ),
    "rule": Callee(
        lambda **given: syno.rule(**given)(lambda graph, step: False),
        lambda: {
            "id": "U1", "name": "no-shift", "kind": "restriction", "steps": ["shift"], "doc": "no",
            "version": "1",
        },
    ),
    "load_rules": Callee(load_rules, lambda: {"path": _rules()}),
    "Outcome": Callee(
        lambda **given: repr(syno.Outcome(**given)),
        lambda: {"status": "ok", "reason": "", "accuracy": 0.5, "seed": 0},
    ),
    # Networks and code.
    "substitute": Callee(
        syno.substitute,
        lambda: {"net": net(), "where": syno.conv2d(kernel=3), "example_input": x()},
    ),
    "conv2d": _filter("conv2d"),
    "conv1d": _filter("conv1d"),
    "conv_transpose2d": _filter("conv_transpose2d"),
    "linear": _filter("linear"),
    "layer_report": Callee(syno.layer_report, lambda: {"net": slotted()}),
    "slots": Callee(syno.slots, lambda: {"net": slotted()}),
    "replace": Callee(
        syno.replace, lambda: {"net": slotted(), "operator": bound(), "scaled": True}
    ),
    "Placeholder": Callee(
        lambda **given: repr(syno.Placeholder(**given)),
        lambda: {"binding": {"H": 8}, "original": None, "input_names": (), "pool": 1, "stride": 1},
    ),
    "compile_operator": Callee(
        native.compile_operator,
        _bound(plan=1, fold_weights=False, flags=native.QUICK_FLAGS, variant=None),
    ),
    "Function": Callee(
        lambda **given: function()(**given), lambda: {"x": x().numpy(), "threads": 1}
    ),
    "Function.pack": Callee(
        lambda **given: function().pack(**given), lambda: {"weights": weights()}
    ),
    "Kernel.of": Callee(
        Kernel.of,
        _bound(
            epilogue="bias", channel=1, input_order=None, output_order=None, plan=1,
            fold_weights=True, tuning="", missing="compile",
        ),
    ),
    "Kernel.pack": Callee(
        lambda **given: kernel().pack(**given), lambda: {"weights": {"w0": torch.ones(4, 3, 3, 3)}}
    ),
    "ResizableLayer": Callee(
        ResizableLayer,
        _bound(weights=[torch.ones(4, 3, 3, 3)], channel_values=None, missing="compile"),
    ),
    "export": Callee(
        lambda **given: exports.export(given.pop("operator"), given.pop("path"), **given),
        lambda: {"operator": operator()} | _exported(),
    ),
    "export_slots": Callee(
        exports.export_slots,
        lambda: {"net": _filled(), "folder": _folder(), "format": "torch", "seed": 0},
    ),
    "inference.load": Callee(
        syno.inference.load, lambda: {"code": _library(), "weights": None}
    ),
    "models.build": Callee(
        syno.models.build,
        lambda: {
            "name": "resnet-small", "classes": 3, "channels": 3, "size": 8, "width": 4,
            "weights": None,
        },
        most=200,
    ),
}  # fmt: skip


@functools.cache
def _space() -> syno.Space:
    return syno.Space.enumerate(specification(), depth=3, max_nodes=200, threads=1)


@functools.cache
def _saved() -> str:
    path = str(folder() / "saved.space")
    _space().save(path)
    return path


@functools.cache
def _rules() -> str:
    path = folder() / "rules_of_arguments.py"
    path.write_text(RULES)
    return str(path)


def _folder() -> str:
    (folder() / "slots").mkdir(exist_ok=True)
    return str(folder() / "slots")


def _filled() -> nn.Module:
    made = slotted()
    syno.replace(made, bound())
    return made


@functools.cache
def _library() -> str:
    return str(exports.export_network(net(), folder() / "library", x(), format="cpp-network").code)


def seeds(callees: dict[str, Callee]) -> Callable[[], list[Any]]:
    """Calls with valid arguments, by the name of what is called."""
    return lambda: [(name, {}, sorted(callee.arguments())) for name, callee in callees.items()]


def mutated(value: tuple[str, dict[str, str], list[str]], rng: random.Random) -> Any:
    """One or two arguments replaced."""
    name, _, known = value
    chosen = rng.sample(known, min(len(known), rng.choice((1, 1, 1, 2))))
    return name, {argument: rng.choice(NAMES) for argument in chosen}, known


def caller(callees: dict[str, Callee]) -> Callable[[Any], None]:
    """What gives an input to the function that it names."""

    def call(value: tuple[str, dict[str, str], list[str]]) -> None:
        name, changes = value[:2]
        callee = callees[name]
        given = callee.arguments() | {each: HOSTILE[kind]() for each, kind in changes.items()}
        for found in given.values():
            large = isinstance(found, int) and not isinstance(found, bool)
            if callee.most is not None and large and callee.most < found < 2**63:
                raise UserError("what is asked for would be done")
        with contextlib.chdir(folder()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            callee.function(**given)

    return call
