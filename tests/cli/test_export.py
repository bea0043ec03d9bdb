"""`syno export`: formats, and whole networks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from marks import with_slow
from syno.cli.main import cli

CONV = """syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
reduce k_1 -> r1
contract o1:drop r0:keep r1:keep
unfold o2 r1 -> c0
match o0 r0 c0 o3
"""
NETWORK = ("--preset", "paper/resnet18", "--network", "resnet-small", "--model-option", "width=8")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["export", CONV, *arguments])


@pytest.mark.parametrize("name", with_slow(["torch-export", "onnx"], "onnx"))
def test_an_operator_in_another_format_is_checked_without_syno(name: str, tmp_path: Path) -> None:
    if name == "onnx":
        pytest.importorskip("onnxscript")
    sizes = "C_in=4,C_out=8,H=6,k_1=3"
    result = run(
        "--binding", sizes, "--format", name, "-o", str(tmp_path / "op"), "--check", "--json"
    )
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["format"] == name
    assert answer["ran_without_syno"] is True
    assert "at batch sizes 1, 3, 8" in answer["output"]
    assert [Path(file).stem for file in answer["written"]] == ["op"]


@pytest.mark.slow
def test_a_network_holds_the_operator(tmp_path: Path) -> None:
    import torch

    out = tmp_path / "net.pt2"
    result = run(*NETWORK, "--image", "1:8", "--classes", "7", "-o", str(out), "--check")
    assert result.exit_code == 0, result.output
    assert "run without Syno: right: 84 outputs" in result.stdout
    program = torch.export.load(out)
    assert program.module()(torch.zeros(5, 1, 8, 8)).shape == (5, 7)
    # The operator's weight has a window of one dimension.
    shapes = [tuple(tensor.shape) for tensor in program.state_dict.values()]
    assert (8, 8, 3) in shapes


def written_network(op: str, out: Path, *arguments: str) -> dict[str, object]:
    words = ["export", op, "--network", "resnet-small", "--model-option", "width=8", "--image"]
    words += ["3:8", "-o", str(out), "--format", "cpp-network", "--check", "--json"]
    result = CliRunner().invoke(cli, [*words, *arguments])
    assert result.exit_code == 0, result.output
    answer: dict[str, object] = json.loads(result.stdout)
    assert answer["ran_without_syno"] is True
    return answer


def test_a_network_without_an_operator_is_one_library(tmp_path: Path) -> None:
    import torch

    from syno import inference, models

    answer = written_network("none", tmp_path / "net.cpp", "--seed", "3")
    assert answer["key"] is None
    assert [Path(str(file)).name for file in answer["written"]] == ["net.cpp", "net.bin", "net.h"]  # type: ignore[attr-defined]
    torch.manual_seed(3)
    net = models.build("resnet-small", size=8, width=8).eval()
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        expected = net(x)
    y = torch.from_numpy(inference.load(tmp_path / "net.cpp")(x.numpy()))
    torch.testing.assert_close(y, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("preset", [(), ("--preset", "paper/resnet18")])
def test_an_operator_of_the_zoo_takes_the_sizes_of_the_slots(
    preset: tuple[str, ...], tmp_path: Path
) -> None:
    """Its variables k, g and s are none of the preset's."""
    sizes = ("--binding", "g=4")
    answer = written_network("operator-1", tmp_path / "net.cpp", *sizes, *preset)
    assert len(str(answer["key"])) == 32
    # All six slots hold it: the stem is the only 3x3 convolution that is left.
    text = (tmp_path / "net.cpp").read_text()
    assert text.count("x[n,i,h+a-k/2,w+b-k/2] * w0[o,i,a,b]\n") == 1


def test_none_is_no_operator(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["export", "none", "-o", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "'none' is no operator" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_same_seed_gives_the_same_network(tmp_path: Path) -> None:
    import torch

    found = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        out = tmp_path / f"{name}.pt2"
        result = run(*NETWORK, "--image", "1:8", "-o", str(out), "--seed", seed)
        assert result.exit_code == 0, result.output
        found.append(torch.export.load(out).module()(torch.ones(1, 1, 8, 8)))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "tensorflow"), "unknown format 'tensorflow'\n  expected: one of torch, "),
        ((*NETWORK, "--format", "torch"), "unknown format of networks 'torch'"),
        ((*NETWORK, "--binding", "H=0"), "H"),
        ((*NETWORK[:3], "study", "--binding", "g=2"), "is exported with an operator of its search"),
        ((*NETWORK[:3], "vgg"), "unknown model 'vgg'"),
        ((*NETWORK[:3], "study"), "name it with --store"),
        ((*NETWORK, "--image", "three"), "'three' is not a size of images"),
        ((*NETWORK, "--model-option", "width"), "cannot read the model option 'width'"),
    ],
)
def test_mistakes_are_errors(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = run(*arguments, "-o", str(tmp_path / "x"))
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


SIZES = "C_in=8,C_out=8,H=6,k_1=3"


def test_a_measured_plan_and_folded_weights_are_written(
    new_cache: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNO_CACHE", str(new_cache(tmp_path / "cache")))
    words = ("--binding", SIZES, "--measure-plans", "2", "--fold-weights", "--check")
    result = run(*words, "--format", "cpp", "-o", str(tmp_path / "op"), "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["ran_without_syno"] is True
    assert answer["fold_weights"] is True
    (plan,) = answer["plans"]
    assert plan["number"] in (1, 2)
    assert plan["speedup"] >= 1
    assert plan["binding"] == {"k_1": 3, "C_in": 8, "C_out": 8, "H": 6, "N": 1}
    result = run(*words, "--format", "cpp", "-o", str(tmp_path / "op"))
    assert f"plan {plan['number']}, {plan['speedup']:.2f}x as fast as plan 1" in result.output


@pytest.mark.slow
def test_a_network_takes_measured_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from syno.measure import PlanChoice, plan_choices

    asked = []

    def choose(operator: object, binding: dict[str, int], **given: object) -> PlanChoice:
        asked.append((tuple(binding.values()), given["emitter"], given["limit"], given["threads"]))
        return PlanChoice(2, (), "pytorch", binding, 1, False, 0.0, False)

    monkeypatch.setattr(plan_choices, "choose_plan", choose)
    monkeypatch.setattr(PlanChoice, "speedup", 1.5)
    result = run(
        *NETWORK,
        *("--image", "3:8", "--measure-plans", "3", "--threads", "2", "--check"),
        *("-o", str(tmp_path / "net"), "--json"),
    )
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["ran_without_syno"] is True
    assert {choice[1:] for choice in asked} == {("pytorch", 3, 2)}
    assert [plan["number"] for plan in answer["plans"]] == [2] * len({c[0] for c in asked})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fold-weights",), "the format 'torch' does not support weight pre-multiplication"),
        (("--format", "tvm", "--measure-plans", "2"), "plans cannot be timed here as the format"),
        (("--threads", "2"), "--threads requires --measure-plans"),
        (("--data", "digits"), "--data and --keep require --precision int8 or auto"),
        (("--keep", "stem"), "--data and --keep require --precision int8 or auto"),
        (("--most-error", "0.1"), "--most-error requires --precision auto"),
        (("--weights", "w.pt"), "--weights requires --network with the name of a model"),
        (("--measure-plans", "0"), "0 is not in the range 1<=x<=1000"),
    ],
)
def test_what_is_said_about_plans(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = run("--binding", SIZES, "-o", str(tmp_path / "op"), *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("precision", with_slow(["int8", "auto"], "auto"))
def test_a_network_with_ranges_from_data(precision: str, tmp_path: Path) -> None:
    words = ["--network", "cnn-small", "--format", "cpp-network", "--data", "digits", "--check"]
    words += ["--precision", precision, "--classes", "10", "--image", "1:8", "--samples", "12"]
    more = ["--most-error", "0.001"] if precision == "auto" else []
    result = CliRunner().invoke(
        cli, ["export", "none", *words, *more, "-o", str(tmp_path / "net"), "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["ran_without_syno"] is True
    formats = {layer["format"] for layer in found["layers"]}
    assert found["error"] <= 0.001 if more else formats == {"int8"} and found["error"] < 0.1
    assert all(bool(layer["seconds"]) == bool(more) for layer in found["layers"])


def test_formats_are_chosen_on_the_machine_that_runs_them(tmp_path: Path) -> None:
    words = ("--network", "cnn-small", "--format", "cpp-network", "--precision", "auto")
    more = ("--target", "aarch64-linux-gnu", "-o", str(tmp_path / "net"))
    result = CliRunner().invoke(cli, ["export", "none", *words, *more])
    assert result.exit_code == 2
    assert "--precision auto chooses formats by their times on this machine" in result.output


def test_a_precision_of_samples_needs_data(tmp_path: Path) -> None:
    words = ("--network", "cnn-small", "--format", "cpp-network", "--precision", "auto")
    result = CliRunner().invoke(cli, ["export", "none", *words, "-o", str(tmp_path / "net")])
    assert result.exit_code == 2
    assert "--precision auto takes the ranges of values from samples" in result.output
