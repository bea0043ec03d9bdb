"""The result of `syno.adapt`: what was found, and what one does with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.adaptation.pipeline.page import write_page
from syno.adaptation.pipeline.picture import save_picture
from syno.adaptation.pipeline.results import AdaptationResults, AdaptedNetwork

if TYPE_CHECKING:
    from torch import nn

    from syno.codegen.export.formats import Exported
    from syno.engines.compare import EngineComparison
    from syno.inference import Shipped

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
            name: the name of the network, of a rival, or `original`; default: the best one.
            format: as in `syno.export_network`: `torch-network`, `cpp-network`, ...; default:
                `cpp-network` if the latencies are those of such libraries, else `torch-network`.
            precision: of the layers in the format cpp-network: float32, bfloat16, int8, or auto, as
                `syno.quantize` chooses it, with ranges from `samples`; default: what was measured.
        """
        from syno.codegen.export import export_network, formats
        from syno.inference.precision import FLOAT32, INT8

        network = self._chosen(name)
        assert self.example is not None
        measured = self._library_precision(network)
        chosen = format or (_TORCH if measured is None else _LIBRARY)
        form = precision or (measured if measured and chosen == _LIBRARY else FLOAT32)
        can_quantize = INT8 in formats.get(chosen, networks=True).precisions
        net = self._written(network, form if can_quantize else FLOAT32)
        return export_network(net, path, self.example, format=chosen, precision=form)

    def ship(
        self,
        folder: str | Path,
        name: str | None = None,
        *,
        processors: Sequence[str] | None = None,
        precision: str | None = None,
    ) -> Shipped:
        """Write a network as a folder to hand over, which runs without Syno and PyTorch.

        It holds libraries for several kinds of processors, a loader in Python, an example in C, and
        a model card with the results, the machine, and what was replaced by what.

        Args:
            folder: is made.
            name: the name of the network, of a rival, or `original`; default: the best one.
            processors: as in `syno.inference.ship_network`.
            precision: as in `export`.

        Raises:
            UserError: as `export`, and if there is no compiler.
        """
        from syno.adaptation.pipeline.card import card
        from syno.inference import ship_network
        from syno.inference.precision import FLOAT32

        network = self._chosen(name)
        assert self.example is not None
        form = precision or self._library_precision(network) or FLOAT32
        net = self._written(network, form)
        return ship_network(
            net,
            folder,
            self.example,
            processors=processors,
            precision=form,
            about=card(self, network, net),
        )

    def _chosen(self, name: str | None) -> AdaptedNetwork | None:
        """The network of a name, without one the best; None for the original.

        UserError for another name, and if there is no best one.
        """
        if name is not None:
            return None if name == self.original.name else self.network(name)
        if self.best is None:
            raise UserError(
                "no network loses as little as is allowed\n"
                f"  expected: name=, one of {', '.join(each.name for each in self.networks)}"
            )
        return self.best

    def _library_precision(self, network: AdaptedNetwork | None) -> str | None:
        """What layers multiply in the engine of a latency, if that is a network library.

        network: None for the original.
        """
        from syno.engines.own import ENGINES, Library

        row = self.original if network is None else network.row
        engine = ENGINES.get(row.engine or self.original.engine)
        return engine.precision if isinstance(engine, Library) else None

    def _written(self, network: AdaptedNetwork | None, precision: str) -> nn.Module:
        """The network to write, None for the original, in a precision."""
        from syno.inference import quantize
        from syno.inference.precision import AUTO, INT8

        net = self.original_net if network is None else network.net
        assert net is not None
        if precision not in (INT8, AUTO):
            return net
        made = None if network is None else network.quantized
        if made is not None and precision == self._library_precision(network):
            return made
        return quantize(net, self.samples, formats=precision)
