"""Networks in TVM: outputs at fixed and any batch sizes, operators as TensorIR, errors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import syno
from syno import UserError
from syno.cli.main import cli
from syno.codegen import emitters
from syno.codegen.export import formats
from syno.codegen.export.write import network_subject
from syno.inference.passes.batch_norms import fold_batch_norms
from syno.inference.relax.program import trace_program
from syno.inference.trace import trace
from syno.network import models
from syno.operands.layers import fit_to_network
from syno.operands.lookup import named_operators
from syno.operators import zoo

needs_tvm = pytest.mark.skipif(
    emitters.get("tvm").available() is not None, reason="the package tvm is not installed"
)
pytestmark = pytest.mark.usefixtures("one_torch_thread")
# As for the other engines of float32, relative to the largest output.
TOLERANCE = 1e-4
_IMAGES = {"classes": 7, "size": 32}
MODELS: dict[str, dict[str, int]] = {
    "resnet-small": _IMAGES | {"width": 4},
    "resnet18": _IMAGES | {"width": 8, "cifar_stem": 1},
    "mobilenet_v2": _IMAGES | {"percent": 25, "cifar_stem": 1},
    "resnext29_2x64d": _IMAGES | {"width": 8, "cifar_stem": 1},
    "vit_b_16": _IMAGES | {"patch": 8, "layers": 1, "heads": 2, "width": 16},
    "convnext_tiny": _IMAGES | {"width": 8},
    "gpt2-small": {"context": 12, "layers": 1, "width": 16},
}


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


def trained(net: nn.Module) -> nn.Module:
    """The network with statistics and factors of BatchNorms as a training leaves them."""
    draw = torch.Generator().manual_seed(3)
    for module in net.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            for held in (module.weight, module.running_var):
                held.data = torch.rand(held.shape, generator=draw) + 0.5
            for held in (module.bias, module.running_mean):
                held.data = torch.randn(held.shape, generator=draw)
    return net.eval()


def with_operators(size: int = 8) -> nn.Module:
    torch.manual_seed(0)
    net = models.slots(models.build("cnn-small", classes=5, size=size, width=4, layers=1, stages=2))
    (named,) = named_operators(["depthwise-separable"])
    assert syno.replace(net, fit_to_network(named, net, {})).replaced
    return trained(net)


def check(net: nn.Module, x: torch.Tensor, *, any_batch: bool, **more: Any) -> Any:
    """Compile the network for one sample, or the size of x, and compare outputs for x."""
    from syno.inference.relax.network import compile_network

    compiled = compile_network(net, x[:1] if any_batch else x, any_batch=any_batch, **more)
    for given in (x, x[:1]) if any_batch else (x,):
        with torch.no_grad():
            expected = net(given)
        found = torch.from_numpy(compiled(given.numpy()))
        assert found.shape == expected.shape
        assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max()
    return compiled


# --- BatchNorms -----------------------------------------------------------------------------------


class Layers(nn.Module):
    """Layers with a BatchNorm behind each, and one that is also used without."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = nn.Conv2d(4, 6, 3, padding=1)
        self.grouped = nn.Conv2d(6, 6, 3, groups=3, bias=False)
        self.transposed = nn.ConvTranspose2d(6, 4, 2, stride=2, groups=2)
        self.linear = nn.Linear(16, 5)
        self.shared = nn.Conv2d(4, 4, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (6, 6, 4, 4))
        self.last = nn.BatchNorm1d(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All layers, one after the other."""
        y = self.norms[0](self.plain(x)).relu()
        y = self.norms[1](self.grouped(y)).relu()
        y = self.norms[2](self.transposed(y))
        z = self.shared(y)
        return self.last(self.linear((z + self.norms[3](z)).mean(3).flatten(1)[:, :16]))


def test_batch_norms_become_part_of_the_layers_whose_output_they_alone_use() -> None:
    torch.manual_seed(0)
    net, x = trained(Layers()), drawn(2, 4, 7, 7)
    graph = trace(net, (x,), batch=False).graph
    with torch.no_grad():
        assert fold_batch_norms(graph) == 4
        torch.testing.assert_close(graph(x), net(x), atol=1e-5, rtol=1e-5)
    left = [node for node in graph.graph.nodes if "batch_norm" in str(node.target)]
    assert len(left) == 1


def test_a_program_has_a_call_for_each_operator_and_no_batch_norm() -> None:
    net = with_operators()
    program = trace_program(net, (drawn(1, 3, 8, 8),), batch=True)
    targets = [str(node.target) for node in program.exported.graph.nodes]
    slots = [each for each in targets if "syno_inference.slot" in each]
    assert len(slots) == len(program.layers) == len(syno.slots(net)) > 0
    assert not any("batch_norm" in each for each in targets)
    assert program.batch


# --- networks -------------------------------------------------------------------------------------


@needs_tvm
def test_a_network_with_operators_takes_any_batch() -> None:
    compiled = check(with_operators(), drawn(3, 3, 8, 8), any_batch=True)
    assert compiled.any_batch and compiled.tuned == 0 and compiled.functions > 2
    with pytest.raises(UserError, match=r"expected: float32 \[N, 3, 8, 8\]  .* got: float32 \[2,"):
        compiled(np.zeros((2, 3, 8, 7), np.float32))
    with pytest.raises(UserError, match="got: float64"):
        compiled(np.zeros((2, 3, 8, 8)))


@needs_tvm
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux")
def test_tvm_binds_no_thread_of_this_process_to_a_core(first_cores: set[int]) -> None:
    check(with_operators(), drawn(1, 3, 8, 8), any_batch=True)
    assert os.sched_getaffinity(0) == first_cores


@needs_tvm
def test_an_operator_is_a_function_with_its_weights_as_arguments() -> None:
    from syno.inference.relax.module import relax_module

    program = trace_program(with_operators(), (drawn(1, 3, 8, 8),), batch=False)
    module = relax_module(program)
    functions = {variable.name_hint: function for variable, function in module.functions_items()}
    operators = {name: each for name, each in functions.items() if name.startswith("operator_")}
    assert operators
    shapes = [
        [tuple(int(n) for n in buffer.shape) for buffer in each.params]
        for each in operators.values()
    ]
    layers = [
        layer.computation.operator.shapes(layer.computation.binding) for layer in program.layers
    ]
    expected = [[tuple(s) for s in (each.input, *each.weights, each.output)] for each in layers]
    assert all(each in expected for each in shapes)
    text = functions["main"].script()
    assert text.count("R.call_tir(") == len(program.layers)
    assert "batch_norm" not in text


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_all_layers_are_right_at_odd_sizes(batch: int) -> None:
    torch.manual_seed(0)
    check(trained(Layers()), drawn(batch, 4, 7, 7), any_batch=False)
    check(with_operators(11), drawn(batch, 3, 11, 11), any_batch=False)


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize("name", zoo.names())
def test_an_operator_of_the_zoo_is_right_at_any_batch_and_at_a_fixed_one(name: str) -> None:
    operator, binding = zoo.load(name), zoo.binding(name)
    torch.manual_seed(0)
    net = nn.Sequential(operator.kernel_pack(binding), nn.ReLU()).eval()
    x = drawn(3, *operator.shapes(binding).input[1:])
    check(net, x, any_batch=True)
    check(net, x, any_batch=False)


@needs_tvm
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_the_catalogue_is_right(name: str) -> None:
    torch.manual_seed(0)
    net = trained(models.build(name, **MODELS[name]))
    shape = models.built(net).input_shape
    x = drawn(3, *shape)
    if models.describe(name).images is not None:
        check(net, x, any_batch=True)
        return
    x = torch.randint(0, 10, x.shape, generator=torch.Generator().manual_seed(7))
    check(net, x, any_batch=False)
    check(net, x[:1], any_batch=False)
    # Its masks are sums of prefixes, which TVM 0.27 compiles for fixed sizes only.
    with pytest.raises(
        UserError, match=r"TVM cannot compile .*\n  what to do: .* fixed batch only"
    ):
        check(net, x, any_batch=True)


@needs_tvm
@pytest.mark.slow
def test_plain_schedules_share_rows_between_threads_and_have_vectors() -> None:
    from syno.codegen.emitters.tvm_target import device_target
    from syno.inference.relax.network import lowered
    from syno.inference.relax.schedules import is_scheduled, schedule_plainly

    net = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU()).eval()
    with device_target(None, 2) as target:
        module = lowered(net, drawn(1, 4, 16, 16), target, any_batch=False)
        found = schedule_plainly(module)
    functions = [each for v, each in found.functions_items() if v.name_hint != "main"]
    assert functions and all(map(is_scheduled, functions))
    text = "".join(each.script() for each in functions)
    assert "T.parallel(" in text and "T.vectorized(" in text


# --- libraries ------------------------------------------------------------------------------------


@needs_tvm
@pytest.mark.slow
def test_a_library_runs_in_python_without_syno_and_in_a_program_without_python(
    tmp_path: Path,
) -> None:
    import tvm
    import tvm_ffi

    net = with_operators()
    chosen = formats.get("tvm-network", networks=True)
    subject = network_subject(net, drawn(1, 3, 8, 8))
    written = chosen.write(subject, tmp_path / "net")
    assert written.files == [tmp_path / "net.so"]
    run = chosen.check(written, subject)
    assert run.passed, run.output
    assert "at batch sizes 1, 3, 8" in run.output
    program = tmp_path / "run"
    source = Path(__file__).parents[2] / "examples/cpp/run_tvm_network.cpp"
    homes = [os.path.dirname(str(package.__file__)) for package in (tvm_ffi, tvm)]
    libraries = [f"{home}/lib" for home in homes]
    command = ["g++", "-std=c++17", "-O1", f"-I{homes[0]}/include", str(source), "-o", str(program)]
    command += [f"-L{each}" for each in libraries]
    command += [f"-Wl,-rpath,{':'.join(libraries)}", "-Wl,--no-as-needed"]
    subprocess.run([*command, "-ltvm_ffi", "-ltvm_runtime"], check=True)
    x = drawn(2, 3, 8, 8)
    with torch.no_grad():
        y = net(x)
    for name, tensor in (("x", x), ("y", y), ("wrong", y + 0.1)):
        tensor.numpy().tofile(tmp_path / f"{name}.bin")

    def ran(expected: str, *sizes: str) -> tuple[int, str]:
        files = [str(tmp_path / name) for name in ("net.so", "x.bin", expected)]
        done = subprocess.run([str(program), *files, *sizes], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, said = ran("y.bin", "2", "3", "8", "8")
    assert code == 0 and said.startswith("right: 10 outputs"), said
    code, said = ran("wrong.bin", "2", "3", "8", "8")
    assert code == 1 and said.startswith("wrong: "), said
    code, said = ran("y.bin", "2", "3", "8", "7")
    assert code == 2 and "the input has another size" in said


@needs_tvm
@pytest.mark.slow
def test_a_library_has_a_fixed_batch_where_one_is_asked_for(tmp_path: Path) -> None:
    chosen = formats.get("tvm-network", networks=True)
    subject = network_subject(with_operators(), drawn(1, 3, 8, 8)).with_batch(2)
    written = chosen.write(subject, tmp_path / "net.so")
    run = chosen.check(written, subject)
    assert run.passed and "at batch sizes 2," in run.output


@needs_tvm
@pytest.mark.slow
def test_code_for_another_processor_is_written_and_not_run(tmp_path: Path) -> None:
    import dataclasses

    chosen = formats.get("tvm-network", networks=True)
    subject = dataclasses.replace(
        network_subject(with_operators(), drawn(1, 3, 8, 8)),
        target="llvm -mtriple=riscv64-linux-gnu -mcpu=generic-rv64",
    )
    written = chosen.write(subject, tmp_path / "net")
    assert written.code.suffix in (".tar", ".so") and written.code.stat().st_size > 0
    run = chosen.check(written, subject)
    assert not run.passed and "another processor" in run.output


# --- mistakes -------------------------------------------------------------------------------------


class Bessel(nn.Module):
    """A function that Relax does not know."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """J0."""
        return torch.special.bessel_j0(x)


@needs_tvm
def test_an_operation_that_relax_does_not_know_is_named_with_its_module() -> None:
    from syno.inference.relax.network import compile_network

    net = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Sequential(nn.ReLU(), Bessel())).eval()
    with pytest.raises(UserError) as error:
        compile_network(net, drawn(1, 3, 4, 4))
    assert "does not know aten.special_bessel_j0.default in 1.1\n" in str(error.value)
    assert "what to do: " in str(error.value)


class Fixed(nn.Module):
    """A network for two samples."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The samples as one."""
        return x.reshape(1, 2 * 3 * 4 * 4)


@needs_tvm
def test_a_network_for_one_size_of_the_batch_says_so() -> None:
    from syno.inference.relax.network import compile_network

    with pytest.raises(UserError, match=r"for any size of the batch\n  what to do: fix the size"):
        compile_network(Fixed().eval(), drawn(2, 3, 4, 4), any_batch=True)


def test_without_tvm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from syno.engines import engine
    from syno.inference.relax.network import compile_network

    gone = lambda self: "the package tvm is not installed\n  what to do: pip install 'syno[tvm]'"  # noqa: E731
    monkeypatch.setattr(type(emitters.get("tvm")), "available", gone)
    with pytest.raises(UserError, match=r"TVM cannot compile networks here: .*\n.*syno.tvm."):
        compile_network(nn.ReLU().eval(), drawn(1, 3))
    with pytest.raises(UserError, match=r"engine 'tvm' is not available: .*\n.*syno.tvm."):
        engine.get("tvm")
    with pytest.raises(UserError, match=r"'tvm-network' cannot be written here: .*\n.*syno.tvm."):
        formats.get("tvm-network", networks=True)


def test_schedules_need_a_fixed_batch_and_a_folder_that_has_them(tmp_path: Path) -> None:
    import dataclasses

    from syno.inference.relax.build import databases_below
    from syno.inference.relax.files import TvmNetworkFile

    with pytest.raises(UserError, match=r"no schedules of TVM below .*\n  what to do: `syno tune`"):
        databases_below(tmp_path)
    subject = dataclasses.replace(
        network_subject(with_operators(), drawn(1, 3, 8, 8)), schedules=tmp_path
    )
    with pytest.raises(UserError, match=r"for one size of the batch\n  expected: --batch N"):
        TvmNetworkFile().write(subject, tmp_path / "net")


def test_options_of_tvm_networks_are_for_that_format(tmp_path: Path) -> None:
    words = ["export", "none", "--network", "cnn-small", "-o", str(tmp_path / "net")]
    for option in (["--batch", "2"], ["--schedules", str(tmp_path)]):
        done = CliRunner().invoke(cli, [*words, "--format", "torch-export", *option])
        assert done.exit_code == 2 and "has no schedules of TVM and no fixed batch" in done.output
    done = CliRunner().invoke(cli, [*words, "--format", "onnx", "--target", "llvm"])
    assert done.exit_code == 2 and "cpp, cpp-network or tvm-network with --target" in done.output


@needs_tvm
def test_a_text_that_is_no_target_is_named() -> None:
    from syno.codegen.emitters.tvm_target import device_target
    from syno.inference.relax.network import compile_network

    with pytest.raises(UserError, match=r"'lvm -mcpu=x' is no target of TVM: .*\n  expected: such"):
        device_target("lvm -mcpu=x", 1)
    with pytest.raises(UserError, match="for processors, and not for 'cuda'\n  expected: a target"):
        compile_network(nn.ReLU().eval(), drawn(1, 3), target="cuda -arch=sm_80")
