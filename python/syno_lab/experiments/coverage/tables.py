"""What is covered, as tables."""

from __future__ import annotations

from syno._util import numbers
from syno._util.tables import Table
from syno_lab.experiments.coverage.examine import Covered
from syno_lab.experiments.coverage.sweep import Coverage

_SHOWN = 4  # operators of a row


def networks_table(found: Coverage) -> Table:
    """A row for each network, those first that the library does not cover."""
    rows = sorted(found.networks, key=lambda each: each.whole)
    return Table.of(
        rows,
        ("family", lambda each: each.family),
        ("network", lambda each: each.network or numbers.MISSING),
        ("parameters>", lambda each: numbers.count(each.parameters)),
        ("library", library_of),
        ("kernels>", lambda each: str(each.layers)),
        ("other operators~", others_of),
    )


def missing_table(found: Coverage) -> Table:
    """The operators without code, by the number of networks that lack them."""
    return Table.of(
        list(found.missing().items()),
        ("operator", lambda row: row[0]),
        ("networks>", lambda row: str(len(row[1]))),
        ("reason~", lambda row: row[1][0].missing[row[0]]),
    )


def library_of(each: Covered) -> str:
    """Whether the library covers a network, or why not; the error of one that was compiled."""
    if not each.whole:
        return each.reason
    if each.compiled is None:
        return "covered"
    if each.compiled.error is None:
        return f"covered, but not compiled: {each.compiled.reason}"
    return f"covered, off by {each.compiled.error:.0e}"


def others_of(each: Covered) -> str:
    """The operators that most calls of a compiled network are of, beside its layers."""
    names = list(each.others.items())
    shown = [f"{name.partition('.')[0]} ({count})" for name, count in names[:_SHOWN]]
    return ", ".join([*shown, *(["..."] if len(names) > _SHOWN else [])])
