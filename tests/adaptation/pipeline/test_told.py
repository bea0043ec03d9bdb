"""What an adaptation tells while it runs, and of goals that are out of reach."""

from __future__ import annotations

import re

import pytest

from syno.adaptation.pipeline import page, progress

from .conftest import adapted as adapt


def test_without_an_observer_lines_and_notes_go_to_standard_error(
    trained, data, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.0)
    store = str(tmp_path / "runs.db")
    found = adapt(trained, data, store, macs=["0.001x", "0.6x"])
    out, said = capsys.readouterr()
    assert out == ""
    lines = said.splitlines()
    assert any(re.fullmatch(r"\d.* s: candidates, 0 of 3 \w+", line) for line in lines)
    assert any(line.startswith("the goal macs 0.001x is out of reach") for line in lines)
    monkeypatch.setattr(progress, "is_shown", lambda: True)
    again = adapt(trained, data, store, name=found.study, macs=["0.001x", "0.6x"])
    assert again.rows == found.rows
    adapt(trained, data, store, name=found.study, macs="0.6x", progress=lambda *_: None)
    capsys.readouterr()
    adapt(trained, data, store, name=found.study, macs="0.6x", progress=lambda *_: None)
    assert capsys.readouterr().err == ""


def test_a_goal_out_of_reach_is_a_row_beside_those_that_are_not(trained, data, tmp_path):
    notes = []
    found = adapt(
        trained,
        data,
        str(tmp_path / "runs.db"),
        macs=["0.001x", "0.6x"],
        progress=lambda phase, done, total, text: notes.append(text) if phase == "note" else None,
    )
    assert [each.name for each in found.networks] == ["macs 0.6x"]
    ((name, least),) = found.unreached.items()
    assert name == "macs 0.001x" and least.startswith("macs: the least possible is 0.")
    assert f"the goal {name} is out of reach: {least}" in notes
    assert [(row.name, row.value) for row in found.rows if row.about == "out of reach"] == [
        (name, None)
    ]
    assert (name, f"out of reach: {least}") in found.sections()[0].facts
    assert found.to_json()["unreached"] == {name: least}
    assert f"The goal {name} is out of reach: {least}." in page.render(found)
    assert any(row[0] == name for row in found.table().rows)


def test_what_operators_will_hardly_reach_is_said_before_the_fits(trained, data, tmp_path):
    told = []

    def stop(phase, done, total, text):
        told.append((phase, text))
        if phase == "fits":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt(
            trained,
            data,
            str(tmp_path / "runs.db"),
            macs=None,
            latency=["0.01x", "1x"],
            progress=stop,
        )
    (note,) = [text for phase, text in told if phase == "note"]
    assert re.fullmatch(
        r"operators will hardly reach 0\.01x: with the fastest in each slot, the latency would be "
        r"about \d\.\d\dx",
        note,
    )
