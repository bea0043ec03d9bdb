"""The page as a whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from syno._util.errors import UserError
from syno.report import charts, page, sections, write
from syno.report.model import Baseline, Report, RungRow
from syno.store.objective import ACCURACY, LOSS

from . import sample


class Outline(HTMLParser):
    """Collects ids, links, loaded addresses and unclosed elements."""

    void = ("meta", "br", "link", "img", "input", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"] or "")
        if tag == "a":
            self.links.append(given.get("href") or "")
        if "src" in given or tag == "link":
            self.loaded.append(tag)
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text() -> str:
    return page.render(sample.report())


@pytest.fixture(scope="module")
def outline(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    return parser


def test_every_element_is_closed_and_every_id_stands_once(outline: Outline) -> None:
    assert outline.open == []
    assert sorted(outline.ids) == sorted(set(outline.ids))


def test_every_link_leads_to_a_place_on_the_page(outline: Outline) -> None:
    assert len(outline.links) > 30
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)


def test_nothing_is_loaded_from_anywhere(text: str, outline: Outline) -> None:
    assert outline.loaded == []
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert text.count("plotly.js v") == 1


def test_what_comes_from_a_store_is_escaped(text: str) -> None:
    assert "loss became &lt;not a number&gt; &amp; stopped in epoch 2" in text
    assert "<not a number>" not in text


def test_the_charts_are_valid_plotly_figures() -> None:
    from plotly.graph_objects import Figure

    report = sample.report()
    made = [
        charts.front_by_latency(report),
        charts.front_by_macs(report),
        charts.best_so_far(report),
        charts.finished_over_time(report),
    ]
    for figure in made:
        assert figure is not None
        assert len(Figure(figure).data) >= 1


def test_front_and_other_operators_are_all_points_of_the_chart() -> None:
    figure = charts.front_by_latency(sample.report())
    assert figure is not None
    points = [trace for trace in figure["data"] if trace["mode"] == "markers"]
    assert [trace["meta"] for trace in points] == ["other", "front", "baseline"]
    assert len(points[0]["x"]) + len(points[1]["x"]) == 32


def test_embedded_json_cannot_end_its_script_element(text: str) -> None:
    script = re.search(r'<script id="figures"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert script is not None
    assert set(json.loads(script[1])) >= {"front-latency", "progress-best"}


def test_failures_and_rejections_are_listed(text: str) -> None:
    assert "cannot-finish" in text
    assert "402,118" in text
    assert '<span class="status error">error</span>' in text


def test_lead_names_the_fastest_operator_within_a_point() -> None:
    base = sample.report()
    faster = tuple(replace(c, latency_ratio=c.latency_ratio / 3) for c in base.trained)
    accuracy = base.trained[0].accuracy
    baseline = replace(base.baseline, accuracy=accuracy)
    near = replace(base, baseline=baseline, operators=faster)
    chosen = sections.fastest_within_a_point(near)
    assert chosen is not None
    assert chosen.short in sections.lead(near)
    far = replace(base, baseline=replace(base.baseline, accuracy=0.999))
    assert sections.fastest_within_a_point(far) is None
    lead = sections.lead(far)
    assert "No measured operator at most one percentage point below the baseline" in lead
    assert "The most accurate on a front" in lead


def test_a_page_says_when_no_operator_beats_the_baseline() -> None:
    base = sample.report(count=1)
    only = replace(base.trained[0], accuracy=0.95, latency_ratio=1.13, latency_ms=1.58)
    baseline = replace(base.baseline, accuracy=0.951, macs=only.macs)
    beaten = replace(base, operators=(only,), baseline=baseline)
    lead = sections.lead(beaten)
    assert "No operator beats the baseline network, which reaches 95.1 %" in lead
    assert "a latency of 1.58 ms (speed-up 0.88×)" in lead
    assert "fastest" not in lead.lower()
    assert "Fastest" not in sections.headline(beaten)
    assert "on-front" not in sections.operators(beaten, set())


def test_a_speedup_above_one_is_faster_in_the_chart_and_the_table() -> None:
    report = sample.report(count=1)
    only = replace(report.trained[0], latency_ratio=0.5, latency_ms=0.7, accuracy=0.99)
    report = replace(report, operators=(only,))
    figure = charts.front_by_latency(report)
    assert figure is not None
    points = {t["meta"]: t["x"] for t in figure["data"] if t["mode"] == "markers"}
    assert points["front"] == [2.0]
    assert points["baseline"] == [1.0]
    assert figure["layout"]["xaxis"]["title"]["text"].startswith("speed-up")
    table = sections.operators(report, set())
    assert 'data-value="2.0">2.00×' in table
    assert 'data-value="0.5">0.70 ms' in table  # ordered by the ratio, not by milliseconds


def test_a_speedup_below_one_is_written_as_a_number_and_axis_titles_fit() -> None:
    report = sample.report()
    close = [replace(c, latency_ratio=1 / (0.8 + c.number / 100)) for c in report.trained]
    report = replace(report, operators=tuple(close), engine="TorchInductor")
    figures = [charts.front_by_latency(report), charts.front_by_macs(report)]
    axes = [figure["layout"]["xaxis"] for figure in figures if figure is not None]
    assert "type" not in axes[0]  # linear
    assert (axes[0]["tickformat"], axes[0]["ticksuffix"]) == ("~g", "×")  # not 800m for 0.8
    for axis in axes:
        lines = axis["title"]["text"].split("<br>")
        assert max(map(len, lines)) <= 45  # what fits beside another chart


def test_a_study_without_results_still_has_a_page() -> None:
    empty = Report(title="nothing yet", settings={}, baseline=Baseline(), operators=())
    text = page.render(empty)
    assert "No operator has been trained yet." in text
    assert "plotly.js v" not in text


def test_a_large_study_gets_sections_for_the_front_and_the_best_only() -> None:
    report = sample.report(count=page.SECTION_LIMIT + 30)
    parser = Outline()
    parser.feed(page.render(report))
    listed = [name for name in parser.ids if name.startswith("operator-")]
    assert len(listed) == page.SECTION_LIMIT
    assert {link.removeprefix("#") for link in parser.links} <= set(parser.ids)


def test_pictures_are_png_files(tmp_path: Path) -> None:
    for file in write.write_pictures(sample.report(), tmp_path / "made"):
        assert file.read_bytes().startswith(b"\x89PNG")


def test_a_place_that_cannot_be_written_is_a_users_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write the report to"):
        write.write_page(sample.report(), tmp_path / "file" / "report.html")


def test_accuracies_on_the_test_split_get_a_column_once_they_are_there() -> None:
    without = sample.report(count=3)
    assert ">test</button>" not in page.render(without)
    best, *others = without.trained
    tested = replace(without, operators=(replace(best, test_accuracy=0.877), *others), final=True)
    text = page.render(tested)
    assert ">test</button>" in text
    assert 'data-value="0.877">87.7 %' in text


RUNG = RungRow("a", 3, 0, 1, 2, best=0.5, baseline=0.5, seconds=1.0)


@pytest.mark.parametrize("objective", [ACCURACY, LOSS])
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("rungs", [(), (RUNG, replace(RUNG, name="b"))], ids=["one", "rungs"])
def test_every_value_stands_below_its_heading(objective, final, rungs) -> None:
    sampled = sample.report(count=3)
    operators = tuple(replace(c, loss=2.5, latency_ms=0.75) for c in sampled.operators)
    changes = {"objective": objective, "final": final, "rungs": rungs}
    table = sections.operators(replace(sampled, operators=operators, **changes), set())
    heads = re.findall(r'<button type="button">([^<]*)<', table)
    rows = [re.findall(r"<td.*?</td>", row) for row in re.findall(r"<tr data-key.*?</tr>", table)]
    assert len(rows) == 4
    for row in rows:
        assert len(row) == len(heads)
        cells = dict(zip(heads, row, strict=True))
        assert ">0.75 ms<" in cells["latency"]
        assert 'class="primitives"' in cells["primitives"]
        assert ('data-value="1">1<' in cells.get("rung", "")) == bool(rungs)
        if objective is not ACCURACY:
            assert 'data-value="2.5"' in cells["loss"]
        elif "error" not in cells["status"]:
            assert re.search(r">[\d.]+ %<", cells["accuracy"])
