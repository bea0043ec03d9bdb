"""Times of layers as tables of text."""

from __future__ import annotations

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno_lab.experiments.layers.results import LayerResults, LayerRun

BEST = "fastest"


def layers_table(found: LayerResults) -> Table:
    """A row for each layer: the fastest other engine for the original, and the speed-ups over it of
    each subject in its fastest engine."""

    def best(subject: str, run: LayerRun) -> str:
        time = run.best(subject)
        return fmt.MISSING if time is None else f"{time.speedup:.2f}x {time.engine}"

    def original(run: LayerRun) -> str:
        time = run.time(found.subjects()[0], run.rival)
        return fmt.MISSING if time is None else f"{time.median_ms:.3f} ms {run.rival}"

    return Table.of(
        found.layers,
        ("layer", lambda run: f"{run.layer}{' (noisy)' if run.noisy else ''}"),
        ("times>", lambda run: str(run.count)),
        ("original in the best other engine", original),
        *(
            (subject, lambda run, subject=subject: best(subject, run))
            for subject in found.subjects()
        ),
    )


def means_table(found: LayerResults) -> Table:
    """Geometric means over the layers of the speed-ups over the original in the fastest other
    engine, for each subject and engine. A number in brackets: fewer layers than all."""

    def mean(subject: str, engine: str | None) -> str:
        value = found.mean_speedup(subject, engine)
        if value is None:
            return fmt.MISSING
        ratio, count = value
        return f"{ratio:.2f}x" + ("" if count == len(found.layers) else f" ({count})")

    return Table.of(
        found.subjects(),
        ("subject", lambda subject: subject),
        *(
            (f"{engine}>", lambda subject, engine=engine: mean(subject, engine))
            for engine in found.engines()
        ),
        (f"{BEST}>", lambda subject: mean(subject, None)),
    )
