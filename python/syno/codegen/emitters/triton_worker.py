"""The process in which Triton's kernels run."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syno.codegen.emitters import code_process

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    Array = NDArray[np.number]


class Functions:
    """Loaded files by number. Kernels must stand in files, which live as long as this."""

    def __init__(self, folder: Path) -> None:
        import torch

        self._folder = folder
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        if self._device == "cpu":
            os.environ["TRITON_INTERPRET"] = "1"
        self._functions: dict[int, Callable[..., torch.Tensor]] = {}
        self._count = 0

    def load(self, sources: Sequence[str]) -> list[int]:
        """The numbers of the functions in these files."""
        numbers = []
        for source in sources:
            number = self._count
            self._count += 1
            path = self._folder / f"emitted_{number}.py"
            path.write_text(source, encoding="utf-8")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self._functions[number] = module.syno_operator
            numbers.append(number)
        return numbers

    def get(self, number: int) -> Callable[..., torch.Tensor]:
        """The function of a number, on tensors."""
        return self._functions[number]

    def run(self, question: tuple[int, Array, list[Array]]) -> Array:
        """y of a function, as arrays."""
        import torch

        number, x, weights = question
        tensors = (torch.from_numpy(array.copy()).to(self._device) for array in (x, *weights))
        return self._functions[number](*tensors).cpu().numpy()

    def forget(self, numbers: Sequence[int]) -> None:
        """Lets functions and their files go."""
        for number in numbers:
            del self._functions[number]
            (self._folder / f"emitted_{number}.py").unlink()


def main() -> None:
    """Answers until stdin ends."""
    with tempfile.TemporaryDirectory() as folder:
        code_process.serve(Functions(Path(folder)))
