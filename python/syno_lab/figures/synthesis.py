"""Figures about synthesis and language: Table 2, the distance ablation, and Figure 10."""

from __future__ import annotations

import math

from syno_lab import published
from syno_lab.experiments.ablation import PAPER, Guided
from syno_lab.experiments.pictures import ablation_figure, canonical_rate_figure, projection_figure
from syno_lab.figures.drawing import Drawing, Row
from syno_lab.figures.sources import Sources


def draw_rates(sources: Sources) -> Drawing | None:
    """Canonical rates by size, of the file with the most samples."""
    if not sources.rates:
        return None
    read = max(sources.rates, key=lambda each: each.content.samples)
    rows: list[Row] = []
    for row in read.content.rows:
        low, high = row.interval
        rows.append(
            {
                "source": read.source,
                "primitives": row.label,
                "samples": row.samples,
                "canonical": row.canonical,
                "rate": row.rate,
                "low": low,
                "high": high,
            }
        )
    rows += [
        {"source": "published: the paper's Table 2", "primitives": row.label, "rate": row.paper}
        for row in read.content.rows
    ]
    return Drawing(canonical_rate_figure(read.content), rows)


def draw_ablation(sources: Sources) -> Drawing | None:
    """What trials find under each guide, of the file with the most trials."""
    if not sources.ablations:
        return None
    read = max(sources.ablations, key=lambda each: sum(run.trials for run in each.content.guided))
    rows = [_guided(read.source, run) for run in read.content.guided]
    rows += [_guided("published: the paper's section 9.4", run) for run in PAPER]
    return Drawing(ablation_figure(read.content), rows)


def _guided(source: str, run: Guided) -> Row:
    return {
        "source": source,
        "guide": run.guide,
        "trials": run.trials,
        "met_an_operator": run.valid,
        "distinct": run.distinct,
        "distinct_per_million_trials": run.per_million(run.distinct),
        "seconds": run.seconds or None,
        "cores": run.cores,
    }


def draw_loss(sources: Sources) -> Drawing | None:
    """Training losses of a language model, of the file with the most steps."""
    found = [
        read
        for read in sources.projections
        if read.content.runs and read.content.timing is not None
    ]
    if not found:
        return None
    read = max(found, key=lambda each: sum(run.steps for run in each.content.runs))
    figure = projection_figure(read.content)
    perplexity = {
        each.subject.split()[1]: each
        for each in published.statements()
        if each.what == "perplexity"
    }
    before, after = perplexity["baseline"], perplexity["gpt2-projection"]
    figure.supxlabel(
        f"{published.NOT_COMPARABLE}: perplexity {before.value:g} with the baseline projection, "
        f"{after.value:g} with the operator ({before.condition})",
        fontsize=8,
    )
    rows: list[Row] = []
    for run in read.content.runs:
        width = run.steps / max(len(run.losses), 1)
        common = {
            "source": read.source,
            "comparable": "yes",
            "network": run.what,
            "equal": run.way,
            "seed": run.seed,
        }
        rows += [
            {**common, "split": "training", "steps": round((n + 0.5) * width), "loss": loss}
            for n, loss in enumerate(run.losses)
        ]
        rows.append({**common, "split": "validation", "steps": run.steps, "loss": run.loss})
    rows += [
        {
            "source": f"published: {each.source}",
            "comparable": published.NOT_COMPARABLE,
            "network": name,
            "split": each.condition,
            "loss": math.log(each.value),
        }
        for name, each in perplexity.items()
    ]
    return Drawing(figure, rows)
