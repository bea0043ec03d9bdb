"""Quantized networks as ONNX with pairs of rounding operators: what engines compute of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.inference.test_quantized import CASES, Tokens, case, exact, samples
from torch import nn

from marks import slow_but
from syno import UserError
from syno.codegen.export import export_network, formats
from syno.codegen.export.write import network_subject
from syno.inference import quantize

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.usefixtures("one_torch_thread")
QUICK = ("residual", "depthwise", "operator-1")
assert exact  # a fixture


def written(quantized, folder, shape):
    return export_network(quantized, folder / "net", torch.zeros(1, *shape), format="onnx").code


def session(path, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check(net, folder, shape):
    x = samples(6, *shape)
    quantized = quantize(net, x.split(3))
    path = written(quantized, folder, shape)
    plain = session(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    fast = session(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    for sample in samples(5, *shape).split(1):
        with torch.no_grad():
            wanted = quantized(sample).numpy()
        (found,) = plain.run(None, {"x": sample.numpy()})
        np.testing.assert_array_equal(found, wanted)
        (found,) = fast.run(None, {"x": sample.numpy()})
        assert np.abs(found - wanted).max() <= 0.05 * np.abs(wanted).max()
    return onnx.load(path).graph


# torch.onnx ignores the divisor of an average.
NOT_IN_ONNX = ("averages",)


@pytest.mark.parametrize("name", slow_but(sorted(CASES.keys() - NOT_IN_ONNX), *QUICK))
def test_engines_compute_what_the_quantized_network_does(name, exact, tmp_path):
    net, shape = case(name)
    graph = check(net, tmp_path, shape)
    layers = sum(isinstance(m, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)) for m in net.modules())
    integers = [each for each in graph.initializer if each.data_type == onnx.TensorProto.INT8]
    assert sum(len(each.dims) > 1 for each in integers) >= layers
    floats = [each for each in graph.initializer if each.data_type == onnx.TensorProto.FLOAT]
    assert all(np.prod(each.dims) <= 64 for each in floats), [(e.name, e.dims) for e in floats]


def test_tokens(exact, tmp_path):
    torch.manual_seed(0)
    check(Tokens().eval(), tmp_path, (4, 12))


@pytest.mark.slow
def test_a_format_for_each_layer_and_the_check(tmp_path):
    net, shape = case("two")
    quantized = quantize(net, samples(6, *shape).split(3), keep=["0"])
    subject = network_subject(quantized, torch.zeros(1, *shape))
    chosen = formats.get("onnx", networks=True, precision="int8")
    subject = formats.replace(subject, precision="int8")
    made = chosen.write(subject, tmp_path / "net")
    found = chosen.check(made, subject)
    assert found.passed and "batch sizes 1" in found.output, found.output


@pytest.mark.parametrize("quantized", [False, True])
def test_what_torch_translates_to_something_else_is_refused(quantized, tmp_path):
    net, shape = case("averages")
    net = quantize(net, samples(6, *shape).split(3)) if quantized else net
    with pytest.raises(UserError, match="computes something else than the network: off by"):
        export_network(net, tmp_path / "net", torch.zeros(1, *shape), format="onnx")
    assert not list(tmp_path.iterdir())


def test_a_network_without_ranges_is_refused(tmp_path):
    net, shape = case("two")
    with pytest.raises(UserError, match="has no ranges for int8"):
        export_network(net, tmp_path / "n", torch.zeros(1, *shape), format="onnx", precision="int8")
