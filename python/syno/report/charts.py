"""The charts of the page, as Plotly figures in plain values.

Colors are names of roles (`meta`), which the script of the page looks up in the style sheet, so
that the same figure serves the light and the dark page.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from syno._util import numbers as fmt
from syno._util.printable import printable
from syno.report.model import OperatorRow, Report
from syno.report.pareto import Cost, front_plot, latency, macs
from syno.store.objective import ACCURACY, Objective

# A figure, or a part of one, in the JSON that Plotly reads.
Figure = dict[str, Any]


def front_by_latency(report: Report) -> Figure | None:
    """Plot the objective against the latency of the network; None if nothing was measured."""
    return _front(
        report,
        latency,
        f"speed-up over the baseline network<br>(same run, batch size 1, {report.engine})",
        _times,
        {"tickformat": "~g", "ticksuffix": "×"},
        at=faster,
    )


def front_by_macs(report: Report) -> Figure | None:
    """Plot the objective against the MACs of the replaced layers; None if nothing was trained."""
    return _front(report, macs, "MACs of the replaced layers", fmt.short, {"tickformat": "~s"})


def best_so_far(report: Report) -> Figure | None:
    """Plot the objective by proposal, and the best value so far."""
    trained = sorted(report.trained, key=lambda c: c.number)
    if not trained:
        return None
    best = bests(report, trained)
    numbers = [c.number for c in trained]
    data = [
        _trace("evaluation", "other", numbers, _qualities(report, trained), trained, report),
        _line("best so far", "front", numbers, best),
    ]
    base = report.quality(report.baseline)
    if base is not None:
        edges = [numbers[0], numbers[-1]]
        data.append(_line("baseline", "baseline", edges, [base] * 2, dash=True))
    return {"data": data, "layout": _by_objective("proposal", report)}


def bests(report: Report, trained: list[OperatorRow]) -> list[float]:
    """Return the best value of the objective up to each operator."""
    found: list[float] = []
    for row in trained:
        value = report.quality(row)
        assert value is not None
        found.append(max([value, *found[-1:]], key=report.objective.score))
    return found


def volume_so_far(report: Report) -> Figure | None:
    """Plot the hypervolume of several objectives by result; None for one objective."""
    known = [(n, v) for n, v in enumerate(report.volumes, start=1) if v is not None]
    if not known:
        return None
    numbers, values = (list(part) for part in zip(*known, strict=True))
    data = [_line("hypervolume so far", "front", numbers, values)]
    return {"data": data, "layout": layout_of("results", "hypervolume, in units of the baseline")}


def finished_over_time(report: Report) -> Figure | None:
    """Plot the number of completed evaluations against the time."""
    done = sorted((c for c in report.operators if c.finished is not None), key=_finished)
    if not done:
        return None
    minutes = [round(_finished(c) / 60, 4) for c in done]
    ok = [sum(report.quality(d) is not None for d in done[: i + 1]) for i in range(len(done))]
    data = [_line("completed", "front", minutes, list(range(1, len(done) + 1)))]
    if ok[-1] != len(done):
        data.append(_line("of these, trained", "baseline", minutes, ok))
    return {"data": data, "layout": layout_of("minutes since the start", "evaluations")}


def scores_by_rung(report: Report) -> Figure | None:
    """Plot the accuracy at each rung, with a line for each promoted operator."""
    done = [*report.trained, *report.stopped]
    if not report.rungs or not done:
        return None
    names = [_plain(rung.name) for rung in report.rungs]
    x: list[str | None] = []
    y: list[float | None] = []
    for c in (c for c in done if len(c.scores) > 1):  # a gap separates two lines
        x += [*names[: len(c.scores)], None]
        y += [*c.scores, None]
    data = [_line("", "other", x, y, legend=False, hover=False)] if x else []
    for label, role, group in (
        ("stopped", "other", report.stopped),
        ("at the highest rung", "front", report.trained),
    ):
        ends = list(group)
        at = [names[c.rung_index] for c in ends]
        data.append(_trace(label, role, at, _qualities(report, ends), ends, report))
    original = [
        (name, r.baseline)
        for name, r in zip(names, report.rungs, strict=True)
        if r.baseline is not None
    ]
    if original:
        edges = [list(part) for part in zip(*original, strict=True)]
        data.append(_line("baseline", "baseline", edges[0], edges[1], dash=True))
    layout = _by_objective("rung", report)
    layout["xaxis"] |= {"type": "category", "categoryorder": "array", "categoryarray": names}
    return {"data": data, "layout": layout}


def _finished(row: OperatorRow) -> float:
    return row.finished or 0.0


def _front(
    report: Report,
    cost: Cost,
    axis: str,
    tick_text: Callable[[float], str],
    linear: Figure,
    at: Callable[[float], float] = float,
) -> Figure | None:
    """Plot the objective against a cost.

    tick_text: a label of a logarithmic axis; linear: how Plotly writes those of a linear one; at:
    the place of a cost on the axis.
    """
    plot = front_plot(report, cost, at)
    if not plot.shown:
        return None
    best, others = [c for c in plot.points if isinstance(c, OperatorRow)], plot.others
    base = cost(report.baseline)
    data = [
        _line("Pareto front", "front", *plot.line, legend=False, hover=False),
        _trace(
            "others", "other", _places(others, cost, at), _qualities(report, others), others, report
        ),
        _trace(
            "Pareto front", "front", _places(best, cost, at), _qualities(report, best), best, report
        ),
    ]
    if report.quality(report.baseline) is not None and base is not None:
        data.append(_baseline_mark(report, at(base)))
    layout = _by_objective(axis, report)
    if plot.ticks is not None:
        labels = [tick_text(tick) for tick in plot.ticks]
        marks = {"tickvals": plot.ticks, "ticktext": labels, "tickangle": 0}
        layout["xaxis"] |= {"type": "log", **marks}
    else:
        layout["xaxis"] |= linear
    return {"data": data, "layout": layout}


def faster(latency_ratio: float) -> float:
    """Return the speed-up of a latency ratio."""
    return 1 / latency_ratio if latency_ratio else 0.0


def _places(
    operators: list[OperatorRow], cost: Cost, at: Callable[[float], float]
) -> list[float | None]:
    return [None if (spent := cost(c)) is None else at(spent) for c in operators]


def _times(value: float) -> str:
    return f"{value:g}×"


def _qualities(report: Report, operators: list[OperatorRow]) -> list[float | None]:
    return [report.quality(c) for c in operators]


def _baseline_mark(report: Report, cost: float) -> Figure:
    base, objective = report.baseline, report.objective
    text = (
        f"<b>baseline network</b><br>{objective.name} {objective.shown(report.quality(base))}"
        f"<br>latency {fmt.milliseconds(base.latency_ms)} · MACs {fmt.count(base.macs)}"
    )
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "baseline",
        "meta": "baseline",
        "x": [cost],
        "y": [report.quality(base)],
        "text": [text],
        "hoverinfo": "text",
        "marker": {"symbol": "diamond", "size": 13},
    }


def _trace(
    name: str,
    role: str,
    x: Sequence[object],
    y: Sequence[object],
    operators: list[OperatorRow],
    report: Report,
) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "meta": role,
        "x": x,
        "y": y,
        "text": [hover(c, report.objective) for c in operators],
        "customdata": [c.anchor for c in operators],
        "hoverinfo": "text",
        "marker": {"size": 10 if role == "front" else 7},
    }


def _line(
    name: str,
    role: str,
    x: Sequence[object],
    y: Sequence[object],
    *,
    dash: bool = False,
    legend: bool = True,
    hover: bool = True,
) -> Figure:
    line: Figure = {"width": 2, "dash": "dash" if dash else "solid"}
    if not dash and legend:
        line["shape"] = "hv"
    trace: Figure = {"type": "scatter", "mode": "lines", "name": name, "meta": role}
    trace |= {"x": x, "y": y, "line": line, "showlegend": legend}
    if not hover:
        trace["hoverinfo"] = "skip"
    return trace


def hover(row: OperatorRow, objective: Objective = ACCURACY) -> str:
    """Return the text of a point: key, results, costs and formula."""
    lines = [
        f"<b>{_plain(row.short)}</b> · proposal {row.number}",
        f"{objective.name} {objective.shown(getattr(row, objective.field))}"
        f" · {fmt.milliseconds(row.latency_ms)}"
        f" · {fmt.count(row.macs)} MACs",
    ]
    for part in row.formula.strip().split("\n")[:3]:
        lines += [_plain(piece) for piece in textwrap.wrap(part, 72)]
    return "<br>".join(lines)


def _plain(text: str) -> str:
    """Escape text for Plotly, which interprets tags such as links."""
    return escape(printable(text), quote=False)


def _by_objective(x_title: str, report: Report) -> Figure:
    return layout_of(x_title, report.objective.axis, report.objective.is_share)


def layout_of(x_title: str, y_title: str, is_share: bool = False) -> Figure:
    """Return a layout; is_share: whether the y axis shows shares, as percentages."""
    y_axis: Figure = {"title": {"text": y_title}, "automargin": True}
    if is_share:
        y_axis["tickformat"] = ".1~%"
    return {
        "xaxis": {"title": {"text": x_title}, "automargin": True},
        "yaxis": y_axis,
        "hovermode": "closest",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 8, "r": 12, "t": 36, "b": 8},
        "height": 380,
    }
