"""What only Triton's emitter has: matrix products in tiles, any batch, cubins without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from syno import _core
from syno.codegen import emitters
from syno.codegen.emitters import WrongCodeError
from syno.codegen.verify.check import CodeComparison

from .loop_emitters import batches, check, needs, random_case, with_sizes, zoo

pytestmark = needs("triton")
ZOO = zoo()
ROOT = Path(__file__).resolve().parents[2]


def source(case, **options) -> str:
    plan = _core.Plan(_core.Operator.parse(case.operator.text), case.binding)
    return _core.emit_triton(plan, **options)[0]


def products(case) -> str:
    """The source with every nest that can be one as a matrix product, however small."""
    return source(case, least_product=1)


def check_products(cases) -> None:
    sources = [products(case) for case in cases]
    assert sum("tl.dot" in text for text in sources) > len(cases) / 4
    check("triton", cases, sources)


def test_random_operators_as_matrix_products():
    check_products([random_case(seed) for seed in range(40)])


@pytest.mark.slow
def test_many_random_operators_as_matrix_products():
    for start in range(40, 400, 40):
        check_products([random_case(seed) for seed in range(start, start + 40)])


@pytest.mark.slow
def test_the_zoo_as_matrix_products():
    check_products(list(ZOO.values()))


def test_tiles_that_do_not_fit_the_sizes():
    sizes = {"C_in": 40, "C_out": 36, "H": 9, "W": 9}
    cases = [with_sizes(ZOO[name], **sizes) for name in ("conv2d", "conv1x1", "conv1d-swapped")]
    check(
        "triton", [with_sizes(c, **{v: c.binding[v] for v in c.operator.variables}) for c in cases]
    )


@pytest.mark.parametrize("name", ["conv2d", "operator-1", "pixel-shuffle"])
def test_one_source_takes_any_batch(name):
    case = ZOO[name]
    (function,) = emitters.get("triton").build([case])
    for binding, x, weights in batches(case):
        expected = case.operator.interpret(binding, x, weights)
        assert np.array_equal(function(x, weights), expected), binding


def test_a_wrong_shape_is_refused():
    (function,) = emitters.get("triton").build([ZOO["linear"]])
    shapes = ZOO["linear"].operator.shapes(ZOO["linear"].binding)
    weights = [np.zeros(shape, np.float32) for shape in shapes.weights]
    with pytest.raises(WrongCodeError, match=r"expected x of shape \[2, 5, 4\], got \[2, 5, 3\]"):
        function(np.zeros((2, 5, 3), np.float32), weights)
    with pytest.raises(WrongCodeError, match=r"expected w0 of shape \[6, 4\], got \[6, 5\]"):
        function(np.zeros((2, 5, 4), np.float32), [np.zeros((6, 5), np.float32)])


def test_the_worker_forgets_functions_that_are_gone():
    (function,) = emitters.get("triton").build([ZOO["linear"]])
    code, process, number = function._code, function._process, function._number
    shapes = ZOO["linear"].operator.shapes(ZOO["linear"].binding)
    given = np.zeros(shapes.input, np.float32), [np.zeros((6, 4), np.float32)]
    assert function(*given).shape == tuple(shapes.output)
    del function
    with pytest.raises(WrongCodeError, match="KeyError"):
        code.run(process, number, *given)


def test_the_manifest_says_that_the_batch_alone_is_free():
    case = ZOO["linear"]
    plan = _core.Plan(_core.Operator.parse(case.operator.text), case.binding)
    manifest = json.loads(_core.emit_triton(plan)[1])
    assert (manifest["emitter"], manifest["entry"]) == ("triton", "syno_operator")
    assert [dim["free"] for dim in manifest["input"]] == [True, False, False]


@pytest.mark.slow
def test_the_source_needs_torch_and_triton_alone(tmp_path):
    (tmp_path / "op.py").write_text(source(ZOO["operator-1"]))
    code = (
        "import sys, torch, op\n"
        "weights = torch.ones(12, 3, 3, 3, 2), torch.ones(3, 3, 8)\n"
        "y = op.syno_operator(torch.ones(2, 8, 5, 5), *weights)\n"
        "assert not any(name.split('.')[0] == 'syno' for name in sys.modules)\n"
        "print(list(y.shape))"
    )
    result = run_python(code, tmp_path, TRITON_INTERPRET="1")
    assert result.stdout == "[2, 12, 5, 5]\n", result.stderr


# Compiles every kernel of op.py for two generations of GPUs, with the first tiles or with all.
COMPILE = """
import sys, json, op, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

report = []
for name, tuned in vars(op).items():
    if not name.endswith("_tuned"):
        continue
    kernel = tuned.fn
    assert tuned.cache_results and tuned.keys == ["batch", "device"], tuned.keys
    configs = tuned.configs if sys.argv[1] == "all" else tuned.configs[:1]
    for config in configs:
        constants = {"device": "none", "precision": "ieee"} | config.kwargs
        types = {p.name: "constexpr" if p.name in constants else "*fp32" for p in kernel.params}
        types["batch"] = "i32"
        constants = {key: value for key, value in constants.items() if key in types}
        for capability in (80, 90):
            built = triton.compile(
                ASTSource(kernel, types, constants),
                target=GPUTarget("cuda", capability, 32),
                options={"num_warps": config.num_warps, "num_stages": config.num_stages},
            )
            report.append([name, capability, len(built.asm["cubin"]), built.metadata.shared])
print(json.dumps(report))
"""


def run_python(code: str, folder: Path, *arguments: str, **environment: str):
    import os

    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def compiled(text: str, folder: Path, which: str) -> list:
    (folder / "op.py").write_text(text)
    result = run_python(COMPILE, folder, which, TRITON_CACHE_DIR=str(folder / "cache"))
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["conv2d", "operator-1"])
def test_kernels_compile_to_cubins_without_a_gpu(name, tmp_path):
    report = compiled(products(with_sizes(ZOO[name], N=8)), tmp_path, "first")
    assert {capability for _, capability, _, _ in report} == {80, 90}
    for kernel, capability, size, _ in report:
        assert size > 1000, (kernel, capability)


@pytest.mark.slow
def test_every_tile_of_a_real_layer_fits_the_shared_memory(tmp_path):
    sizes = {"N": 8, "C_in": 64, "C_out": 64, "H": 28, "g": 8, "s": 2, "k": 3}
    report = compiled(source(with_sizes(ZOO["operator-1"], **sizes)), tmp_path, "all")
    assert len(report) > 20
    for kernel, capability, _, shared in report:
        # 163 KiB a block on compute capability 8.0, 227 KiB on 9.0.
        assert shared <= (163 if capability == 80 else 227) * 1024, (kernel, capability, shared)


PRODUCTS = {
    "conv2d": {"N": 2, "C_in": 64, "C_out": 64, "H": 28, "W": 28, "k": 3},
    "operator-1": {"N": 2, "C_in": 64, "C_out": 64, "H": 28, "g": 8, "s": 2, "k": 3},
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", PRODUCTS)
def test_every_tile_of_a_triton_kernel_is_right(name: str) -> None:
    """A GPU tries all tiles and takes the fastest: each of them has to be right."""
    emitter = emitters.get("triton")
    case = with_sizes(ZOO[name], **PRODUCTS[name])
    text = emitter.source(case)
    chosen = "tried = tiles[:1] if triton.knobs.runtime.interpret else tiles"
    assert chosen in text and "tl.dot" in text
    for number in range(8):
        one = text.replace(chosen, f"tried = tiles[{number} % len(tiles):][:1]")
        CodeComparison(emitter, case, number).check(emitter.build([case], [one])[0])
