"""What networks compute besides layers, step by step, beside PyTorch.

A step is a network library of its own; its calls and those of PyTorch alternate, and the best of
each is printed, with GMAC/s of products and GB/s of what else reads and writes memory. Times
contain the call, which "nothing" shows. `network_steps.py` measures the steps inside of networks.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from syno.codegen.native import find_compiler
from syno.inference.library.load import NetworkLibrary
from syno.inference.library.lower import lower
from syno.inference.library.source import NetworkSource, emit
from syno.inference.prepare import prepare_sample

_NAME = "syno_plain"
Function = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Step:
    """A function of [N, *shape]. macs: of its products; maps: how often it passes the input."""

    function: Function
    shape: tuple[int, ...]
    macs: int = 0
    maps: int = 2


class Alone(nn.Module):
    """A network of one step."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The value of the step."""
        return self.function(x)


def _attention(heads: int, width: int) -> Function:
    """Attention as vision transformers write it, from one layer to the next."""

    def attention(x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.unflatten(-1, (3, heads, width)).movedim(-3, 0).transpose(-3, -2).unbind(0)
        return F.scaled_dot_product_attention(q, k, v).transpose(-3, -2).flatten(-2)

    return attention


def _one_row(heads: int, width: int) -> Function:
    """Attention of the first row alone, as of a class token or of a text's last token."""

    def attention(x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.unflatten(-1, (3, heads, width)).movedim(-3, 0).transpose(-3, -2).unbind(0)
        return F.scaled_dot_product_attention(q[..., :1, :], k, v).transpose(-3, -2).flatten(-2)

    return attention


STEPS = {
    "nothing": Step(lambda x: x + 1, (1,)),
    "attention, DeiT-T": Step(_attention(3, 64), (197, 576), 2 * 3 * 197 * 197 * 64),
    "attention, DeiT-B": Step(_attention(12, 64), (197, 2304), 2 * 12 * 197 * 197 * 64),
    "attention, windows": Step(_attention(3, 32), (64, 49, 288), 64 * 2 * 3 * 49 * 49 * 32),
    "attention, long": Step(_attention(2, 64), (1024, 384), 2 * 2 * 1024 * 1024 * 64),
    "attention, one row": Step(_one_row(12, 64), (1024, 2304), 2 * 12 * 1024 * 64),
    "product": Step(lambda x: x @ x.mT, (3, 197, 64), 3 * 197 * 197 * 64),
    "layer norm, DeiT-T": Step(lambda x: F.layer_norm(x, (192,)), (197, 192)),
    "layer norm, ConvNeXt-T": Step(lambda x: F.layer_norm(x, (96,)), (3136, 96)),
    "group norm": Step(lambda x: F.group_norm(x, 8), (64, 56, 56)),
    "softmax": Step(lambda x: F.softmax(x, -1), (3, 197, 197)),
    "mean of maps": Step(lambda x: x.mean((2, 3)), (144, 56, 56), maps=1),
    "channels times factors": Step(lambda x: x * x[:, :, :1, :1], (144, 56, 56)),
    "channels last": Step(lambda x: x.permute(0, 2, 3, 1) * 2, (96, 56, 56)),
    "channels first": Step(lambda x: x.permute(0, 3, 1, 2) * 2, (56, 56, 96)),
}


def _source(net: nn.Module, x: torch.Tensor) -> NetworkSource:
    return emit(lower(prepare_sample(net.eval(), x).graph), _NAME)


def _loaded(source: NetworkSource, code: str) -> NetworkLibrary:
    """The library of a source, or of another code with its weights."""
    library = find_compiler().library(code, parts=source.parts + 1)
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(source.weights)
        file.flush()
        return NetworkLibrary(library, _NAME, Path(file.name))


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


@torch.no_grad()
def measured(step: Step, threads: int, rounds: int) -> str:
    """The best seconds of a step here and in PyTorch, as a row of the table."""
    x = torch.randn(1, *step.shape, generator=torch.Generator().manual_seed(0))
    net = Alone(step.function)
    source = _source(net, x)
    library, given = _loaded(source, source.code), x.numpy()
    found, right = torch.from_numpy(library(given, threads)), net(x)
    error = float((found - right).abs().max() / right.abs().max())
    pairs = [
        (_seconds(lambda: library(given, threads)), _seconds(lambda: net(x))) for _ in range(rounds)
    ]
    own, torchs = (min(times) for times in zip(*pairs, strict=True))
    work = step.macs or step.maps * x.numel() * x.element_size()
    rate = f"{work / own / 1e9:6.1f} {'GMAC/s' if step.macs else 'GB/s'}"
    return f"{own * 1e6:12.1f}{torchs * 1e6:12.1f}{torchs / own:7.2f}   {rate}, error {error:.0e}"


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(STEPS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"{'step':24}{'library':>12}{'PyTorch':>12}{'times':>7}   microseconds")
    for name in arguments.names or STEPS:
        print(f"{name:24}{measured(STEPS[name], arguments.threads, arguments.rounds)}")


if __name__ == "__main__":
    main()
