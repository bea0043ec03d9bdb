"""Kernels in the cache, with several processes, other machines and damage; what is done without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch

import syno
from syno.codegen.native import compiler as native_compiler
from syno.codegen.torch_op import Kernel
from syno.codegen.torch_op import library as libraries
from syno.operators import zoo
from syno.runs.cache_folder import cache_folder

BINDING = "N=1, C_in=3, C_out=5, H=4, W=6, k=3"
# A process that makes a kernel, and prints its key and y.
MAKE = f"""
import torch
from syno.codegen.torch_op import Kernel
from syno.operators import zoo
kernel = Kernel.of(zoo.load("conv2d"), "{BINDING}", epilogue="relu")
x, weight = torch.arange(72.).view(1, 3, 4, 6) - 30, torch.arange(135.).view(5, 3, 3, 3) % 7 - 3
y = kernel(x, kernel.pack([weight]))
assert torch.equal(y, torch.relu(torch.nn.functional.conv2d(x, weight, padding=1)))
print(kernel.key, kernel.compiled, y.sum().item())
"""


def _start(code, folder, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"SYNO_CACHE": str(folder)} | environment,
        start_new_session=True,
    )


def _output(process):
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return said, errors


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of its own, in which the operator's library is there already."""
    folder = tmp_path / "cache"
    made = libraries.operator_file()
    monkeypatch.setenv("SYNO_CACHE", str(folder))
    (folder / "native").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    for file in (made, made.with_suffix(".sum")):
        copied = folder / "native" / file.name
        copied.write_bytes(file.read_bytes())
        copied.chmod(0o700)
    return folder


@pytest.mark.slow
def test_two_processes_that_compile_one_key_at_once_both_get_it(own_cache):
    both = [_start(MAKE, own_cache) for _ in range(2)]
    assert len({_output(process)[0] for process in both}) == 1
    files = [path.name for path in (own_cache / "native").iterdir()]
    assert sorted(Path(name).suffix for name in files) == [".so", ".so", ".sum", ".sum"]
    assert len(list((own_cache / "kernels").iterdir())) == 1


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_compiles_leaves_nothing_that_is_run(own_cache, tmp_path):
    slow = tmp_path / "slow-g++"
    real = native_compiler.find_compiler().path
    # It has written half of the library when it is killed.
    slow.write_text(
        f'#!/bin/sh\nfor last; do :; done\ncase "$*" in *--version*|*fopenmp*) exec {real} "$@";; '
        f"esac\necho half > $last; touch {tmp_path}/waiting; sleep 60\n"
    )
    slow.chmod(0o700)
    code = MAKE.replace("import torch\n", _SLOW_KERNELS.format(slow=slow), 1)
    killed = _start(code, own_cache)
    while not (tmp_path / "waiting").exists():
        assert killed.poll() is None, killed.communicate()
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert "True" in _output(_start(MAKE, own_cache))[0]


# The compiler of kernels, but not of the operator.
_SLOW_KERNELS = """
import dataclasses
import torch
from syno.codegen.torch_op import kernel as kernels, library, register
register()
library.kernel_compiler = lambda real=library.kernel_compiler: dataclasses.replace(
    real(), path="{slow}"
)
"""


@pytest.mark.slow
def test_another_process_loads_a_kernel_by_its_key(own_cache):
    key, *_ = _output(_start(MAKE, own_cache))[0].split()
    made = set((own_cache / "native").iterdir())
    code = f"""
import torch
from syno.codegen.torch_op import register
from syno.codegen.torch_op.kernel import kernel_of
register()
packed = kernel_of("{key}", "relu").pack([torch.ones(5, 3, 3, 3)])
x = torch.ones(2, 3, 4, 6)
print(torch.ops.syno.apply(x, packed, None, None, "{key}", "relu").shape)
same = torch.ops.syno.apply(x, kernel_of("{key}", "").pack([torch.ones(5, 3, 3, 3)]), None, None,
                            "{key}", "")  # another epilogue is compiled when it is called
print(same.sum().item())
"""
    assert "torch.Size([2, 5, 4, 6])" in _output(_start(code, own_cache))[0]
    assert len(set((own_cache / "native").iterdir()) - made) == 2  # the other epilogue


@pytest.mark.slow
def test_a_cache_of_another_machine_is_compiled_again_and_never_run(own_cache):
    _output(_start(MAKE, own_cache))
    theirs = set((own_cache / "native").iterdir())
    code = (
        "from syno.codegen.native import compiler\n"
        "compiler.processor = lambda: 'another one'\n"
        "import ctypes, os\n"
        "loaded, real = [], ctypes.CDLL\n"
        "def load(name, *rest, **more):\n"
        "    loaded.append(name)\n    return real(name, *rest, **more)\n"
        "ctypes.CDLL = load\n"
        f"{MAKE}\nprint(*[os.path.basename(str(name)) for name in loaded])"
    )
    said, _ = _output(_start(code, own_cache))
    loaded = {own_cache / "native" / name for name in said.split()} & set(
        (own_cache / "native").iterdir()
    )
    assert len(loaded) == 2  # the operator and the kernel
    assert not loaded & theirs


@pytest.mark.parametrize("damage", ["", "{}", "[1]", "5", "\udcff", '{"format": 1, "text": "x"}'])
def test_a_damaged_record_is_no_kernel_and_is_written_again(own_cache, damage):
    kernel = Kernel.of(zoo.load("conv2d"), "N=1, C_in=2, C_out=2, H=3, W=3, k=3")
    kernel.record.store()
    path = own_cache / "kernels" / f"{kernel.key}.json"
    whole = path.read_text(encoding="utf-8")
    path.write_bytes(damage.encode(errors="surrogateescape"))
    with pytest.raises(syno.UserError, match=f"the cache has no kernel of key '{kernel.key}'"):
        type(kernel.record).stored(kernel.key)
    kernel.record.store()
    assert path.read_text(encoding="utf-8") == whole
    assert type(kernel.record).stored(kernel.key) == kernel.record


def test_the_pytorch_emitter_computes_what_is_not_compiled_and_says_so(own_cache):
    operator, binding = zoo.load("conv2d"), "N=1, C_in=3, C_out=5, H=6, W=3, k=3"
    options = {"epilogue": "scale+bias+residual+gelu_tanh", "output_order": (0, 2, 3, 1)}
    with pytest.warns(UserWarning, match="computed by the PyTorch emitter: it is not compiled"):
        slow = Kernel.of(operator, binding, missing="pytorch", **options)
    assert not slow.compiled
    assert slow.library is None
    quick = Kernel.of(operator, binding, **options)
    assert quick.compiled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Kernel.of(operator, binding, missing="pytorch", **options).compiled
    random = torch.Generator().manual_seed(0)
    weight = torch.randn(5, 3, 3, 3, generator=random)
    x = torch.randn(2, 3, 6, 3, generator=random)
    ends = torch.randn(10, generator=random), torch.randn(2, 5, 6, 3, generator=random)
    y = quick(x, quick.pack([weight]), *ends)
    compiled = torch.compile(slow.__call__, fullgraph=True, backend="aot_eager")
    for call in (slow, compiled):
        again = call(x, slow.pack([weight]), *ends)
        assert torch.allclose(again, y, rtol=1e-5, atol=1e-5)
        assert again.stride() == y.stride()
    for kernel, other in ((slow, quick), (quick, slow)):
        with pytest.raises(RuntimeError, match="packed"):
            kernel(x, other.pack([weight]), *ends)
    for wrong, said in {
        (x.double(), *ends): "x of the wrong dtype",
        (x, None, ends[1]): "channel is missing",
        (x, ends[0], ends[1][:1]): r"expected: \[2, 5, 6, 3\]      got: \[1, 5, 6, 3\]",
    }.items():
        with pytest.raises(RuntimeError, match=said):
            slow(wrong[0], slow.pack([weight]), *wrong[1:])


@pytest.mark.slow
def test_without_a_compiler_the_pytorch_emitter_computes_and_says_so(tmp_path):
    said, errors = _output(_start(MAKE, tmp_path / "cache", CXX="no-such-compiler"))
    assert said.split()[1] == "False"
    assert "computed by the PyTorch emitter: there is no C++ compiler 'no-such-compiler'" in errors


def test_a_pytorch_without_the_stable_abi_is_named(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(syno.UserError, match=r"expected: 2\.10 or newer      got: 2\.9\.1"):
        Kernel.of(zoo.load("conv2d"), "N=1, C_in=2, C_out=2, H=3, W=4, k=3")


def test_a_folder_that_others_may_write_is_refused(own_cache):
    Kernel.of(zoo.load("conv2d"), "N=1, C_in=2, C_out=3, H=3, W=4, k=3")
    assert cache_folder() == own_cache
    (own_cache / "kernels").chmod(0o777)
    with pytest.raises(syno.UserError, match="may be written by every user"):
        Kernel.of(zoo.load("conv2d"), "N=1, C_in=2, C_out=3, H=4, W=4, k=3")
