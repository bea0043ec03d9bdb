"""Kernels on codes of 8 bits beside the same in float32 and bfloat16, one thread each.

Times are the best of many calls in turns. `peak` is what the instruction that multiplies bytes
reaches with everything in registers, measured in the same turns: the share of it is what a kernel
can be judged by. `--json FILE` keeps the rows with the machine, versions and commit.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from syno import _core
from syno.codegen.native import FLAGS, find_compiler
from syno.codegen.native.function import _aligned
from syno.operators import zoo
from syno_lab.experiments.environment import known_environment

# Channels and rows of the layers of a ResNet.
LAYERS = ((64, 56), (128, 28), (256, 14), (512, 7))
OPERATORS = {
    "conv2d": {"k": 3},
    "conv1x1": {},
    "grouped": {"k": 3, "g": 4},
    "depthwise": {"k": 3},
    "operator-1": {"k": 3, "g": 4, "s": 2},
    "operator-2": {"k": 3, "g": 4, "s": 2},
}
INSIDE = {"input_order": (0, 2, 3, 1), "output_order": (0, 2, 3, 1)}
CODES = {
    "precision": "int8",
    "input_format": "uint8",
    "output_format": "uint8",
    "value_format": "uint8",
}
FORMS = {
    "float32": {},
    "bfloat16": {"precision": "bfloat16", "input_format": "bfloat16", "output_format": "bfloat16"},
    "int8": CODES,
    "float32 inside": INSIDE,
    "int8 inside": CODES | INSIDE,
}
# Independent sums in registers, in one text, which no compiler can move: what is left is the rate
# of the instruction.
_SUMS = 24
_TEXT = "".join(f'"vpdpbusd %1, %0, %%zmm{number}\\n"' for number in range(_SUMS))
_CHANGED = ", ".join(f'"xmm{number}"' for number in range(_SUMS))
_PEAK = f"""
#include <immintrin.h>
extern "C" void turns(long n) {{
  const __m512i data = _mm512_set1_epi8(1);
  for (long i = 0; i < n; ++i) asm volatile({_TEXT} : : "v"(data), "v"(data) : {_CHANGED});
}}
"""
_TURNS = 2000


def peak() -> tuple[Callable[[], object], float]:
    """A call that multiplies bytes in registers, and its MACs."""
    library = find_compiler().library(_PEAK, FLAGS)
    return lambda: library.turns(ctypes.c_long(_TURNS)), _TURNS * _SUMS * 64.0


def kernel(name: str, channels: int, rows: int, form: str) -> tuple[Callable[[], object], float]:
    """A call of an operator on one image, and its MACs. What does not compile raises."""
    operator, sizes = zoo.load(name), OPERATORS[name]
    wanted = {"C_in": channels, "C_out": channels, "C": channels, "H": rows, "W": rows, "N": 1}
    sizes = {v: (sizes | wanted)[v] for v in operator.variables}
    options = {"epilogue": "scale+bias+relu", "channel": 1} | FORMS[form]
    plan = operator.plans(sizes, 1)[0]
    source, manifest = _core.emit_cpp(plan, name="k", **options)
    library = find_compiler().library(source, FLAGS)
    library.k_packed_size.restype = library.k_workspace_size.restype = ctypes.c_long
    shapes, random = operator.shapes(sizes), np.random.default_rng(0)
    kind = {"uint8": np.uint8, "bfloat16": np.uint16}
    bytes_of = {
        side: np.dtype(kind.get(str(options.get(f"{side}_format")), np.float32))
        for side in ("input", "output")
    }

    def room(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return _aligned(-(-int(np.prod(shape)) * dtype.itemsize // 4) + 64).view(dtype)

    x, y = room(shapes.input, bytes_of["input"]), room(shapes.output, bytes_of["output"])
    x[:] = random.integers(0, 200, x.shape)
    weights = [random.integers(-9, 10, shape).astype(np.float32) for shape in shapes.weights]
    packed, space = _aligned(library.k_packed_size()), _aligned(library.k_workspace_size(1) + 16)
    pointers = (ctypes.c_void_p * len(weights))(*[w.ctypes.data for w in weights])
    library.k_pack(pointers, ctypes.c_void_p(packed.ctypes.data))
    channel = np.concatenate(
        [np.zeros(channels), np.full(channels, 1e-3), [3, 0, 1, 5, 0.5]]
        + [[128, 100, 0.01]] * len(json.loads(manifest).get("codes", []))
    ).astype(np.float32)
    given = [
        ctypes.c_void_p(each.ctypes.data) if each is not None else None
        for each in (x, packed, channel, None, y, space)
    ]
    held = (x, y, packed, space, channel)

    def call() -> object:
        return library.k_run(*given, ctypes.c_long(1), ctypes.c_int(1)) or held

    return call, float(plan.macs)


def best(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least time of each call in seconds, in turns."""
    least = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for number, call in enumerate(calls):
            for _ in range(3):
                began = time.perf_counter()
                call()
                least[number] = min(least[number], time.perf_counter() - began)
    return least


def main() -> None:
    """Print a row for each operator and layer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", default=",".join(OPERATORS), help="names, with commas")
    parser.add_argument("--layers", default="0,1,2,3", help="of 64@56, 128@28, 256@14, 512@7")
    parser.add_argument("--forms", default=",".join(FORMS), help="names, with commas")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each row")
    parser.add_argument("--json", type=Path, help="file for the rows")
    given = parser.parse_args()
    forms, rows = given.forms.split(","), []
    top, top_macs = peak()
    for name in given.operators.split(","):
        for layer in map(int, given.layers.split(",")):
            channels, size = LAYERS[layer]
            calls: dict[str, tuple[Callable[[], object], float]] = {"peak": (top, top_macs)}
            failed = {}
            for form in forms:
                try:
                    calls[form] = kernel(name, channels, size, form)
                except Exception as error:  # reported as the row
                    failed[form] = str(error).partition("\n")[0][:60]
            seconds = best([call for call, _ in calls.values()], given.seconds)
            times = dict(zip(calls, seconds, strict=True))
            rate = {form: calls[form][1] / times[form] / 1e9 for form in calls}
            rows.append(
                {"operator": name, "channels": channels, "size": size, "failed": failed}
                | {"us": {form: 1e6 * times[form] for form in calls}, "gmacs": rate}
            )
            cells = [
                f"{form} {1e6 * times[form]:.0f} us, {rate[form]:.0f} GMAC/s, "
                f"{100 * rate[form] / rate['peak']:.0f} %"
                for form in calls
                if form != "peak"
            ]
            print(f"{name} {channels}@{size} (peak {rate['peak']:.0f} GMAC/s)")
            for cell in cells + [f"{form}: {why}" for form, why in failed.items()]:
                print(f"    {cell}", flush=True)
    if given.json:
        content = {"environment": known_environment(), "rows": rows}
        given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
