"""What the machine code of the kernels of `kernels.py` holds, which needs no GPU.

Usage: python bench/gpu/machine_code.py [--capabilities 80,90]

Prints a line of JSON for each kernel and compute capability: how many matrix instructions of a warp
group and of a warp, bulk and 16-byte asynchronous copies, narrow loads, registers, and bytes of
local memory.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

COUNTED = {
    "warp_group_products": "HGMMA",
    "warp_products": "HMMA",
    "bulk_copies": "UTMALDG",
    "copies": "LDGSTS",
    "narrow_loads": "LDG.E.U16",
}
# Of each kernel: the constants, and blocks of its tensor descriptors.
CALLS: list[tuple[str, dict[str, object], dict[str, tuple[int, ...]]]] = [
    (
        "convolution",
        {"KH": 3, "KW": 3, "SLICES": False, "ROTATE": False, "RESIDUAL": True, "EPILOGUE": 2,
         "SPLIT": 1, "SWAP": True, "TN": 2, "TH": 8, "TW": 8, "BN": 64, "BK": 64},
        {"x": (2, 8, 8, 64), "w": (64, 64), "y": (2, 8, 8, 64), "residual": (2, 8, 8, 64)},
    ),
    (
        "pointers",
        {"KH": 3, "KW": 3, "STRIDE": 1, "SLICES": False, "ROTATE": False, "ALIGN": 16,
         "RESIDUAL": True, "EPILOGUE": 2, "EARLY": False, "SPLIT": 1, "BM": 64, "BN": 64, "BK": 64},
        {},
    ),
    (
        "first_step",
        {"KW": 3, "TN": 2, "TH": 8, "TW": 8, "BX": 64, "BZ": 32},
        {"x": (2, 8, 8, 64), "first": (64, 32), "y": (2, 8, 8, 32)},
    ),
]  # fmt: skip
FLOATS = {"bias", "partial"}
POINTERS = {"x", "w", "y", "residual"}
ANY_VALUE = {"H", "W", "HP", "WP", "HQ", "WQ", "pixels"}  # others are multiples of 16


def inspected(
    name: str, constants: dict[str, object], blocks: dict[str, tuple[int, ...]], capability: int
) -> dict[str, object]:
    kernel = getattr(kernels, name)
    types = {}
    for argument in kernel.arg_names:
        if argument in constants:
            types[argument] = "constexpr"
        elif argument in blocks:
            types[argument] = f"tensordesc<fp16[{','.join(map(str, blocks[argument]))}]>"
        elif argument in FLOATS:
            types[argument] = "*fp32"
        elif argument == "count":
            types[argument] = "*i32"
        else:
            types[argument] = "*fp16" if argument in POINTERS else "i32"
    aligned = {
        (number,): [["tt.divisibility", 16]]
        for number, (argument, kind) in enumerate(types.items())
        if kind.startswith("*") or (kind == "i32" and argument not in ANY_VALUE)
    }
    values = {(kernel.arg_names.index(key),): value for key, value in constants.items()}
    made = triton.compile(
        ASTSource(kernel, types, constexprs=values, attrs=aligned),
        target=GPUTarget("cuda", capability, 32),
        options={"num_stages": 3, "num_warps": 4},
    )
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        use, code = (
            subprocess.run(
                [str(tool), what, file.name], capture_output=True, text=True, check=True
            ).stdout
            for what in ("--dump-resource-usage", "--dump-sass")
        )
    held = re.search(r"REG:(\d+) .*?LOCAL:(\d+)", use)
    assert held is not None
    # HGMMA is no HMMA: whole words are counted.
    counts = {key: len(re.findall(rf"\b{word}\b", code)) for key, word in COUNTED.items()}
    return {
        "kernel": name,
        "capability": capability,
        **counts,
        "registers": int(held[1]),
        "local_bytes": int(held[2]),
        "shared_bytes": made.metadata.shared,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--capabilities", default="80,90")
    for capability in map(int, parser.parse_args().capabilities.split(",")):
        for name, constants, blocks in CALLS:
            # Before 9.0 descriptors are plain addresses, of which Triton knows too little: their
            # loads are narrow, and none is asynchronous.
            if capability >= 90 or not blocks:
                print(json.dumps(inspected(name, constants, blocks, capability)), flush=True)


if __name__ == "__main__":
    main()
