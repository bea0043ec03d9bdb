"""Runs compiled operators on memory between pages that kill the process when they are touched.

Usage: guarded_pages.py NAME...   prints each name of the zoo that came through with right values,
or with --small each linear layer and 1x1 convolution of few rows and columns, or with --pairs each
convolution whose rows are computed in pairs.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from syno import Operator
from syno.codegen import native
from syno.codegen.native import function as function_module
from syno.codegen.native.trial import guarded
from syno.measure.kernels import sizes
from syno.operators import zoo

CHANNELS, SIZE, THREADS = 64, 14, 2


LINEAR = "y[n,t,o] = sum(i) x[n,t,i] * W[o,i]", "[N, T, C_in]", "[N, T, C_out]"
POINTWISE = "y[n,o,t] = sum(i) x[n,i,t] * W[o,i]", "[N, C_in, T]", "[N, C_out, T]"


def small():
    """Layers whose vectors are longer than their data."""
    for formula, inside, outside in (LINEAR, POINTWISE):
        operator = Operator.parse(formula, input=inside, output=outside)
        for inputs, outputs in ((3, 10), (5, 17)):
            for columns in (1, 17, 25, 33):
                binding = {"N": 1, "C_in": inputs, "C_out": outputs, "T": columns}
                yield f"{formula} {binding}", operator, binding


CONVOLUTION = "y[n,o,h,w] = sum(i,a,b) x[n,i,h+a-k/2,w+b-k/2] * W[o,i,a,b]"


def pairs():
    """Convolutions of even and odd numbers of rows, in one block and in several."""
    inside, outside = "[N, C_in, H, W]", "[N, C_out, H, W]"
    operator = Operator.parse(CONVOLUTION, input=inside, output=outside)
    for height, width in ((8, 13), (9, 16), (12, 31), (56, 57), (7, 16), (30, 4)):
        for inputs, outputs in ((17, 16), (32, 45)):
            sizes = {"C_in": inputs, "C_out": outputs, "H": height, "W": width}
            binding = {"N": 1, "k": 3} | sizes
            yield f"{CONVOLUTION} {binding}", operator, binding


def check(operator, binding, end):
    """Whether the operator's code stays in its memory, and is right."""
    random = np.random.default_rng(0)

    def drawn(shape):
        array = guarded(math.prod(shape), end).reshape(shape)
        array[...] = random.integers(-3, 4, shape)
        return array

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
    if sys.argv[1:] == ["--small"]:
        cases = small()
    elif sys.argv[1:] == ["--pairs"]:
        cases = pairs()
    else:
        loaded = ((name, zoo.load(name)) for name in sys.argv[1:])
        cases = ((name, each, sizes(each, CHANNELS, SIZE, 1)) for name, each in loaded)
    for name, operator, binding in cases:
        for end in (True, False):
            function_module._aligned = lambda count, end=end: guarded(-(-count // 16) * 16, end)
            if not check(operator, binding, end):
                raise SystemExit(f"{name} is wrong")
        print(name, flush=True)


main()
