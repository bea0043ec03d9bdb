"""Formats made from a traced module: run without Syno, at several batch sizes."""

from __future__ import annotations

import contextlib
import io

import pytest
import torch

import syno
from marks import slow_but
from syno import UserError
from syno.codegen.export import Exported, export, export_network, formats
from syno.codegen.export.programs import BATCHES, examples, traced
from syno.codegen.export.write import network_subject, operator_subject
from syno.network import models
from syno.operators import zoo

from .networks import conv_operator

PROGRAMS = ("torch-export", "onnx", "aoti")


def usable(name: str) -> formats.Format:
    try:
        return formats.get(name)
    except UserError as error:
        pytest.skip(str(error))


def small_network() -> torch.nn.Module:
    """A network with an operator in its slots, as after some training."""
    torch.manual_seed(0)
    net = models.slots(models.build("resnet-small", classes=5, channels=3, size=8, width=8))
    syno.replace(net, conv_operator())
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.5)
        net.train()(torch.randn(16, 3, 8, 8))  # statistics of the normalisations
    return net.eval()


def test_the_registry_knows_its_formats():
    assert formats.names()[:4] == ("torch", *PROGRAMS)
    assert formats.names(networks=True)[:3] == PROGRAMS
    for name in formats.names():
        found = formats._get(name)
        assert found.name == name
        assert found.suffix.startswith(".")
    with pytest.raises(UserError, match="unknown format 'jax'\n  expected: one of torch, "):
        formats.get("jax")
    with pytest.raises(UserError, match="unknown format of networks 'torch'\n"):
        formats.get("torch", networks=True)


# Compiling for aoti takes half a minute; the two others take turns.
@pytest.mark.parametrize("name", slow_but(PROGRAMS, "onnx"))
def test_an_operator_runs_without_syno_at_several_batch_sizes(name, tmp_path):
    chosen = usable(name)
    subject = operator_subject(zoo.load("operator-1"), zoo.binding("operator-1"), seed=3)
    written = chosen.write(subject, tmp_path / "op")
    assert written.files == [tmp_path / f"op{chosen.suffix}"]
    run = chosen.check(written, subject)
    assert run.passed, run.output
    assert "at batch sizes 1, 3, 8" in run.output
    # The check is not empty: other weights are noticed.
    with torch.no_grad():
        subject.reference.w0.add_(0.1)
    run = chosen.check(written, subject)
    assert not run.passed
    assert "of the largest output" in run.output


@pytest.mark.parametrize("name", slow_but(PROGRAMS, "onnx"))
def test_a_network_runs_without_syno_at_several_batch_sizes(name, tmp_path):
    chosen = usable(name)
    net = small_network()
    before = {key: tensor.clone() for key, tensor in net.state_dict().items()}
    written = export_network(net, tmp_path / "net", torch.zeros(1, 3, 8, 8), format=name)
    run = chosen.check(written, network_subject(net, torch.zeros(1, 3, 8, 8)))
    assert run.passed, run.output
    for key, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[key])


@pytest.mark.slow
def test_every_operator_of_the_zoo_as_a_program(tmp_path):
    for name in zoo.names():
        subject = operator_subject(zoo.load(name), zoo.binding(name), seed=0)
        path = tmp_path / f"{name}.pt2"
        torch.export.save(traced(subject), path)
        program = torch.export.load(path).module()
        assert [len(x) for (x,), _ in examples(subject)] == list(BATCHES)
        for (x,), expected in examples(subject):
            torch.testing.assert_close(program(x), expected)


@pytest.mark.slow
def test_onnx_has_standard_operators_and_no_einsum(tmp_path):
    usable("onnx")
    import onnx
    import onnxruntime

    kinds = set()
    for name in ("conv1x1", "operator-1", "pooled-conv"):
        subject = operator_subject(zoo.load(name), zoo.binding(name), seed=0)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            written = formats.get("onnx").write(subject, tmp_path / name)
        assert said.getvalue() == ""
        model = onnx.load(written.code)
        onnx.checker.check_model(model, full_check=True)
        assert {node.domain for node in model.graph.node} <= {"", "ai.onnx"}
        kinds |= {node.op_type for node in model.graph.node}
        session = onnxruntime.InferenceSession(written.code)
        for (x,), expected in examples(subject):
            (y,) = session.run(["y"], {"x": x.numpy()})
            torch.testing.assert_close(torch.from_numpy(y), expected, rtol=1e-4, atol=1e-5)
    assert {"MatMul", "Conv", "ReduceSum"} <= kinds
    assert "Einsum" not in kinds


def test_an_operator_without_a_batch_keeps_its_shape(tmp_path):
    rotation = syno.Operator.from_text(
        "syno operator 1\nout [H]\nin [H]\nshift o0 1 -> c0\nmatch c0\n"
    )
    subject = operator_subject(rotation, {"H": 5}, seed=0)
    assert not subject.batch
    written = formats.get("torch-export").write(subject, tmp_path / "op")
    x = torch.arange(5.0)
    assert torch.export.load(written.code).module()(x).tolist() == [1.0, 2.0, 3.0, 4.0, 0.0]


def test_what_torch_cannot_trace_is_a_user_error(tmp_path):
    class Odd(torch.nn.Module):
        def forward(self, x):
            return x * int(x.sum() > 0)

    with pytest.raises(UserError, match=r"torch\.export cannot trace the Odd"):
        export_network(Odd(), tmp_path / "odd", torch.zeros(2, 3))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match="unknown format of networks 'torch'"):
        export_network(Odd(), tmp_path / "odd", torch.zeros(2, 3), format="torch")


def test_a_format_that_is_not_installed_says_what_to_do(monkeypatch, tmp_path):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"(?s)'onnx' cannot be written here: .*syno\[onnx\]"):
        export(zoo.load("linear"), tmp_path / "op", binding=zoo.binding("linear"), format="onnx")


def test_what_was_written_lists_its_files(tmp_path):
    binding = zoo.binding("linear")
    written = export(zoo.load("linear"), tmp_path / "op", binding=binding)
    assert isinstance(written, Exported)
    assert written.files == [tmp_path / "op.py", tmp_path / "op.safetensors"]


# C_out is so large against the rank that the product of both weights is cheaper.
FOLDING = {"N": 1, "C_in": 32, "C_out": 192, "H": 6, "g": 8, "s": 2, "k": 3}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_folded_weights_are_written_as_their_product(name, tmp_path):
    usable(name)
    chosen = formats.get(name, fold_weights=True)
    operator = zoo.load("operator-1")
    given = operator_subject(operator, FOLDING, 0, fold_weights=True)
    written = chosen.write(given, tmp_path / "op")
    run = chosen.check(written, given)
    assert run.passed, run.output
    program = traced(given)
    elements = [tensor.numel() for tensor in program.state_dict.values()]
    assert elements == [192 * 32 * 9]
    assert len([node for node in program.graph.nodes if node.op == "call_function"]) == 1


@pytest.mark.parametrize("name", ["operator-1", "operator-2", "stacked-conv"])
def test_several_values_of_weights_alone_are_folded(name):
    given = operator_subject(zoo.load(name), zoo.binding(name), 0, fold_weights=True)
    with torch.no_grad():
        right, found = given.module(*given.inputs), traced(given).module()(*given.inputs)
    assert torch.allclose(found, right, atol=1e-4)


@pytest.mark.slow
def test_wrong_folded_weights_are_noticed(tmp_path):
    chosen = formats.get("torch-export", fold_weights=True)
    given = operator_subject(zoo.load("operator-1"), FOLDING, 0, fold_weights=True)
    with torch.no_grad():
        given.module.w1.mul_(1.01)
    run = chosen.check(chosen.write(given, tmp_path / "op"), given)
    assert not run.passed
    assert "of the largest output" in run.output


@pytest.mark.slow
def test_a_network_folds_the_weights_of_its_operators(tmp_path):
    net = small_network()
    given = network_subject(net, torch.zeros(1, 3, 8, 8), fold_weights=True)
    chosen = formats.get("torch-export", networks=True, fold_weights=True)
    run = chosen.check(chosen.write(given, tmp_path / "net"), given)
    assert run.passed, run.output
    with torch.no_grad():
        x = torch.randn(3, 3, 8, 8)
        assert torch.allclose(traced(given).module()(x), net(x), atol=1e-4)
    exported = export_network(net, tmp_path / "other", torch.zeros(1, 3, 8, 8), fold_weights=True)
    assert exported.code.stat().st_size > 0


@pytest.mark.parametrize("name", ["torch", "triton", "tvm"])
def test_formats_that_keep_weights_apart_say_so(name, tmp_path):
    with pytest.raises(
        UserError,
        match=f"the format '{name}' does not support weight pre(?s:.*)torch-export, onnx, aoti",
    ):
        export(
            zoo.load("operator-1"), tmp_path / "op", binding=FOLDING, format=name, fold_weights=True
        )
    assert not list(tmp_path.iterdir())
