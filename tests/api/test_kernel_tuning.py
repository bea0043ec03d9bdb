"""Schedules found by measurement: the model that proposes them, the search, their use."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import syno
from syno import UserError, _core
from syno.codegen import native
from syno.codegen.native import find_tuning
from syno.codegen.native.tuning_cache import Tuning, keep_tuning
from syno.codegen.torch_op import Kernel
from syno.measure import kernel_tuning, kernels
from syno.measure.kernel_tuning import tune_kernel
from syno.measure.schedule_costs import CostModel, Machine, Nest, choices_of, tuning_text
from syno.operators import zoo

MACHINE = Machine(16, 32, 2)
NEST: Nest = {
    "nest": 0,
    "macs": 1_000_000,
    "form": "product",
    "forms": ["product", "rows"],
    "rows": 64,
    "terms": 64,
    "taps": 3,
    "columns": 784,
    "slices": 1,
    "width": 28,
    "block": 0,
    "blocks": [14, 7, 4, 2, 1],
    "paired": False,
    "can_pair": True,
    "over_columns": True,
    "in_place": False,
}


@pytest.fixture(autouse=True)
def own_cache(
    new_cache: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    cache = new_cache(tmp_path / "cache")
    monkeypatch.setenv("SYNO_CACHE", str(cache))
    return cache


def plan_of(
    name: str, channels: int, size: int
) -> tuple[syno.Operator, dict[str, int], _core.Plan]:
    operator = zoo.load(name)
    binding = kernels.sizes(operator, channels, size, 1)
    return operator, binding, operator.numbered_plan(binding, 1)


def test_choices_fit_into_registers_and_blocks() -> None:
    for choice in choices_of(NEST, MACHINE)[2:]:
        rows, width = int(choice["rows"]), int(choice["width"])
        assert rows * width < MACHINE.registers
        assert choice["block"] == "whole" or int(choice["block"]) in NEST["blocks"]
        if choice["pairs"] == "on":
            assert choice["over"] == "columns"
    assert choices_of(NEST, MACHINE)[:2] == [{}, {"form": "rows"}]
    small = {tuple(c.items()) for c in choices_of(NEST, Machine(8, 16, 2))}
    assert small < {tuple(c.items()) for c in choices_of(NEST, MACHINE)}


def test_the_model_learns_what_measurements_say() -> None:
    model = CostModel(NEST, MACHINE)
    first = model.best(6)
    assert len(first) == 6
    # On this machine, only tiles of five rows are fast, whatever the model thought.
    truth = {id(c): 1.0 if c["rows"] == "5" else 2.0 for c in model.choices}
    shown = [model.choices[place] for place in range(0, len(model.choices), 7)]
    model.learn([(choice, truth[id(choice)]) for choice in shown])
    proposed = model.best(6)
    assert all(choice["rows"] == "5" for choice in proposed)
    assert not any(choice in shown for choice in proposed)
    assert math.isfinite(model.expected().sum())


def test_a_tuning_is_kept_by_threads_and_code() -> None:
    _, _, plan = plan_of("conv2d", 8, 6)
    _, _, other = plan_of("conv2d", 8, 7)
    assert find_tuning(plan) == ""
    keep_tuning(plan, Tuning("0: rows=4", 1.1, 6), 2)
    keep_tuning(plan, Tuning("0: rows=5", 1.1, 6), 1)
    assert find_tuning(plan, threads=2) == "0: rows=4"
    assert find_tuning(plan, threads=1) == "0: rows=5"
    assert find_tuning(plan, threads=3) == ""
    assert find_tuning(plan) == "0: rows=4"
    assert find_tuning(other) == find_tuning(plan, precision="bfloat16") == ""


def test_a_damaged_file_is_no_tuning(own_cache: Path) -> None:
    _, _, plan = plan_of("conv2d", 8, 6)
    keep_tuning(plan, Tuning("0: rows=4", 1.1, 6), 1)
    (file,) = (own_cache / "tunings").iterdir()
    for text in ("", "{", "[]", '{"format": 1}', '{"format": 1, "tunings": {"1": "0: rows=4"}}'):
        file.write_text(text)
        assert find_tuning(plan) == ""
    keep_tuning(plan, Tuning("0: rows=5", 1.1, 6), 1)
    assert find_tuning(plan) == "0: rows=5"
    file.chmod(0o666)
    with pytest.raises(UserError, match="may be written by every user"):
        find_tuning(plan)


def test_a_kernel_is_tuned_once() -> None:
    operator, binding, plan = plan_of("conv2d", 16, 6)
    steps: list[str] = []
    found = tune_kernel(operator, binding, trials=6, progress=steps.append)
    assert found.trials == 6 and steps
    assert (found.tuning == "") == (found.speedup == 1.0)
    assert find_tuning(plan, threads=1) == found.tuning
    again = tune_kernel(operator, binding, trials=5)
    assert (again.tuning, again.speedup) == (found.tuning, found.speedup)
    assert again.from_cache
    assert not tune_kernel(operator, binding, trials=7).from_cache


def test_the_fastest_schedule_is_found_verified_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, binding, plan = plan_of("conv2d", 16, 6)

    def timed(calls: list[object], rounds: int, **_: object) -> list[list[float]]:
        # The code of the rules comes first; of the others, the later ones are faster.
        return [[10.0 - place] * rounds for place in range(len(calls))]

    checked: list[str] = []
    check = kernel_tuning._check
    monkeypatch.setattr(kernel_tuning, "interleaved", timed)
    monkeypatch.setattr(
        kernel_tuning, "_check", lambda *given: (checked.append(given[-1]), check(*given))[1]
    )
    found = tune_kernel(operator, binding, trials=6)
    assert found.tuning and checked == [found.tuning]
    assert found.speedup > 1
    assert find_tuning(plan, threads=1) == found.tuning
    assert tune_kernel(operator, binding, trials=6).from_cache


def test_what_computes_something_else_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, binding, _ = plan_of("conv2d", 16, 6)
    monkeypatch.setattr(kernel_tuning, "_TOLERANCE", -1.0)
    found = tune_kernel(operator, binding, trials=6)
    assert found.tuning == "" and found.speedup == 1.0


def test_kernels_in_pytorch_use_a_tuning() -> None:
    operator, binding, _ = plan_of("conv2d", 16, 6)
    text = "0: form=product over=columns rows=4 width=2 pairs=off"
    plain = Kernel.of(operator, binding)
    tuned = Kernel.of(operator, binding, tuning=text)
    assert plain.key != tuned.key
    assert tuned.record.from_json(tuned.record.to_json()) == tuned.record
    assert "tuning" not in json.loads(plain.record.to_json())
    x = torch.randn(3, 16, 6, 6)
    weights = [torch.randn(shape) for shape in plain.weight_shapes]
    expected = plain(x, plain.pack(weights))
    assert torch.allclose(tuned(x, tuned.pack(weights)), expected, atol=1e-4)


def test_compiled_and_exported_networks_use_tunings(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()).eval()
    x = torch.randn(2, 16, 6, 6)
    plain = syno.compile(net, x, tuned=True)
    (layer,) = (m for m in plain.modules() if type(m).__name__ == "CompiledLayer")
    from syno.codegen.torch_op.record import KernelRecord

    record = KernelRecord.stored(layer.key)
    plan = record.operator.numbered_plan(record.binding, record.plan, fold_weights=True)
    text = "0: form=product over=columns rows=4 width=2 pairs=off"
    keep_tuning(plan, Tuning(text, 1.1, 6), torch.get_num_threads())
    tuned = syno.compile(net, x)
    (layer,) = (m for m in tuned.modules() if type(m).__name__ == "CompiledLayer")
    assert KernelRecord.stored(layer.key).tuning == text
    assert torch.allclose(tuned(x), net(x), atol=1e-4)
    off = syno.compile(net, x, tuned=False)
    (layer,) = (m for m in off.modules() if type(m).__name__ == "CompiledLayer")
    assert layer.key == record.key


def test_export_writes_tuned_code(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from syno.cli.main import cli

    _, binding, plan = plan_of("conv2d", 16, 6)
    keep_tuning(plan, Tuning("0: form=product over=columns rows=4 width=2 pairs=off", 1.1, 6), 2)
    sizes = ",".join(f"{name}={value}" for name, value in binding.items())
    words = ["export", "conv2d", "--binding", sizes, "--format", "cpp"]
    for more, there in (([], False), (["--tuned"], True)):
        out = tmp_path / f"op{len(more)}.cpp"
        done = CliRunner().invoke(cli, [*words, *more, "-o", str(out), "--check"])
        assert done.exit_code == 0, done.output
        assert ("using Chosen = Tiles<1, 4, 2, 0>" in out.read_text()) == there
    done = CliRunner().invoke(cli, [*words[:-1], "torch", "--tuned", "-o", str(tmp_path / "a.py")])
    assert done.exit_code == 2 and "has no schedules of compiled C++" in done.output


def test_native_functions_take_a_tuning() -> None:
    operator, binding, _ = plan_of("operator-2", 64, 14)
    plain = native.compile_operator(operator, binding)
    text = tuning_text({0: {"form": "rows"}})
    tuned = native.compile_operator(operator, binding, variant=native.Variant(tuning=text))
    rng = np.random.default_rng(0)
    x = rng.standard_normal(plain.input_shape, np.float32)
    weights = [rng.standard_normal(shape, np.float32) for shape in plain.weight_shapes]
    plain.pack(weights)
    tuned.pack(weights)
    np.testing.assert_allclose(tuned(x), plain(x), rtol=1e-4, atol=1e-4)
