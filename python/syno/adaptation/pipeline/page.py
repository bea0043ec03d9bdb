"""The page about an adaptation: one self-contained HTML file."""

from __future__ import annotations

import itertools
from html import escape
from pathlib import Path

from syno._util import numbers
from syno._util.json_types import JsonObject
from syno._util.printable import printable
from syno._util.tables import Table
from syno.adaptation.pipeline.front import Series, axis_of, series
from syno.adaptation.pipeline.results import (
    AdaptationResults,
    blocks_table,
    microseconds,
    slots_table,
    widths_table,
)
from syno.engines.tables import engines_table
from syno.report import markup
from syno.report.charts import layout_of
from syno.runs.files import write_text

# How the script of the page colors a series, and the markers of rivals.
_ROLES = {"front": "front", "rival": "other", "original": "baseline"}
_SHAPES = ("x", "triangle-down", "triangle-up", "diamond", "cross", "star", "hexagon", "bowtie")
_NETWORKS_NOTE = (
    "Values are those on the validation split, except in the columns of the test split. The "
    "speed-up is over the original network, measured "
    "in turns with it in the same engine. After the fit: before the fine-tuning."
)
_ENGINES_NOTE = (
    "All networks in all engines, timed in turns with the same input. Speed-ups are medians of the "
    "ratios of each round."
)
_SLOTS_NOTE = (
    "Before and after: latencies of the layer and of what replaces it, as compiled kernels. The "
    "fit error is the squared error on the activations of the original, relative to the results of "
    "the layer."
)


_WIDTHS_NOTE = (
    "The error is that of what the layers that read the channels compute, fitted again, relative "
    "to the variance of their results, and summed over these layers."
)
_BLOCKS_NOTE = (
    "In place of these blocks, their input goes on. The distance is that of the outputs of the "
    "original network without this block alone, before any training."
)


def write_page(found: AdaptationResults, path: Path) -> Path:
    """Write the page. UserError if the file cannot be written."""
    write_text(path, render(found), "the report", "--report")
    return path


def render(found: AdaptationResults) -> markup.Markup:
    """The page with its style, script and chart."""
    figures = {"front-speedup": _front(found)}
    chart = markup.render("charts.html", charts=[("front-speedup", "Quality against latency")])
    slots = _slots(found)
    seconds = Table.of(
        found.seconds.items(),
        ("phase", lambda item: item[0]),
        ("time>", lambda item: numbers.duration(item[1])),
    )
    sections = [
        _section("front", "Front", chart),
        _section("networks", "Networks", _table(found.table()), _NETWORKS_NOTE),
    ]
    if slots:
        sections.append(_section("slots", "Slots", markup.joined(slots), _SLOTS_NOTE))
    if widths := _widths(found):
        sections.append(_section("channels", "Channels", markup.joined(widths), _WIDTHS_NOTE))
    if blocks := _blocks(found):
        sections.append(_section("blocks", "Left out", markup.joined(blocks), _BLOCKS_NOTE))
    if found.engines is not None:
        engines = _table(engines_table(found.engines))
        sections.append(_section("engines", "Inference engines", engines, _ENGINES_NOTE))
    sections.append(_section("time", "Time", _table(seconds)))
    return markup.render(
        "page.html",
        title=found.study,
        style=markup.asset("report.css"),
        navigation=[(each["name"], each["heading"]) for each in sections],
        lead=markup.render("adaptation-lead.html", **_lead(found)),
        headline="",
        sections=sections,
        figures=markup.embedded_json(figures),
        plotly=markup.plotly_library(),
        script=markup.asset("report.js"),
    )


def _section(name: str, heading: str, content: markup.Markup, note: str = "") -> dict[str, object]:
    return {"name": name, "heading": heading, "content": content, "note": note}


def _lead(found: AdaptationResults) -> dict[str, object]:
    best, show = found.best, found.objective.in_words
    return {
        "best": None if best is None else best.name,
        "speedup": "" if best is None else numbers.speedup(best.row.ratio),
        "reached": "" if best is None else show(best.row.value),
        "original": show(found.original.value),
        "candidates": found.candidates,
        "slots": max((len(each.slots) for each in found.networks), default=0),
        "missed": [
            f"The network {each.name} reaches {goal.text}"
            for each in found.networks
            for goal in each.row.goals
            if goal.missed
        ]
        + [f"The goal {name} is out of reach: {least}" for name, least in found.unreached.items()],
    }


def _table(table: Table) -> markup.Markup:
    columns = [
        (name, ">" in heading[len(name) :])
        for name, heading in zip(table.names(), table.headings, strict=True)
    ]
    return markup.render("table.html", columns=columns, rows=table.rows)


def _slots(found: AdaptationResults) -> list[markup.Markup]:
    return [
        markup.render(
            "adaptation-slots.html",
            name=each.name,
            before=microseconds(sum(row.before_ms for row in each.slots)),
            after=microseconds(sum(row.after_ms for row in each.slots)),
            table=_table(slots_table(each.slots)),
        )
        for each in found.networks
        if each.slots
    ]


def _widths(found: AdaptationResults) -> list[markup.Markup]:
    return [_named(each.name, widths_table(each.widths)) for each in found.networks if each.widths]


def _blocks(found: AdaptationResults) -> list[markup.Markup]:
    return [_named(each.name, blocks_table(each.blocks)) for each in found.networks if each.blocks]


def _named(name: str, table: Table) -> markup.Markup:
    """A table under the name of a network."""
    return markup.render("adaptation-named.html", name=name, table=_table(table))


def _front(found: AdaptationResults) -> JsonObject:
    """The objective against the speed-up: networks, rivals, and the original."""
    shapes = itertools.cycle(_SHAPES)
    data = [
        _trace(found, each, next(shapes) if each.role == "rival" else "") for each in series(found)
    ]
    title = "speed-up over the original network"
    layout = layout_of(title, axis_of(found), found.objective.is_share)
    return {"data": data, "layout": layout}


def _trace(found: AdaptationResults, each: Series, shape: str) -> JsonObject:
    """A series for the chart; shape: of the markers of a rival."""
    show, spread = found.objective.shown, found.objective.spread
    texts = []
    for point in each.points:
        about = spread(point.spread)
        texts.append(
            f"{point.name}: {show(point.value)}" + (about and f" \N{PLUS-MINUS SIGN} {about}")
        )
    trace: JsonObject = {
        "type": "scatter",
        "mode": "lines+markers" if each.role == "front" else "markers",
        "name": each.name,
        "meta": _ROLES[each.role],
        "x": [point.speedup for point in each.points],
        "y": [point.value for point in each.points],
        "text": [escape(printable(text)) for text in texts],
        "hoverinfo": "text",
        "line": {"width": 2},
        "marker": {"size": 10 if each.role == "front" else 8}
        | ({"symbol": shape} if shape else {}),
    }
    if any(point.spread for point in each.points):
        array = [point.spread or 0.0 for point in each.points]
        trace["error_y"] = {"type": "data", "array": array, "thickness": 1}
    return trace
