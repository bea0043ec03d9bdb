"""Models as tables of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno.network.models.info import ModelInfo
from syno.network.models.summary import Entry


def models_table(entries: Sequence[Entry]) -> Table:
    """One line a model; of one that cannot be built, what is missing."""

    def cell(value: Callable[[Entry], str]) -> Callable[[Entry], str]:
        return lambda each: "" if "missing" in each else value(each)

    return Table.of(
        entries,
        ("model", lambda each: each["name"]),
        ("input", cell(lambda each: "x".join(map(str, each["input_shape"])))),
        ("slots>", cell(lambda each: str(each["slots"]))),
        ("bindings>?", cell(lambda each: str(len(each["bindings"])))),
        ("MACs>", cell(lambda each: fmt.count(each["macs"]))),
        ("in slots>?", cell(lambda each: f"{each['slot_macs'] / each['macs']:.0%}")),
        ("params>?", cell(lambda each: fmt.count(each["params"]))),
        ("in slots>?", cell(lambda each: f"{each['slot_params'] / each['params']:.0%}")),
        ("preset?", lambda each: each["preset"] or ""),
        ("what it is~", _about),
    )


def _about(entry: Entry) -> str:
    if "missing" in entry:
        return f"{entry['summary']} ({entry['missing'].splitlines()[-1].strip()})"
    return str(entry["summary"])


def options_table(info: ModelInfo) -> Table:
    """The options of a model."""
    return Table.of(
        info.options.items(),
        ("option", lambda each: each[0]),
        ("default>", lambda each: str(each[1].default)),
        ("range", lambda each: f"{each[1].least:,} to {each[1].most:,}"),
        ("meaning~", lambda each: each[1].doc),
    )
