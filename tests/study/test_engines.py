"""What computes and times networks: compiled code, or eager PyTorch with a note."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from syno import TimingOptions, TrainOptions, UserError, options
from syno.codegen.native import find_compiler
from syno.codegen.native.compiler import Compiler
from syno.data import load
from syno.engines.onnx import OnnxRuntime
from syno.operators.layer import Layer
from syno.study.evaluate import engines
from syno.study.evaluate.engines import decide, kernels
from syno.study.evaluate.evaluator import NetworkEvaluator
from syno.study.evaluate.network import Network
from syno.study.evaluate.observer import EvaluationObserver
from syno.study.specifications import small_vision
from syno.train import fidelity

pytestmark = pytest.mark.usefixtures("one_torch_thread")

BRIEF = fidelity("digits").changed(name="brief", images=64, epochs=1)


class Notes(EvaluationObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[str] = []

    def on_note(self, text: str) -> None:
        self.notes.append(text)

    def on_step(self, step: str) -> None:
        self.steps.append(step)


@pytest.fixture(scope="module")
def evaluator():
    dataset = load("digits")
    options = {"width": 4, "layers": 1, "stages": 2}
    network = Network.named("cnn-small", options, dataset, 0)
    timing = TimingOptions(repeats=20, latency="compiled")
    return NetworkEvaluator(network, dataset, BRIEF, 0, timing=timing, kernels="compiled")


@pytest.fixture(scope="module")
def operator(evaluator):
    from syno.network.sampler import Sampler

    wanted = small_vision(max_macs=evaluator.network.macs)
    sampler = Sampler.from_specification(wanted, net=evaluator.network.template, max_nodes=2000)
    return next(op for op in sampler.operators if op.primitives().get("unfold"))


def test_what_is_left_open_is_compiled_where_there_is_a_compiler(monkeypatch):
    monkeypatch.setattr(options, "DEFAULT_ENGINE", "compiled")
    train, timing, note = decide(TrainOptions(), TimingOptions())
    assert (train.kernels, timing.latency, note) == ("compiled", "compiled", None)
    given = TrainOptions(kernels="eager"), TimingOptions(latency="inductor")
    assert decide(*given)[:2] == given
    train, timing, note = decide(TrainOptions(), TimingOptions(), "cuda")
    assert (train.kernels, timing.latency, note) == ("eager", "eager", None)


def test_without_a_compiler_it_is_eager_and_says_so(monkeypatch):
    monkeypatch.setattr(options, "DEFAULT_ENGINE", "compiled")
    monkeypatch.setattr(engines, "no_compiler", lambda: "there is no C++ compiler\n  hint: ...")
    wished = TrainOptions(kernels="compiled"), TimingOptions(latency="compiled")
    for given in ((TrainOptions(), TimingOptions()), wished):
        train, timing, note = decide(*given)
        assert (train.kernels, timing.latency) == ("eager", "eager")
        assert note == (
            "operators are trained and measured in eager PyTorch: there is no C++ compiler"
        )


@pytest.mark.slow
def test_a_trial_is_trained_and_measured_compiled(evaluator, operator):
    evaluator.observer = notes = Notes()
    outcome = evaluator.evaluate(operator)
    assert outcome.status == "ok", outcome.reason
    assert notes.steps == ["verify", "compile", "train", "measure"]
    assert notes.notes == []
    assert outcome.details["latency_engine"] == "compiled"
    assert "not_compiled" not in outcome.details


def test_what_does_not_compile_is_eager_and_the_trial_goes_on(evaluator, operator, monkeypatch):
    def fails(*_: object, **__: object) -> None:
        raise UserError("g++ cannot compile the code of an operator\n  in ...")

    def refused(*_: object, **__: object) -> None:
        raise UserError("the network cannot be traced\n  ...")

    monkeypatch.setattr(Compiler, "library", fails)
    monkeypatch.setattr("syno.inference.compile", refused)
    evaluator = dataclasses.replace(evaluator)  # with nothing that was compiled before
    evaluator.observer = notes = Notes()
    outcome = evaluator.evaluate(operator)
    assert outcome.status == "ok", outcome.reason
    assert notes.notes == [
        "operators are trained in eager PyTorch: g++ cannot compile the code of an operator",
        "a latency is measured in eager PyTorch: the network cannot be traced",
    ]
    assert outcome.details["not_compiled"].startswith("g++ cannot compile")
    assert outcome.details["latency_engine"] == "eager"
    assert outcome.measurement is not None


@pytest.mark.slow
def test_what_a_trial_needs_is_compiled_ahead(evaluator, operator, tmp_path, monkeypatch):
    alone = dataclasses.replace(evaluator)
    outcome = alone.evaluate(operator)
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path))
    forget_kernels()
    ahead = dataclasses.replace(evaluator).prepared()
    ahead.compile_ahead(operator)
    forget_kernels()
    compiled = []
    monkeypatch.setattr(Compiler, "_compile", lambda *given, **_: compiled.append(given))
    again = ahead.evaluate(operator)
    assert compiled == []
    assert (again.status, again.accuracy) == ("ok", outcome.accuracy)
    assert again.details["latency_engine"] == "compiled"


def forget_kernels():
    """As another process, which finds only what is in the cache."""
    from syno.codegen.torch_op import kernel

    kernel._kernels.clear()


def test_the_slowdown_is_that_of_compiled_steps(evaluator, operator):
    net, _ = evaluator.network.with_operator(operator)
    (pack, *_) = (each for each in net.modules() if isinstance(each, Layer))
    with kernels(net, "compiled", pytest.fail) as reason:
        assert reason is None
        calls = []
        compiled = type(pack.compiled)
        original = compiled.__call__

        def counted(self, *arguments):
            calls.append(self)
            return original(self, *arguments)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(compiled, "__call__", counted)
            dataclasses.replace(evaluator, max_slowdown=1000.0)._slowdown(net)
    assert pack.compiled is None
    assert calls


def test_rivals_run_the_original_network(monkeypatch):
    class Fast(OnnxRuntime):
        def prepare(self, net, example, threads):
            return lambda: net(example)

    class Refuses(OnnxRuntime):
        def prepare(self, net, example, threads):
            raise UserError("it covers no such layer")

    made = {"openvino": Refuses("openvino", "float32"), "onnxruntime": Fast("x", "float32")}
    monkeypatch.setattr(engines.engines, "available", lambda _: tuple(made))
    monkeypatch.setattr(engines.engines, "get", made.__getitem__)
    found = engines.rivals(nn.Linear(3, 3), torch.zeros(1, 3), threads=1, repeats=20, warmup=1)
    assert list(found) == ["onnxruntime"]
    assert found["onnxruntime"]["median_ms"] > 0


def test_precompiled_headers_are_used_and_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path))
    compiler = find_compiler()
    compiler.precompile()
    made = list((tmp_path / "native").glob("*.h.gch"))
    if "clang" in compiler.version:
        assert made == []
        return
    (header,) = made
    commands = []
    run = Compiler._run

    def watched(self, command, folder):
        commands.append(list(command))
        run(self, command, folder)

    monkeypatch.setattr(Compiler, "_run", watched)
    library = compiler.library('extern "C" int answer() { return 42; }\n')
    assert library.answer() == 42
    assert str(header.with_suffix("")) in commands[0]
