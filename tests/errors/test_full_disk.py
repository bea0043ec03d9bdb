"""A full disk: every file that Syno writes stays as it was, and the error says what to do."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from syno import UserError
from syno.codegen.export import export_network
from syno.runs.files import write_text, write_whole


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """Files get at most so many bytes; Python ignores the signal that says so."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def refused(path: Path, write: Callable[[Path], object], most: int = 64) -> None:
    """A file is not written at all, or stays as it was."""
    before = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    with pytest.raises(UserError, match=r"cannot write .*\n(.*\n)*.*enough space"), full_disk(most):
        write(path)
    after = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    assert after == before


def net() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU()).eval()


def exported(format: str) -> Callable[[Path], object]:
    return lambda path: export_network(net(), path, torch.randn(1, 3, 8, 8), format=format)


def table(path: Path) -> None:
    from syno.operators.specification import Specification
    from syno_lab.benchmark import BenchmarkTable, Configuration, TableRow

    specification = Specification("[N, C, H]", "[N, C, H]", ["N: 0", "C: 1", "H: 1"])
    configuration = Configuration("a", "b", "digits", "cnn-small", {}, {})
    rows = [TableRow("k", "x" * 9000, 1, 1)]
    BenchmarkTable(configuration, specification, {}, rows, 1, 1).write(path)


def bundle(path: Path) -> None:
    from syno.store import Bundle, Environment, write_bundle

    here = Environment("a processor", "Linux", {}, "", 1, "1")
    write_bundle(Bundle(here, "a", 8, "eager", "", ()), path, b"0123456789abcdef")


def figure(path: Path) -> None:
    from matplotlib.figure import Figure

    from syno.runs.figures import save_figure

    save_figure(Figure(), path)


FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a text": ("a.txt", lambda path: write_text(path, "x" * 100)),
    "an array": ("a.npy", lambda path: write_whole(path, lambda to: np.save(to, np.zeros(99)))),
    "a table": ("a.jsonl.gz", table),
    "a bundle": ("a.json", bundle),
    "a figure": ("a.png", figure),
    "torch": ("a.py", exported("torch-network")),
    "torch-export": ("a.pt2", exported("torch-export")),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_stays_as_it_was(name: str, tmp_path: Path) -> None:
    file, write = FILES[name]
    path = tmp_path / file
    refused(path, write)
    path.write_bytes(b"the old one")
    refused(path, write)
    write(path)
    assert path.read_bytes() != b"the old one"


def test_what_a_library_says_of_a_full_disk_is_an_error_of_the_user(tmp_path: Path) -> None:
    def save(words: str) -> Callable[[Path], object]:
        def fail(_: Path) -> None:
            raise RuntimeError(words)

        return lambda path: write_whole(path, fail)

    refused(tmp_path / "a", save("PytorchStreamWriter failed writing file data/0: file write"))
    refused(tmp_path / "a", save("No space left on device (os error 28)"))
    with pytest.raises(RuntimeError, match="a bug"):
        write_whole(tmp_path / "a", lambda _: save("a bug")(tmp_path / "b"))
    assert not list(tmp_path.iterdir())


def test_a_pipe_and_a_link_are_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "link").symlink_to(target)
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert target.read_text() == "text"
    code = (
        "from syno.runs.files import write_text\n"
        "from pathlib import Path\n"
        "write_text(Path('/dev/stdout'), 'x')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"x"


@pytest.mark.slow
def test_torch_export_on_a_full_disk_ends_no_process(
    tmp_path: Path, small_disk: Callable[..., object]
) -> None:
    """In a process of its own, which torch would end."""
    code = (
        "import sys, torch, syno\n"
        "from syno.codegen.export import export_network\n"
        "net = torch.nn.Sequential(torch.nn.Conv2d(3, 256, 9), torch.nn.ReLU()).eval()\n"
        "try:\n"
        "    export_network(net, sys.argv[1], torch.randn(1, 3, 9, 9), format='torch-export')\n"
        "except syno.UserError as error:\n"
        "    print(error)\n"
    )
    with small_disk(tmp_path / "disk", "100k") as disk:  # type: ignore[attr-defined]
        path = disk / "net.pt2"
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-500:]
        assert "No space left on device" in done.stdout
        assert not list(disk.iterdir())
