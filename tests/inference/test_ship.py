"""Networks as folders to hand over, which run without Syno."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.codegen.native import find_compiler, no_compiler
from syno.inference import ship_network
from syno.inference.shipping import ship

pytestmark = pytest.mark.skipif(
    no_compiler() is not None or os.uname().machine != "x86_64", reason="no compiler for x86-64"
)

# Runs in a process that cannot import Syno or torch.
_PROGRAM = """
import sys
for name in ("syno", "torch"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1])
import importlib
import numpy as np
module = importlib.import_module(sys.argv[2])
network = module.Network()
given = np.load(sys.argv[3])
for threads in (1, 2):
    found = network(*(given[name] for name in given.files), threads=threads)
    found = found if isinstance(found, list) else [found]
np.savez(sys.argv[4], *found)
packed = sys.argv[4] + ".packed"
network.pack(packed)
again = module.Network(weights=packed)(*(given[name] for name in given.files))
again = again if isinstance(again, list) else [again]
assert all(np.array_equal(one, other) for one, other in zip(found, again, strict=True))
print(network.processor)
try:
    network(np.zeros((1, 99), np.float32))
except ValueError as error:
    print(str(error).partition(",")[0])
"""


class Small(nn.Module):
    """[N, 8, 6, 6] -> [N, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


class Two(nn.Module):
    """Tokens [N, 3] and numbers [N, 4] -> [N, 6] and [N, 4]."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.head = nn.Linear(4, 6)

    def forward(self, tokens: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + self.words(tokens).mean(1)
        return self.head(y), torch.relu(y)


def made(kind: type[nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return kind().eval()


def run(shipped, tmp_path, name, *inputs, processor=""):
    """What the folder computes in Python, and what its program says."""
    np.savez(tmp_path / "given.npz", *(x.numpy() for x in inputs))
    paths = [shipped.folder, name, tmp_path / "given.npz", tmp_path / "found.npz"]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *map(str, paths)],
        env={**os.environ, "SYNO_PROCESSOR": processor, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return [], done.stderr
    found = np.load(tmp_path / "found.npz")
    return [torch.from_numpy(found[each]) for each in found.files], done.stdout


def test_a_shipped_network_runs_in_python_and_in_c(tmp_path):
    net = made(Small)
    x = torch.randn(3, 8, 6, 6)
    shipped = ship_network(
        net,
        tmp_path / "out",
        x[:1],
        name="small",
        processors=["native", "baseline"],
        about="Hello.",
    )
    assert shipped.processors[0] == "baseline" and len(shipped.processors) == 2
    for processor, ran in (("", shipped.processors[-1]), ("baseline", "baseline")):
        (y,), said = run(shipped, tmp_path, "small", x, processor=processor)
        torch.testing.assert_close(y, net(x).detach(), rtol=1e-4, atol=1e-5)
        assert said.splitlines() == [ran, "expected inputs ['n'"]
    _, said = run(shipped, tmp_path, "small", x, processor="other")
    assert "there is no library for other" in said
    # The example compiles as it says itself, without a warning.
    lines = shipped.example.read_text().splitlines()
    command = next(line.strip() for line in lines if line.strip().startswith("cc "))
    assert command in shipped.card.read_text()
    compiler = find_compiler().path
    command = command.replace("cc -O2", f"{compiler} -x c -Wall -Wextra -Werror", 1)
    command = command.replace("example.c", "example.c -x none")
    subprocess.run(command, shell=True, check=True, cwd=shipped.folder)
    done = subprocess.run(
        ["./example"], check=True, cwd=shipped.folder, capture_output=True, text=True
    )
    head, _, numbers = done.stdout.partition(":")
    assert head == f"computed for {shipped.processors[-1]}"
    expected = net(torch.zeros(1, 8, 6, 6))[0].tolist()
    assert [float(each) for each in numbers.split()] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    missing = subprocess.run(
        ["./example", "gone.bin"], check=False, cwd=shipped.folder, capture_output=True, text=True
    )
    assert (
        missing.returncode == 1 and "cannot open the file of weights 'gone.bin'" in missing.stderr
    )
    card = shipped.card.read_text()
    assert card.startswith("# small\n\nHello.\n")
    assert f"processors/small-{shipped.processors[-1]}.so" in card and "Compared with" in card


def test_several_inputs_and_tokens_are_shipped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = made(Two)
    inputs = torch.tensor([[1, 2, 6], [0, 0, 3]]), torch.randn(2, 4)
    shipped = ship_network(net, "out", inputs, name="two", processors=["baseline"])
    found, _ = run(shipped, tmp_path, "two", *inputs)
    for y, expected in zip(found, net(*inputs), strict=True):
        torch.testing.assert_close(y, expected.detach(), rtol=1e-4, atol=1e-5)
    text = shipped.example.read_text()
    assert "int64_t* const x0 = calloc" in text and "float* const y1 = calloc" in text


def test_a_quantized_network_is_shipped(tmp_path):
    net = made(Small)
    x = torch.randn(16, 8, 6, 6)
    quantized = syno.quantize(net, [x])
    shipped = ship_network(quantized, tmp_path / "out", x[:1], processors=["native"])
    (y,), _ = run(shipped, tmp_path, "network", x)
    expected = quantized(x).detach()
    assert (y - expected).abs().max() < 0.02 * expected.abs().max()


def test_a_library_that_computes_something_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(ship, "difference", lambda one, other: 0.1)
    with pytest.raises(UserError, match=r"the library for baseline differs .*by 1\.0e-01"):
        ship_network(
            made(Small), tmp_path / "out", torch.randn(1, 8, 6, 6), processors=["baseline"]
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a-b"}, "'a-b' is no name of a library"),
        ({"name": "1st"}, "'1st' is no name of a library"),
        (
            {"processors": ["sse"]},
            "there is no processor 'sse' to ship for\n  expected: some of base",
        ),
        ({"processors": []}, "there are no processors to ship for"),
        ({"precision": "int8"}, "the network has no ranges for int8"),
        ({"precision": "int4"}, "does not have the precision 'int4'"),
    ],
)
def test_what_cannot_be_shipped_is_refused(changes, message, tmp_path):
    with pytest.raises(UserError) as caught:
        ship_network(made(Small), tmp_path / "out", torch.randn(1, 8, 6, 6), **changes)
    assert message in str(caught.value)


def test_a_folder_that_cannot_be_made_and_other_machines(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    given = made(Small), tmp_path / "file" / "out", torch.randn(1, 8, 6, 6)
    with pytest.raises(UserError, match="cannot make the folder"):
        ship_network(*given)
    monkeypatch.setattr(ship.platform, "machine", lambda: "riscv64")
    with pytest.raises(UserError, match=r"the processors of this machine \(riscv64\)"):
        ship_network(*given)


def test_every_kind_of_processors_is_chosen_by_what_it_needs():
    for kinds in ship._PROCESSORS.values():
        assert set(ship._FEATURES) | {"baseline"} >= set(kinds)
        flags = [set(each.flags) for each in kinds.values()]
        assert flags[0] == set() and all(map(operator.ne, flags, flags[1:]))
    folder = Path(ship.__file__).parent
    assert {each.name for each in folder.glob("*.c")} == {"start.c", "example.c"}
