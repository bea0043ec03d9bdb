"""The network @FILE@ in Python, with NumPy alone: Network()(x, threads=2) gives its results."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np

_NAME, _FILE = "@NAME@", "@FILE@"
_HERE = Path(__file__).resolve().parent


class Network:
    """input_shapes, output_shapes: without the batch; input_types: float32, or int64 for token ids.

    processor: which library runs, of those in the folder `processors`. Several threads may call it.
    weights: a file that `pack` wrote, which processes share in memory; by default @FILE@.bin.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] = _HERE,
        weights: str | os.PathLike[str] | None = None,
    ) -> None:
        self._library = ctypes.CDLL(str(Path(folder) / f"lib{_FILE}.so"))
        self._handle: int | None = None
        for name, result in {
            "create": ctypes.c_void_p,
            "error": ctypes.c_char_p,
            "processor": ctypes.c_char_p,
            "destroy": None,
            "input_type": ctypes.c_char_p,
            "input_shape": ctypes.POINTER(ctypes.c_long),
            "output_shape": ctypes.POINTER(ctypes.c_long),
        }.items():
            self._function(name).restype = result
        given = Path(folder) / f"{_FILE}.bin" if weights is None else Path(weights)
        self._handle = self._function("create")(os.fsencode(given))
        if not self._handle:
            raise RuntimeError(self._error())
        self.processor = self._function("processor")().decode()
        inputs, outputs = self._function("inputs")(), self._function("outputs")()
        types = [self._function("input_type")(number).decode() for number in range(inputs)]
        self.input_types = tuple(map(np.dtype, types))
        self.input_shapes = tuple(self._shape("input", number) for number in range(inputs))
        self.output_shapes = tuple(self._shape("output", number) for number in range(outputs))
        self._run = self._function("run")
        pointers = [ctypes.c_void_p] * (1 + inputs + outputs)
        self._run.argtypes = [*pointers, ctypes.c_long, ctypes.c_int]
        self._destroy = self._function("destroy")
        self._destroy.argtypes = [ctypes.c_void_p]

    def __call__(self, *inputs: Any, threads: int = 1) -> Any:
        """The result for arrays [n, ...] of any n, or a list of them if there are several."""
        if len(inputs) != len(self.input_shapes):
            raise ValueError(f"expected {len(self.input_shapes)} inputs, got {len(inputs)}")
        arrays: list[Any] = []
        every = zip(inputs, self.input_shapes, self.input_types, strict=True)
        for x, shape, kind in every:
            array = np.ascontiguousarray(x, kind)
            if array.ndim == 0 or array.shape[1:] != shape or len(array) != len(inputs[0]):
                raise ValueError(f"expected inputs {['n', *shape]} of one n, got {array.shape}")
            arrays.append(array)
        batch = len(arrays[0])
        results: list[Any] = [np.empty((batch, *shape), np.float32) for shape in self.output_shapes]
        places = [each.ctypes.data for each in (*arrays, *results)]
        if self._run(self._handle, *places, batch, threads) != 0:
            raise RuntimeError(self._error())
        return results[0] if len(results) == 1 else results

    def pack(self, file: str | os.PathLike[str]) -> None:
        """Write the weights in the order in which the library for this processor reads them."""
        handle = ctypes.c_void_p(self._handle)
        if self._function("pack")(handle, os.fsencode(file)) != 0:
            raise RuntimeError(self._error())

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"{_NAME}_{name}")

    def _error(self) -> str:
        return str(self._function("error")().decode())

    def _shape(self, which: str, number: int) -> tuple[int, ...]:
        rank = self._function(f"{which}_rank")(number)
        return tuple(self._function(f"{which}_shape")(number)[:rank])

    def __del__(self) -> None:
        if self._handle:
            self._destroy(self._handle)
            self._handle = None


if __name__ == "__main__":
    network = Network()
    zeros = [
        np.zeros((1, *shape), kind)
        for shape, kind in zip(network.input_shapes, network.input_types, strict=True)
    ]
    found = network(*zeros)
    print(f"computed for {network.processor}:", found[0] if isinstance(found, list) else found)
