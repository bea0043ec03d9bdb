"""`syno status`: what a store holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.command_line import command_line
from syno._util.options import Options, option, required
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.store import StudySummary


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """Arguments of `syno status`."""

    store: str = required("", names="STORE")
    study: str | None = options.study()
    operators: bool = option("List the operators, the best first.", False)
    as_json: bool = output.as_json()


@framework.command("status", Arguments)
def command(given: Arguments) -> None:
    """Say what a store holds and how far its searches are. The store is only read."""
    from syno.store import Store
    from syno.store.overview import study_json

    with Store.open(given.store, read_only=True) as opened:
        records = opened.studies() if given.study is None else [opened.study(given.study)]
        summaries = [opened.summary(record) for record in records]
        name = opened.name
    if given.as_json:
        listed = [study_json(summary, operators=given.operators) for summary in summaries]
        output.print_json({"store": name, "studies": listed})
        return
    if not summaries:
        start = command_line("search", "--store", given.store)
        output.echo(f"{name} holds no study; `{start}` starts one")
        return
    print_studies(summaries)
    for summary in summaries:
        print_rungs(summary)
        if given.operators:
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
    words = "proposed no more; `syno resume STORE --release KEY` lets one out"
    title = output.heading("in quarantine", f" in {summary.study.name}: {words}")
    output.console().print(title, soft_wrap=True)
    output.show(
        summary.quarantined,
        ("key", lambda record: record.key[:8]),
        ("failures>", lambda record: str(record.failures)),
        ("the last time~", lambda record: record.reason),
    )


def print_studies(summaries: list[StudySummary]) -> None:
    """One line a study."""
    from syno.store.overview import best_of, failed, trained

    def value(summary: StudySummary, *, of_best: bool) -> str:
        found = best_of(summary) if of_best else summary.baseline
        if found is None and of_best:
            return fmt.MISSING
        mark = "" if summary.objective.is_share else f"{summary.objective.name} "
        return mark + summary.objective.shown(summary.quality(found))

    def key(summary: StudySummary) -> str:
        best = best_of(summary)
        return best.key[:8] if best and best.key else ""

    output.show(
        summaries,
        ("study", lambda each: each.study.name),
        ("trained>", lambda each: f"{trained(each)} of {each.settings.get('evaluations', '?')}"),
        ("failed>", lambda each: str(failed(each))),
        ("baseline>", lambda each: value(each, of_best=False)),
        ("best>", lambda each: value(each, of_best=True)),
        ("key", key),
        ("state~", _state),
    )


def print_rungs(summary: StudySummary) -> None:
    """One line a rung of a search with a ladder, the highest first."""
    if not summary.rungs:
        return
    rungs = summary.rungs
    eta = summary.settings["ladder"]["eta"]
    title = output.heading("rungs", f" of {summary.study.name}: the best 1/{eta} go on")
    output.console().print(title, soft_wrap=True)
    output.show(
        reversed(rungs),
        ("rung", lambda rung: rung.name),
        ("trained>", lambda rung: str(rung.evaluated)),
        ("failed>", lambda rung: str(rung.failed)),
        ("promoted>", lambda rung: "" if rung is rungs[-1] else str(rung.promoted)),
        ("stopped>", lambda rung: "" if rung is rungs[-1] else str(rung.stopped)),
        ("best>", lambda rung: fmt.percent(rung.best)),
        ("baseline>", lambda rung: fmt.percent(rung.baseline)),
        ("time>", lambda rung: fmt.duration(rung.seconds)),
    )


def print_operators(summary: StudySummary, limit: int | None = None) -> None:
    """One line an operator, the best first, at most `limit` of them."""
    from syno.store.overview import ordered

    objective = summary.objective
    output.console().print(output.heading(f"{summary.study.name}"))
    output.show(
        ordered(summary)[:limit],
        ("key", lambda e: (e.key or "")[:8]),
        *([("rung", lambda e: e.rung)] if summary.rungs else []),
        (f"{objective.name}>", lambda e: objective.shown(summary.quality(e))),
        *(
            []
            if objective.is_share
            else [("perplexity>", lambda e: fmt.perplexity(summary.quality(e)))]
        ),
        ("latency>", lambda e: fmt.milliseconds(e.latency_ms)),
        ("ratio>", lambda e: fmt.ratio(e.latency_ratio)),
        ("MACs>", lambda e: fmt.count(e.macs)),
        ("params>", lambda e: fmt.count(e.params)),
        ("primitives~", lambda e: fmt.primitives(e.primitives)),
        ("status~", lambda e: e.status if e.status == "ok" else f"{e.status}: {e.reason}"),
    )
