"""Runs compiled operators on memory between pages that kill the process when they are touched.

Usage: guarded_pages.py NAME...   prints each name of the zoo that came through with right values.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from syno.codegen import native
from syno.codegen.native import function as function_module
from syno.codegen.native.trial import guarded
from syno.measure.kernels import sizes
from syno.operators import zoo

CHANNELS, SIZE, THREADS = 64, 14, 2


def check(name, end):
    """Whether the operator's code stays in its memory, and is right."""
    random = np.random.default_rng(0)

    def drawn(shape):
        array = guarded(math.prod(shape), end).reshape(shape)
        array[...] = random.integers(-3, 4, shape)
        return array

    operator = zoo.load(name)
    binding = sizes(operator, CHANNELS, SIZE, 1)
    function = native.compile_operator(operator, binding, flags=native.QUICK_FLAGS)
    weights = [drawn(shape) for shape in function.weight_shapes]
    function.pack(weights)
    x, y = drawn(function.input_shape), drawn(function.output_shape)
    function.run_into(x, y, THREADS)
    positions = random.integers(0, y.size, 500)
    exact = [weight.astype(int) for weight in weights]
    expected = operator.interpret_at(binding, x.astype(int), exact, positions)
    return np.array_equal(y.reshape(-1)[positions], expected)


def main():
    for name in sys.argv[1:]:
        for end in (True, False):
            function_module._aligned = lambda count, end=end: guarded(-(-count // 16) * 16, end)
            if not check(name, end):
                raise SystemExit(f"{name} is wrong")
        print(name, flush=True)


main()
