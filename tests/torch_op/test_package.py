"""Kernels beside an exported program, for processes without Syno, its cache, or a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

import syno
from syno.codegen.torch_op import Kernel, kernels_of, load_package, write_package
from syno.operators import zoo

BINDING = "N=1, C_in=4, C_out=4, H=5, W=7, k=3"
# A process with PyTorch alone; arguments: packages, then what it calls.
CALL = """
import sys, torch
*packages, folder = sys.argv[1:]
for package in packages:
    torch.ops.load_library(package + "/libsyno_apply.so")
for arguments, y in torch.load(folder + "/calls.pt"):
    assert torch.equal(torch.ops.syno.apply(*arguments), y)
assert "syno" not in sys.modules
print("equal")
"""


def _run(code, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    return done.stdout + done.stderr


class Network(nn.Module):
    """Two kernels, one of them twice."""

    def __init__(self) -> None:
        super().__init__()
        operator = zoo.load("conv2d")
        self.kernels = [Kernel.of(operator, BINDING, epilogue=text) for text in ("relu", "bias")]
        torch.manual_seed(0)
        for number, kernel in enumerate(self.kernels):
            self.register_buffer(f"packed_{number}", kernel.pack([torch.randn(4, 4, 3, 3)]))
        self.register_buffer("bias", torch.randn(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        relu, bias = self.kernels
        x = bias(relu(x, self.packed_0), self.packed_1, self.bias)
        return relu(torch.sigmoid(x), self.packed_0)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with packages `a` and `b`, and calls of the kernels of both."""
    folder = tmp_path_factory.mktemp("packages")
    network, x = Network(), torch.randn(3, 4, 5, 7)
    program = torch.export.export(network, (x,))
    kernels = kernels_of(program)
    assert {kernel.epilogue for kernel in kernels} == {"relu", "bias"}
    for kernel, name in zip(kernels, "ab", strict=True):
        assert write_package([kernel], folder / name) == folder / name / "libsyno_apply.so"
    calls = []
    for packed, channel, kernel in (
        (network.packed_0, None, network.kernels[0]),
        (network.packed_1, network.bias, network.kernels[1]),
    ):
        arguments = (x, packed, channel, None, kernel.key, kernel.epilogue)
        calls.append((arguments, torch.ops.syno.apply(*arguments)))
    torch.save(calls, folder / "calls.pt")
    return folder


def test_a_process_without_syno_runs_the_kernels_of_several_packages(written):
    assert _run(CALL, written / "a", written / "b", written).endswith("equal\n")
    assert "has no kernel" in _run(CALL, written / "a", written)


def test_a_package_of_another_machine_is_not_run(written, tmp_path):
    for file in (written / "a").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "processor.txt").write_text("vendor_id\t: another one", encoding="utf-8")
    said = _run(CALL, tmp_path, written / "b", written)
    assert "were compiled for another processor" in said
    assert "syno.codegen.torch_op.load_package" in said


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, {"CXX": "no-such-compiler"}])
def test_syno_loads_a_package_with_another_cache_and_without_a_compiler(
    written, tmp_path, environment
):
    code = (
        "import sys\nfrom syno.codegen.torch_op import load_package\n"
        "print(len(load_package(sys.argv[1])), len(load_package(sys.argv[2])))\n"
        + CALL.replace("*packages, folder = sys.argv[1:]", "packages, folder = [], sys.argv[3]")
    ).replace('assert "syno" not in sys.modules\n', "")
    cache = {"SYNO_CACHE": str(tmp_path / "cache")}
    said = _run(code, written / "a", written / "b", written, **environment, **cache)
    assert said.splitlines()[0] == ("0 0" if environment else "1 1"), said
    assert said.endswith("equal\n")


def test_what_is_no_package_is_refused(written, tmp_path):
    with pytest.raises(syno.UserError, match="is not a package of kernels"):
        load_package(tmp_path)
    for damage in ("", "[1]", "5", '[{"record": "{}", "epilogue": ""}]'):
        (tmp_path / "kernels.json").write_text(damage, encoding="utf-8")
        with pytest.raises(syno.UserError, match="is not a package of kernels"):
            load_package(tmp_path)
    entries = json.loads((written / "a" / "kernels.json").read_text(encoding="utf-8"))
    assert [entry["epilogue"] for entry in entries] == ["relu"]


def test_kernels_that_are_not_compiled_are_not_packaged(tmp_path):
    binding = "N=1, C_in=3, C_out=2, H=2, W=9, k=3"
    with pytest.warns(UserWarning, match="PyTorch emitter"):
        kernel = Kernel.of(zoo.load("conv2d"), binding, epilogue="tanh", plan=1, missing="pytorch")
    with pytest.raises(syno.UserError, match="is not compiled, but computed by the PyTorch"):
        write_package([kernel], tmp_path)


# A process with PyTorch alone that runs a package of AOTInductor.
AOTI = """
import sys, torch
torch.ops.load_library(sys.argv[1] + "/kernels/libsyno_apply.so")
network = torch._inductor.aoti_load_package(sys.argv[1] + "/net.pt2")
for x, y in torch.load(sys.argv[1] + "/cases.pt"):
    assert torch.allclose(network(x), y, rtol=1e-5, atol=1e-5)
assert "syno" not in sys.modules
print("equal")
"""


@pytest.mark.slow
@torch.no_grad()
def test_a_package_of_aotinductor_runs_in_a_process_without_syno(tmp_path):
    network = Network()
    x = torch.randn(2, 4, 5, 7)
    program = torch.export.export(network, (x,), dynamic_shapes=({0: torch.export.Dim("n")},))
    torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "net.pt2"))
    write_package(kernels_of(program), tmp_path / "kernels")
    cases = [torch.randn(batch, 4, 5, 7) for batch in (1, 2, 5)]
    torch.save([(case, network(case)) for case in cases], tmp_path / "cases.pt")
    assert _run(AOTI, tmp_path).endswith("equal\n")
