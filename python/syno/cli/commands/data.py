"""`syno data`: what there is to train on, what is in it, and copies that load fast."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output

if TYPE_CHECKING:
    pass


@framework.group(
    name="data",
    examples=[
        ("what the data folder holds", "syno data list --data-dir ~/data --json"),
        ("classes, sizes and counts of a data set", "syno data show cifar10 --data-dir ~/data"),
        ("a copy that loads fast", "syno data prepare ~/imagenet --out ~/imagenet-400"),
    ],
)
def command() -> None:
    """List, show and prepare data sets: images with labels, and text."""


@framework.command(
    name="list",
    examples=[
        ("as a table", "syno data list --data-dir ~/data"),
        ("for programs", "syno data list --data-dir ~/data --json"),
    ],
)
@options.data_dir_option
@output.json_option
def list_command(data_dir: str | None, as_json: bool) -> None:
    """List the data sets that can be loaded by name, told by the names of files alone."""
    from syno.data.catalogue import entries

    found: list[dict[str, Any]] = [
        {"name": "digits", "kind": "embedded", "path": None, "bytes": None}
    ]
    given = data_dir or os.environ.get("SYNO_DATA")
    if given:
        found += [
            {"name": e.name, "kind": e.kind, "path": str(e.path), "bytes": e.bytes}
            for e in entries(given)
        ]
    if as_json:
        output.print_json({"data_dir": given, "data_sets": found})
        return
    rows = [[e["name"], e["kind"], _megabytes(e["bytes"]), e["path"] or ""] for e in found]
    columns = [("name", "left"), ("kind", "left"), ("size", "right"), ("where", "fold")]
    output.console().print(output.table(columns, rows))
    if not given:
        output.say("No data folder is named: --data-dir or SYNO_DATA does that.")


@framework.command(
    name="show",
    examples=[
        ("images", "syno data show cifar10 --data-dir ~/data"),
        ("images of different sizes", "syno data show ./photos --resolution 64"),
        ("text, as byte pairs", "syno data show ./book.txt --tokenizer byte-pair"),
    ],
)
@click.argument("name")
@options.data_dir_option
@click.option(
    "--resolution", type=click.IntRange(min=1), metavar="PIXELS", help="Scale images to this size."
)
@click.option("--skip-damaged", is_flag=True, help="Leave files out that are no images.")
@click.option(
    "--tokenizer",
    metavar="NAME",
    default="bytes",
    show_default=True,
    help="Of a text: bytes or byte-pair.",
)
@click.option(
    "--vocabulary",
    type=int,
    metavar="N",
    default=4096,
    show_default=True,
    help="Tokens of a byte-pair tokenizer.",
)
@output.json_option
def show_command(
    name: str,
    data_dir: str | None,
    resolution: int | None,
    skip_damaged: bool,
    tokenizer: str,
    vocabulary: int,
    as_json: bool,
) -> None:
    """Load a data set, into the cache, and print what is in it.

    NAME is a name that `syno data list` prints, or a path.
    """
    from syno.data import is_text_data, load, load_text
    from syno.data.description import describe_images, describe_text

    if is_text_data(name, data_dir):
        text = load_text(name, data_dir, tokenizer=tokenizer, vocabulary=vocabulary)
        described = describe_text(text)
    else:
        described = describe_images(
            load(name, data_dir, size=resolution, skip_damaged=skip_damaged)
        )
    if as_json:
        output.print_json(described)
        return
    rows = [[key.replace("_", " "), _shown(value)] for key, value in described.items()]
    output.console().print(output.facts(rows))


@framework.command(
    name="prepare",
    examples=[
        (
            "ImageNet as in the paper's experiments",
            "syno data prepare ~/imagenet --out ~/imagenet-400",
        ),
        (
            "smaller: all as JPEG, at most 256 pixels",
            "syno data prepare ~/imagenet --out ~/imagenet-256 --longer-side 256 --jpeg-share 1",
        ),
        ("how large it would be", "syno data prepare ~/imagenet --out ~/imagenet-400 --dry-run"),
    ],
)
@click.argument("name")
@options.data_dir_option
@click.option("--out", required=True, metavar="DIR", help="Folder for the records.")
@click.option(
    "--longer-side",
    type=int,
    metavar="PIXELS",
    default=400,
    show_default=True,
    help="Scale larger images to this.",
)
@click.option(
    "--quality", type=int, metavar="1-100", default=90, show_default=True, help="Of JPEG."
)
@click.option(
    "--jpeg-share",
    type=float,
    metavar="0-1",
    default=0.1,
    show_default=True,
    help="Share of images stored as JPEG; the others are raw pixels.",
)
@click.option(
    "--shard-images",
    type=int,
    metavar="N",
    default=1000,
    show_default=True,
    help="Images in one file.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of which are JPEG.")
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Threads. Default: one a core."
)
@click.option("--skip-damaged", is_flag=True, help="Leave files out that are no images.")
@output.dry_run_option
@output.json_option
def prepare_command(
    name: str,
    data_dir: str | None,
    out: str,
    workers: int | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Store images of any size as records that load fast and can be read at random.

    NAME is what `syno data show` takes. A run that was stopped or killed goes on when it is
    repeated, and one on finished records writes anew what is damaged. The folder is a data set of
    its own: `--data` of other commands takes its path.
    """
    from syno.data.prepare import Options, estimate, prepare

    chosen = Options(**options)
    if dry_run:
        cost = estimate(name, data_dir, chosen)
        described: dict[str, Any] = {
            "images": cost.images,
            "bytes": cost.bytes,
            "seconds_of_one_worker": round(cost.seconds, 1),
            "out": out,
        }
    else:
        records = prepare(name, data_dir, out, chosen, workers=workers)
        described = {
            "out": out,
            "train_images": len(records.train),
            "test_images": len(records.test),
            "skipped": records.skipped,
            "classes": len(records.classes),
            "channels": records.channels,
            "bytes": sum(path.stat().st_size for path in records.folder.glob("shard-*.rec")),
            "fingerprint": records.fingerprint,
        }
    if as_json:
        output.print_json(described)
        return
    rows = [[key.replace("_", " "), _shown(value)] for key, value in described.items()]
    output.console().print(output.facts(rows))
    if dry_run:
        output.say("Nothing was written.")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {part:,}" for name, part in value.items())
    if isinstance(value, list):
        text = ", ".join(map(str, value[:12]))
        return f"{text}, ... ({len(value)})" if len(value) > 12 else text
    return f"{value:,}" if isinstance(value, int) else str(value)


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.1f} MB"


command.add_command(list_command)
command.add_command(show_command)
command.add_command(prepare_command)
