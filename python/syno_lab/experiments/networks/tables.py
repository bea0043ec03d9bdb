"""The times of networks in engines, as a table for each setting."""

from __future__ import annotations

from syno._util import numbers
from syno._util.tables import Table
from syno.engines import engine as engines
from syno_lab.experiments.networks.process import EngineTime
from syno_lab.experiments.networks.sweep import NetworksTimes, Setting

# Times alone and in turns that differ by more than this share are marked.
_DIFFERENCE = 0.1


def times_table(found: NetworksTimes, setting: Setting) -> Table:
    """A row for each network: milliseconds of each engine, and the ratio to the best rival.

    A time in turns with the others stands in brackets where it differs by more than a tenth.
    """
    return Table.of(
        found.networks(setting),
        ("network", str),
        *(
            (f"{engine}>", lambda name, engine=engine: _cell(found, setting, name, engine))
            for engine in found.engines()
        ),
        ("over best rival>", lambda name: _ratio(found.ratio(setting, name))),
        ("largest error in float32>", lambda name: _error(found, setting, name)),
    ).without_empty()


def heading(found: NetworksTimes, setting: Setting) -> str:
    """What a table shows, and the mean of its ratios."""
    mean = _ratio(found.mean_ratio(setting))
    images = "1 image" if setting.batch == 1 else f"{setting.batch} images"
    threads = "1 thread" if setting.threads == 1 else f"{setting.threads} threads"
    return f"{images}, {threads}, milliseconds; geometric mean over the best rival {mean}"


def start_table(found: NetworksTimes, setting: Setting) -> Table:
    """A row for each network: what it takes to start, and the memory of each engine alone.

    Cells are seconds until a network can be called for the first time, milliseconds to load what
    was compiled or written before, MiB of its files, and MiB of the process.
    """
    return Table.of(
        found.networks(setting),
        ("network", str),
        *(
            (f"{engine}>", lambda name, engine=engine: _start(found, setting, name, engine))
            for engine in found.engines()
        ),
    ).without_empty()


def _start(found: NetworksTimes, setting: Setting, network: str, engine: str) -> str:
    """The least of each number of the processes in which the engine was alone."""
    alone = [
        each
        for each in found.alone(setting, network, engine)
        if isinstance(each, EngineTime) and not each.reason
    ]
    if not alone:
        return ""
    return " / ".join(
        [
            f"{min(each.prepare_s for each in alone):.3g} s",
            _least([each.load_ms for each in alone], "ms"),
            _least([each.size_mb for each in alone], "MiB"),
            _least([each.memory_mb for each in alone], "MiB"),
        ]
    )


def _least(values: list[float | None], unit: str) -> str:
    known = [each for each in values if each is not None]
    return f"{min(known):.3g} {unit}" if known else numbers.MISSING


def _cell(found: NetworksTimes, setting: Setting, network: str, engine: str) -> str:
    ms = found.ms(setting, network, engine)
    if ms is None:
        reasons = found.alone(setting, network, engine)
        return "failed" if reasons else ""
    turns = found.turns_ms(setting, network, engine)
    if turns is None or abs(turns / ms - 1) <= _DIFFERENCE:
        return f"{ms:.3g}"
    return f"{ms:.3g} ({turns:.3g})"


def _ratio(ratio: float | None) -> str:
    return numbers.MISSING if ratio is None else f"{ratio:.2f}x"


def _error(found: NetworksTimes, setting: Setting, network: str) -> str:
    errors = [
        each.error
        for engine in found.engines()
        if (known := engines.get(engine)).own and known.precision == engines.FLOAT32
        for each in found.alone(setting, network, engine)
        if isinstance(each, EngineTime) and not each.reason
    ]
    return f"{max(errors):.0e}" if errors else numbers.MISSING


def failures(found: NetworksTimes) -> list[str]:
    """Why engines have no time, each once, as lines."""
    lines: dict[str, None] = {}
    for visit, times in found.visits:
        if isinstance(times, str):
            lines[f"{visit.network} in {', '.join(visit.engines)}: {times}"] = None
            continue
        for engine, each in times.engines.items():
            if each.reason:
                lines[f"{visit.network} in {engine}: {each.reason}"] = None
    return list(lines)
