"""The whole page as one string that needs nothing from a network."""

from __future__ import annotations

from markupsafe import Markup

from syno.report import charts, markup, sections
from syno.report.drawing import draw
from syno.report.model import Candidate, Report
from syno.report.pareto import front, latency, macs

# A study of thousands of operators stays a page that opens: the table lists them all, but only so
# many get a section, those on a front first and the most accurate after.
SECTION_LIMIT = 120


def render(report: Report) -> Markup:
    """The HTML page: style, scripts, charts and drawings inside."""
    figures = {
        "front-latency": charts.front_by_latency(report),
        "front-macs": charts.front_by_macs(report),
        "rungs-scores": charts.scores_by_rung(report),
        "progress-best": charts.best_so_far(report),
        "progress-finished": charts.finished_over_time(report),
    }
    drawn = {name: figure for name, figure in figures.items() if figure is not None}
    detailed = _worth_a_section(report)
    table = sections.operators(report, {c.number for c in detailed})
    parts = [
        _section("front", "Pareto front", _charts(report, drawn, "front-"), _FRONT_NOTE),
        _section("operators", "Operators", table, _table_note(report)),
        _section("details", "Each operator", _details(report, detailed)),
        *_rungs(report, drawn),
        _section("progress", "Progress", _charts(report, drawn, "progress-"), _stop_note(report)),
        _section("rejections", "Rejected while composing", sections.rejections(report)),
        _section("failures", "Evaluations that failed", sections.failures(report)),
        _section("asked", "What was asked", sections.asked(report)),
    ]
    return markup.render(
        "page.html",
        title=report.title,
        style=markup.asset("report.css"),
        navigation=_NAVIGATION,
        lead=sections.lead(report),
        headline=sections.headline(report),
        sections=parts,
        figures=markup.embedded_json(drawn),
        plotly=markup.plotly_library() if drawn else None,
        script=markup.asset("report.js"),
    )


_FRONT_NOTE = (
    "Each point is the network with one operator in place of its layers; a point is on the front "
    "when none is at least as accurate for less. Select a point to see its operator."
)
_RUNGS_NOTE = (
    "Every operator is trained at the lowest rung, the best of a rung go on to the next. "
    "Accuracies of two rungs do not compare: the fronts hold operators of the highest rung that "
    "any reached."
)


def _table_note(report: Report) -> str:
    return (
        f"{report.objective.title} is on the hold-out split. MACs and parameters count the "
        "replaced layers, batch 1. A dot marks the operators on a front; select a heading to sort."
    )


_NAVIGATION = (
    ("front", "Front"),
    ("operators", "Operators"),
    ("progress", "Progress"),
    ("rejections", "Rejections"),
    ("asked", "What was asked"),
)


_Section = dict[str, str | Markup]


def _section(name: str, heading: str, content: Markup, note: str = "") -> _Section:
    return {"name": name, "heading": heading, "content": content, "note": note}


def _rungs(report: Report, drawn: dict[str, charts.Figure]) -> list[_Section]:
    """The section about a ladder, where there is one."""
    if not report.rungs:
        return []
    content = sections.rungs(report) + _charts(report, drawn, "rungs-")
    return [_section("rungs", "Rungs", content, _RUNGS_NOTE)]


def _stop_note(report: Report) -> str:
    return f"Stopped: {report.stop_reason}." if report.stop_reason else ""


_TITLES = {
    "front-latency": "{} against latency",
    "front-macs": "{} against MACs",
    "rungs-scores": "{} by rung",
    "progress-best": "Best {} so far",
    "progress-finished": "Evaluations over time",
}


def _charts(report: Report, figures: dict[str, charts.Figure], prefix: str) -> Markup:
    titles = {name: title.format(report.objective.name) for name, title in _TITLES.items()}
    shown = [(name, _sentence(titles[name])) for name in figures if name.startswith(prefix)]
    return markup.render("charts.html", charts=shown)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _details(report: Report, ordered: list[Candidate]) -> Markup:
    drawings = draw([c.dot for c in ordered])
    parts = [
        sections.operator(c, drawing, opened=index == 0, objective=report.objective)
        for index, (c, drawing) in enumerate(zip(ordered, drawings, strict=True))
    ]
    left_out = len(report.candidates) - len(ordered)
    return markup.render("details.html", operators=parts, left_out=left_out)


def _worth_a_section(report: Report) -> list[Candidate]:
    """Candidates with a section, in the order of the table."""
    trained = report.trained
    chosen = {c.number for cost in (latency, macs) for c in front(trained, cost, report.objective)}
    rest = [*report.stopped, *report.failed]
    ranked = [*(c for c in trained if c.number in chosen), *trained, *rest]
    picked = list({c.number: c for c in ranked})[:SECTION_LIMIT]
    return [c for c in [*trained, *rest] if c.number in picked]
