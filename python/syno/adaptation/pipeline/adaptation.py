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
                are installed. `eager` is always measured.
            threads: the number of threads.
            rounds: the number of timed runs, at least 2.
            progress: called with (completed steps, all steps, description).

        Returns:
            The times, with speed-ups over the original in eager PyTorch and in its fastest engines.

        Raises:
            UserError: an engine is unknown or not installed, or a float32 engine computes something
                else than eager PyTorch.
        """
        from syno.engines import engine
        from syno.engines.compare import compare_engines

        assert self.original_net is not None and self.example is not None
        networks = {self.original.name: self.original_net}
        networks |= {each.name: each.net for each in self.networks}
        self.engines = compare_engines(
            networks,
            self.example,
            list(engines) or list(engine.available()),
            threads=threads,
            rounds=rounds,
            progress=progress,
        )
        return self.engines

    def export(
        self, path: str | Path, name: str | None = None, *, format: str = "torch-network"
    ) -> Exported:
        """Write a network, so that it runs without Syno.

        Args:
            path: the file; the suffix of the format is added.
            name: the name of the network; default: the best one.
            format: as in `syno.export_network`: `torch-network`, `cpp-network`, ...
        """
        from syno.codegen.export import export_network

        chosen = self.best if name is None else self.network(name)
        if chosen is None:
            raise UserError(
                "no network loses as little as is allowed\n"
                f"  expected: name=, one of {', '.join(each.name for each in self.networks)}"
            )
        assert self.example is not None
        return export_network(chosen.net, path, self.example, format=format)
