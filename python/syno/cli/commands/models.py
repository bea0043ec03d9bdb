"""`syno models`: networks by name, and which of their layers operators may replace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.errors import UserError
from syno._util.options import Options, option
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.network.models import Summary
    from syno.network.models.summary import Entry


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """Arguments of `syno models`."""

    name: str | None = option("", None, names="NAME")
    model_options: Mapping[str, int | str] = options.model_options()
    classes: int | None = option("Classes of the images.", None, unset="those of the original")
    channels: int | None = option("Channels of the images.", None, unset="those of the original")
    size: int | None = option("Side of the images in pixels.", None, unset="that of the original")
    as_json: bool = output.as_json()


@framework.command("models", Arguments)
def command(given: Arguments) -> int:
    """List the models, or show the layers of one: found as slots, or kept and why.

    MACs are multiply-adds for one sample. A model is built without weights, so this is quick for
    large ones, too. Those of timm are not listed: `syno models timm/NAME` shows one.
    """
    from syno.network import models

    sizes = {"classes": given.classes, "channels": given.channels, "size": given.size}
    shape = {key: value for key, value in sizes.items() if value is not None}
    if given.name is None:
        if shape or given.model_options:
            raise UserError("options of a model are given without a model\n  expected: its name")
        return _list(given.as_json)
    found = models.summarise(given.name, **shape, **given.model_options)
    if given.as_json:
        known = models.describe(given.name).options
        output.print_json(
            found.to_json()
            | {
                "options": {key: dataclasses.asdict(o) for key, o in known.items()},
                "layers": [dataclasses.asdict(row) for row in found.report.rows],
            }
        )
        return framework.OK
    _show(found)
    return framework.OK


def _list(as_json: bool) -> int:
    """Print all models; those whose package is missing with what brings it."""
    from syno.network import models
    from syno.network.models.summary import entry

    entries = []
    names = models.list_models()
    with output.progress("building", len(names)) as move:
        for done, name in enumerate(names):
            move(done, name)
            entries.append(entry(name))
    if as_json:
        output.print_json(entries)
        return framework.OK

    def cell(value: Callable[[Entry], str]) -> Callable[[Entry], str]:
        return lambda each: "" if "missing" in each else value(each)

    output.show(
        entries,
        ("model", lambda each: each["name"]),
        ("input", cell(lambda each: "x".join(map(str, each["input_shape"])))),
        ("slots>", cell(lambda each: str(each["slots"]))),
        ("bindings>", cell(lambda each: str(len(each["bindings"])))),
        ("MACs>", cell(lambda each: fmt.count(each["macs"]))),
        ("in slots>", cell(lambda each: f"{each['slot_macs'] / each['macs']:.0%}")),
        ("params>", cell(lambda each: fmt.count(each["params"]))),
        ("in slots>", cell(lambda each: f"{each['slot_params'] / each['params']:.0%}")),
        ("preset", lambda each: each["preset"] or ""),
        ("what it is~", _about),
    )
    return framework.OK


def _about(entry: Entry) -> str:
    if "missing" in entry:
        return f"{entry['summary']} ({entry['missing'].splitlines()[-1].strip()})"
    return str(entry["summary"])


def _show(found: Summary) -> None:
    from syno.network import models

    info = models.describe(found.name)
    screen = output.console()
    screen.print(output.heading(f"{found.name}", f"  {info.summary}"))
    if info.options:
        screen.print()
        screen.print(output.heading("Options"))
        output.show(
            info.options.items(),
            ("option", lambda each: each[0]),
            ("default>", lambda each: str(each[1].default)),
            ("range", lambda each: f"{each[1].least:,} to {each[1].most:,}"),
            ("meaning~", lambda each: each[1].doc),
        )
    if not info.options:
        screen.print()
    output.paragraph("Layers", str(found.report))
    screen.print()
    screen.print(output.heading("Bindings"))
    for sizes, count in found.bindings:
        text = ", ".join(f"{name}={value}" for name, value in sizes.items())
        screen.print(f"  {count} x {text}")
