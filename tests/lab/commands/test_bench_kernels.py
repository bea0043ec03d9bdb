"""`syno bench kernels`: layers, forms, and what is not measured."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner, Result

from syno.cli.main import cli
from syno.measure import kernels
from syno.operators import zoo


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "kernels", *arguments])


SMALL = ("--operators", "depthwise", "--layers", "512@7", "--batch", "1", "--rounds", "20")


def test_one_layer_with_measured_plans() -> None:
    result = run(*SMALL, "--forms", "eager", "--measure-plans", "2", "--threads", "1", "--json")
    assert result.exit_code == 0, result.output
    (batch,) = json.loads(result.stdout)["batches"]
    assert {time["layer"] for time in batch["times"]} == {"512@7"}
    chosen = {choice["kernel"]: choice for choice in batch["chosen"]}
    assert set(chosen) == {"depthwise cpp", "depthwise eager"}
    for name, choice in chosen.items():
        assert choice["number"] in (1, 2)
        measured = batch["summary"][name]["measured_plan"]
        assert measured == pytest.approx(choice["speedup"])
    assert batch["missing"] == []


def test_a_form_that_takes_too_long_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    def slow(module: object, x: object, *, freeze: bool) -> None:
        try:
            time.sleep(60)
            ended.append(module)
        except Exception:  # as compilers do
            pytest.fail("the time limit was caught")

    monkeypatch.setattr(kernels, "compiled", slow)
    words = (*SMALL, "--forms", "straightforward", "--form-seconds", "0.2", "--threads", "1")
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert not ended
    expected = "512@7 depthwise straightforward: not measured: building it took more than 0.2 s"
    assert expected in result.stdout
    (batch,) = json.loads(run(*words, "--json").stdout)["batches"]
    (missing,) = batch["missing"]
    assert missing["reason"] == "building it took more than 0.2 s"
    assert batch["summary"]["depthwise cpp"]["over_straightforward"] is None


def test_the_straightforward_plan_makes_all_windows_first() -> None:
    for name in ("conv2d", "operator-1", "operator-2"):
        operator = zoo.load(name)
        sizes = kernels.sizes(operator, 64, 14, 1)
        plan = operator.numbered_plan(sizes, kernels.straightforward_plan(operator, sizes))
        stages = plan.text.split("\n")
        data = [n for n, line in enumerate(stages) if " = window " in line or " = roll " in line]
        contracted = [n for n, line in enumerate(stages) if " = contract " in line]
        assert len(data) >= 2
        assert max(data) < min(contracted)
        assert " = convolve " not in plan.text
        assert " = shear " not in plan.text
        assert not operator.plans(sizes, 1)[0].views_first


def test_mistakes() -> None:
    result = run("--layers", "64@57")
    assert (result.exit_code, "unknown layer '64@57'\n  expected: 64@56" in result.output) == (
        2,
        True,
    )
    result = run("--form-seconds", "0")
    assert result.exit_code == 2
