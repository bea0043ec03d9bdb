"""One network in a process of its own: what of it is compiled."""

from __future__ import annotations

import dataclasses
import operator
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from syno._util.errors import UserError, first_line
from syno._util.json_types import JsonObject
from syno.codegen.export import export_network
from syno.inference import load
from syno.inference.library.lower import RESHAPES, VIEWS, lower, uncovered
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import Prepared, prepare, prepare_sample
from syno_lab.experiments.child import obey
from syno_lab.experiments.coverage.families import (
    Family,
    built,
    input_of,
    smallest,
    with_statistics,
)

# Nodes that compute nothing.
_LOOKS = (*VIEWS, *RESHAPES, operator.getitem)


@dataclass(frozen=True)
class ComparedLibrary:
    """The network library, compared with PyTorch.

    error: the largest difference, relative to the largest output; seconds: of writing and
    compiling; reason: why it could not be compared, if it could not.
    """

    error: float | None = None
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Covered:
    """What is compiled of the smallest network of a family.

    input: the shape of an image. traced: whether torch.export traces the network. whole: whether
    the network library covers it; reason: why not, in the words of the first error. missing: the
    operators that the library has no code for, each with a reason. layers: how many `syno.compile`
    makes kernels of; kept: why others stay PyTorch, with their number; others: operators beside the
    layers with the number of calls, without views. commit: of the sources that examined it.
    """

    family: str
    network: str = ""
    parameters: int = 0
    input: tuple[int, ...] = ()
    traced: bool = False
    whole: bool = False
    reason: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    layers: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)
    compiled: ComparedLibrary | None = None
    seconds: float = 0.0
    commit: str = ""


def examined(family: Family, *, compiled: bool = False) -> Covered:
    """What of the smallest network of a family is compiled.

    compiled: also compile the library where it covers the network, and compare it with PyTorch.
    """
    began = time.monotonic()
    name, parameters = smallest(family)
    net = with_statistics(built(family.package, name))
    shape = input_of(family.package, net)
    found = Covered(family.key, name, parameters, shape)
    x = torch.randn(1, *shape, generator=torch.Generator().manual_seed(0))
    found = _prepared(found, net, x)
    if compiled and found.whole:
        found = dataclasses.replace(found, compiled=_compared(net, x))
    return dataclasses.replace(found, seconds=round(time.monotonic() - began, 1))


def _prepared(found: Covered, net: nn.Module, x: torch.Tensor) -> Covered:
    try:
        prepared, reason = prepare_sample(net, x), ""
    except UserError as error:
        reason = _head(error)
        try:
            prepared = prepare(net, (x,), batch=False)
        except UserError as of_trace:
            return dataclasses.replace(found, reason=first_line(of_trace))
    found = _counted(found, prepared)
    missing = {each.operator: each.reason for each in reversed(uncovered(prepared.graph))}
    try:
        lower(prepared.graph)
    except UserError as error:
        reason = reason or _head(error)
    return dataclasses.replace(found, missing=missing, whole=not reason, reason=reason)


def _head(error: UserError) -> str:
    """What is wrong, and where."""
    return " ".join(line.strip() for line in str(error).splitlines()[:2])


def _counted(found: Covered, prepared: Prepared) -> Covered:
    others = Counter(
        str(node.target).removeprefix("aten.")
        for node in prepared.graph.graph.nodes
        if node.op == "call_function" and node.target not in _LOOKS
    )
    return dataclasses.replace(
        found,
        traced=True,
        layers=len(layers_of(prepared.graph)),
        kept=Counter(each.reason for each in prepared.kept),
        others=dict(others.most_common()),
    )


def _compared(net: nn.Module, x: torch.Tensor) -> ComparedLibrary:
    began = time.monotonic()
    more = torch.cat([x, torch.randn(x.shape, generator=torch.Generator().manual_seed(2))])
    with torch.no_grad(), tempfile.TemporaryDirectory(prefix="syno-coverage-") as folder:
        expected = net(more)
        try:
            code = export_network(net, Path(folder) / "net", x, format="cpp-network").code
            y = torch.from_numpy(load(code)(more.numpy()))
        except UserError as refusal:
            return ComparedLibrary(reason=first_line(refusal))
    top = float(expected.abs().max())
    error = float((y - expected).abs().max()) / max(top, 1e-30)
    return ComparedLibrary(error=error, seconds=round(time.monotonic() - began, 1))


def main() -> None:
    """Examine the network that the orders name, and answer with a line of JSON."""
    obey(_answer)


def _answer(orders: Any) -> JsonObject:
    torch.set_num_threads(1)
    package, name, networks = orders["family"]
    family = Family(package, name, tuple(networks))
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found = examined(family, compiled=orders["compile"])
    except Exception as error:  # one network is not to end the others: the reason is a result
        reason = f"{type(error).__name__}: {first_line(error)}"
        found = Covered(family.key, reason=reason)
    return dataclasses.asdict(found)
