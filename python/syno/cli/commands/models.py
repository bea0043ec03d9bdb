"""`syno models`: networks by name, and which of their layers operators may replace."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import framework, options, output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.network.models import Summary


@framework.command(
    name="models",
    examples=[
        ("all of them, with their slots and costs", "syno models"),
        ("for programs", "syno models --json"),
        ("every layer of one, with its options", "syno models resnet18"),
        (
            "as it is for images of 32 px",
            "syno models resnet18 --size 32 --classes 100 --model-option cifar_stem=1",
        ),
    ],
)
@click.argument("name", required=False)
@options.model_option_option
@click.option("--classes", type=int, help="Classes of the images. [those of the original]")
@click.option("--channels", type=int, help="Channels of the images. [those of the original]")
@click.option("--size", type=int, help="Side of the images in pixels. [that of the original]")
@output.json_option
def command(
    name: str | None,
    model_options: tuple[str, ...],
    classes: int | None,
    channels: int | None,
    size: int | None,
    as_json: bool,
) -> int:
    """List the models, or show the layers of one: found as slots, or kept and why.

    MACs are multiply-adds for one sample. A model is built without weights, so this is quick for
    large ones, too. Those of timm are not listed: `syno models timm/NAME` shows one.
    """
    from syno.cli.commands.search import numbers
    from syno.network import models

    shape = {"classes": classes, "channels": channels, "size": size}
    given = {key: value for key, value in shape.items() if value is not None}
    chosen = numbers(model_options)
    if name is None:
        if given or chosen:
            raise UserError("options of a model are given without a model\n  expected: its name")
        return _list(as_json)
    info = models.describe(name)
    found = models.summarise(name, **given, **chosen)
    if as_json:
        output.print_json(
            found.to_json()
            | {
                "options": {key: dataclasses.asdict(o) for key, o in info.options.items()},
                "layers": [dataclasses.asdict(row) for row in found.report.rows],
            }
        )
        return framework.OK
    _show(found)
    return framework.OK


def _list(as_json: bool) -> int:
    """Print all models; those whose package is missing with what brings it."""
    from syno.network import models

    entries: list[dict[str, Any]] = []
    names = models.list_models()
    with output.progress("building", len(names)) as move:
        for done, name in enumerate(names):
            move(done, name)
            entries.append(_entry(name))
    if as_json:
        output.print_json(entries)
        return framework.OK
    columns = [("model", "left"), ("input", "left"), ("slots", "right"), ("bindings", "right")]
    columns += [
        ("MACs", "right"),
        ("in slots", "right"),
        ("params", "right"),
        ("in slots", "right"),
    ]
    columns += [("preset", "left"), ("what it is", "fold")]
    output.console().print(output.table(columns, [_row(entry) for entry in entries]))
    return framework.OK


def _entry(name: str) -> dict[str, Any]:
    from syno.network import models

    try:
        return models.summarise(name).to_json()
    except UserError as error:
        info = models.describe(name)
        return {
            "name": name,
            "summary": info.summary,
            "package": info.package,
            "preset": info.preset,
            "missing": str(error),
        }


def _row(entry: dict[str, Any]) -> list[str]:
    if "missing" in entry:
        about = f"{entry['summary']} ({entry['missing'].splitlines()[-1].strip()})"
        return [entry["name"], *[""] * 7, entry["preset"] or "", about]
    return [
        entry["name"],
        "x".join(map(str, entry["input_shape"])),
        str(entry["slots"]),
        str(len(entry["bindings"])),
        fmt.count(entry["macs"]),
        f"{entry['slot_macs'] / entry['macs']:.0%}",
        fmt.count(entry["params"]),
        f"{entry['slot_params'] / entry['params']:.0%}",
        entry["preset"] or "",
        entry["summary"],
    ]


def _show(found: Summary) -> None:
    from syno.network import models

    info = models.describe(found.name)
    screen = output.console()
    screen.print(output.heading(f"{found.name}", f"  {info.summary}"))
    if info.options:
        screen.print()
        screen.print(output.heading("Options"))
        rows = [
            [name, str(o.default), f"{o.least:,} to {o.most:,}", o.doc]
            for name, o in info.options.items()
        ]
        columns = [("option", "left"), ("default", "right"), ("range", "left"), ("meaning", "fold")]
        screen.print(output.table(columns, rows))
    if not info.options:
        screen.print()
    screen.print(output.heading("Layers"))
    screen.print(output.indented(str(found.report), 2), soft_wrap=True)
    screen.print()
    screen.print(output.heading("Bindings"))
    for sizes, count in found.bindings:
        text = ", ".join(f"{name}={value}" for name, value in sizes.items())
        screen.print(f"  {count} x {text}")
