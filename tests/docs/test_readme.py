"""The first example of the README runs as it stands there, and the README stays short."""

from __future__ import annotations

import pytest

from .pages import ROOT, blocks

README = ROOT / "README.md"
# With these changes, no operator and no network is compiled, and there are fewer samples.
QUICKER = {
    'fidelity("digits")': 'fidelity("digits").changed(epochs=2)',
    "mutations=0)": "mutations=0, pairs=False, fit_images=64, score_images=64,"
    ' engine="eager", kernels="eager")',
}


def example() -> str:
    return next(block.text for block in blocks(README) if block.language == "python")


def makes_a_network_smaller(code: str, folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    namespace: dict[str, object] = {"__name__": "readme"}
    exec(compile(code, str(README), "exec"), namespace)
    found = namespace["found"]
    network = found.network("macs 0.5x")
    assert network.row.macs <= 0.5 * found.original.macs
    assert network.row.value > found.original.value - 0.1
    assert "macs 0.5x" in capsys.readouterr().out
    assert {path.suffix for path in folder.glob("faster.*")} == {".cpp", ".h", ".bin"}


@pytest.mark.slow
def test_the_first_example_makes_a_network_smaller(tmp_path, monkeypatch, capsys):
    makes_a_network_smaller(example(), tmp_path, monkeypatch, capsys)


def test_the_first_example_runs_without_compiled_code(tmp_path, monkeypatch, capsys):
    code = example()
    for old, new in QUICKER.items():
        assert code.count(old) == 1
        code = code.replace(old, new)
    makes_a_network_smaller(code, tmp_path, monkeypatch, capsys)


def test_the_first_example_is_short():
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) <= 10


def test_the_readme_is_short():
    assert README.stat().st_size <= 12_000
