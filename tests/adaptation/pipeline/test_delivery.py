"""Networks in the number formats of the engine of the latencies."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch
from torch import nn

import syno
from marks import slow_but
from syno import UserError
from syno.adaptation.pipeline import delivery
from syno.adaptation.pipeline import slot_latencies as module
from syno.adaptation.pipeline.kinds import Kind, kinds_of
from syno.adaptation.pipeline.pool import ORIGINAL, REMOVED, Candidate, _variants
from syno.adaptation.pipeline.slot_latencies import slot_latencies
from syno.codegen.native import no_compiler
from syno.inference.library.built import built
from syno.inference.precision import PRECISIONS
from syno.operands.lookup import named_operators

from .conftest import adapted, options

pytestmark = pytest.mark.skipif(no_compiler() is not None, reason="there is no C++ compiler")


def in_engine(trained, data, store, engine, **changes):
    given = {"name": "formats", "options": options(engine=engine), **changes}
    return adapted(trained, data, store, **given)


@pytest.mark.parametrize(
    "engine", ["syno-cpp-int8", pytest.param("syno-cpp-auto", marks=pytest.mark.slow)]
)
def test_what_is_measured_is_what_is_written(engine, trained, data, tmp_path):
    found = in_engine(trained, data, str(tmp_path / "runs.db"), engine)
    (network,) = found.networks
    assert found.original.engine == network.row.engine == engine
    assert found.original.exact is not None and network.row.exact is not None
    made = network.quantized
    assert made is not None
    assert "int8" in {row.format for row in made.rows} or engine == "syno-cpp-auto"
    (written,) = {found.export(tmp_path / "net", network.name).code}
    library = syno.inference.load(written)
    x = data.tensors[0][:5]
    with torch.no_grad():
        y = torch.cat([made(one[None]) for one in x])
        exact = network.net(x)
    np.testing.assert_allclose(library(x.numpy()), y.numpy(), atol=0.03 * float(y.abs().max()))
    assert (y - exact).abs().max() < 0.15 * exact.abs().max()
    # The value is that of the code, on the last tenth of the samples.
    inputs, targets = data.tensors[0][-64:], data.tensors[1][-64:]
    right = torch.from_numpy(library(inputs.numpy())).argmax(1) == targets
    assert network.row.value == pytest.approx(float(right.float().mean()))
    assert "in float32" in found.table().names()
    # Another precision is another network.
    plain = found.export(tmp_path / "plain", network.name, precision="float32")
    float32 = syno.inference.load(plain.code)(x.numpy())
    np.testing.assert_allclose(float32, exact.numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_it_is_shipped_with_a_card(trained, data, tmp_path):
    found = in_engine(trained, data, str(tmp_path / "runs.db"), "syno-cpp-int8", max_drop=50.0)
    with pytest.raises(UserError, match=r"has no network '0\.5x'"):
        found.ship(tmp_path / "out", "0.5x")
    shipped = found.ship(tmp_path / "out", "macs 0.6x", processors=["native"])
    card = shipped.card.read_text()
    for heading in ("Results", "Operators", "Number formats", "Settings", "Use", "Processors"):
        assert f"\n## {heading}\n" in card
    (network,) = found.networks
    assert f"| {found.objective.shown(network.row.value)} |" in card
    assert "syno-cpp-int8 with 1 thread" in card and "macs 0.6x" in card
    assert all(row.slot in card and row.operator in card for row in network.slots)
    original = found.ship(tmp_path / "original", "original", processors=["native"]).card.read_text()
    assert "before it was adapted" in original and "## Operators" not in original
    # In float32 there are no formats to tell.
    plain = found.ship(tmp_path / "plain", "macs 0.6x", processors=["native"], precision="float32")
    assert "## Number formats" not in plain.card.read_text()


def test_it_is_continued_with_the_same_formats(trained, data, tmp_path, monkeypatch):
    store = str(tmp_path / "runs.db")
    first = in_engine(trained, data, store, "syno-cpp-int8")
    # Formats may be chosen by measured times, which differ from run to run.
    monkeypatch.setattr(delivery, "quantize", None)
    again = in_engine(trained, data, store, "syno-cpp-int8")
    assert again.original == first.original
    one, other = first.networks[0], again.networks[0]
    assert one.row == other.row
    assert one.quantized is not None and other.quantized is not None
    rows = [
        [(row.name, row.format, row.reason) for row in each.quantized.rows] for each in (one, other)
    ]
    assert rows[0] == rows[1] and any(reason for _, _, reason in rows[0])
    x = data.tensors[0][:3]
    with torch.no_grad():
        assert torch.equal(one.quantized(x), other.quantized(x))


class Sums(nn.Module):
    """A network with an operation that libraries do not have."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.net(x)
        return y + 0.0 * y.cumsum(1)


@pytest.mark.parametrize("library", slow_but([True, False], False))
def test_the_usual_engine_is_that_of_libraries_where_the_network_can_be_one(
    library, trained, data, tmp_path
):
    notes: list[str] = []

    def stop(phase, done, total, text):
        if phase == "note":
            notes.append(text)
        elif phase == "original":
            raise KeyboardInterrupt

    net = trained if library else Sums(trained)
    given = {"name": "usual", "options": options(engine=None)}
    store = str(tmp_path / "runs.db")
    with pytest.raises(KeyboardInterrupt):
        adapted(net, data, store, progress=stop, **given)
    assert [note.partition(":")[0] for note in notes] == (
        []
        if library
        else ["latencies are those of syno.compile, because the network is no C++ library"]
    )
    notes.clear()
    found = adapted(net, data, store, progress=lambda phase, *_: None, **given)
    assert found.original.engine == ("syno-cpp" if library else "syno")
    written = found.export(tmp_path / "net", "macs 0.6x").code
    assert written.suffix == (".cpp" if library else ".py")


def test_an_engine_that_is_not_there_is_refused_first(trained, data, tmp_path):
    with pytest.raises(UserError, match="there is no inference engine 'fast'"):
        in_engine(trained, data, str(tmp_path / "runs.db"), "fast")


class Strided(nn.Module):
    """Slots of several kinds: strided, dilated, one that can be removed, 1x1, and a linear one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(8, 8, 3, padding=1)
        self.strided = nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.dilated = nn.Conv2d(16, 16, 3, padding=2, dilation=2)
        self.narrow = nn.Conv2d(16, 8, 1)
        self.head = nn.Linear(8, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.strided(torch.relu(self.first(x))))
        x = torch.relu(self.narrow(torch.relu(self.dilated(x))))
        return self.head(x.mean((2, 3)))


OPERATORS = ("conv1x1", "depthwise-separable")


def slots_of(net: nn.Module) -> dict[str, tuple[Kind, list[Candidate]]]:
    """The kinds of slots with the operators that fit them."""
    x = torch.randn(1, 8, 16, 16)
    where = [syno.conv2d(stride=(1, 2)), syno.linear()]
    kinds = kinds_of(syno.substitute(net.eval(), where=where, example_input=x), x)
    found = {}
    for name, kind in kinds.items():
        operators = _variants(named_operators(OPERATORS, store=None), kind.slot, "given")
        fitting: dict[str, Candidate] = {}
        for each in operators:
            with contextlib.suppress(UserError):  # it does not fit
                kind.binding(each)
                fitting.setdefault(each.name.partition("[")[0], each)
        found[name] = kind, list(fitting.values())
    return found


KINDS = {"strided": 2, "dilated": 2, "head": 0}  # the operators that fit


@pytest.mark.parametrize("name", slow_but(KINDS, "strided"))
def test_every_kind_of_slot_is_measured_in_every_format(name):
    found = slots_of(Strided())
    assert set(found) == {"first", "strided", "dilated", "narrow", "head"}
    kind, operators = found[name]
    times = slot_latencies(kind, operators, formats=PRECISIONS, threads=1, rounds=20)
    names = {ORIGINAL, *(each.name for each in operators)}
    names |= {REMOVED} if kind.removable else set()
    assert set(times) == names and len(operators) == KINDS[name]
    assert all(each.ms > 0 and each.format in PRECISIONS for each in times.values())


def test_slots_that_are_no_library_alone_are_measured_as_kernels(monkeypatch):
    def build(graph, precision):
        raise UserError("not covered")

    monkeypatch.setattr(module, "built", build)
    kind, operators = slots_of(Strided())["first"]
    times = slot_latencies(kind, operators[:1], formats=["int8"], threads=1, rounds=20)
    assert set(times) == {ORIGINAL, REMOVED, operators[0].name}
    assert {each.format for each in times.values()} == {"float32"}


def test_a_candidate_that_does_not_compile_is_left_out(monkeypatch):
    kind, operators = slots_of(Strided())["first"]
    refused, calls = [], []

    def build(graph, precision):
        calls.append(graph)
        # All together, and each operator alone: the original and the removed layer come first.
        if len(calls) == 1 or len(calls) > 3:
            refused.append(graph)
            raise UserError("the compiler failed")
        return built(graph, precision)

    monkeypatch.setattr(module, "built", build)
    times = slot_latencies(kind, operators, formats=["float32"], threads=1, rounds=20)
    assert set(times) == {ORIGINAL, REMOVED} and len(refused) == 1 + len(operators)
