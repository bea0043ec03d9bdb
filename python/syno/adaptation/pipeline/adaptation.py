"""The result of `syno.adapt`: what was found, and what one does with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.adaptation.pipeline.page import write_page
from syno.adaptation.pipeline.picture import save_picture
from syno.adaptation.pipeline.results import AdaptationResults

if TYPE_CHECKING:
    from syno.codegen.export.formats import Exported
    from syno.engines.compare import EngineComparison

_TORCH, _LIBRARY = "torch-network", "cpp-network"


@dataclass
class Adaptation(AdaptationResults):
    """The result of `syno.adapt`, with its fields as in `AdaptationResults`."""

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page. UserError if the file cannot be written."""
        return write_page(self, Path(path))

    def picture(self, path: str | Path) -> Path:
        """Plot the front and the slots (PNG or PDF). UserError if the file cannot be written."""
        return save_picture(self, Path(path))

    def compare(
        self,
        engines: Sequence[str] = (),
        *,
        threads: int = 1,
        rounds: int = 60,
        progress: Callable[[int, int, str], None] = lambda *_: None,
    ) -> EngineComparison:
        """Time the original and the networks in several inference engines, in turns in one run.

        Args:
            engines: names of engines as in `syno bench network`; default: all float32 engines that
                are installed. `eager` is always measured. Ranges of INT8 come from `samples`.
            threads: the number of threads.
            rounds: the number of timed runs, at least 2.
            progress: called with (completed steps, all steps, description).

        Returns:
            The times, with speed-ups over the original in eager PyTorch and in its fastest engines,
            and the accuracy on 1,000 samples of the validation split, where outputs are scores of
            classes.

        Raises:
            UserError: an engine is unknown or not installed, or a float32 engine computes something
                else than eager PyTorch.
        """
        from syno.engines import engine as known
        from syno.engines.compare import compare_engines

        assert self.original_net is not None and self.example is not None
        networks = {self.original.name: self.original_net}
        networks |= {each.name: each.net for each in self.networks}
        self.engines = compare_engines(
            networks,
            self.example,
            [known.get(each).calibrated(self.samples) for each in engines or known.available()],
            threads=threads,
            rounds=rounds,
            progress=progress,
            score=self.score,
        )
        return self.engines

    def export(
        self,
        path: str | Path,
        name: str | None = None,
        *,
        format: str | None = None,
        precision: str | None = None,
    ) -> Exported:
        """Write a network, so that it runs without Syno.

        Args:
            path: the file; the suffix of the format is added.
            name: the name of the network, or `original`; default: the best one.
            format: as in `syno.export_network`: `torch-network`, `cpp-network`, ...; default:
                `cpp-network` if the latencies are those of such libraries, else `torch-network`.
            precision: of the layers in the format cpp-network: float32, bfloat16, int8, or auto, as
                `syno.quantize` chooses it, with ranges from `samples`; default: what was measured.
        """
        from syno.codegen.export import export_network, formats
        from syno.engines.own import ENGINES, Library
        from syno.inference import quantize
        from syno.inference.precision import AUTO, FLOAT32, INT8

        best = self.best
        if name == self.original.name:
            net, made = self.original_net, None
        elif name is not None:
            net, made = self.network(name).net, self.network(name).quantized
        else:
            net, made = (None, None) if best is None else (best.net, best.quantized)
        if net is None:
            raise UserError(
                "no network loses as little as is allowed\n"
                f"  expected: name=, one of {', '.join(each.name for each in self.networks)}"
            )
        assert self.example is not None
        engine = ENGINES.get(self.original.engine)
        measured = engine.precision if isinstance(engine, Library) else None
        chosen = format or (_TORCH if measured is None else _LIBRARY)
        form = precision or (measured if measured and chosen == _LIBRARY else FLOAT32)
        if form in (INT8, AUTO) and INT8 in formats.get(chosen, networks=True).precisions:
            if made is None or form != measured:
                made = quantize(net, self.samples, formats=form)
            net = made  # it has its own precision
        return export_network(net, path, self.example, format=chosen, precision=form)
