"""No text of a store becomes more than a text on the page, in a drawing or in a picture."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import Markup
from tests.cli.conftest import runs  # noqa: F401, a fixture
from tests.report import hostile, sample

import syno.report
from syno._util.errors import UserError
from syno.report import charts, drawing, gather, markup, page, write
from syno.report.model import Report, RungRow
from syno.store import Store, StudySummary
from syno.store.objective import LOSS

RUNGS = tuple(
    RungRow(name, 2, 0, None, 1, best=0.5, baseline=0.5, seconds=1.0) for name in ("low", "high")
)


@pytest.fixture(autouse=True)
def _without_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five megabytes that no text of a store reaches."""
    monkeypatch.setattr(markup, "plotly_library", lambda: Markup("/* plotly.js */"))


def full_report() -> Report:
    """A report with something in every field."""
    report = sample.report(count=4)
    first, *others = report.operators
    near = replace(report.baseline, accuracy=0.7, loss=2.0, test_accuracy=0.7, test_loss=2.0)
    first = replace(first, note="a note", test_accuracy=0.8, quarantined=True, rung="low")
    operators = [replace(c, loss=1.5 + c.number / 100, scores=(0.5,)) for c in (first, *others)]
    return replace(report, baseline=near, operators=tuple(operators), rungs=RUNGS, final=True)


@pytest.mark.parametrize("text", [*hostile.MARKUP, hostile.HOSTILE])
@pytest.mark.parametrize("changes", [{}, {"objective": LOSS}], ids=["accuracy", "loss"])
def test_every_text_of_a_report_stays_a_text(text: str, changes: dict) -> None:
    report = replace(full_report(), **changes)
    assert hostile.count_texts(report) > 100
    tampered = hostile.changed(report, lambda old: text + old)
    harmless = hostile.changed(report, lambda old: "x" + old)
    hostile.check_same_structure(page.render(tampered), page.render(harmless))


def test_the_check_notices_a_text_that_is_not_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    report = full_report()
    plain = page.render(report)
    tampered = replace(report, title='<img src=x onerror="alert(1)">')
    monkeypatch.setattr(markup, "_shown", lambda value: Markup(str(value)))
    markup._environment.cache_clear()
    try:
        with pytest.raises(AssertionError):
            hostile.check_same_structure(page.render(tampered), plain)
    finally:
        markup._environment.cache_clear()


@pytest.fixture
def summary(runs: str) -> StudySummary:  # noqa: F811
    with Store.open(runs, read_only=True) as store:
        return store.summary()


def test_every_text_of_a_study_is_a_text_or_refused(
    summary: StudySummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # drawings have tests of their own, and take their time
    shown = refused = 0
    for harmless, tampered in zip(
        hostile.each_changed(summary, "x"),
        hostile.each_changed(summary, hostile.HOSTILE),
        strict=True,
    ):
        try:
            report = gather(tampered)
        except UserError:
            refused += 1
            continue
        shown += 1
        hostile.check_same_structure(page.render(report), page.render(gather(harmless)))
    assert shown > 30
    assert refused > 10


def test_a_key_with_an_element_is_shown_as_it_is(summary: StudySummary) -> None:
    first, *others = summary.evaluations
    key = "<img src=x onerror=alert(1)>"
    tampered = replace(summary, evaluations=(replace(first, key=key), *others))
    text = page.render(gather(tampered))
    assert "<img" not in text
    assert f'data-key="{key.replace("<", "&lt;").replace(">", "&gt;")}"' in text


def test_no_file_makes_html_but_the_templates() -> None:
    """`Markup` and `|safe` are the only ways around the escaping."""
    folder = Path(syno.report.__file__).parent
    for file in sorted(folder.glob("*.py")):
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Markup":
                assert file.name == "markup.py" or not node.args, file.name
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                tags = set(re.findall(r"</?(\w+)", node.value))
                allowed = {"b", "br"} if file.name == "charts.py" else set()
                documentation = {"template"} if file.name == "markup.py" else set()
                assert tags <= allowed | documentation, (file.name, node.value)
    for template in (folder / "templates").iterdir():
        text = template.read_text()
        assert not re.search(r"\|\s*safe|autoescape|Markup", text), template.name
        for attribute in re.findall(r"[\w-]+=\{\{", text):  # a value without quotation marks
            pytest.fail(f"{template.name}: {attribute}")


def test_no_text_ends_the_script_with_the_figures() -> None:
    report = hostile.changed(full_report(), lambda old: hostile.HOSTILE + old)
    text = page.render(report)
    script = re.search(r'<script id="figures"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert script is not None
    assert not set(script[1]) & set("<>&\u2028\u2029")
    figures = json.loads(script[1])
    assert len(figures) == 5
    drawn = [
        text
        for figure in figures.values()
        for trace in figure["data"]
        for text in [trace["name"], *trace.get("text", ())]
    ]
    assert len(drawn) > 20
    assert {tag for text in drawn for tag in re.findall(r"<(/?\w*)", text)} == {"b", "/b", "br"}


def test_numbers_that_json_has_no_form_for_are_left_out_of_the_figures() -> None:
    text = markup.embedded_json({"x": [float("inf"), float("nan"), 1.5], "y": (1,)})
    assert json.loads(text) == {"x": [None, None, 1.5], "y": [1]}


def test_hover_texts_and_rungs_hold_no_tags_of_a_store() -> None:
    report = full_report()
    tampered = hostile.changed(report, lambda old: hostile.MARKUP[6] + old)
    figure = charts.scores_by_rung(tampered)
    assert figure is not None
    names = figure["layout"]["xaxis"]["categoryarray"]
    assert all(name.startswith("&lt;a href") for name in names)
    assert {x for trace in figure["data"] for x in trace["x"]} <= {*names, None}


SVG = b"""<?xml version="1.0"?><!DOCTYPE svg>
<svg width="90pt" height="131pt" viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"
 xmlns:xlink="http://www.w3.org/1999/xlink" onload="alert(1)">
<script>alert(1)</script><style>@import "x"</style>
<g id="graph0" transform="scale(1 1)"><title>operator</title>
<polygon fill="white" stroke="transparent" points="0,0"/><!-- a -->
<a xlink:href="javascript:alert(1)" xlink:title="t"><ellipse fill="url(#gradient)" stroke="red"/>
<text font-family="Times" onclick="alert(1)">x &lt; y &amp; \xc2\x9b z</text></a>
<image xlink:href="http://x/y"/><foreignObject><b>b</b></foreignObject></g></svg>"""


def test_of_a_drawing_only_shapes_and_texts_are_kept() -> None:
    assert drawing.inline(SVG) == (
        '<svg role="img" aria-label="drawing of the operator" viewBox="0 0 9 9" style="width:90pt">'
        '<g transform="scale(1 1)"><ellipse stroke="red" />'
        '<text font-family="inherit">x &lt; y &amp; \\x9b z</text></g></svg>'
    )


def test_a_drawing_that_is_no_xml_is_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho '<svg><img></svg>'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (only,) = drawing.render_drawings(["digraph {}"])
    assert not only.svg
    assert "cannot be read" in only.problem


def test_pictures_take_any_title(tmp_path: Path) -> None:
    report = replace(sample.report(count=3), title=hostile.HOSTILE)
    for file in write.write_pictures(report, tmp_path):
        assert file.read_bytes().startswith(b"\x89PNG")
