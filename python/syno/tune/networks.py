"""Tasks of whole networks: timed in an inference engine, and in TVM tuned function by function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from syno._util.errors import UserError
from syno.codegen.emitters.tvm_target import device_target
from syno.engines.compare import compare_engines
from syno.engines.engine import Engine
from syno.engines.tvm import TvmEngine
from syno.inference.relax.build import tuning_tasks
from syno.inference.relax.network import lowered
from syno.measure.slots import network_with_slots
from syno.network.substitute import replace
from syno.operands.layers import fit_to_network
from syno.operands.lookup import NamedOperator
from syno.operators.operator import Operator
from syno.tune import tvm_schedules
from syno.tune.grid import CPP, CPU, EAGER, INDUCTOR, TVM
from syno.tune.results import TunedLayer
from syno.tune.tasks import TuningTask

# The inference engine of each back end that runs whole networks.
_ENGINES = {EAGER: "eager", INDUCTOR: "inductor", CPP: "syno-cpp", TVM: "tvm"}


def problem(task: TuningTask) -> str:
    """Why a whole network cannot be tuned so; empty where it can."""
    if task.tracker is not None:
        return "whole networks are tuned on this machine; leave out --tracker"
    if task.back_end not in _ENGINES:
        return f"{task.back_end} does not run whole networks"
    if task.device != CPU:
        return f"whole networks are timed on the CPU, and not on '{task.device}'"
    return ""


def network_of(task: TuningTask) -> tuple[nn.Module, torch.Tensor]:
    """The network of a task in evaluation mode with initial weights, and an input for it.

    UserError for an operator that fits no slot.
    """
    assert task.model is not None
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
        torch.manual_seed(0)
        net, example = network_with_slots(task.model, {}, task.size, task.batch)
        if example.is_floating_point():
            example = torch.randn(example.shape)
        if task.text:
            named = NamedOperator(task.operator, Operator.from_text(task.text), task.sizes)
            replace(net, fit_to_network(named, net, task.binding))
    return net.eval(), example


def measured(task: TuningTask, folder: Path, progress: Callable[[str], None]) -> TunedLayer:
    """The time of the network in the engine of the back end.

    In TVM, MetaSchedule measures schedules of every function first, `trials` of each.

    folder: of the database of MetaSchedule.

    Raises:
        UserError: the engine cannot run the network, or computes something else than PyTorch.
    """
    net, example = network_of(task)
    engine: str | Engine = _ENGINES[task.back_end]
    form = str(engine)
    if task.back_end == TVM:
        form = f"{task.trials} trials of each function"
        _tune(task, net, example, folder, progress)
        engine = TvmEngine(folder, task.tvm_target)
    progress("timing")
    # The worker is in inference mode, whose tensors torch.export cannot trace.
    with torch.inference_mode(False):
        found = compare_engines(
            {task.operator: net}, example, [engine], threads=task.threads, rounds=task.rounds
        )
    for reason in found.failures.values():
        raise UserError(reason)
    time = found.times[-1]  # eager PyTorch is always the first one
    return TunedLayer(
        layer=task.place,
        count=1,
        kept=False,
        form=form,
        forms={form: time.median_ms},
        best_ms=time.best_ms,
        median_ms=time.median_ms,
        spread_ms=time.high_ms - time.low_ms,
        pool_ms=0.0,
        macs=0,
        roofline=None,
        outputs=net(example).numel(),
        control_spread=found.controls.product.spread if found.controls else 0.0,
    )


def _tune(
    task: TuningTask,
    net: nn.Module,
    example: torch.Tensor,
    folder: Path,
    progress: Callable[[str], None],
) -> None:
    progress("tracing the network")
    target = device_target(task.tvm_target, task.threads)
    with torch.inference_mode(False):
        module = lowered(net, example, target, any_batch=False)
    tvm_schedules.tune_functions(
        tuning_tasks(module, target),
        folder,
        trials=task.trials,
        threads=task.threads,
        target=task.tvm_target,
        progress=progress,
    )
