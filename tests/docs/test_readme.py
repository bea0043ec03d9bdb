"""The first example of the README runs as it stands there, and the README stays short."""

from __future__ import annotations

from .pages import ROOT, blocks

README = ROOT / "README.md"


def example() -> str:
    return next(block.text for block in blocks(README) if block.language == "python")


def test_the_first_example_makes_a_network_smaller_and_writes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "cache"))
    namespace: dict[str, object] = {"__name__": "readme"}
    exec(compile(example(), str(README), "exec"), namespace)
    found = namespace["found"]
    network = found.network("macs 0.5x")
    assert network.row.macs <= 0.5 * found.original.macs
    assert network.row.value > found.original.value - 0.1
    assert "macs 0.5x" in capsys.readouterr().out
    assert {path.suffix for path in tmp_path.glob("faster.*")} == {".cpp", ".h", ".bin"}


def test_the_first_example_is_short():
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) <= 10


def test_the_readme_is_short():
    assert README.stat().st_size <= 12_000
