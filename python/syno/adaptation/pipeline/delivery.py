"""In which engine, and in which number formats, networks are timed, scored and handed over.

Engines of Syno in INT8, or with a format for each layer, run what `syno.quantize` makes of a
network. While networks are compared, their layers have the formats that those of the original
have, and operators in slots the one in which they were the fastest. A network that was fine-tuned
gets formats of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import torch
from torch import nn

from syno._util.inputs import Inputs, arguments, one_or_several, samples_of
from syno._util.network_copy import copy_network
from syno._util.torch_threads import torch_threads
from syno.adaptation.pipeline.assembly import plain
from syno.adaptation.pipeline.journal import AdaptationJournal
from syno.adaptation.pipeline.results import CALIBRATION
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.engines import engine as engines
from syno.engines.engine import Outputs
from syno.engines.engine_network import EngineNetwork
from syno.engines.own import Library
from syno.inference.library.built import built
from syno.inference.precision import AUTO, FLOAT32, INT8, PRECISIONS
from syno.inference.prepare import prepare_sample
from syno.inference.quantization.costs import step_seconds
from syno.inference.quantization.network import SAMPLES, QuantizedNetwork, in_formats
from syno.inference.quantization.quantize import quantize
from syno.options import AdaptOptions

ORIGINAL = "original"
_NONE: Mapping[str, str] = {}


class Delivery:
    """The engine of the latencies, and networks as it runs them.

    engine: of `options.engine`. UserError for one that is unknown or not there.
    """

    def __init__(
        self, subject: AdaptationSubject, options: AdaptOptions, journal: AdaptationJournal
    ) -> None:
        self._subject, self._journal, self._threads = subject, journal, options.threads
        assert options.engine is not None  # it was chosen
        self.engine = engines.get(options.engine)
        self._quantized: dict[str, QuantizedNetwork] = {}

    @property
    def is_exact(self) -> bool:
        """Whether the engine computes in float32, so that networks are as good as in PyTorch."""
        return self.engine.precision == FLOAT32

    @property
    def _quantizes(self) -> bool:
        return isinstance(self.engine, Library) and self.engine.precision in (INT8, AUTO)

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats that layers of a network library may have; none for other engines."""
        if not isinstance(self.engine, Library):
            return ()
        return PRECISIONS if self.engine.precision == AUTO else (self.engine.precision,)

    @cached_property
    def _samples(self) -> list[Inputs]:
        return self._subject.inputs(CALIBRATION)

    @cached_property
    def _few(self) -> list[Inputs]:
        """Enough samples for a network that is timed: its weights may be any."""
        samples = [each for batch in self._samples for each in samples_of(batch)]
        return [one_or_several(each) for each in samples[:SAMPLES]]

    @cached_property
    def _original(self) -> nn.Module:
        return plain(self._subject.original)

    @property
    def _original_formats(self) -> dict[str, str]:
        """The number format of each layer of the original."""
        found = self.quantized(ORIGINAL, self._original)
        return {} if found is None else {row.name: row.format for row in found.rows}

    def quantized(self, name: str, net: nn.Module) -> QuantizedNetwork | None:
        """A network, by its name, in formats of its own; None where the engine needs none.

        UserError for a network that `syno.quantize` refuses.
        """
        if not self._quantizes:
            return None
        if name == ORIGINAL:
            net = self._original
        if name not in self._quantized:
            known = self._journal.get("formats", name)
            with torch.inference_mode(False), torch_threads(self._threads):
                if known is not None:
                    reasons = self._journal.get("reasons for formats", name)
                    made = in_formats(net, self._samples, known, reasons=reasons)
                else:
                    made = quantize(net, self._samples, formats=self.engine.precision)
                    reasons = {row.name: row.reason for row in made.rows}
                    self._journal.put("reasons for formats", name, reasons)
                    self._journal.put("formats", name, {r.name: r.format for r in made.rows})
            self._quantized[name] = made
        return self._quantized[name]

    def delivered(self, name: str, net: nn.Module) -> nn.Module:
        """A network, by its name, as the engine computes it."""
        if self.is_exact:
            return net
        made = self.quantized(name, net) or net
        example, samples = self._subject.example, self._samples
        return EngineNetwork(self.engine, made, example, samples, self._threads, like=net)

    def value(self, name: str, net: nn.Module, exact: float) -> tuple[float, float | None]:
        """The objective of a network as the engine computes it, and in float32 if that differs.

        exact: the objective in float32.
        """
        if self.is_exact:
            return exact, None
        found: float = self._journal.once(
            "delivered", name, lambda: self._subject.value(self.delivered(name, net))
        )
        return found, exact

    def call(self, net: nn.Module, formats: Mapping[str, str] = _NONE) -> Callable[[], Outputs]:
        """A function that runs a network on the example, to be timed.

        formats: of layers by name, beside those of the original.
        """
        net = copy_network(net).eval()
        engine = self.engine
        if self._quantizes:
            known = {**self._original_formats, **formats}
            with torch.inference_mode(False):
                net = in_formats(net, self._few, known)
        elif not self.is_exact:
            engine = engine.calibrated(self._samples)
        return engine.prepare(net, self._subject.example, self._threads)

    @cached_property
    def layer_seconds(self) -> dict[str, float]:
        """What each layer of the original takes, by its name; empty where the engine cannot say."""
        if not isinstance(self.engine, Library):
            return {}
        found: dict[str, float] = self._journal.once("layer seconds", "", self._layer_seconds)
        return found

    def _layer_seconds(self) -> dict[str, float]:
        with torch.inference_mode(False):
            if self._quantizes:
                made = self.quantized(ORIGINAL, self._original)
                assert made is not None
                library = built(made.graph, INT8)
            else:
                graph = prepare_sample(self._original, *arguments(self._subject.example)).graph
                library = built(graph, self.engine.precision)
        layers = {
            name
            for name, module in self._original.named_modules()
            if isinstance(getattr(module, "weight", None), torch.Tensor) and module.weight.dim() > 1
        }
        seconds: dict[str, float] = {}
        times = step_seconds({ORIGINAL: library}, self._subject.example, self._threads)
        for step in times[ORIGINAL]:
            first = next((name for name in step.name.split(", ") if name in layers), None)
            if step.layer and first is not None:
                seconds[first] = seconds.get(first, 0.0) + step.seconds
        return seconds
