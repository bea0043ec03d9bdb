"""A projection beside its original: the same steps, the same time, and gone on with."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno import UserError
from syno.cli.main import cli
from syno_lab.experiments import projection
from syno_lab.experiments.projection import (
    OPERATOR,
    ORIGINAL,
    STEPS,
    TIME,
    ProjectionComparison,
    read,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="needs transformers"
)

SMALL = ["--model-option", "layers=1", "--model-option", "width=32", "--model-option", "heads=2"]
SMALL += ["--binding", "g=16,k=2", "--context", "16", "--batch", "4", "--rounds", "3"]


def run(folder: Path, *more: str) -> Result:
    """The command on sums, with its results in the folder."""
    text = folder / "sums.txt"
    if not text.exists():
        lines = (f"{a} plus {b} is {a + b}.\n" for a in range(30) for b in range(30))
        text.write_text("".join(lines))
    arguments = ["experiment", "projection", "--data", str(text), *SMALL]
    return CliRunner().invoke(cli, [*arguments, "--out", str(folder / "out.json"), *more])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One seed of twenty steps."""
    made = tmp_path_factory.mktemp("projection")
    result = run(made, "--steps", "20", "--seeds", "1")
    assert result.exit_code == 0, result.output
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> ProjectionComparison:
    """The results before a test adds others to the file."""
    return read(folder / "out.json")


def test_a_device_is_chosen_and_a_file_of_another_one_is_not_continued(
    folder: Path, tmp_path: Path
) -> None:
    content = json.loads((folder / "out.json").read_text())
    assert content["settings"]["device"] == "cpu"
    del content["settings"]["device"]  # as in files from before there was a choice
    older = tmp_path / "older.json"
    older.write_text(json.dumps(content))
    assert projection._opened(older, {"device": "cpu"}).runs
    with pytest.raises(UserError, match=r"are of another device\n  expected: cpu      got: cuda"):
        projection._opened(older, {"device": "cuda"})
    result = run(tmp_path, "--steps", "2", "--seeds", "1", "--device", "tpu9")
    assert result.exit_code == 2 and "device 'tpu9'" in result.output


def test_all_are_trained_and_the_picture_is_there(
    folder: Path, found: ProjectionComparison
) -> None:
    assert [(r.what, r.way, r.seed) for r in found.runs[:3]] == [
        (ORIGINAL, STEPS, 0),
        (OPERATOR, STEPS, 0),
        (OPERATOR, TIME, 0),
    ]
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")
    assert not list(folder.glob("*.ckpt"))
    for run_ in found.runs:
        assert run_.status == "ok"
        assert len(run_.losses) == -(-run_.steps // -(-run_.steps // 20))  # a mean of whole steps
        assert run_.losses[-1] < run_.losses[0]
    assert found.settings["name"] == "gpt2-projection"
    assert found.settings["fidelity"]["steps"] == 20


def test_equal_time_has_the_steps_that_take_as_long(found: ProjectionComparison) -> None:
    timing = found.timing
    assert timing is not None
    assert timing.original.step_ms > 0
    timed = found.run(OPERATOR, TIME, 0)
    assert timed is not None
    assert timed.steps == round(20 / timing.ratio)
    # At equal time the original is what it is at equal steps.
    assert found.run(ORIGINAL, TIME, 0) is found.run(ORIGINAL, STEPS, 0)
    assert found.values(OPERATOR, TIME) == {0: timed.loss}


def test_what_was_trained_is_not_trained_again(folder: Path, found: ProjectionComparison) -> None:
    result = run(folder, "--steps", "20", "--seeds", "2", "--json")
    assert result.exit_code == 0, result.output
    more = read(folder / "out.json")
    assert more.runs[:3] == found.runs[:3]
    assert more.timing == found.timing
    assert more.seeds() == [0, 1]
    rows = json.loads(result.stdout)["rows"]
    assert [row["way"] for row in rows] == [STEPS, STEPS, TIME]
    base, own = more.values(ORIGINAL, STEPS), more.values(OPERATOR, STEPS)
    difference = sum(own[seed] - base[seed] for seed in (0, 1)) / 2
    assert rows[1]["beside"]["difference"] == pytest.approx(difference)


def test_a_pause_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = projection._trained

    def once(*arguments: object) -> projection.ProjectionRun:
        if arguments[3][0] == OPERATOR:  # type: ignore[index]
            raise projection.PausedError
        return trained(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(projection, "_trained", once)
    result = run(tmp_path, "--steps", "5", "--seeds", "1")
    assert result.exit_code == 143, result.output
    assert "the same command resumes" in result.stderr
    assert [r.what for r in read(tmp_path / "out.json").runs] == [ORIGINAL]
    monkeypatch.undo()
    assert run(tmp_path, "--steps", "5", "--seeds", "1").exit_code == 0
    assert len(read(tmp_path / "out.json").runs) == 3


def test_a_file_of_other_settings_is_not_gone_on_with(folder: Path) -> None:
    result = run(folder, "--steps", "21", "--seeds", "1")
    assert result.exit_code == 2
    assert "are of another fidelity" in result.stderr
    result = run(folder, "--steps", "20", "--seeds", "1", "--threads", "2")
    assert "are of another threads\n  expected: 1      got: 2" in result.stderr
    other = folder / "other.json"
    other.write_text("[1]")
    with pytest.raises(UserError, match="holds no results of this experiment"):
        read(other)


def test_a_length_in_seconds_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "--fidelity", "fast/text-time", "--seeds", "1")
    assert result.exit_code == 2
    assert "equal steps need steps" in result.stderr
