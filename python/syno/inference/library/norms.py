"""Normalization as plain code: of channels, rows and groups."""

from __future__ import annotations

import math

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library.activations import struct_of
from syno.inference.library.builder import Builder
from syno.inference.library.program import Address, Value, number
from syno.inference.library.registry import code as _code
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import only_user
from syno.inference.passes.epilogues import activation_of, batch_norm_of, result_of
from syno.inference.trace import module_name

_aten = torch.ops.aten


@_code(_aten._native_batch_norm_legit_no_training.default)
def _batch_norm(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    found = batch_norm_of(node, build.held)
    if found is None:
        raise UserError("the BatchNorm has no constant statistics")
    given.without_effect("weight", "bias", "running_mean", "running_var", "momentum", "eps")
    x = build.get(given["input"])
    over = [1, -1, *[1] * (x.view.dim() - 2)]
    scale, shift = (build.program.constant(t) for t in found)
    operands = [x, *(Value(v.buffer, v.view.view(over)) for v in (scale, shift))]
    y = build.program.new(x.shape)
    expression, made = "a * b + c", [node]
    value = result_of(node)
    following = None if value is None else only_user(value)
    activation = None if following is None else activation_of(following)
    if following is not None and activation is not None:
        expression = f"{struct_of(activation)}::of({expression})"
        made.append(following)
        build.values[following] = y
    return build.map(y, operands, expression, ", ".join(module_name(n) for n in made))


@_code(_aten.layer_norm.default)
def _layer_norm(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    given.without_effect("cudnn_enable")
    return _rows(build, node, given, "layer_norm", float(given["eps"]))


@_code(_aten.rms_norm.default)
def _rms_norm(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    epsilon = given["eps"]
    least = torch.finfo(torch.float32).eps if epsilon is None else float(epsilon)
    return _rows(build, node, given, "layer_norm<false>", least)


def _rows(
    build: Builder, node: fx.Node, given: NodeArguments, function: str, epsilon: float
) -> Value:
    """Each row of the last dimensions, times a weight and plus a bias for each place in it."""
    x = build.contiguous(build.get(given["input"]))
    names = ("weight", "bias") if "bias" in given else ("weight",)
    held = [given[name] for name in names]
    factors = [None if each is None else build.contiguous(build.get(each)) for each in held]
    factors += [None] * (2 - len(factors))
    y = build.program.new(x.shape)
    length = math.prod(given["normalized_shape"])
    rows = y.view.numel() // length

    def code(at: Address) -> str:
        addresses = ", ".join("nullptr" if v is None else at(v) for v in factors)
        sizes = f"{rows}, {length}, {number(epsilon)}"
        return f"{function}({at(x)}, {addresses}, {at(y)}, {sizes}, team);"

    reads = [x, *(v for v in factors if v is not None)]
    return build.step(code, reads, y, module_name(node))


@_code(_aten.group_norm.default)
def _group_norm(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    given.without_effect("cudnn_enabled")
    return _groups(build, node, given, int(given["num_groups"]))


@_code(_aten.instance_norm.default)
def _instance_norm(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    if not given["use_input_stats"]:
        raise UserError("the network library has no code for instance_norm with given statistics")
    given.without_effect("running_mean", "running_var", "momentum", "cudnn_enabled")
    return _groups(build, node, given, build.get(given["input"]).shape[1])


def _groups(build: Builder, node: fx.Node, given: NodeArguments, groups: int) -> Value:
    """Each of so many groups of channels, times a weight and plus a bias for each channel."""
    x, about = build.contiguous(build.get(given["input"])), module_name(node)
    samples, channels = x.shape[:2]
    rows = samples * channels
    length, epsilon = x.view.numel() // rows, number(given["eps"])
    found = build.program.new([2, rows])
    build.step(
        lambda at: f"moments({at(x)}, {at(found)}, {rows}, {length}, team);",
        [x],
        found,
        f"{about} (moments)",
    )
    named = [given[name] for name in ("weight", "bias")]
    factors = [None if each is None else build.contiguous(build.get(each)) for each in named]
    y = build.program.new(x.shape)

    def code(at: Address) -> str:
        addresses = ", ".join("nullptr" if v is None else at(v) for v in (x, found, *factors))
        sizes = f"{rows}, {channels}, {channels // groups}, {length}, {epsilon}"
        return f"group_norm({addresses}, {at(y)}, {sizes}, team);"

    return build.step(code, [x, found, *(v for v in factors if v is not None)], y, about)
