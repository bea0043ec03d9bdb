"""`syno status`: what a store holds."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.store import StudySummary


@framework.command(
    name="status",
    examples=[
        ("all studies of a store", "syno status runs.db"),
        (
            "one study with its operators",
            "syno status runs.db --study resnet-small-digits-1 --operators",
        ),
        ("for a script", "syno status runs.db --json"),
    ],
)
@click.argument("store")
@options.study_option
@click.option("--operators", is_flag=True, help="List the operators, the best first.")
@output.json_option
def command(store: str, study: str | None, operators: bool, as_json: bool) -> None:
    """Say what a store holds and how far its searches are. The store is only read."""
    from syno.store import Store
    from syno.store.overview import study_json

    with Store.open(store, read_only=True) as opened:
        records = opened.studies() if study is None else [opened.study(study)]
        summaries = [opened.summary(record) for record in records]
        name = opened.name
    if as_json:
        listed = [study_json(summary, operators=operators) for summary in summaries]
        output.print_json({"store": name, "studies": listed})
        return
    if not summaries:
        start = shlex.join(["syno", "search", "--store", store])
        output.echo(f"{name} holds no study; `{start}` starts one")
        return
    print_studies(summaries)
    for summary in summaries:
        print_rungs(summary)
        if operators:
            print_operators(summary)
        print_quarantine(summary)


def _state(summary: StudySummary) -> str:
    if summary.stop_reason:
        return f"stopped: {summary.stop_reason}"
    return "running, or killed: `syno resume` goes on"


def print_quarantine(summary: StudySummary) -> None:
    """The operators that a study proposes no more, when there are any."""
    if not summary.quarantined:
        return
    rows = [[record.key[:8], str(record.failures), record.reason] for record in summary.quarantined]
    screen = output.console()
    screen.print(
        output.heading(
            "in quarantine",
            f" in {summary.study.name}: proposed no more; "
            "`syno resume STORE --release KEY` lets one out",
        ),
        soft_wrap=True,
    )
    columns = [("key", "left"), ("failures", "right"), ("the last time", "fold")]
    screen.print(output.table(columns, rows))


def print_studies(summaries: list[StudySummary]) -> None:
    """One line a study."""
    from syno.report import format as fmt
    from syno.store.overview import best_of, failed, trained

    rows = []
    for summary in summaries:
        best = best_of(summary)
        asked_for = summary.settings.get("evaluations", "?")
        objective = summary.objective.name
        mark = "" if objective == "accuracy" else f"{objective} "
        rows.append(
            [
                summary.study.name,
                f"{trained(summary)} of {asked_for}",
                str(failed(summary)),
                mark + fmt.quality(summary.quality(summary.baseline), objective),
                mark + fmt.quality(summary.quality(best), objective) if best else fmt.MISSING,
                best.key[:8] if best and best.key else "",
                _state(summary),
            ]
        )
    columns = [("study", "left"), ("trained", "right"), ("failed", "right"), ("baseline", "right")]
    columns += [("best", "right"), ("key", "left"), ("state", "fold")]
    output.console().print(output.table(columns, rows))


def print_rungs(summary: StudySummary) -> None:
    """One line a rung of a search with a ladder, the highest first."""
    from syno.report import format as fmt

    if not summary.rungs:
        return
    rungs = summary.rungs
    rows = [
        [
            rung.name,
            str(rung.evaluated),
            str(rung.failed),
            "" if rung is rungs[-1] else str(rung.promoted),
            "" if rung is rungs[-1] else str(rung.stopped),
            fmt.percent(rung.best),
            fmt.percent(rung.baseline),
            fmt.duration(rung.seconds),
        ]
        for rung in reversed(rungs)
    ]
    columns = [("rung", "left"), ("trained", "right"), ("failed", "right"), ("promoted", "right")]
    columns += [("stopped", "right"), ("best", "right"), ("baseline", "right"), ("time", "right")]
    screen = output.console()
    ladder = summary.settings.get("ladder")
    assert ladder is not None
    eta = ladder["eta"]
    screen.print(
        output.heading("rungs", f" of {summary.study.name}: the best 1/{eta} go on"),
        soft_wrap=True,
    )
    screen.print(output.table(columns, rows))


def print_operators(summary: StudySummary, limit: int | None = None) -> None:
    """One line an operator, the best first, at most `limit` of them; with a ladder those of a
    higher rung first, each at the highest that it reached."""
    from syno.report import format as fmt
    from syno.store.overview import score

    objective = summary.objective.name
    listed = list(summary.evaluations)
    if summary.rungs:  # a failure at a higher rung does not take back what it gave below
        by_rung = sorted(listed, key=lambda e: (e.accuracy is not None, e.rung_index))
        listed = list({e.ask: e for e in by_rung}.values())
    ordered = sorted(listed, key=lambda e: (-e.rung_index, -score(summary, e), e.ask))
    text = objective == "loss"
    rows = [
        [
            (e.key or "")[:8],
            *([e.rung] if summary.rungs else []),
            fmt.quality(summary.quality(e), objective),
            *([fmt.perplexity(summary.quality(e))] if text else []),
            fmt.milliseconds(e.latency_ms),
            fmt.ratio(e.latency_ratio),
            fmt.count(e.macs),
            fmt.count(e.params),
            fmt.primitives(e.primitives),
            e.status if e.status == "ok" else f"{e.status}: {e.reason}",
        ]
        for e in ordered[:limit]
    ]
    columns = [("key", "left"), *([("rung", "left")] if summary.rungs else [])]
    columns += [(objective, "right")]
    columns += [("perplexity", "right")] if text else []
    columns += [("latency", "right"), ("ratio", "right"), ("MACs", "right"), ("params", "right")]
    columns += [("primitives", "fold"), ("status", "fold")]
    screen = output.console()
    screen.print(output.heading(f"{summary.study.name}"))
    screen.print(output.table(columns, rows))
