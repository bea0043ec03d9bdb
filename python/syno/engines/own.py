"""Syno's own engines: `syno.compile`, and a network as one C++ library."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from syno import inference
from syno._util.inputs import Inputs, arguments, mapped, one_or_several
from syno.codegen.export.formats import ExportSubject
from syno.codegen.native import no_compiler
from syno.engines.engine import (
    AUTO,
    BFLOAT16,
    FLOAT32,
    INT8,
    Engine,
    Outputs,
    Prepared,
)
from syno.inference.compiled_network import CompiledNetwork
from syno.inference.library.files import CppNetwork
from syno.inference.library.load import compiled
from syno.inference.quantization.network import QuantizedNetwork


class SynoEngine(Engine):
    """`syno.compile`: compiled kernels inside a PyTorch module."""

    name = "syno"
    own = True

    def missing(self) -> str | None:
        """Return None, or that there is no C++ compiler."""
        return no_compiler()

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], Outputs]:
        """Return the compiled network, whose output was compared with the original's."""
        # Parameters in inference mode are of another kind, which cannot be traced.
        with torch.inference_mode(False):
            made = inference.compile(net, mapped(torch.clone, example))
        assert isinstance(made, CompiledNetwork)  # another one is of quantized networks

        def on(*inputs: torch.Tensor) -> Outputs:
            found: Outputs = made(*inputs)
            return found

        given = arguments(example)
        return Prepared(lambda: on(*given), lambda: _outside(made, given), on=on)


class Library(Engine):
    """The export format cpp-network: the network as C++ that does not use PyTorch.

    samples: batches that the ranges of INT8 come from; without any, the example. A network that
    `syno.quantize` returned keeps its ranges and formats.
    """

    own = True

    def __init__(self, name: str, precision: str, samples: Sequence[Inputs] = ()) -> None:
        self.name = name
        self.precision = precision
        self._samples = samples

    def calibrated(self, samples: Sequence[Inputs]) -> Engine:
        """Return the engine with ranges of INT8 from samples."""
        return Library(self.name, self.precision, samples) if self._of_samples else self

    @property
    def _of_samples(self) -> bool:
        return self.precision in (INT8, AUTO)

    def missing(self) -> str | None:
        """Return None, or that there is no C++ compiler."""
        return no_compiler()

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], Outputs]:
        """Return the compiled library, loaded with the weights of the network."""
        with (
            torch.inference_mode(False),
            torch.autocast("cpu", enabled=False),  # its precision is its own
            tempfile.TemporaryDirectory(prefix="syno-engine-") as folder,
        ):
            precision = self.precision
            if self._of_samples:
                if not isinstance(net, QuantizedNetwork):
                    samples = [mapped(torch.clone, batch) for batch in self._samples or [example]]
                    net = inference.quantize(net, samples, formats=precision)
                precision = INT8
            subject = ExportSubject(
                net,
                arguments(mapped(torch.clone, example)),
                batch=True,
                layer=None,
                seed=0,
                reference=net,
                precision=precision,
                tuned=True,
            )
            written = CppNetwork().write(subject, Path(folder) / "network.cpp")
            assert written.weights is not None
            files = (Path(compiled(written.code)._name), written.weights)
            began = time.perf_counter()
            library = inference.load(written.code, written.weights)
            load_s = time.perf_counter() - began
            size = sum(path.stat().st_size for path in files)
        given = arguments(example)
        arrays = [each.numpy() for each in given]

        def outside() -> float:
            began = time.perf_counter()
            inside = library.layer_seconds(*arrays, threads=threads)
            return 1 - inside / (time.perf_counter() - began)

        def on(*inputs: torch.Tensor) -> Outputs:
            found = library(*(each.numpy() for each in inputs), threads=threads)
            several = found if isinstance(found, list) else [found]
            return one_or_several([torch.from_numpy(each) for each in several])

        return Prepared(lambda: on(*given), outside, load_s, size, on)


def _outside(compiled: CompiledNetwork, inputs: tuple[torch.Tensor, ...]) -> float:
    """The share of the time of a call that is not spent in kernels of layers."""
    began = time.perf_counter()
    inside = compiled.layer_seconds(*inputs)
    return 1 - inside / (time.perf_counter() - began)


ENGINES: dict[str, Engine] = {
    each.name: each
    for each in (
        SynoEngine(),
        Library("syno-cpp", FLOAT32),
        Library("syno-cpp-bf16", BFLOAT16),
        Library("syno-cpp-int8", INT8),
        Library("syno-cpp-auto", AUTO),
    )
}
