"""The parts of the page as HTML, made from plain values and the templates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from syno._util import numbers as fmt
from syno.report import highlight
from syno.report.drawing import SvgDrawing
from syno.report.markup import render
from syno.report.model import Baseline, LayerGroup, OperatorRow, Report, RungRow, Status
from syno.report.pareto import on_front
from syno.store.objective import ACCURACY, LOSS, Objective


def lead(report: Report) -> Markup:
    """Summarize the result in one sentence."""
    base = report.baseline
    if not report.trained:
        return render("lead.html", best=None, problem="No operator has been trained yet.")
    original, objective = report.quality(base), report.objective
    if original is None:
        problem = "The baseline network has not been evaluated in this study."
        return render("lead.html", best=None, problem=problem)
    close = fastest_within_a_point(report)
    better = sorted(on_front(report), key=lambda c: (-(report.score(c) or 0.0), c.number))
    best = close or next(iter(better), report.trained[0])
    reached = report.quality(best)
    assert reached is not None
    return render(
        "lead.html",
        best=best,
        is_close=close is not None,
        is_beaten=not better,
        words=_words(objective),
        original=objective.in_words(original),
        reached=objective.in_words(reached),
        gap=objective.gap(reached, original),
        cost=_relative_cost(best, base),
    )


@dataclass(frozen=True)
class _Words:
    """The words for an objective."""

    near: str
    within: str
    best: str


_WORDS = {
    ACCURACY: _Words(
        "one percentage point", "at most one percentage point below", "The most accurate"
    ),
    LOSS: _Words(
        "one percent of the perplexity",
        "with a perplexity at most one percent above",
        "The operator with the lowest loss",
    ),
}


def _words(objective: Objective) -> _Words:
    """Return the words for an objective; those of a custom metric have its name."""
    if objective in _WORDS:
        return _WORDS[objective]
    return _Words(
        f"one percent of the {objective.name}",
        f"with a {objective.name} at most one percent worse than",
        f"The operator with the best {objective.name}",
    )


def _relative_cost(row: OperatorRow, base: Baseline) -> str:
    parts = []
    if row.macs is not None and base.macs:
        relative = fmt.ratio(row.macs / base.macs)
        parts.append(f"{fmt.count(row.macs)} MACs in the replaced layers ({relative})")
    if row.latency_ratio is not None:
        speedup = fmt.speedup(row.latency_ratio)
        parts.append(f"a latency of {fmt.milliseconds(row.latency_ms)} (speed-up {speedup})")
    return f", with {' and '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class _Tile:
    """A labeled number; the detail below it may start with a link to an operator."""

    label: str
    value: str
    detail: str
    operator: OperatorRow | None = None


def headline(report: Report) -> Markup:
    """Render the most important numbers as tiles."""
    trained = report.trained
    base = report.baseline
    objective = report.objective
    tiles = [
        _Tile(
            "Operators trained",
            str(len(trained) + len(report.stopped)),
            f"of {len(report.operators)} proposed{_reached(report)}",
        ),
        _Tile(
            f"Baseline {objective.name}",
            objective.shown(report.quality(base)),
            f"{_perplexity(report, base)}{fmt.milliseconds(base.latency_ms)} · "
            f"{fmt.count(base.macs)} MACs{_tested(report, base)} · {report.engine}{_rival(base)}",
        ),
    ]
    if trained:
        best = trained[0]
        tiles.append(
            _Tile(
                f"Best {objective.name}",
                objective.shown(report.quality(best)),
                f"{_perplexity(report, best)}{fmt.count(best.macs)} MACs{_tested(report, best)}",
                best,
            )
        )
    close = fastest_within_a_point(report)
    if close is not None:
        detail = objective.shown(report.quality(close)) + _tested(report, close)
        speed = fmt.milliseconds(close.latency_ms)
        if close.latency_ratio is not None:
            detail += f" · speed-up {fmt.speedup(close.latency_ratio)} over the baseline"
        tiles.append(_Tile(f"Fastest within {_words(objective).near}", speed, detail, close))
    return render("headline.html", tiles=tiles)


def _rival(base: Baseline) -> str:
    """Return the latency of the original network in the best engine of others, if one ran it."""
    if not base.rival:
        return ""
    time = _with_spread(fmt.milliseconds(base.rival_ms), _spread(base.rival_spread_ms))
    return f" · {time} in {base.rival}, the best other engine at hand"


def _reached(report: Report) -> str:
    """Return how many operators the page compares, if there are rungs."""
    if not report.rungs or not report.trained:
        return ""
    return f" · {len(report.trained)} at rung {report.trained[0].rung_index + 1}"


_RUNG_COLUMNS = ("trained", "failed", "promoted", "stopped", "best", "baseline", "time")


def rungs(report: Report) -> Markup:
    """Render the rungs of a ladder, the highest first."""
    rows = [(rung.name, _rung_cells(rung)) for rung in reversed(report.rungs)]
    return render("rungs.html", columns=_RUNG_COLUMNS, rows=rows)


def _rung_cells(rung: RungRow) -> list[str]:
    counts = (rung.trained, rung.failed, rung.promoted, rung.stopped)
    return [
        *("" if count is None else str(count) for count in counts),
        fmt.percent(rung.best),
        fmt.percent(rung.baseline),
        fmt.duration(rung.seconds),
    ]


def _tested(report: Report, found: Baseline | OperatorRow) -> str:
    value = report.tested(found)
    if value is None:
        return ""
    return f" · {report.objective.shown(value)} on the test split"


def _perplexity(report: Report, found: Baseline | OperatorRow) -> str:
    beside = report.objective.beside(report.quality(found))
    return f"{beside} · " if beside else ""


def fastest_within_a_point(report: Report) -> OperatorRow | None:
    """Return the fastest operator that is faster than the baseline and nearly as accurate.

    Its accuracy is at most one percentage point below that of the baseline, or its perplexity at
    most one percent above. Latencies are compared as ratios to the baseline in the same run. The
    result is None if the baseline is as fast as every such operator.
    """
    original = report.quality(report.baseline)
    if original is None:
        return None
    limit = report.objective.score(report.objective.least(original, 1.0))
    near = [
        c
        for c in report.trained
        if c.latency_ratio is not None
        and c.latency_ratio < 1.0
        and (score := report.score(c)) is not None
        and score >= limit
    ]
    return min(near, key=lambda c: (c.latency_ratio or 0.0, c.number), default=None)


def settings(report: Report) -> Markup:
    """Render the settings of the study: groups of names and values."""
    groups = [
        (heading, [(name, value) for name, value in pairs if value])
        for heading, pairs in report.settings.items()
    ]
    return render("settings.html", groups=groups)


def rejections(report: Report) -> Markup:
    """Render the rejections by reason, the most frequent first."""
    counts = sorted(report.rejections.items(), key=lambda item: (-item[1], item[0]))
    counts = [(reason, number) for reason, number in counts if number]
    most = counts[0][1] if counts else 0
    rows = [
        {"reason": reason, "steps": f"{number:,}", "width": f"{100 * number / most:.1f}"}
        for reason, number in counts
    ]
    return render("rejections.html", rows=rows)


def failures(report: Report) -> Markup:
    """Render the evaluations without a result, with their reasons."""
    inside = sum(c.quarantined for c in report.operators)
    return render("failures.html", failed=report.failed, quarantined=inside)


_COLUMNS = (
    ("rank", "number"),
    ("id", "text"),
    ("formula", "text"),
    ("rung", "number"),
    ("accuracy", "number"),
    ("loss", "number"),
    ("perplexity", "number"),
    ("test", "number"),
    ("latency", "number"),
    ("speed-up", "number"),
    ("MACs", "number"),
    ("params", "number"),
    ("primitives", "text"),
    ("status", "text"),
)


@dataclass(frozen=True)
class _Cell:
    """A cell of the table of operators; numbers are sorted by `value`."""

    kind: str
    text: str = ""
    value: float | None = None
    linked: bool = False
    marked: bool = False


def operators(report: Report, with_section: set[int]) -> Markup:
    """Render the table of all operators, which can be sorted by every column.

    Operators on a front are marked. The keys of the proposals `with_section` link to their
    sections.
    """
    best = {c.number for c in on_front(report)}
    columns = _columns(report)
    ordered = [*report.trained, *report.stopped, *report.failed]
    rows = [
        (c, _row(report, rank, c, columns, c.number in best, linked=c.number in with_section))
        for rank, c in enumerate(ordered, start=1)
    ]
    return render("operators.html", columns=columns, rows=rows)


def _columns(report: Report) -> dict[str, str]:
    """Return the kinds of the columns for which the report has values, by name."""
    objective = report.objective
    hidden = {"loss", "perplexity"} if objective.field == "accuracy" else {"accuracy"}
    hidden |= set() if objective.is_entropy else {"perplexity"}
    hidden |= set() if report.final else {"test"}
    hidden |= set() if report.rungs else {"rung"}
    return {
        objective.name if name == objective.field else name: kind
        for name, kind in _COLUMNS
        if name not in hidden
    }


def _row(
    report: Report,
    rank: int,
    c: OperatorRow,
    columns: Iterable[str],
    on_front: bool,
    *,
    linked: bool,
) -> list[_Cell]:
    objective = report.objective
    value, tested = report.quality(c), report.tested(c)
    quality = _number(value, objective.shown(value))
    cells = {
        "rank": _Cell("number", str(rank), rank, marked=on_front),
        "id": _Cell("key", linked=linked),
        "formula": _Cell("formula", _right_side(c)),
        "rung": _number(c.rung_index + 1, str(c.rung_index + 1)),
        objective.name: quality,
        "perplexity": _number(value, fmt.perplexity(value)),
        "test": _number(tested, objective.shown(tested)),
        # Milliseconds of different moments do not compare: the order is that of the ratios.
        "latency": _number(c.latency_ratio, fmt.milliseconds(c.latency_ms)),
        "speed-up": _number(_faster(c), fmt.speedup(c.latency_ratio)),
        "MACs": _number(c.macs, fmt.count(c.macs)),
        "params": _number(c.params, fmt.count(c.params)),
        "primitives": _Cell("primitives", fmt.primitives(c.primitives)),
        "status": _Cell("status"),
    }
    return [cells[column] for column in columns]


def _faster(c: OperatorRow) -> float | None:
    return 1 / c.latency_ratio if c.latency_ratio else None


def _right_side(c: OperatorRow) -> str:
    """Return the formula without its left side, which is the same for all operators."""
    left, equals, right = c.formula_line.partition(" = ")
    return right if equals else left


def _number(value: float | None, text: str) -> _Cell:
    return _Cell("number", text, value)


def operator(
    c: OperatorRow, drawing: SvgDrawing, *, opened: bool, objective: Objective = ACCURACY
) -> Markup:
    """Render the section of one operator: results, drawing, formula, layers, code and text."""
    value = getattr(c, objective.field)
    maximized = objective if objective.field == "accuracy" else ACCURACY
    facts = [
        *_loss_facts(c, objective),
        ("rung", c.rung if len(c.scores) > 1 else ""),
        *_facts(maximized, c.accuracy, c.accuracy_spread, c.test_accuracy),
        ("latency", _with_spread(fmt.milliseconds(c.latency_ms), _spread(c.latency_spread_ms))),
        ("speed-up", fmt.speedup(c.latency_ratio) if c.latency_ratio is not None else ""),
        ("MACs", fmt.count(c.macs)),
        ("parameters", fmt.count(c.params)),
        ("training time", fmt.duration(c.seconds) if c.seconds is not None else ""),
    ]
    return render(
        "operator.html",
        c=c,
        opened=opened,
        failed=c.status is not Status.OK,
        figures=f"{objective.shown(value)} · {fmt.milliseconds(c.latency_ms)}",
        macs=fmt.count(c.macs),
        facts=[(name, value) for name, value in facts if value],
        drawing=drawing,
        layers=[_layer(layer) for layer in c.layers],
        total=_layers_total(c.layers),
        sources=[
            {"binding": source.binding, "pieces": highlight.python(source.code)}
            for source in c.sources
        ],
    )


def _facts(
    objective: Objective, value: float | None, spread: float | None, tested: float | None
) -> list[tuple[str, str]]:
    """Return the value on the validation split, and that on the test split if there is one."""
    found = [(objective.name, _with_spread(objective.shown(value), objective.spread(spread)))]
    if tested is not None:
        found.append((f"test {objective.name}", objective.shown(tested)))
    return found


def _loss_facts(c: OperatorRow, objective: Objective) -> list[tuple[str, str]]:
    """Return loss and perplexity, if there are any."""
    if objective.field == "accuracy" and objective != ACCURACY:
        return []  # a custom metric, whose loss has no unit that is known here
    minimized = objective if objective.field == "loss" else LOSS
    facts = []
    for words, loss, spread in (("", c.loss, c.loss_spread), ("test ", c.test_loss, None)):
        if loss is None:
            continue
        shown = _with_spread(minimized.shown(loss), minimized.spread(spread))
        facts.append((f"{words}{minimized.name}", shown))
        if minimized.is_entropy:
            facts.append((f"{words}perplexity", fmt.perplexity(loss)))
    return facts


def _with_spread(value: str, spread: str) -> str:
    return f"{value} ± {spread}" if spread else value


def _spread(spread: float | None) -> str:
    return "" if spread is None else fmt.milliseconds(spread)


def _layer(layer: LayerGroup) -> dict[str, object]:
    share = ""
    if layer.macs is not None and layer.original_macs:
        share = fmt.ratio(layer.macs / layer.original_macs)
    return {
        "label": layer.label,
        "times": layer.multiplicity,
        "macs": fmt.count(layer.macs) if layer.fits else "original layer",
        "original": fmt.count(layer.original_macs),
        "ratio": share,
    }


def _layers_total(layers: tuple[LayerGroup, ...]) -> dict[str, object]:
    counted = [layer for layer in layers if layer.macs is not None]
    ours = sum((layer.macs or 0) * layer.multiplicity for layer in counted)
    known = bool(counted) and all(layer.original_macs for layer in counted)
    theirs = sum((layer.original_macs or 0) * layer.multiplicity for layer in counted)
    return {
        "times": sum(layer.multiplicity for layer in counted),
        "macs": fmt.count(ours),
        "original": fmt.count(theirs) if known else fmt.MISSING,
        "ratio": fmt.ratio(ours / theirs) if known else "",
    }
