"""The whole page as one self-contained string."""

from __future__ import annotations

from markupsafe import Markup

from syno.report import charts, markup, sections
from syno.report.drawing import render_drawings
from syno.report.model import OperatorRow, Report
from syno.report.pareto import on_front

# The page of a study with thousands of operators must still open: the table lists all operators,
# but only this many have a section, first those on a front, then the most accurate ones.
SECTION_LIMIT = 120


def render(report: Report) -> Markup:
    """Render the HTML page with its style, scripts, charts and drawings."""
    figures = {
        "front-latency": charts.front_by_latency(report),
        "front-macs": charts.front_by_macs(report),
        "rungs-scores": charts.scores_by_rung(report),
        "progress-best": charts.best_so_far(report),
        "progress-volume": charts.volume_so_far(report),
        "progress-finished": charts.finished_over_time(report),
    }
    available = {name: figure for name, figure in figures.items() if figure is not None}
    detailed = _worth_a_section(report)
    table = sections.operators(report, {c.number for c in detailed})
    parts = [
        _section("front", "Pareto front", _charts(report, available, "front-"), _FRONT_NOTE),
        _section("operators", "Operators", table, _table_note(report)),
        _section("details", "Operators in detail", _details(report, detailed)),
        *_rungs(report, available),
        _section(
            "progress", "Progress", _charts(report, available, "progress-"), _stop_note(report)
        ),
        _section("rejections", "Rejections of the enumeration", sections.rejections(report)),
        _section("failures", "Failed evaluations", sections.failures(report)),
        _section("settings", "Settings", sections.settings(report)),
    ]
    return markup.render(
        "page.html",
        title=report.title,
        style=markup.asset("report.css"),
        navigation=_NAVIGATION,
        lead=sections.lead(report),
        headline=sections.headline(report),
        sections=parts,
        figures=markup.embedded_json(available),
        plotly=markup.plotly_library() if available else None,
        script=markup.asset("report.js"),
    )


_FRONT_NOTE = (
    "Each point is the network with one operator in its slots. A point is on the front if no other "
    "point beats it in both accuracy and cost. Select a point to see its operator."
)
_RUNGS_NOTE = (
    "Every operator is trained at the lowest rung, and the best of a rung are promoted to the "
    "next. Accuracies of different rungs cannot be compared: the fronts hold the operators of "
    "the highest rung that was reached."
)


def _table_note(report: Report) -> str:
    return (
        f"{report.objective.title} is measured on the validation split. MACs and parameters are "
        "those of the replaced layers at batch size 1. A dot marks the operators on a front; "
        "select a heading to sort."
    )


_NAVIGATION = (
    ("front", "Front"),
    ("operators", "Operators"),
    ("progress", "Progress"),
    ("rejections", "Rejections"),
    ("settings", "Settings"),
)


_Section = dict[str, str | Markup]


def _section(name: str, heading: str, content: Markup, note: str = "") -> _Section:
    return {"name": name, "heading": heading, "content": content, "note": note}


def _rungs(report: Report, figures: dict[str, charts.Figure]) -> list[_Section]:
    """The section about the rungs, if there are any."""
    if not report.rungs:
        return []
    content = sections.rungs(report) + _charts(report, figures, "rungs-")
    return [_section("rungs", "Rungs", content, _RUNGS_NOTE)]


def _stop_note(report: Report) -> str:
    return f"Stopped: {report.stop_reason}." if report.stop_reason else ""


_TITLES = {
    "front-latency": "{} against latency",
    "front-macs": "{} against MACs",
    "rungs-scores": "{} by rung",
    "progress-best": "Best {} so far",
    "progress-volume": "Hypervolume of all objectives so far",
    "progress-finished": "Evaluations over time",
}


def _charts(report: Report, figures: dict[str, charts.Figure], prefix: str) -> Markup:
    titles = {name: title.format(report.objective.name) for name, title in _TITLES.items()}
    shown = [(name, _sentence(titles[name])) for name in figures if name.startswith(prefix)]
    return markup.render("charts.html", charts=shown)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _details(report: Report, ordered: list[OperatorRow]) -> Markup:
    drawings = render_drawings([c.dot for c in ordered])
    parts = [
        sections.operator(c, drawing, opened=index == 0, objective=report.objective)
        for index, (c, drawing) in enumerate(zip(ordered, drawings, strict=True))
    ]
    left_out = len(report.operators) - len(ordered)
    return markup.render("details.html", operators=parts, left_out=left_out)


def _worth_a_section(report: Report) -> list[OperatorRow]:
    """Select the operators with a section, in the order of the table."""
    trained = report.trained
    best = {c.number for c in on_front(report)}
    rest = [*report.stopped, *report.failed]
    ranked = [*(c for c in trained if c.number in best), *trained, *rest]
    picked = list({c.number: c for c in ranked})[:SECTION_LIMIT]
    return [c for c in [*trained, *rest] if c.number in picked]
