"""What `import syno` loads, and what its public names are."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import syno

# Composes and evaluates an operator where importing torch raises.
WITHOUT_TORCH = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "sqlalchemy", "click", "safetensors"):
            raise ImportError(f"{name} must not be needed")

sys.meta_path.insert(0, Blocker())
import numpy as np
import syno
from syno.operators import zoo

linear = zoo.load("linear")
y = linear.interpret({"C_in": 2, "C_out": 2}, np.ones((1, 1, 2)), [np.ones((2, 2))])
assert y.tolist() == [[[2.0, 2.0]]]
assert "nn.Module" in linear.source(zoo.binding("linear"))
assert linear.macs(zoo.binding("linear")) > 0
sampler = syno.Sampler("[H]", "[H]", ["H: 2"], ["k=3: 2"], bindings=[{"H": 8}], max_nodes=200)
assert sampler.sample().formula()
assert syno.conv2d(kernel=3).kernel == (3,)
try:
    syno.Placeholder({"H": 2})
except ImportError as error:
    assert "torch must not be needed" in str(error)
else:
    raise SystemExit("a Placeholder without torch")
"""


def test_syno_needs_no_torch_until_a_module_is_built():
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_every_public_name_is_there_and_documented():
    for name in syno.__all__:
        value = getattr(syno, name)
        assert name.startswith("__") or value.__doc__, name
    assert set(syno.__all__) <= set(dir(syno))
    assert callable(syno.substitute)
    assert callable(syno.replace)
    # Loading the rest does not put modules in the place of functions.
    importlib.import_module("syno.network.surgery")
    assert callable(syno.substitute)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = syno.nothing


@pytest.mark.slow
def test_the_earlier_module_of_quantization_leaves_the_function_callable():
    code = (
        "import syno\n"
        "from syno.quantize import Quantized, quantize\n"
        "from torch import nn, randn\n"
        "net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 2)).eval()\n"
        "images = [randn(4, 3, 8, 8)]\n"
        "print(isinstance(quantize(net, images), Quantized))\n"
        "print(type(syno.quantize(net, images, keep=['0'])).__name__)\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == ["True", "QuantizedNetwork"], result.stderr


def test_packages_are_there_without_another_import():
    code = (
        "import syno, types\n"
        "names = [name for name in dir(syno) if name not in syno.__all__]\n"
        "print(*[name for name in names if isinstance(getattr(syno, name), types.ModuleType)])\n"
        "print(syno.train.fidelity('custom').name, syno.measure.latency.__name__)\n"
        "syno.compil\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    packages, example = result.stdout.splitlines()
    public = {
        path.parent.name
        for path in Path(syno.__file__).parent.glob("*/__init__.py")
        if path.parent.name not in ("_util", "cli", "launch", "operands")
    }
    assert set(packages.split()) == public
    assert example == "custom latency"
    assert "Did you mean: 'compile'?" in result.stderr
