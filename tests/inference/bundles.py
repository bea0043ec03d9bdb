"""Many small networks in one, so that a test traces and compiles them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from tests.inference.grammar import Network, inputs
from torch import nn

import syno
from syno import UserError
from syno._util.trial_calls import difference
from syno.codegen.export import export_network
from syno.inference import load
from syno.inference.library.lower import lower
from syno.inference.prepare import prepare_sample

# Batch sizes that networks are compared with; they are compiled from an example of two samples.
BATCHES = (1, 2, 5)
TOLERANCE = 2e-4


class Side(nn.Module):
    """The results of several networks for the same inputs."""

    def __init__(self, parts: Sequence[Network]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.eval()

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> list[Any]:
        return [part(*(x, z)[: part.recipe.inputs]) for part in self.parts]


class Row(nn.Module):
    """The results of several networks of one input, a row for each sample."""

    def __init__(self, parts: Sequence[Network]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([row(part(x)) for part in self.parts], 1)


def both_inputs(batch: int) -> tuple[torch.Tensor, ...]:
    """The two inputs of the grammar."""
    generator = torch.Generator().manual_seed(batch)
    return tuple(torch.randn(batch, *shape, generator=generator) for shape in ((4, 6, 5), (7,)))


def expected(net: nn.Module, given: tuple[torch.Tensor, ...]) -> object:
    """What a network computes; None where it fails for this batch."""
    with torch.no_grad():
        try:
            return net(*(each.clone() for each in given))
        except (RuntimeError, IndexError, ValueError):
            return None


def differs(found: object, right: object) -> str:
    """What differs between two results, however they are nested."""
    if isinstance(right, torch.Tensor):
        gap = difference(found, right) if isinstance(found, torch.Tensor) else float("inf")
        return f"differs by {gap:.1e}" if gap > TOLERANCE else ""
    if type(found) is not type(right):
        return f"{type(found).__name__} instead of {type(right).__name__}"
    if isinstance(right, dict):
        found, right = [*found.items()], [*right.items()]
    if isinstance(right, (list, tuple)):
        if len(found) != len(right):
            return f"{len(found)} instead of {len(right)} results"
        return next((d for a, b in zip(found, right, strict=True) if (d := differs(a, b))), "")
    return "" if found == right else f"{found!r} instead of {right!r}"


def in_float64(part: Network, given: tuple[torch.Tensor, ...]) -> object:
    """What a network computes in float64, rounded to float32; None where it cannot."""
    exact = expected(deepcopy(part).double(), tuple(x.double() for x in given))
    return torch.utils._pytree.tree_map_only(torch.Tensor, _rounded, exact)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype == torch.float64 else x


def wrong(
    part: Network,
    given: tuple[torch.Tensor, ...],
    found: object,
    right: object,
    of: Callable[[Any], Any] = lambda result: result,
) -> str:
    """What differs from PyTorch in float32, unless it is what PyTorch gives in float64.

    of: what of the result is compared. GELU far below 0 has few digits in PyTorch, which a
    normalization brings up.
    """
    what = differs(found, right)
    return what and differs(found, of(in_float64(part, given))) and what


def row(result: torch.Tensor | None) -> torch.Tensor | None:
    """A row for each sample, which may give one number without a dimension of its own."""
    return None if result is None else result.unsqueeze(-1).flatten(1)


def said(net: Network, what: str) -> str:
    """A line about a network, with its source."""
    modules = {name: str(module) for name, module in net.recipe.modules.items()}
    return f"{what}\n{net.recipe.text}\n{modules}"


def check_compiled(parts: Sequence[Network], faults: list[str]) -> int:
    """`syno.compile` against PyTorch; how many networks it computes for batches of any size.

    Networks for some sizes are compiled by themselves.
    """
    if not parts:
        return 0
    try:
        made = syno.compile(Side(parts), both_inputs(2))
        for batch in (1, 5):
            made(*both_inputs(batch))
    except Exception as error:
        if len(parts) > 1:
            half = len(parts) // 2
            return check_compiled(parts[:half], faults) + check_compiled(parts[half:], faults)
        if isinstance(error, UserError):
            check_one_batch(parts[0], faults)
        else:
            faults.append(said(parts[0], f"compile: {type(error).__name__}: {error}"))
        return 0
    for batch in BATCHES:
        given = both_inputs(batch)
        with torch.no_grad():
            found = made(*(each.clone() for each in given))
        for part, mine in zip(parts, found, strict=True):
            own = given[: part.recipe.inputs]
            right = expected(part, own)
            if right is not None and (what := wrong(part, own, mine, right)):
                faults.append(said(part, f"compile, batch {batch}: {what}"))
    return len(parts)


def check_one_batch(part: Network, faults: list[str]) -> None:
    """A network that is compiled for some sizes of the batch, or refused."""
    given = inputs(part, 2)
    try:
        made = syno.compile(part, given)
    except UserError:
        return
    for batch in BATCHES:
        given, right = inputs(part, batch), expected(part, inputs(part, batch))
        try:
            with torch.no_grad():
                found = made(*given)
        except UserError:
            continue
        if right is not None and (what := wrong(part, inputs(part, batch), found, right)):
            faults.append(said(part, f"compile, alone, batch {batch}: {what}"))


def is_apart(part: Network, batch: int = 3) -> bool:
    """Whether a network gives for each sample what it gives for that sample alone."""
    given = inputs(part, batch)
    whole = expected(part, given)
    alone = [expected(part, tuple(x[i : i + 1] for x in given)) for i in range(batch)]
    if not isinstance(whole, torch.Tensor) or not all(isinstance(a, torch.Tensor) for a in alone):
        return False
    if any(each.shape[:1] != (1,) or each.shape[1:] != whole.shape[1:] for each in alone):
        return False
    return difference(torch.cat(alone), whole) <= TOLERANCE


def has_code(part: Network, faults: list[str]) -> bool:
    """Whether the network library computes a network, which is refused else."""
    try:
        lower(prepare_sample(part, inputs(part, 2)[0]).graph)
    except UserError:
        return False
    except Exception as error:
        faults.append(said(part, f"library: {type(error).__name__}: {error}"))
        return False
    if not is_apart(part):
        faults.append(said(part, "library: the samples of the network meet"))
        return False
    return True


def check_written(
    parts: Sequence[Network],
    folder: Path,
    form: str,
    opened: Callable[[Path], Callable[[torch.Tensor], torch.Tensor]],
    faults: list[str],
) -> None:
    """Networks in a file of this format against PyTorch."""
    whole = Row(parts)
    run = opened(export_network(whole, folder / form, both_inputs(2)[0], format=form).code)
    for batch in BATCHES:
        x = both_inputs(batch)[0]
        right = [row(part(x.clone())) for part in parts]
        found = run(x.clone()).split([each.shape[1] for each in right], 1)
        for part, mine, its in zip(parts, found, right, strict=True):
            if what := wrong(part, (x,), mine, its, row):
                faults.append(said(part, f"{form}, batch {batch}: {what}"))


def library(code: Path) -> Callable[[torch.Tensor], torch.Tensor]:
    """A network library as a function of a tensor, on one thread and on two."""
    made = load(code)

    def run(x: torch.Tensor) -> torch.Tensor:
        one, two = (torch.from_numpy(made(x.numpy(), threads=threads)) for threads in (1, 2))
        assert torch.equal(one, two)
        return one

    return run


def exported(code: Path) -> Callable[[torch.Tensor], torch.Tensor]:
    """A program of torch.export as a function of a tensor."""
    return torch.export.load(code).module()  # type: ignore[return-value]
