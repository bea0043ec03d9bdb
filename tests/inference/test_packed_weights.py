"""Packed weights: files that libraries write, map into memory, and refuse."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from syno import UserError
from syno.codegen.export import export_network
from syno.codegen.native import find_compiler
from syno.inference import load
from syno.inference.library.load import NetworkLibrary, parts_of

pytestmark = pytest.mark.usefixtures("one_torch_thread")
SHAPE = (3, 9, 7)


class Net(nn.Module):
    """Layers whose packed weights are longer than their own, and a constant."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 7, 3, padding=1), nn.ReLU(), nn.Conv2d(7, 5, 1))
        self.scale = nn.Parameter(torch.randn(5, 1, 1))

    def forward(self, x):
        """A map."""
        return torch.tanh(self.layers(x) * self.scale)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("packed")
    return export_network(
        Net().eval(), folder / "net", torch.zeros(1, *SHAPE), format="cpp-network"
    )


@pytest.fixture
def network(files):
    return load(files.code)


@pytest.fixture
def packed(network, tmp_path):
    network.pack(tmp_path / "net.packed")
    return tmp_path / "net.packed"


X = np.random.default_rng(0).normal(size=(4, *SHAPE)).astype(np.float32)


def test_packed_weights_give_the_same_bits(files, network, packed):
    again = load(files.code, packed)
    for threads in (1, 2, 3):
        assert np.array_equal(again(X, threads=threads), network(X, threads=threads))
    again.pack(packed.with_name("second"))
    assert packed.with_name("second").read_bytes() == packed.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="the maps of a process are those of Linux")
def test_packed_weights_are_mapped_until_the_network_is_gone(files, packed):
    def maps():
        with open("/proc/self/maps", encoding="utf-8") as lines:
            return [line for line in lines if str(packed) in line]

    network = load(files.code, packed)
    assert len(maps()) == 1
    assert " r--p " in maps()[0]  # nobody writes to what others share
    del network
    assert not maps()


def test_networks_without_layers_are_packed_too(tmp_path):
    files = export_network(
        nn.Sigmoid().eval(), tmp_path / "plain", torch.zeros(1, 4), format="cpp-network"
    )
    load(files.code).pack(tmp_path / "packed")
    x = np.ones((2, 4), np.float32)
    assert np.array_equal(load(files.code, tmp_path / "packed")(x), load(files.code)(x))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-4], "another length than its head says"),
        (lambda data: data + b"1234", "another length than its head says"),
        (lambda data: data[:40], "no file of weights"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "damaged: its checksum differs"),
        (lambda data: data[:70] + bytes([data[70] ^ 1]) + data[71:], "damaged: its checksum"),
        (lambda data: data[:24] + bytes([data[24] ^ 1]) + data[25:], "damaged: its checksum"),
        (lambda data: data[:8] + bytes([data[8] ^ 1]) + data[9:], "weights of another network"),
        (lambda data: data[:16] + bytes([data[16] ^ 1]) + data[17:], "for another processor"),
        (lambda data: data[:32] + bytes([data[32] ^ 1]) + data[33:], "for another processor"),
        (lambda data: b"SYNOPAC?" + data[8:], "no file of weights"),
    ],
)
def test_damaged_files_are_refused(files, packed, change, words):
    packed.write_bytes(change(packed.read_bytes()))
    with pytest.raises(UserError, match=words):
        load(files.code, packed)


def test_weights_of_a_library_for_another_processor_are_refused(files, packed):
    source = files.code.read_text(encoding="utf-8")
    flags = ("-std=c++17", "-O1", "-fPIC", "-shared")  # no vectors
    other = files.code.with_name("other.so")
    find_compiler().build(source, flags, other, parts=parts_of(source))
    with pytest.raises(UserError, match="of other code or for another processor"):
        NetworkLibrary(ctypes.CDLL(str(other)), "syno_net", packed)
    assert NetworkLibrary(ctypes.CDLL(str(other)), "syno_net", files.weights)(X).shape[0] == 4


def test_a_file_that_cannot_be_written_is_an_error(network, tmp_path):
    with pytest.raises(UserError, match=r"cannot write .*No space left"):
        network.pack("/dev/full")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        network.pack(tmp_path / "file" / "packed")


def test_the_c_function_checks_its_arguments(network):
    pack = network._function("pack")
    assert pack(None, b"file") == -1
    assert network._error() == "an argument is null"
    assert pack(network._handle, None) == -1


def test_times_of_steps_are_checked(network):
    steps = network.step_seconds(X, threads=2, times=3)
    assert all(step.seconds > 0 for step in steps if step.layer)
    with pytest.raises(UserError, match="'times' is an integer of at least 1"):
        network.step_seconds(X, times=0)


def test_other_programs_read_packed_weights(files, packed):
    """In a process of its own, without Syno."""
    library = find_compiler().library(files.code.read_text(encoding="utf-8"), parts=1)
    code = (
        "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]);"
        "library.syno_net_create.restype = ctypes.c_void_p;"
        "print(bool(library.syno_net_create(sys.argv[2].encode())))"
    )
    run = [sys.executable, "-c", code, library._name, packed]
    made = subprocess.run(run, capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "True"
