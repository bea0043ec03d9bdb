"""The parts of the page, each from plain values to HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from syno.objective import ACCURACY, Objective
from syno.report import format as fmt
from syno.report import highlight
from syno.report.drawing import Drawing
from syno.report.model import Baseline, Candidate, Layer, Report, RungRow, Status
from syno.report.pareto import front, latency, macs


def lead(report: Report) -> str:
    """What came out, in one sentence made from the numbers."""
    base = report.baseline
    if not report.trained:
        return '<p class="lead">No operator has been trained yet.</p>'
    original, name = report.quality(base), report.objective.name
    if original is None:
        return '<p class="lead">The original network has not been evaluated in this study.</p>'
    words = _WORDS[name]
    close = fastest_within_a_point(report)
    best = close or report.trained[0]
    link = f'<a href="#{best.anchor}"><code>{best.short}</code></a>'
    cost = _relative_cost(best, base)
    reached = report.quality(best)
    assert reached is not None
    if close is None:
        gap = fmt.gap(reached, original, name)
        text = (
            f"No measured operator comes within {words.near} of the original network's "
            f"{_shown(report, original)}. {words.best}, {link}, reaches "
            f"{_shown(report, reached)} ({gap}){cost}."
        )
    else:
        text = (
            f"Operator {link} reaches {_shown(report, reached)}, against "
            f"{_shown(report, original)} of the original network{cost}: the fastest of those "
            f"{words.within} it."
        )
    return f'<p class="lead">{text}</p>'


@dataclass(frozen=True)
class _Words:
    """How an objective is spoken of."""

    near: str
    within: str
    best: str


_WORDS = {
    "accuracy": _Words("a point", "at most one point below", "The most accurate"),
    "loss": _Words(
        "one percent of the perplexity",
        "with a perplexity at most one percent above",
        "The one of least loss",
    ),
}


def _shown(report: Report, value: float | None) -> str:
    """A quality in words: `93.1 %`, or `a loss of 1.823 (perplexity 6.19)`."""
    shown = fmt.quality(value, report.objective.name)
    if report.objective.name == "accuracy" or value is None:
        return shown
    return f"a loss of {shown} (perplexity {fmt.perplexity(value)})"


def _relative_cost(candidate: Candidate, base: Baseline) -> str:
    parts = []
    if candidate.macs is not None and base.macs:
        parts.append(f"{fmt.ratio(candidate.macs / base.macs)} the MACs in the replaced layers")
    if candidate.latency_ratio is not None:
        parts.append(f"{fmt.ratio(candidate.latency_ratio)} the latency of the network")
    return f", with {' and '.join(parts)}" if parts else ""


def headline(report: Report) -> str:
    """The numbers that matter most, as tiles."""
    trained = report.trained
    base = report.baseline
    name = report.objective.name
    tiles = [
        _tile(
            "Operators trained",
            str(len(trained) + len(report.stopped)),
            f"of {len(report.candidates)} proposed{_reached(report)}",
        ),
        _tile(
            f"Baseline {name}",
            fmt.quality(report.quality(base), name),
            f"{_perplexity(report, base)}{fmt.milliseconds(base.latency_ms)} · "
            f"{fmt.count(base.macs)} MACs{_tested(report, base)}",
        ),
    ]
    if trained:
        best = trained[0]
        tiles.append(
            _tile(
                f"Best {name}",
                fmt.quality(report.quality(best), name),
                f'<a href="#{best.anchor}">{best.short}</a> · {_perplexity(report, best)}'
                f"{fmt.count(best.macs)} MACs{_tested(report, best)}",
            )
        )
    close = fastest_within_a_point(report)
    if close is not None:
        shown = fmt.quality(report.quality(close), name)
        detail = f'<a href="#{close.anchor}">{close.short}</a> · {shown}'
        detail += _tested(report, close)
        speed = fmt.milliseconds(close.latency_ms)
        if close.latency_ratio is not None:
            detail += f" · {fmt.ratio(close.latency_ratio)} of the baseline's time"
        tiles.append(_tile(f"Fastest within {_WORDS[name].near}", speed, detail))
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _reached(report: Report) -> str:
    """How many of them the page compares, where there are rungs."""
    if not report.rungs or not report.trained:
        return ""
    return f" · {len(report.trained)} at rung {report.trained[0].rung_index + 1}"


def rungs(report: Report) -> str:
    """The rungs of a ladder, the highest first."""
    rows = "".join(
        f"<tr><td><code>{escape(rung.name)}</code></td>"
        + "".join(f'<td class="number">{text}</td>' for text in _rung_cells(rung))
        + "</tr>"
        for rung in reversed(report.rungs)
    )
    names = ("trained", "failed", "promoted", "stopped", "best", "baseline", "time")
    head = "".join(f'<th class="number">{name}</th>' for name in names)
    return (
        f'<div class="scroll"><table class="rungs"><thead><tr><th>rung</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _rung_cells(rung: RungRow) -> list[str]:
    counts = (rung.trained, rung.failed, rung.promoted, rung.stopped)
    return [
        *("" if count is None else str(count) for count in counts),
        fmt.percent(rung.best),
        fmt.percent(rung.baseline),
        fmt.duration(rung.seconds),
    ]


def _tested(report: Report, found: Baseline | Candidate) -> str:
    value = report.tested(found)
    if value is None:
        return ""
    return f" · {fmt.quality(value, report.objective.name)} on the test split"


def _perplexity(report: Report, found: Baseline | Candidate) -> str:
    value = report.quality(found)
    if report.objective.name != "loss" or value is None:
        return ""
    return f"perplexity {fmt.perplexity(value)} · "


def fastest_within_a_point(report: Report) -> Candidate | None:
    """The lowest latency among operators at most one point less accurate than the baseline, or
    with a perplexity at most one percent above its.

    Latencies are compared as ratios to the original timed in the same run.
    """
    original = report.quality(report.baseline)
    if original is None:
        return None
    limit = report.objective.score(report.objective.least(original, 1.0))
    near = [
        c
        for c in report.trained
        if c.latency_ratio is not None and (score := report.score(c)) is not None and score >= limit
    ]
    return min(near, key=lambda c: (c.latency_ratio or 0.0, c.number), default=None)


def _tile(label: str, value: str, detail: str) -> str:
    """`detail` is HTML."""
    return (
        f'<div class="tile"><div class="label">{escape(label)}</div>'
        f'<div class="value">{escape(value)}</div><div class="detail">{detail}</div></div>'
    )


def asked(report: Report) -> str:
    """What was asked: groups of names and values."""
    groups = []
    for heading, pairs in report.asked.items():
        rows = "".join(
            f"<dt>{escape(name)}</dt><dd>{_value(value)}</dd>" for name, value in pairs if value
        )
        groups.append(f"<section><h3>{escape(heading)}</h3><dl>{rows}</dl></section>")
    return f'<div class="asked">{"".join(groups)}</div>'


def _value(value: str) -> str:
    if "\n" in value:
        return f"<pre>{escape(value)}</pre>"
    return escape(value)


def rejections(report: Report) -> str:
    """Rejections by reason with a bar each, most frequent first."""
    counts = sorted(report.rejections.items(), key=lambda item: (-item[1], item[0]))
    counts = [(reason, number) for reason, number in counts if number]
    if not counts:
        return '<p class="quiet">The store holds no rejection counts for this study.</p>'
    most = counts[0][1]
    rows = "".join(
        f'<tr><td><code>{escape(reason)}</code></td><td class="number">{number:,}</td>'
        f'<td class="bar"><span style="width:{100 * number / most:.1f}%"></span></td></tr>'
        for reason, number in counts
    )
    return (
        '<table class="rejections"><thead><tr><th>reason</th><th class="number">steps</th><th></th>'
        f"</tr></thead><tbody>{rows}</tbody></table>"
    )


def failures(report: Report) -> str:
    """Evaluations without a result, with their reasons."""
    if not report.failed:
        return '<p class="quiet">Every evaluation ended with a result.</p>'
    rows = "".join(
        f'<tr><td class="number">{c.number}</td><td><code>{c.short}</code></td>'
        f"<td>{_status(c.status)}</td><td>{escape(c.reason)}</td></tr>"
        for c in report.failed
    )
    inside = sum(c.quarantined for c in report.candidates)
    note = ""
    if inside:
        note = (
            f"<p>{inside} of them crashed, hung or ran out of memory more than once and "
            f"{'is' if inside == 1 else 'are'} in quarantine: the study proposes "
            f"{'it' if inside == 1 else 'them'} no more. "
            "<code>syno resume STORE --release KEY</code> lets one out.</p>"
        )
    return (
        f'{note}<div class="scroll"><table><thead><tr><th class="number">proposal</th><th>key</th>'
        f"<th>status</th><th>reason</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _status(status: Status) -> str:
    return f'<span class="status {status.value}">{status.value}</span>'


_COLUMNS = (
    ("rank", "number"),
    ("key", "text"),
    ("formula", "text"),
    ("rung", "number"),
    ("accuracy", "number"),
    ("loss", "number"),
    ("perplexity", "number"),
    ("test", "number"),
    ("latency", "number"),
    ("to baseline", "number"),
    ("MACs", "number"),
    ("params", "number"),
    ("primitives", "text"),
    ("status", "text"),
)


def operators(report: Report, with_section: set[int]) -> str:
    """The table of all candidates, sortable by every column; the front carries a mark.

    Keys of the proposals `with_section` link to their sections.
    """
    chosen = {
        c.number for cost in (latency, macs) for c in front(report.trained, cost, report.objective)
    }
    columns = _columns(report)
    head = "".join(
        f'<th class="{kind}" aria-sort="{"ascending" if name == "rank" else "none"}">'
        f'<button type="button">{name}</button></th>'
        for name, kind in columns.items()
    )
    ordered = [*report.trained, *report.stopped, *report.failed]
    body = "".join(
        _row(report, rank, c, columns, c.number in chosen, linked=c.number in with_section)
        for rank, c in enumerate(ordered, start=1)
    )
    return (
        '<div class="scroll"><table class="operators sortable"><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _columns(report: Report) -> dict[str, str]:
    """What kind of column each is that the report has something for, by name."""
    hidden = {"accuracy"} if report.objective.name == "loss" else {"loss", "perplexity"}
    hidden |= set() if report.final else {"test"}
    hidden |= set() if report.rungs else {"rung"}
    return {name: kind for name, kind in _COLUMNS if name not in hidden}


def _row(
    report: Report, rank: int, c: Candidate, columns: Iterable[str], on_front: bool, *, linked: bool
) -> str:
    name = report.objective.name
    value, tested = report.quality(c), report.tested(c)
    key = f"<code>{c.short}</code>"
    mark = '<span class="on-front" title="on a Pareto front">●</span>' if on_front else ""
    quality = _number(value, fmt.quality(value, name))
    cells = {
        "rank": _number(rank, f"{mark}{rank}"),
        "key": f'<td><a href="#{c.anchor}">{key}</a></td>' if linked else f"<td>{key}</td>",
        "formula": f'<td class="formula"><code>{escape(_right_side(c))}</code></td>',
        "rung": _number(c.rung_index + 1, str(c.rung_index + 1)),
        "accuracy": quality,
        "loss": quality,
        "perplexity": _number(value, fmt.perplexity(value)),
        "test": _number(tested, fmt.quality(tested, name)),
        "latency": _number(c.latency_ms, fmt.milliseconds(c.latency_ms)),
        "to baseline": _number(c.latency_ratio, fmt.ratio(c.latency_ratio)),
        "MACs": _number(c.macs, fmt.count(c.macs)),
        "params": _number(c.params, fmt.count(c.params)),
        "primitives": f'<td class="primitives">{escape(fmt.primitives(c.primitives))}</td>',
        "status": f"<td>{_status(c.status)}</td>",
    }
    return f'<tr data-key="{c.key}">{"".join(cells[column] for column in columns)}</tr>'


def _right_side(c: Candidate) -> str:
    """The formula without its left side, which is the same in every row of a table."""
    left, equals, right = c.formula_line.partition(" = ")
    return right if equals else left


def _number(value: float | None, text: str) -> str:
    return f'<td class="number" data-value="{"" if value is None else value}">{text}</td>'


def operator(
    c: Candidate, drawing: Drawing, *, opened: bool, objective: Objective = ACCURACY
) -> str:
    """One operator's section: figures, drawing, formula, layers, code and canonical text."""
    name = objective.name
    value = getattr(c, name)
    facts = [
        *_text_facts(c),
        ("rung", c.rung if len(c.scores) > 1 else ""),
        ("accuracy", _with_spread(fmt.percent(c.accuracy), _points_spread(c.accuracy_spread))),
        ("test accuracy", fmt.percent(c.test_accuracy) if c.test_accuracy is not None else ""),
        ("latency", _with_spread(fmt.milliseconds(c.latency_ms), _spread(c.latency_spread_ms))),
        ("to baseline", fmt.ratio(c.latency_ratio) if c.latency_ratio is not None else ""),
        ("MACs", fmt.count(c.macs)),
        ("parameters", fmt.count(c.params)),
        ("trained in", fmt.duration(c.seconds) if c.seconds is not None else ""),
    ]
    listed = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts if value
    )
    figures = f"{fmt.quality(value, name)} · {fmt.milliseconds(c.latency_ms)}"
    if c.status is not Status.OK:
        figures = _status(c.status)
    summary = (
        f'<summary><code>{c.short}</code> <span class="quiet">proposal {c.number}</span>'
        f'<code class="first-line">{escape(c.formula_line)}</code>'
        f'<span class="figures">{figures} · {fmt.count(c.macs)} MACs</span></summary>'
    )
    parts = [
        f'<dl class="facts">{listed}</dl>',
        f'<p class="note">{escape(c.note)}</p>' if c.note else "",
        f'<h4>Index formula</h4><pre class="formula">{escape(c.formula)}</pre>',
        f"<h4>Drawing</h4>{_drawing(drawing, c.tree)}",
        f"<h4>MACs by layer</h4>{_layers(c.layers)}" if c.layers else "",
        _sources(c),
        f'<details class="inner"><summary>Key and canonical text</summary>'
        f"<p><code>{c.key}</code></p><pre>{escape(c.text)}</pre></details>",
    ]
    state = " open" if opened else ""
    return f'<details class="operator" id="{c.anchor}"{state}>{summary}{"".join(parts)}</details>'


def _text_facts(c: Candidate) -> list[tuple[str, str]]:
    """Loss and perplexity, where there are any."""
    spread = "" if c.loss_spread is None else f"{c.loss_spread:.3f} nats"
    facts = []
    for words, loss, around in (("", c.loss, spread), ("test ", c.test_loss, "")):
        if loss is not None:
            facts.append((f"{words}loss", _with_spread(fmt.quality(loss, "loss"), around)))
            facts.append((f"{words}perplexity", fmt.perplexity(loss)))
    return facts


def _with_spread(value: str, spread: str) -> str:
    return f"{value} ± {spread}" if spread else value


def _points_spread(spread: float | None) -> str:
    return "" if spread is None else f"{100 * spread:.1f} points"


def _spread(spread: float | None) -> str:
    return "" if spread is None else fmt.milliseconds(spread)


def _drawing(drawing: Drawing, text_tree: str) -> str:
    if drawing.svg:
        return f'<div class="drawing">{drawing.svg}</div>'
    note = f'<p class="quiet">{escape(drawing.problem)}</p>' if drawing.problem else ""
    return f'{note}<pre class="tree">{escape(text_tree)}</pre>'


def _layers(layers: tuple[Layer, ...]) -> str:
    rows = []
    for layer in layers:
        share = ""
        if layer.macs is not None and layer.original_macs:
            share = fmt.ratio(layer.macs / layer.original_macs)
        cost = fmt.count(layer.macs) if layer.fits else "keeps the original"
        rows.append(
            f"<tr><td><code>{escape(layer.label)}</code></td>"
            f'<td class="number">{layer.multiplicity}</td><td class="number">{cost}</td>'
            f'<td class="number">{fmt.count(layer.original_macs)}</td>'
            f'<td class="number">{share}</td></tr>'
        )
    rows.append(_layers_total(layers))
    return (
        '<div class="scroll"><table class="layers"><thead><tr><th>layer</th>'
        '<th class="number">times</th><th class="number">MACs each</th>'
        '<th class="number">original each</th><th class="number">ratio</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _layers_total(layers: tuple[Layer, ...]) -> str:
    counted = [layer for layer in layers if layer.macs is not None]
    ours = sum((layer.macs or 0) * layer.multiplicity for layer in counted)
    known = bool(counted) and all(layer.original_macs for layer in counted)
    theirs = sum((layer.original_macs or 0) * layer.multiplicity for layer in counted)
    return (
        f'<tr class="total"><td>all replaced layers</td>'
        f'<td class="number">{sum(layer.multiplicity for layer in counted)}</td>'
        f'<td class="number">{fmt.count(ours)}</td>'
        f'<td class="number">{fmt.count(theirs) if known else fmt.MISSING}</td>'
        f'<td class="number">{fmt.ratio(ours / theirs) if known else ""}</td></tr>'
    )


def _sources(c: Candidate) -> str:
    return "".join(
        f'<details class="inner"{" open" if index == 0 else ""}>'
        f"<summary>PyTorch code for <code>{escape(source.binding)}</code></summary>"
        f'<pre class="code">{highlight.python(source.code)}</pre></details>'
        for index, source in enumerate(c.sources)
    )
