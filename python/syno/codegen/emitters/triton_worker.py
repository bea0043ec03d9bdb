"""The process in which Triton's kernels run."""

from __future__ import annotations

import importlib.util
import itertools
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syno.codegen.emitters import code_process

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    Array = NDArray[np.number]


class Kernel:
    """The function of a file, which is there as long as this: Triton reads it later."""

    def __init__(self, path: Path, source: str) -> None:
        import torch

        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        if self._device == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"
        path.write_text(source, encoding="utf-8")
        weakref.finalize(self, path.unlink, missing_ok=True)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # On tensors.
        self.function: Callable[..., torch.Tensor] = module.syno_operator

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        """y, of arrays."""
        import torch

        tensors = (torch.from_numpy(array.copy()).to(self._device) for array in (x, *weights))
        return self.function(*tensors).cpu().numpy()


def main() -> None:
    """Answers until stdin ends."""
    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder, f"emitted_{number}.py") for number in itertools.count())
        code_process.serve(lambda sources: [Kernel(next(paths), each) for each in sources])
