"""export: files that run in a process in which Syno cannot be imported."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import syno
from syno import UserError
from syno.codegen.export import export, export_slots
from syno.operators import zoo

from .networks import EXAMPLE, conv_operator, network

# Runs a file as a program where `import syno` raises, as on a machine without Syno.
WITHOUT_SYNO = """
import runpy, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "syno":
            raise ImportError("syno must not be needed")

sys.meta_path.insert(0, Blocker())
try:
    import syno
    raise SystemExit("syno could be imported")
except ImportError:
    pass
runpy.run_path(sys.argv[1], run_name="__main__")
assert "syno" not in sys.modules
"""


def run_without_syno(path, folder):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_SYNO, str(path)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def load(path):
    import importlib.util

    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_exported_operator_runs_and_checks_itself_without_syno(tmp_path):
    files = export(zoo.load("operator-1"), tmp_path / "op.py", binding=zoo.binding("operator-1"))
    assert files.code == tmp_path / "op.py"
    assert files.weights == tmp_path / "op.safetensors"
    result = run_without_syno(files.code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("right: 300 outputs")
    # The check is not empty: other weights are noticed.
    from safetensors.torch import load_file, save_file

    tensors = load_file(files.weights)
    tensors["w0"] = tensors["w0"] + 1e-3
    save_file(tensors, files.weights)
    result = run_without_syno(files.code, tmp_path)
    assert result.returncode == 1
    assert "wrong: an output is off by" in result.stderr


def test_every_operator_of_the_zoo_can_be_exported(tmp_path):
    for name in zoo.names():
        files = export(zoo.load(name), tmp_path / name, binding=zoo.binding(name))
        error, outputs = load(files.code).check()
        assert error < 1e-6
        assert outputs > 0
    for suffix in [".py", ".safetensors"]:
        assert len(list(tmp_path.glob(f"*{suffix}"))) == len(zoo.names())


def test_trained_weights_go_along(tmp_path):
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    syno.replace(net, conv_operator())
    slot = syno.slots(net)["1.first"]
    with torch.no_grad():
        slot.kernel.kernel.w0.mul_(3)
    (files,) = export_slots(net, tmp_path)
    assert files.code.name == "1_first.py"
    x = torch.randn(3, 8, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(load(files.code).load()(x), slot.kernel(x))
    assert load(files.code).check()[0] < 1e-6


def test_the_same_seed_gives_the_same_files(tmp_path):
    conv, binding = zoo.load("conv2d"), zoo.binding("conv2d")
    first, second, other = (
        export(conv, tmp_path / name, binding=binding, seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first.weights.read_bytes() == second.weights.read_bytes()
    assert first.weights.read_bytes() != other.weights.read_bytes()
    assert first.code.read_text() == second.code.read_text()


def test_mistakes_are_user_errors_and_leave_no_files(tmp_path):
    conv, binding = zoo.load("conv2d"), zoo.binding("conv2d")
    cases = [
        (lambda: export(conv, tmp_path / "a", binding=binding, format="flax"), "format 'flax'"),
        (lambda: export(conv, tmp_path / "a"), "a binding is required to export"),
        (lambda: export(conv, tmp_path / "no" / "a", binding=binding), "there is no folder"),
        (lambda: export(conv, tmp_path / "operator", binding=binding), "own module 'operator'"),
        (lambda: export("conv", tmp_path / "a", binding=binding), "expected an Operator"),
        (lambda: export(conv.kernel_pack(binding), tmp_path / "a", binding=binding), "its own"),
        (lambda: export_slots(network(), tmp_path), "contains no operator"),
    ]
    for call, message in cases:
        with pytest.raises(UserError, match=message):
            call()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "taken.py").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        export(conv, tmp_path / "taken.py", binding=binding)
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"taken.py", "taken.safetensors"}
    assert isinstance(tmp_path, Path)
