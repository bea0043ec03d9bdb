"""Networks in inference engines: outputs are compared, and ratios have one direction."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from marks import slow_but, with_slow
from syno._core import UserError
from syno.cli.main import cli
from syno.engines import engine
from syno.engines.compare import compare_engines
from syno.engines.picture import save_engines
from syno.engines.tables import engines_table


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 5)
    ).eval()


EXAMPLE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Fake:
    """An engine that waits before it returns what eager PyTorch computes, changed by `change`."""

    name = "fake"
    precision = engine.FLOAT32
    own = True

    def __init__(self, wait: float = 0.0, change: Callable[[Any], Any] = lambda y: y) -> None:
        self.wait, self.change = wait, change

    def missing(self) -> str | None:
        return None

    def prepare(
        self, net: nn.Module, example: torch.Tensor, threads: int
    ) -> Callable[[], torch.Tensor]:
        def run() -> torch.Tensor:
            time.sleep(self.wait)
            return self.change(net(example))

        return run


class FakeLayers(Fake):
    """An engine that says that a quarter of its time is spent outside of layers."""

    def prepare(
        self, net: nn.Module, example: torch.Tensor, threads: int
    ) -> Callable[[], torch.Tensor]:
        return engine.Prepared(super().prepare(net, example, threads), lambda: 0.25)


def use(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    known = engine.get
    monkeypatch.setattr(engine, "get", lambda name: fake if name == "fake" else known(name))


# The quickest of each kind of engine; others are slow to prepare.
QUICK = ("channels-last", "onnxruntime", "openvino", "syno", "syno-cpp")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in engine.names()
        if name != "eager"
    ],
)
def test_an_engine_computes_what_the_network_computes(name: str) -> None:
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    before = {key: value.clone() for key, value in small().state_dict().items()}
    net = small()
    found = compare_engines({"original": net}, EXAMPLE, [name], threads=1, rounds=2)
    assert not found.failures
    eager, other = found.times
    assert (eager.engine, eager.error, eager.over_eager) == ("eager", 0.0, 1.0)
    assert other.engine == name
    # INT8 has 255 values for the range of a tensor; bfloat16 has 8 bits of mantissa.
    assert other.error <= (1e-5 if other.precision == engine.FLOAT32 else 0.1)
    assert other.low_ms <= other.median_ms <= other.high_ms
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


INT8 = ("onnxruntime-int8", "openvino-int8", "syno-cpp-int8")


@pytest.mark.parametrize("name", slow_but(INT8, "syno-cpp-int8"))
def test_ranges_of_int8_come_from_samples(name: str) -> None:
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    samples = torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    given = [[samples], [0.02 * samples]]  # those of small numbers clip all others
    near, far = (
        compare_engines(
            {"net": small()}, EXAMPLE[:1], [engine.get(name).calibrated(each)], rounds=2
        )
        .times[1]
        .error
        for each in given
    )
    assert near < 0.15 < far


def test_an_engine_in_another_precision_needs_no_samples() -> None:
    assert engine.get("syno-cpp").calibrated([EXAMPLE]) is engine.get("syno-cpp")


def test_networks_in_engines_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    others = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = small()(others)

    def score(run: Callable[[torch.Tensor], Any]) -> float:
        return float((run(others) - expected).abs().max())

    use(monkeypatch, Fake())
    found = compare_engines(
        {"net": small()}, EXAMPLE, ["syno", "syno-cpp", "fake"], rounds=2, score=score
    )
    scores = {time.engine: time.accuracy for time in found.times}
    assert scores.pop("fake") is None  # it runs the example alone
    assert scores.pop("eager") == 0
    assert {*scores} == {"syno", "syno-cpp"}
    assert all(each is not None and each < 1e-5 for each in scores.values())
    assert "accuracy" in str(engines_table(found))


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maps = self.net[:3](x)
        return maps, self.net[3:](maps) - 3


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "syno", "syno-cpp"])
def test_all_outputs_of_a_network_are_compared(name: str) -> None:
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    found = compare_engines({"two": Two().eval()}, EXAMPLE, [name], rounds=2)
    assert not found.failures
    assert found.times[1].error < 1e-5


@pytest.mark.parametrize("which", [0, 1])
def test_one_wrong_output_of_several_is_refused(
    which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(outputs: Any) -> Any:
        return tuple(each + (number == which) for number, each in enumerate(outputs))

    use(monkeypatch, Fake(change=change))
    with pytest.raises(UserError, match="computes something else than eager PyTorch for two"):
        compare_engines({"two": Two().eval()}, EXAMPLE, ["fake"], rounds=2)


@pytest.mark.slow
def test_networks_of_one_class_stay_as_torch_compiled_them() -> None:
    nets = [small() for _ in range(4)]
    with torch._dynamo.config.patch(recompile_limit=2), torch.inference_mode():
        calls = [engine.get("inductor").prepare(net, EXAMPLE, 1) for net in nets]
    # Compiled again, it would be without constant weights.
    with torch.compiler.set_stance("fail_on_recompile"), torch.inference_mode():
        for net, call in zip(nets, calls, strict=True):
            torch.testing.assert_close(call(), net(EXAMPLE))


def test_a_speed_up_above_one_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Fake(wait=0.05))
    found = compare_engines({"original": small()}, EXAMPLE, ["fake"], threads=1, rounds=3)
    slow = found.times[1]
    assert found.rival == "eager"  # an engine of Syno is no rival
    assert slow.over_eager < 0.5 and slow.over_rival < 0.5
    assert slow.median_ms > found.times[0].median_ms


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda y: y * 1.01, "got: 0.01"),
        (lambda y: y * float("nan"), "got: nan"),
    ],
)
def test_a_wrong_float32_engine_is_refused(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[torch.Tensor], torch.Tensor], got: str
) -> None:
    use(monkeypatch, Fake(change=change))
    with pytest.raises(UserError, match="computes something else than eager PyTorch") as error:
        compare_engines({"original": small()}, EXAMPLE, ["fake"], rounds=2)
    assert got in str(error.value)


def test_an_engine_that_cannot_run_a_network_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Fake(change=lambda y: y[:1]))
    found = compare_engines({"original": small()}, EXAMPLE, ["fake"], rounds=2)
    assert [each.engine for each in found.times] == ["eager"]
    assert "other shapes" in found.failures["original", "fake"]


def test_the_rival_is_the_fastest_float32_engine_for_the_first_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Fake(wait=0.02)
    fake.own = False
    use(monkeypatch, fake)
    nets = {"original": small(), "other": small()}
    found = compare_engines(nets, EXAMPLE, ["fake"], rounds=2)
    assert found.rival == "eager"
    assert [(each.network, each.engine) for each in found.times] == [
        ("original", "eager"),
        ("original", "fake"),
        ("other", "eager"),
        ("other", "fake"),
    ]


def test_a_comparison_names_the_engines_that_it_lacks_and_both_fixed_computations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Fake()
    fake.name, fake.own = "openvino", False
    use(monkeypatch, fake)
    found = compare_engines({"original": small()}, EXAMPLE, ["fake"], threads=1, rounds=2)
    written = found.to_json()
    assert written["missing"] == ["inductor", "onnxruntime"]
    assert engine.without(found.missing) == "without TorchInductor, ONNX Runtime"
    assert engine.without(engine.missing_rivals(engine.DEFAULT)) == ""
    assert written["control"]["median_ms"] > 0
    assert written["stream"]["gb_s"] > 0 and written["stream"]["spread_ms"] >= 0


def test_the_help_names_every_engine() -> None:
    words = re.split(r"[\s,()]+", CliRunner().invoke(cli, ["bench", "network", "--help"]).output)
    assert set(engine.names()) <= set(words)


def test_bad_arguments() -> None:
    with pytest.raises(UserError, match="there is no inference engine 'nothing'"):
        compare_engines({"original": small()}, EXAMPLE, ["nothing"])
    with pytest.raises(UserError, match="there is no network to measure"):
        compare_engines({}, EXAMPLE)
    with pytest.raises(UserError, match="'rounds' is an integer of at least 2"):
        compare_engines({"original": small()}, EXAMPLE, rounds=1)


def test_missing_packages_name_the_extra() -> None:
    assert engine.missing_packages("rivals", "torch") is None
    words = engine.missing_packages("rivals", "no_such_package_of_syno")
    assert words is not None and "pip install 'syno[rivals]'" in words


def test_the_command_prints_json_and_writes_a_plot(tmp_path: Path) -> None:
    arguments = ["bench", "network", "--model", "resnet-small", "--size", "16", "--rounds", "20"]
    arguments += ["--operators", "none,conv1x1", "--engines", "eager"]
    picture = tmp_path / "engines.png"
    arguments += ["--threads", "1", "--json", "--picture", str(picture)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(each["network"], each["engine"]) for each in found["times"]] == [
        ("none", "eager"),
        ("conv1x1", "eager"),
    ]
    assert found["input"] == [1, 3, 16, 16] and found["rival"] == "eager"
    assert picture.stat().st_size > 1000


def test_all_engines_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def compare(networks: object, example: object, names: list[str], **_: object) -> None:
        asked.extend(names)
        raise UserError("enough")

    monkeypatch.setattr("syno.engines.compare.compare_engines", compare)
    monkeypatch.setattr(
        engine, "available", lambda wanted: tuple(name for name in wanted if name != "openvino")
    )
    arguments = ["bench", "network", "--model", "resnet-small", "--size", "16"]
    arguments += ["--operators", "none", "--engines", "all"]
    assert "enough" in CliRunner().invoke(cli, arguments).output
    assert asked == [name for name in engine.names() if name != "openvino"]


def test_schedules_are_for_the_engine_tvm(tmp_path: Path) -> None:
    words = ["bench", "network", "--model", "cnn-small", "--size", "8", "--operators", "none"]
    words += ["--schedules", str(tmp_path)]
    done = CliRunner().invoke(cli, [*words, "--engines", "eager"])
    assert done.exit_code == 2 and "--schedules is for the engine tvm" in done.output
    if engine.available(["tvm"]):
        done = CliRunner().invoke(cli, [*words, "--engines", "tvm"])
        assert done.exit_code == 2 and "there are no schedules of TVM below" in done.output


def test_the_table_and_the_plot_show_every_pair(tmp_path: Path) -> None:
    found = compare_engines({"original": small()}, EXAMPLE, ["channels-last"], rounds=2)
    table = engines_table(found)
    assert [row[:2] for row in table.rows] == [
        ("original", "eager"),
        ("original", "channels-last"),
    ]
    save_engines(found, tmp_path / "plot.pdf", {})
    assert (tmp_path / "plot.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["file/plot.png", "plot.unknown"])
def test_a_plot_that_cannot_be_written_is_the_users_mistake(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    found = compare_engines({"original": small()}, EXAMPLE, [], rounds=2)
    refused = r"cannot write the plot to .*(.|\n)*what to do: name anoth"
    with pytest.raises(UserError, match=refused):
        save_engines(found, tmp_path / name, {})


def test_the_share_outside_of_layers_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeLayers())
    found = compare_engines({"original": small()}, EXAMPLE, ["fake"], rounds=3)
    assert [time.outside for time in found.times] == [None, 0.25]
    table = engines_table(found)
    column = table.headings.index("outside layers>")
    assert [row[column] for row in table.rows] == ["", "25.0%"]
    eager = compare_engines({"original": small()}, EXAMPLE, [], rounds=2)
    assert "outside layers>" not in engines_table(eager).headings


class Slow(nn.Module):
    """A layer, and a function that takes longer than it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        for _ in range(40):
            y = torch.softmax(y * 2, 3)
        return y


@pytest.mark.parametrize("name", ["syno", pytest.param("syno-cpp", marks=pytest.mark.slow)])
def test_engines_of_syno_know_the_time_of_their_layers(name: str) -> None:
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    torch.manual_seed(0)
    x = torch.randn(1, 3, 32, 32)
    mostly = nn.Sequential(*[nn.Conv2d(3 if n == 0 else 64, 64, 3, padding=1) for n in range(4)])
    shares = {}
    for kind, net in {"layers": mostly.eval(), "functions": Slow().eval()}.items():
        run = engine.get(name).prepare(net, x, 1)
        assert isinstance(run, engine.Prepared)
        expected = run().clone()
        shares[kind] = min(run.outside() for _ in range(9))
        assert torch.equal(run(), expected)
    assert 0 < shares["layers"] < 0.5 < shares["functions"] < 1


def test_bars_are_grouped_by_network_with_the_line_of_the_rival(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(
        "syno.engines.picture.save_figure", lambda figure, path: drawn.append(figure)
    )
    nets = {"none": small(), "other": small()}
    found = compare_engines(nets, EXAMPLE, ["channels-last"], rounds=2)
    save_engines(found, tmp_path / "plot.png", {"none": "original"})
    (axes,) = drawn[0].axes
    texts = [text.get_text() for text in axes.texts]
    assert [text for text in texts if text in ("original", *nets)] == ["original", "other"]
    bars = [patch.get_width() for patch in axes.patches]
    assert bars == [time.median_ms for time in found.times]
    line = next(line for line in axes.lines if line.get_linestyle() == "--")
    rival = next(t for t in found.times if t.engine == found.rival and t.network == "none")
    assert line.get_xdata()[0] == rival.median_ms


@pytest.mark.slow
def test_a_network_that_onnx_runtime_cannot_run_is_a_failure_of_that_engine() -> None:
    """Its matrix products of INT8 want one zero point for all columns."""
    pytest.importorskip("onnxruntime")

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(2, 8, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.bmm(x, self.weight)

    found = compare_engines(
        {"product": Product()}, torch.randn(2, 8, 8), ["onnxruntime", "onnxruntime-int8"], rounds=2
    )
    assert "ONNX Runtime cannot run the network" in found.failures["product", "onnxruntime-int8"]
    assert {time.engine for time in found.times} == {"eager", "onnxruntime"}


@pytest.mark.parametrize("name", slow_but(INT8, "syno-cpp-int8"))
@pytest.mark.parametrize("samples", [1, 5])
def test_ranges_come_from_samples_in_batches_of_another_size(name: str, samples: int) -> None:
    if not engine.available([name]):
        pytest.skip(f"the inference engine {name} is not installed")
    calibrated = engine.get(name).calibrated([EXAMPLE[:1]] * samples)
    found = compare_engines({"net": small()}, EXAMPLE[:2], [calibrated], rounds=2)
    assert found.failures == {}
    (time,) = (each for each in found.times if each.engine == name)
    assert time.error < 0.5


@pytest.mark.parametrize(
    "kinds", with_slow([("int8",), ("int8", "auto")], ("int8", "auto")), ids="-".join
)
def test_the_command_scores_networks_by_data(kinds: tuple[str, ...]) -> None:
    names = [f"syno-cpp-{kind}" for kind in kinds]
    words = ["bench", "network", "--model", "cnn-small", "--model-option", "width=4"]
    words += ["--size", "8", "--operators", "none", "--data", "digits"]
    words += ["--images", "50", "--samples", "20", "--rounds", "20"]
    ran = CliRunner().invoke(cli, [*words, "--engines", ",".join(["syno-cpp", *names]), "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert found["input"] == [1, 1, 8, 8]  # digits have one channel
    scores = {each["engine"]: each["accuracy"] for each in found["times"]}
    assert scores["eager"] == scores["syno-cpp"]
    for name in names:
        assert abs(scores[name] - scores["eager"]) <= 0.1
    assert all(each * 50 == pytest.approx(round(each * 50)) for each in scores.values())
