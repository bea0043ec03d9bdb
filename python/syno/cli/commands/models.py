"""`syno models`: networks by name, and which of their layers are replaceable."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, option
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.network.models import Summary


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    name: str | None = option("", None, names="NAME")
    model_options: Mapping[str, int | str] = options.model_options()
    classes: int | None = option("Number of classes.", None, unset="that of the original")
    channels: int | None = option("Channels of the images.", None, unset="those of the original")
    size: int | None = option(
        "Height and width of the images in pixels.", None, unset="that of the original"
    )
    as_json: bool = output.as_json()


@framework.command("models", _Arguments)
def command(given: _Arguments) -> int:
    """List the models, or show the layers of one model: its slots, and why others are kept.

    MACs (multiply-accumulate operations) are given for one sample. Models are built without
    weights, so that the command is fast for large models, too. Models of timm are not listed;
    `syno models timm/NAME` shows one.
    """
    from syno.network import models

    sizes = {"classes": given.classes, "channels": given.channels, "size": given.size}
    shape = {key: value for key, value in sizes.items() if value is not None}
    if given.name is None:
        if shape or given.model_options:
            raise UserError(
                "options of a model are given without a model\n  expected: the name of a model"
            )
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
    """Print all models; if the package of a model is missing, print the extra that contains it."""
    from syno.network.models.summary import entries
    from syno.network.models.tables import models_table

    found = entries()
    if as_json:
        output.print_json(found)
    else:
        output.show(models_table(found))
    return framework.OK


def _show(found: Summary) -> None:
    from syno.network import models
    from syno.network.models.tables import options_table

    info = models.describe(found.name)
    screen = output.console()
    screen.print(output.heading(f"{found.name}", f"  {info.summary}"))
    if info.options:
        screen.print()
        screen.print(output.heading("Options"))
        output.show(options_table(info))
    if not info.options:
        screen.print()
    output.layers(found.report)
    screen.print()
    screen.print(output.heading("Bindings"))
    for sizes, count in found.bindings:
        text = ", ".join(f"{name}={value}" for name, value in sizes.items())
        screen.print(f"  {count} x {text}")
