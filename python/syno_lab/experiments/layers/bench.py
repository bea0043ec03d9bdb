"""Times of all kinds of layers of a network: a run in turns for each of them.

Every pair of a subject and an engine is compared with eager PyTorch before it is timed. A time
below what the machine can do is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from syno._util.errors import UserError, nearest
from syno._util.json_types import JsonObject
from syno._util.network_copy import copy_network
from syno.engines import engine as engines
from syno.engines.compare import EngineComparison, NetworkTime, compare_engines
from syno.engines.engine import FLOAT32, Engine
from syno.measure.roofline import Roofline, checked_time, measure_roofline, reachable
from syno.measure.slots import SlotKind, fitting_binding, network_with_slots, slot_kinds
from syno.network.placeholder import checked_slots
from syno.network.substitute import replace
from syno.operands.layers import fit_to_network, layer_specification
from syno.operands.lookup import NamedOperator, named_operators
from syno.operators import zoo
from syno.operators.operator import Operator
from syno.runs.file_lock import one_writer
from syno.runs.journal import Journal
from syno.tune.machine import described_machine
from syno_lab.experiments.layers import results
from syno_lab.experiments.layers.results import (
    ORIGINAL,
    LayerResults,
    LayerRun,
    LayerSubject,
    LayerTime,
)
from syno_lab.experiments.layers.tvm_layer import TvmLayer

Progress = Callable[[int, int, str], None]
ENGINES = ("eager", "inductor", "onnxruntime", "openvino", "syno-cpp")
DEFAULT_SUBJECTS = ("operator-1", "operator-2", "stacked-conv", *zoo.module_names())


@dataclass(frozen=True)
class LayerBench:
    """What `bench_layers` measures.

    operators: operators as for `syno train`, and modules of the zoo, beside the original layers.
    engines: names; empty for those of ENGINES that are installed. layers: labels of layers; empty
    for all. tvm_layers: labels of those that TVM is measured in, too, with `trials` schedules for
    each operator. sizes: values of variables that the layers do not have.
    """

    model: str = "resnet34"
    model_options: Mapping[str, int | str] = field(default_factory=dict)
    size: int | None = None
    operators: Sequence[str] = DEFAULT_SUBJECTS
    sizes: Mapping[str, int] = field(default_factory=dict)
    engines: Sequence[str] = ()
    layers: Sequence[str] = ()
    tvm_layers: Sequence[str] = ()
    trials: int = 64
    batch: int = 1
    threads: int = 2
    rounds: int = 30
    seed: int = 0

    def settings(self, operators: Mapping[str, str], engines: Sequence[str]) -> JsonObject:
        """What the results depend on; operators: the text of each, empty for a module; engines:
        those that are measured. Layers can be added later."""
        return {
            "model": self.model,
            "model_options": dict(self.model_options),
            "size": self.size,
            "operators": dict(operators),
            "sizes": dict(self.sizes),
            "engines": list(engines),
            "trials": self.trials,
            "batch": self.batch,
            "threads": self.threads,
            "rounds": self.rounds,
            "seed": self.seed,
        }


@one_writer
def bench_layers(
    given: LayerBench, path: Path, *, progress: Progress = lambda *_: None
) -> LayerResults:
    """Measure layers, and keep each in the file at `path` as soon as it is done.

    A file that is there is gone on with: no layer is measured twice. MetaSchedule's databases lie
    beside the file, in a folder with the suffix `.tvm`.

    Args:
        given: what is measured.
        path: file of the results (JSON).
        progress: called with (finished layers, all layers that were to be done, description).

    Raises:
        UserError: a name is unknown, the file is of other settings or of another machine, an
            engine computes something else, or a time is below what the machine can do.
    """
    chosen = tuple(given.engines) or engines.available(ENGINES)
    for name in chosen:
        engines.get(name)
    template, example = network_with_slots(
        given.model, dict(given.model_options), given.size, given.batch
    )
    kinds = _labelled(slot_kinds(copy_network(template).eval(), example))
    for label in (*given.layers, *given.tvm_layers):
        if label not in kinds:
            raise UserError(
                f"the model '{given.model}' has no layer '{label}'{nearest(label, list(kinds))}\n"
                f"  expected: {', '.join(kinds)}"
            )
    subjects = _subjects(given, template)
    texts = {name: "" if each is None else each.operator.text for name, each in subjects.items()}
    machine = described_machine(given.threads)
    found = results.opened(path, given.settings(texts, chosen), machine)
    journal = Journal(
        {
            run.layer: run
            for run in found.layers
            if _is_done(run, tvm=run.layer in given.tvm_layers)
        },
        lambda _, run: results.write(found.with_layer(run, list(kinds)), path),
    )
    wanted = {*given.layers, *given.tvm_layers} if given.layers else kinds
    waiting = list(journal.waiting(label for label in kinds if label in wanted))
    networks = _Networks(given, template, subjects)
    for number, label in enumerate(waiting):

        def told(what: str, number: int = number, label: str = label) -> None:
            progress(number, len(waiting), f"{label}: {what}")

        run = _measured(given, chosen, label, kinds[label], networks, path, told)
        journal.put(label, run)
    progress(len(waiting), len(waiting), "done")
    return found


def _is_done(run: LayerRun, *, tvm: bool) -> bool:
    tried = {time.engine for time in run.times} | {key.split(" in ")[-1] for key in run.failures}
    return not tvm or TvmLayer.name in tried


def _labelled(kinds: Mapping[str, SlotKind]) -> dict[str, tuple[str, SlotKind]]:
    """Kinds of slots by a label: channels and size of the input, and what of the output differs."""
    found = {}
    for name, kind in kinds.items():
        inside, outside = kind.slot.binding, kind.slot.original
        label = f"{kind.input_shape[1]}x{kind.input_shape[-1]}"
        channels = getattr(outside, "out_channels", kind.input_shape[1])
        if (channels, inside.get("H")) != (kind.input_shape[1], kind.input_shape[-1]):
            label += f"-{channels}x{inside.get('H', '')}"
        kernel = getattr(outside, "kernel_size", (3,))[0]
        label += "" if kernel == 3 else f"-k{kernel}"
        found[label if label not in found else name] = (name, kind)
    return found


def _subjects(given: LayerBench, template: nn.Module) -> dict[str, NamedOperator | None]:
    """Operators by name; None for modules of the zoo."""
    modules = zoo.module_names()
    known = layer_specification(template, given.sizes)
    found: dict[str, NamedOperator | None] = {}
    for name in dict.fromkeys(given.operators):
        if name in modules:
            found[name] = None
        else:
            found |= {each.name: each for each in named_operators([name], layers=known)}
    if ORIGINAL in found:
        raise UserError(f"an operator has the name '{ORIGINAL}' of the original layers")
    return found


class _Networks:
    """The layers of each subject, as modules with random weights."""

    def __init__(
        self, given: LayerBench, template: nn.Module, subjects: Mapping[str, NamedOperator | None]
    ) -> None:
        self._given, self._subjects = given, subjects
        self._nets: dict[str, tuple[nn.Module, Operator]] = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(given.seed)
            for name, named in subjects.items():
                if named is None:
                    continue
                net = copy_network(template)
                operator = fit_to_network(named, net, given.sizes)
                replace(net, operator)
                self._nets[name] = (net.eval(), operator)

    def of(
        self, name: str, kind: SlotKind, example: torch.Tensor
    ) -> tuple[dict[str, nn.Module], dict[str, LayerSubject], dict[str, str]]:
        """The modules of a kind of layer, what they cost, and why a subject has none."""
        original = kind.slot.original
        assert original is not None
        modules: dict[str, nn.Module] = {ORIGINAL: original.eval()}
        _, padding = _macs(original, example)
        least = None if kind.macs is None else kind.macs - padding
        costs = {ORIGINAL: LayerSubject(kind.macs, kind.params, least)}
        failures: dict[str, str] = {}
        for subject in self._subjects:
            try:
                if subject in self._nets:
                    made, cost = self._operator(subject, name, kind)
                else:
                    made = self._module(subject, original, kind)
                    macs, padding = _macs(made, example)
                    cost = LayerSubject(macs, _params(made), macs - padding)
            except UserError as reason:
                failures[subject] = str(reason).partition("\n")[0]
                continue
            modules[subject], costs[subject] = nn.Sequential(made).eval(), cost
        return modules, costs, failures

    def _operator(self, subject: str, name: str, kind: SlotKind) -> tuple[nn.Module, LayerSubject]:
        net, operator = self._nets[subject]
        slot = checked_slots(net)[name]
        binding = fitting_binding(kind.slot, operator, self._given.batch)
        if slot.kernel is None or binding is None:
            raise UserError("the operator does not fit the layer")
        plan = operator.numbered_plan(binding, 1, fold_weights=True)
        return slot, LayerSubject(plan.macs, operator.params(binding), plan.macs_in_bounds)

    def _module(self, subject: str, original: nn.Module, kind: SlotKind) -> nn.Module:
        if not isinstance(original, nn.Conv2d) or original.groups != 1:
            raise UserError("the module stands for convolutions without groups")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._given.seed)
            made = zoo.module(
                subject, original.in_channels, original.out_channels, original.kernel_size[0]
            )
        # As for an operator, averages stand for the stride of the original.
        return made if kind.slot.moves is None else nn.Sequential(kind.slot.moves, made)


def _measured(
    given: LayerBench,
    chosen: Sequence[str],
    label: str,
    named_kind: tuple[str, SlotKind],
    networks: _Networks,
    path: Path,
    told: Callable[[str], None],
) -> LayerRun:
    name, kind = named_kind
    began = time.monotonic()
    generator = torch.Generator().manual_seed(given.seed)
    example = torch.randn(kind.input_shape, generator=generator)
    modules, costs, failures = networks.of(name, kind, example)
    wanted: list[str | Engine] = list(chosen)
    if label in given.tvm_layers:
        tvm = TvmLayer(path.with_name(f"{path.name}.tvm"), given.trials, told)
        missing = tvm.missing()
        if missing is not None:
            raise UserError(f"TVM is not available: {missing}")
        wanted.append(tvm)
    found = compare_engines(
        modules,
        example,
        wanted,
        threads=given.threads,
        rounds=given.rounds,
        progress=lambda done, total, what: told(f"{done} of {total}, {what}"),
    )
    with torch.inference_mode():
        output = tuple(modules[ORIGINAL](example).shape)
    assert found.controls is not None
    sizes = example.numel() + torch.Size(output).numel()
    roofline = measure_roofline(given.threads)
    times = []
    for each in found.times:
        timed, roofline = _checked(each, label, costs[each.network], sizes, roofline)
        times.append(timed)
    return LayerRun(
        layer=label,
        name=name,
        count=kind.count,
        input=tuple(example.shape),
        output=output,
        subjects=costs,
        times=tuple(times),
        rival=found.rival,
        failures=_reasons(found, failures, chosen),
        control_ms=found.controls.product.median_ms,
        control_spread=found.controls.product.spread,
        stream_gb_s=found.controls.stream_gb_s,
        stream_spread=found.controls.stream.spread,
        noisy=found.noisy,
        peak_gflops=roofline.flops / 1e9,
        seconds=time.monotonic() - began,
        environment=described_machine(given.threads),
    )


def _reasons(
    found: EngineComparison, unfit: Mapping[str, str], chosen: Sequence[str]
) -> dict[str, str]:
    reasons = {f"{subject} in {engine}": why for subject, why in unfit.items() for engine in chosen}
    reasons |= {
        f"{subject} in {engine}": why.partition("\n")[0]
        for (subject, engine), why in found.failures.items()
    }
    return reasons


def _checked(
    each: NetworkTime, label: str, cost: LayerSubject, values: int, roofline: Roofline
) -> tuple[LayerTime, Roofline]:
    """A time with its floor. ImpossibleTimeError for one below it.

    values: elements of input and output.
    """
    exact = each.precision == FLOAT32
    moved = (4 if exact else 1) * (values + cost.params)
    least = cost.macs if cost.least_macs is None else cost.least_macs
    macs = (least or 0) if each.own and exact else 0
    seconds = each.best_ms / 1e3
    roofline = reachable(roofline, seconds, macs, moved)
    possible = roofline.least_time(macs, moved)
    checked_time(f"{each.network} in {label} in {each.engine}", seconds, possible)
    floor = roofline.floor(macs, moved)
    known = each.own and exact and cost.macs is not None
    timed = LayerTime(
        subject=each.network,
        engine=each.engine,
        precision=each.precision,
        own=each.own,
        best_ms=each.best_ms,
        median_ms=each.median_ms,
        low_ms=each.low_ms,
        high_ms=each.high_ms,
        error=each.error,
        speedup=each.over_rival,
        over_eager=each.over_eager,
        floor_ms=1e3 * floor,
        roofline=floor / seconds if known else None,
    )
    return timed, roofline


def _macs(module: nn.Module, example: torch.Tensor) -> tuple[int, int]:
    """The MACs of the convolutions of a module without biases, and how many are on zero padding."""
    found = in_bounds = 0

    def count(conv: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        nonlocal found, in_bounds
        assert isinstance(conv, nn.Conv2d)
        found += output.numel() * conv.weight[0].numel()
        map_, window = inputs[0][:1, :1], conv.weight[:1, :1]
        taps = nn.functional.conv2d(
            torch.ones_like(map_),
            torch.ones_like(window),
            None,
            conv.stride,
            conv.padding,
            conv.dilation,
        )
        per_tap = output.shape[0] * output.shape[1] * conv.weight.shape[1]
        in_bounds += int(taps.sum()) * per_tap

    handles = [
        conv.register_forward_hook(count)
        for conv in module.modules()
        if isinstance(conv, nn.Conv2d)
    ]
    with torch.inference_mode():
        module(example)
    for handle in handles:
        handle.remove()
    return found, found - in_bounds


def _params(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
