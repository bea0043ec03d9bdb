"""Results of experiments as tables and text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno_lab.experiments.ablation import PAPER, Ablation
from syno_lab.experiments.canonical import CanonicalRate, SizeRow
from syno_lab.experiments.kernels import speedups
from syno_lab.experiments.projection import ORIGINAL, ProjectionComparison, ProjectionRow, StepTimes

if TYPE_CHECKING:
    from syno.measure.kernels import KernelRun
    from syno.measure.training_steps import TrainingSteps
    from syno.study.training.comparison import Paired
    from syno_lab.experiments.agreement import Agreement, Correlation
    from syno_lab.experiments.ranking import RankingFile as RankingTable


def rate_table(result: CanonicalRate) -> Table:
    """Return a table of canonical rates by number of primitives, with those of the paper."""
    total = result.total

    def interval(row: SizeRow) -> str:
        low, high = row.interval
        return f"{low:.4f} to {high:.4f}" if row.samples else fmt.MISSING

    return Table.of(
        [*result.rows, total],
        ("primitives", lambda row: row.label),
        ("samples>", lambda row: f"{row.samples:,}"),
        ("canonical>", lambda row: f"{row.canonical:,}"),
        ("rate>", lambda row: fmt.MISSING if row.rate is None else f"{row.rate:.4f}"),
        ("95 % confidence>", lambda row: "" if row is total else interval(row)),
        ("paper>", lambda row: f"{row.paper:.4f}"),
        ("enumerated>", lambda row: f"{row.listed:,}"),
        ("structures>", lambda row: "" if row is total else f"{row.structures:,}"),
        ("operators>", lambda row: "" if row is total else f"{row.operators:,}"),
    )


def training_steps_table(result: TrainingSteps) -> Table:
    """Return a table of training steps as multiples of the original network's step."""

    def shown(value: float | None) -> str:
        return fmt.MISSING if value is None else f"{value:.2f}x"

    return Table.of(
        result.times,
        ("operator", lambda row: row.name),
        ("original ms>", lambda row: f"{row.original_ms:.2f}"),
        ("compiled ms>", lambda row: f"{row.compiled_ms:.2f}"),
        ("compiled>", lambda row: shown(row.compiled)),
        ("eager>", lambda row: shown(row.eager)),
        ("compilation s>", lambda row: f"{row.compile_s:.2f}"),
        ("formula~", lambda row: row.formula),
    )


def ablation_table(result: Ablation) -> Table:
    """Return a table of the results of trials by guide, with those of the paper."""

    def shown(value: float | None, digits: str) -> str:
        return fmt.MISSING if value is None else format(value, digits)

    return Table.of(
        [*(("paper", run) for run in PAPER), *(("ours", run) for run in result.guided)],
        ("", lambda row: row[0]),
        ("guide", lambda row: row[1].guide),
        ("trials>", lambda row: f"{row[1].trials:,}"),
        ("complete>", lambda row: shown(row[1].complete, ",")),
        ("valid>", lambda row: shown(row[1].valid, ",")),
        ("distinct>", lambda row: f"{row[1].distinct:,}"),
        (
            "distinct per million trials>",
            lambda row: shown(row[1].per_million(row[1].distinct), ",.1f"),
        ),
        ("seconds>", lambda row: f"{row[1].seconds:.2f}"),
        ("cores>", lambda row: str(row[1].cores)),
        (
            "distinct per core second>",
            lambda row: shown(row[1].per_core_second(row[1].distinct), ".4f"),
        ),
    )


def projection_table(found: ProjectionComparison) -> Table:
    """Return a table of the losses of baseline and operator, at equal steps and equal time."""

    def bits(row: ProjectionRow) -> float | None:
        values = found.values(row.what, row.way, "bits_a_byte").values()
        return sum(values) / len(values) if values else None

    def perplexity(row: ProjectionRow) -> float | None:
        return None if row.loss is None else math.exp(row.loss.mean)

    def loss(row: ProjectionRow) -> str:
        return fmt.MISSING if row.loss is None else _number(row.loss.mean, row.loss.deviation)

    return Table.of(
        found.rows(),
        ("", lambda row: row.what if row.what == ORIGINAL else f"{row.what}, equal {row.way}"),
        ("steps>", lambda row: f"{row.steps:,}"),
        ("validation loss>", loss),
        ("perplexity>", lambda row: _number(perplexity(row), None, 2)),
        ("bits per byte>", lambda row: _number(bits(row))),
        ("difference>", lambda row: "" if row.beside is None else f"{row.beside.difference:+.4f}"),
        ("better>", lambda row: "" if row.beside is None else _wins(row.beside)),
    )


def steps_table(timing: StepTimes) -> Table:
    """Return a table of the parts of a training step in milliseconds."""
    return Table.of(
        [(ORIGINAL, timing.original), ("operator", timing.operator)],
        ("", lambda row: row[0]),
        ("forward, ms>", lambda row: f"{row[1].forward_ms:.1f}"),
        ("backward, ms>", lambda row: f"{row[1].backward_ms:.1f}"),
        ("update, ms>", lambda row: f"{row[1].update_ms:.1f}"),
        ("step, ms>", lambda row: f"{row[1].step_ms:.1f}"),
    )


def _wins(pair: Paired) -> str:
    return f"{pair.wins} of {pair.count}"


def _number(value: float | None, deviation: float | None = None, digits: int = 4) -> str:
    if value is None:
        return fmt.MISSING
    spread = "" if deviation is None else f" ± {deviation:.{digits}f}"
    return f"{value:.{digits}f}{spread}"


def correlations_table(found: Agreement) -> Table:
    """Return a table of the rank correlations of each measure."""
    return Table.of(
        [each for each in found.correlations if each.count],
        ("predictor of the high rung, or of the other seed", lambda each: each.name),
        ("operators>", lambda each: str(each.count)),
        ("Spearman>", _value),
        ("95 % confidence>", _interval),
    )


def predictors_table(correlations: Sequence[Correlation], objective: str) -> Table:
    """Return a table of the rank correlations of predictors of adapted networks."""
    return Table.of(
        correlations,
        (f"predictor of the {objective} after fine-tuning", lambda each: each.name),
        ("networks>", lambda each: str(each.count)),
        ("Spearman>", _value),
        ("95 % confidence>", _interval),
    )


def arms_table(found: Agreement) -> Table:
    """Return a table of operators trained with and without initial scales."""
    return Table.of(
        found.arms,
        ("scales", lambda arm: arm.scales),
        ("operators>", lambda arm: str(arm.count)),
        ("accuracy>", lambda arm: f"{100 * arm.accuracy:.2f} %"),
        ("difference>", lambda arm: f"{100 * arm.difference:+.2f} ± {100 * arm.error:.2f}"),
        ("agreement of seeds>", lambda arm: f"{_value(arm.seeds)} {_interval(arm.seeds)}"),
    )


def _value(each: Correlation) -> str:
    return fmt.MISSING if each.value is None or each.low is None else f"{each.value:.2f}"


def _interval(each: Correlation) -> str:
    if each.value is None or each.low is None or each.high is None:
        return fmt.MISSING
    return f"{each.low:.2f} to {each.high:.2f}"


def summary(found: Agreement) -> str:
    """Summarize the trainings of a ranking."""
    long = "" if found.seconds_high is None else f", {found.seconds_high:.0f} s at the high rung"
    return (
        f"{found.operators} operators; {found.trained_low} trained at the low rung, "
        f"{found.trained_high} at the high rung with {found.images:.0f} times as many "
        f"images; {found.failed} failures; median {found.seconds_low:.1f} s at the low rung{long}"
    )


def best_ten(table: RankingTable) -> str:
    """List the ten most accurate operators at the high rung."""
    best = sorted(table.accuracies("high").items(), key=lambda each: -each[1])[:10]
    entries = [(table.entries[i], accuracy) for i, accuracy in best]
    return ", ".join(f"{e.name or e.key[:8]} {100 * a:.1f} %" for e, a in entries)


def times_table(run: KernelRun) -> Table:
    """Return a table of the times of each kernel in each layer."""
    return Table.of(
        run.times,
        ("layer", lambda time: time.layer),
        ("kernel", lambda time: time.kernel),
        ("best ms>", lambda time: f"{time.best_ms:.3f}"),
        ("median ms>", lambda time: f"{time.median_ms:.3f}"),
        ("over conv2d>", lambda time: "" if time.speedup is None else f"{time.speedup:.2f}x"),
        ("of roofline>", lambda time: "" if time.roofline is None else f"{time.roofline:.0%}"),
        ("outputs verified>", lambda time: f"{time.outputs:,}" if time.outputs else ""),
    )


def means_table(run: KernelRun, batch: int) -> Table:
    """Return a table of geometric means over the layers, without empty columns."""
    names = ["over conv2d", "over the best conv2d", "of roofline"]
    names += ["measured plan over the cheapest", "over straightforward"]
    rows = tuple(
        (name, *("" if v is None else f"{v:.2f}" for v in values.values()))
        for name, values in speedups(run, batch).items()
    )
    return Table(("geometric mean", *(f"{name}>" for name in names)), rows).without_empty()
