"""Exported C++ for another processor, compiled here and run in an emulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from syno import UserError
from syno.codegen.export import cross, formats
from syno.codegen.export.write import network_subject, operator_subject
from syno.network import models
from syno.operators import zoo
from syno.runs.helper_process import find_program

TARGET = "aarch64-linux-gnu"
SIZES = {"N": 1, "C_in": 16, "C_out": 16, "H": 8, "W": 8, "k": 3}
needs_cross_tools = pytest.mark.skipif(
    find_program(f"{TARGET}-g++") is None or find_program("qemu-aarch64") is None,
    reason=f"no cross compiler or emulator for {TARGET}",
)


@needs_cross_tools
def test_an_operator_runs_on_another_processor(tmp_path: Path) -> None:
    subject = operator_subject(zoo.load("depthwise-separable"), SIZES, 0)
    written = formats.get("cpp").write(subject, tmp_path / "op.cpp")
    library = cross.build(written, TARGET)
    # 64-bit ARM, as the header of an ELF file says it.
    assert library.read_bytes()[:4] == b"\x7fELF" and library.read_bytes()[18] == 183
    run = cross.check(written, subject, TARGET)
    assert run.passed, run.output
    assert "right on aarch64-linux-gnu" in run.output
    assert written.weights is not None
    weights = np.fromfile(written.weights, np.float32)
    weights[0] += 1
    weights.tofile(written.weights)
    assert "off by" in cross.check(written, subject, TARGET).output


@needs_cross_tools
@pytest.mark.slow
def test_a_network_runs_on_another_processor(tmp_path: Path) -> None:
    net = models.build("resnet-small", size=16).eval()
    subject = network_subject(net, torch.randn(2, *models.built(net).input_shape))
    written = formats.get("cpp-network", networks=True).write(subject, tmp_path / "net.cpp")
    run = cross.check(written, subject, TARGET)
    assert run.passed, run.output


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("aarch64; rm -rf x", "is no target"),
        ("../aarch64-linux-gnu", "is no target"),
        ("", "is no target"),
        ("aarch64-linux-gnu -mcpu=a76 -o x", "perhaps a processor: 'aarch64-linux-gnu -mcpu="),
        ("mips64el-linux-none", "apt install g\\+\\+-mips64el-linux-none"),
    ],
)
def test_a_target_without_a_compiler_is_refused(target: str, what: str) -> None:
    with pytest.raises(UserError, match=what):
        cross.cross_compiler(target)
