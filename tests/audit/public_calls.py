"""Calls of everything public, with values that can be compared: what the audit's loops run.

`calls(folder)` is a table: by name, some calls without arguments, each of which gives an equal
value whenever it is called, in any thread.

Over 600 lines: it is one list, of which a test says what is missing.
"""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

import syno
from syno import UserError, _core
from syno.codegen import emitters, native
from syno.codegen.verify import verify
from syno.features import features
from syno.operators import zoo
from syno.operators.emitted import load_module
from syno.store import Store

Call = Callable[[], Any]

NAMES = ("conv2d", "operator-1", "depthwise", "linear", "monarch", "gpt2-projection")
RANDOM_SEEDS = (1, 2, 3)
LAYERS = [{"C_in": 8, "C_out": 8, "H": 8}, {"C_in": 8, "C_out": 16, "H": 4}]
NO_LIMIT_S = 1e6  # what ends by the clock is not the same in every run


class Case:
    """An operator with its sizes and some data of integers."""

    def __init__(self, operator: syno.Operator, binding: dict[str, int], seed: int) -> None:
        self.operator, self.binding = operator, binding
        self.shapes = operator.shapes(binding)
        random = np.random.default_rng(seed)
        self.x = random.integers(-3, 4, self.shapes.input)
        self.weights = [random.integers(-3, 4, shape) for shape in self.shapes.weights]
        self.dy = random.integers(-3, 4, self.shapes.output)
        # The same operator under a specification of its own sizes.
        text = [", ".join(sizes) for sizes in (operator.input, operator.output)]
        # A coefficient of 1 would be no variable.
        ones = {name: size for name, size in binding.items() if size == 1}
        coefficients = [f"{name}={size}: 8" for name, size in binding.items() if size > 1]
        primaries = [f"{name}: 1" for name in ones]
        self.specification = syno.Specification(
            f"[{text[0]}]", f"[{text[1]}]", primaries, coefficients, bindings=[ones], min_fit=1
        )

    def fresh(self) -> syno.Operator:
        """An equal operator that remembers nothing."""
        return syno.Operator.from_text(self.operator.text, self.specification)


def specification(**changes: Any) -> syno.Specification:
    """Small: some sixty operators of up to four primitives."""
    settings = {"bindings": LAYERS, "max_depth": 4, "min_unfold_ratio": 1.0}
    return syno.Specification(
        "[N, C_in: unordered, H, H]",
        "[N, C_out: unordered, H, H]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
        ["k=3: 2", "g=2: 2"],
        passed_through=[(0, 0)],
        **settings | changes,
    )


@syno.rule("A1", "no-shift-of-window", kind="restriction", steps=["shift"])
def no_shift_of_window(graph: syno.PartialGraph, step: Any) -> bool:
    """What: no Shift of what an Unfold made."""
    return graph.maker(step.inputs[0]) == "unfold"


def network() -> nn.Module:
    """A small network with layers that become slots and one that does not."""
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 8, 3, 1, 1), nn.Flatten(), nn.Linear(8 * 36, 4)
    )
    return with_fixed_weights(net).eval()


def with_fixed_weights(module: nn.Module) -> nn.Module:
    """Over 600 lines: one list of calls, which is complete in one place.

    The module with weights that do not depend on torch's random state, which threads share."""
    with torch.no_grad():
        for parameter in module.parameters():
            values = torch.arange(parameter.numel(), dtype=torch.float64).sin()
            parameter.copy_(values.reshape(parameter.shape))
    return module


def plain(value: Any) -> Any:
    """The value as something that == compares and `repr` shows."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, syno.Operator):
        return "operator", value.text, value.key
    if isinstance(value, syno.Specification):
        return "specification", value.key
    if isinstance(value, (syno.TreeNode, syno.PartialGraph, _core.Plan, BaseException)):
        return type(value).__name__, str(value)
    if isinstance(value, _core.Step):
        return value.op, value.inputs, value.out, value.size
    if isinstance(value, _core.OperatorShapes):
        return value.input, value.output, value.weights
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    assert value is None or isinstance(value, (str, bytes, int, float)), type(value)
    return value


def error_of(call: Call) -> Any:
    """The UserError of a call that is a mistake."""
    try:
        return call()
    except UserError as error:
        return error


def cases() -> list[Case]:
    """The mix of operators: some of the zoo, some random ones."""
    found = [Case(zoo.load(name), zoo.binding(name), 1) for name in NAMES]
    for seed in RANDOM_SEEDS:
        core, binding = _core.random_operator(seed, max_terms=2000)
        found.append(Case(syno.Operator(core), binding, seed))
    return found


def calls(folder: Path) -> dict[str, list[Call]]:
    """The table. Files go below `folder`."""
    mix = cases()
    table: dict[str, list[Call]] = {}
    for name, function in {**_OPERATORS, **_CODE}.items():
        table[name] = [lambda f=function, case=case: f(case) for case in mix]
    groups = (_specifications(), _spaces(folder), _networks(), _stores(folder), _rest(mix))
    for group in groups:
        table |= {name: [function] for name, function in group.items()}
    return table


# --- operators ------------------------------------------------------------------------------------

_OPERATORS: dict[str, Callable[[Case], Any]] = {
    "Operator.from_text": lambda c: c.fresh().text,
    "Operator.from_json": lambda c: syno.Operator.from_json(c.operator.to_json()),
    "Operator.key": lambda c: (c.fresh().key, c.operator.structure, hash(c.fresh())),
    "Operator.orbit": lambda c: c.fresh().orbit,
    "features": lambda c: features(c.fresh()),
    "Operator.describe": lambda c: (
        c.operator.input,
        c.operator.output,
        c.operator.reductions,
        c.operator.variables,
        c.operator.batch,
        c.operator.primitives(),
        c.operator.dot(),
        c.fresh().specification,
        c.operator.with_specification(None).specification,
    ),
    "Operator.formula": lambda c: (
        c.operator.formula(),
        c.operator.formula(stages=True),
        str(c.operator),
        repr(c.operator),
    ),
    "Operator.shapes": lambda c: (
        c.operator.complete(c.binding, c.x),
        c.operator.shapes(c.binding),
        c.operator.weight_shapes(c.binding),
        c.operator.term_count(c.binding),
    ),
    "Operator.interpret": lambda c: c.operator.interpret(c.binding, c.x, c.weights),
    "Operator.interpret floats": lambda c: c.operator.interpret(
        c.binding, c.x * 0.5, [w.astype(np.float32) for w in c.weights]
    ),
    "Operator.interpret_at": lambda c: c.operator.interpret_at(
        c.binding, c.x, c.weights, [0, c.dy.size - 1]
    ),
    "Operator.gradients": lambda c: c.operator.gradients(c.binding, c.x, c.weights, c.dy),
    "Operator.mean_square": lambda c: c.operator.mean_square(c.binding, seed=1),
    "Operator.reads_future": lambda c: c.operator.reads_future(c.binding, 0, 0),
    "Operator.macs": lambda c: (c.operator.macs(c.binding), c.fresh().macs()),
    "Operator.params": lambda c: (c.operator.params(c.binding), c.fresh().params()),
    "Operator.plan": lambda c: c.operator.plan(c.binding),
    "Operator.plans": lambda c: (
        c.operator.plans(c.binding, 3),
        c.operator.numbered_plan(c.binding, 1, fold_weights=True),
    ),
    "Operator.source": lambda c: c.operator.source(c.binding),
    "Operator.refusals": lambda c: c.fresh().refusals(),
    "Operator.values": lambda c: (
        c.fresh() == c.operator,
        copy.copy(c.operator) == copy.deepcopy(c.operator),
        pickle.loads(pickle.dumps(c.fresh())),
    ),
    "zoo": lambda c: [zoo.load(n).text for n in zoo.names()[:3]] + [zoo.doc("conv2d")],
}


def _parsed() -> Any:
    parsed, weights = syno.Operator.parse_with_weights(
        "y[n:N,o:C_out,h:H] = sum(i:C_in, a:k) x[n,i,h+a-1] * w[o,i,a]",
        input="[N, C_in: unordered, H]",
        sizes="k=3",
    )
    wrong = error_of(lambda: syno.Operator.parse("y[o] = x[o", input="[C_in]"))
    return parsed, weights, syno.Operator.parse("y[i] = x[i]", input="[C_in]"), wrong


# --- code -----------------------------------------------------------------------------------------


def _module(case: Case) -> Any:
    module = load_module(case.operator.source(case.binding))()
    with torch.no_grad():
        return with_fixed_weights(module)(torch.from_numpy(case.x.astype(np.float32)))


def _kernel_pack(case: Case) -> Any:
    pack = with_fixed_weights(case.operator.kernel_pack(case.binding))
    again = pickle.loads(pickle.dumps(pack))
    x = torch.from_numpy(case.x.astype(np.float32))
    with torch.no_grad():
        return pack.source_hash, pack(x), copy.deepcopy(again)(x), repr(again)


def _emitted(name: str) -> Callable[[Case], Any]:
    return lambda case: emitters.get(name).source(emitters.Case(case.operator, case.binding))


def _run(name: str) -> Callable[[Case], Any]:
    """Code of an emitter that is built anew: compiled code comes from the cache."""

    def run(case: Case) -> Any:
        (function,) = emitters.get(name).build([emitters.Case(case.operator, case.binding)])
        weights = [weight.astype(np.float32) for weight in case.weights]
        return function(case.x.astype(np.float32), weights)

    return run


def _native(case: Case) -> Any:
    """One function that all threads share, with its weights in place."""
    with _lock:
        function = _functions.get(case)
        if function is None:
            function = native.compile_operator(
                case.operator, case.binding, flags=native.QUICK_FLAGS
            )
            function.pack(case.weights)
            _functions[case] = function
    y = np.empty(function.output_shape, np.float32)
    function.run_into(np.asarray(case.x, np.float32, order="C"), y)
    doubled = function.with_weights([2 * weight for weight in case.weights])
    return function(case.x), function(case.x, threads=2), y, doubled(case.x)


_lock = threading.Lock()
_functions: dict[Case, native.Function] = {}

_CODE: dict[str, Callable[[Case], Any]] = {
    "load_module": _module,
    "Operator.kernel_pack": _kernel_pack,
    "emit pytorch": _emitted("pytorch"),
    "emit cpp": _emitted("cpp"),
    "emit triton": _emitted("triton"),
    "emit tvm": _emitted("tvm"),
    "run pytorch": _run("pytorch"),
    "run cpp": _run("cpp"),
    "native function": _native,
}


# --- specifications, spaces -----------------------------------------------------------------------


def _specifications() -> dict[str, Call]:
    spec = specification()
    return {
        "Specification": lambda: (
            specification(max_depth=3),
            error_of(lambda: specification(max_depth="deep")),
            error_of(lambda: specification(bindings=[{"C_in": 0}])),
        ),
        "Specification.preset": lambda: (
            syno.Specification.preset("paper/resnet18"),
            syno.Specification.presets(),
            syno.Specification.limit_names(),
        ),
        "Specification.fields": lambda: (
            spec.input,
            spec.output,
            spec.primary,
            spec.coefficient,
            spec.variables,
            spec.bindings,
            spec.full_bindings,
            spec.multiplicities,
            spec.passed_through,
            spec.limits,
            spec.defaults,
            spec.complete("C_in=4, C_out=4, H=2"),
            repr(spec),
            hash(spec) == hash(specification()),
        ),
        "options": lambda: (
            repr(syno.SpaceOptions(max_nodes=5)),
            repr(syno.TrainOptions(max_slowdown=2.0)),
            repr(syno.StudyOptions(evaluations=2)),
            repr(syno.TimingOptions(repeats=20)),
            repr(syno.IsolationOptions(isolate=False)),
            repr(syno.RayOptions(ray="auto", gpus_per_worker=0.5)),
            repr(syno.AdaptOptions(samples=3)),
            error_of(lambda: syno.SpaceOptions(max_nodes=0)),
        ),
        "Specification.changes": lambda: spec.with_changes(max_depth=5),
        "Specification.coefficients": lambda: spec.changed_coefficients(
            [text.partition(":")[0] for text in spec.coefficient]
        ),
        "Specification.json": lambda: (
            syno.Specification.from_json(spec.to_json()) == spec,
            pickle.loads(pickle.dumps(spec)),
            error_of(lambda: syno.Specification.from_json("{")),
        ),
    }


def _seen(space: syno.Space) -> Any:
    """All that a space tells."""
    return (
        [space.key(0), space.key_of(1), sorted(space.keys()), space.depth_of(2), len(space)],
        [space[3], *space.sample(5, seed=2, stratify="macs")],
        [operator.text for operator in space],
        (space.specification, space.shapes, space.rules, space.rules_off, space.rules_added),
        (space.ended, space.complete_depth, space.depth_limit, space.exhausted, repr(space)),
        (space.counts(), space.by_depth(), space.by_primitives(), space.rejections()),
        (space.signature(), len(space.custom_rules)),
    )


def _spaces(folder: Path) -> dict[str, Call]:
    spec = specification()
    space = syno.Space.enumerate(spec, threads=1)
    shared = syno.Sampler.from_specification(spec, max_nodes=500)
    trees = syno.Tree(spec, space)
    operator = space[20]
    beyond = syno.Space.enumerate(spec.with_changes(max_depth=3), threads=1)

    def saved() -> Any:
        path = folder / f"space-{threading.get_ident()}"
        space.save(path)
        return _seen(syno.Space.load(path, spec))

    def sampled() -> Any:
        sampler = syno.Sampler.from_specification(spec, seed=3, max_nodes=500)
        return [sampler.sample() for _ in range(5)], sampler.statistics(), sampler.rules

    def sampled_from_words() -> Any:
        sampler = syno.Sampler(
            spec.input,
            spec.output,
            spec.primary,
            spec.coefficient,
            bindings=LAYERS,
            max_depth=3,
            passed_through=[(0, 0)],
            max_nodes=200,
        )
        return sampler.specification, len(sampler.operators), sampler.space.signature()

    def walked_tree() -> Any:
        node, way = trees.root, []
        while node.children:
            node = max(node.children, key=lambda child: (child.at_least, child.fingerprint))
            way.append((node.step, node.depth, node.least_steps, node.count, node.at_least))
            way.append((node.complete, plain(node.operators), repr(node), hash(node)))
        return way, trees.exact, node == node.children

    def graphs() -> Any:
        node = shared.children(shared.root)[0]
        graph = node.graph
        frontier = list(graph.frontier)
        longer = graph.then("shift", frontier[-1], amount=1)
        made = longer.steps[-1]
        return (
            (graph.text, graph.depth, graph.primitives, graph.start().text, repr(graph)),
            (longer.text, longer.maker(made.out[0]), longer.producer(made.out[0])),
            (longer.weights(frontier[0]), graph.taking(made).text),
        )

    def walks() -> Any:
        found = syno.walk(spec, count=400, seed=1, threads=1)
        return (
            (found.statistics(), found.weights, [o.text for o in found], found[0], len(found)),
            (found.walks, found.populations, found.accepted, found.coverage, found.at_least),
            (found.structures, found.specification, len(found.operators), repr(found)),
            found.structures_reach,
        )

    return {
        "Space.enumerate": lambda: _seen(syno.Space.enumerate(spec, threads=1)),
        "Space.enumerate in threads": lambda: syno.Space.enumerate(spec, threads=2).signature(),
        "Space.enumerate with a rule": lambda: _seen(
            syno.Space.enumerate(spec, threads=1, rules=[no_shift_of_window])
        ),
        "Space": lambda: _seen(space),
        "Space.orbits": space.orbits,
        "Space.save": saved,
        "Sampler": sampled,
        "Sampler of words": sampled_from_words,
        "Sampler.operators": lambda: [o.text for o in shared.operators],
        "Tree": walked_tree,
        "PartialGraph": graphs,
        "walk": walks,
        "explain": lambda: [syno.explain(space[index]) for index in (0, 20, 40)],
        "why_not": lambda: syno.why_not(
            operator, beyond.specification, max_nodes=500, max_seconds=NO_LIMIT_S
        ),
        "check_rule": lambda: (
            syno.check_rule("R1a", spec, trials=5, max_graphs=50, rules=[no_shift_of_window]),
            syno.check_rule(no_shift_of_window, spec, trials=5, max_graphs=50).as_json(),
        ),
        "rule": lambda: (
            syno.rule("A2", "no-shift", kind="restriction")(no_shift_of_window.function).title,
            syno.Rule("A3", "none", "restriction", no_shift_of_window.function).summary,
        ),
        "Operator.construct_kernel_packs": lambda: [
            pack.source_hash for pack in operator.construct_kernel_packs()
        ],
    }


# --- networks, stores, the rest -------------------------------------------------------------------


def _networks() -> dict[str, Call]:
    example = torch.linspace(-1, 1, 2 * 3 * 36).reshape(2, 3, 6, 6)
    maps = syno.Specification(
        "[N, C_in: unordered, H, W]",
        "[N, C_out: unordered, H, W]",
        ["N: 0", "C_in: 1", "C_out: 1", "H: 0", "W: 0"],
        ["k=3: 2"],
        passed_through=[(0, 0)],
    )
    conv, trained = zoo.load("conv2d", maps), network()
    sampler = syno.Sampler.from_specification(
        specification(max_depth=3),
        max_nodes=200,
        net=nn.Sequential(syno.Placeholder({"C_in": 8, "C_out": 8, "H": 6})),
    )
    drawn = sampler.operators[0]
    sizes = {"N": 1, "C_in": 8, "C_out": 8, "H": 6, "W": 6, "k": 3}

    def substituted() -> Any:
        net = syno.substitute(trained, syno.conv2d(kernel=3), example)
        before = syno.layer_report(net)
        report = syno.replace(net, conv)
        (slot,) = syno.slots(net).values()
        with torch.no_grad():
            y = with_fixed_weights(net)(example)
            slot.restore()
            restored = net(example)
        return (before, str(report), report.totals(), report.bindings(), y, restored)

    def reported() -> Any:
        transposed = (syno.conv_transpose1d, syno.conv_transpose2d, syno.conv_transpose3d)
        kinds = (syno.conv1d, syno.conv2d, syno.conv3d, *transposed, syno.linear)
        net = syno.substitute(trained, [kind() for kind in kinds], example)
        report = syno.layer_report(net)
        return (
            (report.replaced, report.kept, report.slots, report.replaced_share, report.table()),
            error_of(lambda: syno.replace(trained, conv)),
        )

    def placed() -> Any:
        original = with_fixed_weights(nn.Conv2d(8, 8, 3, 1, 1))
        slot = syno.Placeholder({}, original=original, input_names=(None, "C_in"))
        slot.observe(torch.zeros(1, 8, 6, 6))
        slot.learn((1, 8, 6, 6), (1, 8, 6, 6))
        pack = with_fixed_weights(conv.kernel_pack(sizes))
        slot.check_kernel(pack)
        slot.replace(pack)
        with torch.no_grad():
            slot.bias.zero_()
            y = slot(torch.ones(1, 8, 6, 6))
            ends = slot.kernel_input(y), slot.kernel_output(y)
        asked = syno.Placeholder({"C_in": 8, "C_out": 8, "H": 6})
        return (
            (
                y,
                ends,
                (slot.channel, slot.factor, slot.sizes, slot.phases, slot.moves),
                slot.kernel is pack,
                slot.original is slot.layer,
                repr(slot.reference),
            ),
            (asked.binding_for(specification()), asked.binding_of(drawn), repr(asked)),
            error_of(lambda: asked(torch.zeros(1))),
        )

    def filled() -> Any:
        net = nn.Sequential(syno.Placeholder({"C_in": 8, "C_out": 8, "H": 6}))
        return sampler.replace(net, drawn.construct_kernel_packs())

    return {
        "substitute": substituted,
        "layer_report": reported,
        "Placeholder": placed,
        "Sampler.replace": filled,
    }


def _stores(folder: Path) -> dict[str, Call]:
    from tests.store.sample import BASELINE, ENVIRONMENT, TRAINED, make_study

    address = str(folder / "runs.db")
    store = Store.open(address)
    study = make_study(store, "study")
    for number, outcome in enumerate((BASELINE, TRAINED)):
        operator = None if number == 0 else (zoo.load("conv2d").text, zoo.load("conv2d").key)
        proposal = store.ask(study, number, operator, "worker")
        store.tell(proposal.id, outcome, ENVIRONMENT)

    def read(store: Store) -> Any:
        return (
            [store.version(), store.studies(), store.study("study")],
            [store.events(study), store.proposals(study), store.rung_results(study)],
            [store.unleased(study), store.quarantine.of(study)],
            repr(store.summary(study)),
            error_of(lambda: store.study("none")),
        )

    def opened() -> Any:
        with Store.open(address, read_only=True) as other:
            return read(other)

    def results() -> Any:
        found = syno.load_study(address, "study")
        seen = [found, found.trials, found.best, found.front("macs"), found.trial("baseline")]
        failing = (lambda: found.operator("baseline"), lambda: len(found.rows()))
        return [*map(repr, seen), *map(error_of, failing), syno.Outcome("ok", accuracy=0.5)]

    return {
        "StudyResults": results,
        "Store": lambda: read(store),
        "Store.open": opened,
    }


def _rest(mix: Iterable[Case]) -> dict[str, Call]:
    case = next(iter(mix))
    return {
        "Operator.parse": _parsed,
        "verify": lambda: verify(case.operator, case.binding),
        "zoo.module": lambda: [
            with_fixed_weights(zoo.module(name, 32, 32))(torch.ones(1, 32, 4, 4)).sum()
            for name in zoo.module_names()
        ],
    }


# --- what is public -------------------------------------------------------------------------------

# Names of syno.__all__ (and members of its classes) that no call runs, and why.
LEFT_OUT = {
    "InternalError": "an exception of the extension without code of its own: tests/bindings",
    "UserError": "an exception of the extension without code of its own: many calls raise it",
    "__version__": "a text",
    "compile": "traces with torch.export, which is for one thread at a time: tests/inference",
    "search": "trains for minutes with threads, random state and processes of its own: tests/e2e",
    "resume": "trains for minutes with threads, random state and processes of its own: tests/e2e",
    "select": "reads a store of trained operators: tests/study/test_training.py, tests/cli",
    "export_network": "traces with torch.export: tests/study/test_results.py",
    "quantize": "traces with torch.export: tests/inference/test_quantized.py",
    "StudyResults.network": "reads trained weights: tests/study/test_results.py",
    "StudyResults.trials_dataframe": "needs pandas: tests/study/test_results.py",
    "StudyResults.plot_front": "draws with Matplotlib: tests/study/test_results.py",
    "adapt": "trains and measures for minutes: tests/adaptation/pipeline",
    "Adaptation": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.best": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.network": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.rows": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.sections": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.table": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.to_json": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.picture": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.report": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.compare": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.export": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.ship": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.marks": "a result of adapt: tests/adaptation/pipeline",
    "Adaptation.ahead_of": "a result of adapt: tests/adaptation/pipeline",
    "train_operators": "trains with threads and processes of its own: tests/study/test_training.py",
}


def public_code() -> dict[str, Any]:
    """The code of everything public in `syno`: of functions, and of the methods of classes."""
    found: dict[str, Any] = {}
    for name in syno.__all__:
        value = getattr(syno, name)
        if isinstance(value, ModuleType):  # `zoo` and `models` have public names of their own
            continue
        if not isinstance(value, type):
            found[name] = getattr(inspect.unwrap(value), "__code__", None)
            continue
        # A class may have what is its own from a class below it, of the same package.
        package = value.__module__.rpartition(".")[0]
        own = [each for each in value.__mro__ if each.__module__.rpartition(".")[0] == package]
        held = {member: it for each in reversed(own) for member, it in vars(each).items()}
        members = {
            member: _function(attribute)
            for member, attribute in held.items()
            if not member.startswith("_") and _function(attribute) is not None
        }
        found |= {f"{name}.{member}": code.__code__ for member, code in members.items()}
        begin = held.get("__init__")
        found[name] = None if begin is None else getattr(inspect.unwrap(begin), "__code__", None)
    return found


def _function(attribute: Any) -> Any:
    """The Python function behind a method or a property; None for data."""
    if isinstance(attribute, property):
        return attribute.fget
    inner = getattr(attribute, "__func__", attribute)
    inner = inspect.unwrap(inner) if callable(inner) else inner
    return inner if hasattr(inner, "__code__") else None


def audit_seconds(default: float) -> float:
    """How long the loop with threads runs: SYNO_AUDIT_SECONDS."""
    return float(os.environ.get("SYNO_AUDIT_SECONDS", default))
