"""`syno data`: list and show data sets, and prepare copies that load fast."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from syno._util.options import Options, group, option, required
from syno._util.tables import Table
from syno.cli import framework, options, output
from syno.data.record_options import RecordOptions


@framework.group("data")
def command() -> None:
    """List, show and prepare data sets: images with labels, and text."""


@dataclass(frozen=True, kw_only=True)
class _ListArguments(Options):
    data_dir: str | None = options.data_dir()
    as_json: bool = output.as_json()


@framework.command("data list", _ListArguments)
def list_command(given: _ListArguments) -> None:
    """List the data sets that can be loaded by name.

    The command looks only at the names of files.
    """
    from syno.data.catalogue import EMBEDDED, entries

    folder = given.data_dir or os.environ.get("SYNO_DATA")
    found = [EMBEDDED, *(entries(folder) if folder else ())]
    if given.as_json:
        sets = [asdict(e) | {"path": str(e.path) if e.path else None} for e in found]
        output.print_json({"data_dir": folder, "data_sets": sets})
        return
    output.show(
        Table.of(
            found,
            ("name", lambda e: e.name),
            ("kind", lambda e: e.kind),
            ("size>", lambda e: "" if e.bytes is None else f"{e.bytes / 1e6:,.1f} MB"),
            ("where~", lambda e: str(e.path or "")),
        )
    )
    if not folder:
        output.say("No data folder is given; use --data-dir or SYNO_DATA.")


@dataclass(frozen=True, kw_only=True)
class _ShowArguments(Options):
    name: str = required("", names="NAME")
    data_dir: str | None = options.data_dir()
    resolution: int | None = option(
        "Scale the images to this size.", None, minimum=1, metavar="PIXELS", unset="as stored"
    )
    skip_damaged: bool = option("Skip files that are not images.", False)
    tokenizer: str = option("Tokenizer of text: bytes or byte-pair.", "bytes", metavar="NAME")
    vocabulary: int = option("Number of tokens of a byte-pair tokenizer.", 4096, metavar="N")
    as_json: bool = output.as_json()


@framework.command("data show", _ShowArguments)
def show_command(given: _ShowArguments) -> None:
    """Load a data set into the cache, and print its contents.

    NAME is a name that `syno data list` prints, or a path.
    """
    from syno.data import is_text_data, load, load_text
    from syno.data.description import describe_images, describe_text

    if is_text_data(given.name, given.data_dir):
        text = load_text(
            given.name, given.data_dir, tokenizer=given.tokenizer, vocabulary=given.vocabulary
        )
        described = describe_text(text)
    else:
        described = describe_images(
            load(given.name, given.data_dir, size=given.resolution, skip_damaged=given.skip_damaged)
        )
    if given.as_json:
        output.print_json(described)
        return
    _print(described)


@dataclass(frozen=True, kw_only=True)
class _PrepareArguments(Options):
    name: str = required("", names="NAME")
    data_dir: str | None = options.data_dir()
    out: str = required("Folder to write the records to.", metavar="DIR")
    records: RecordOptions = group(RecordOptions)
    workers: int | None = option(
        "Number of threads.", None, minimum=1, unset="one for each core", metavar="N"
    )
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()


@framework.command("data prepare", _PrepareArguments)
def prepare_command(given: _PrepareArguments) -> None:
    """Store images of any size as records that load fast and allow random access.

    NAME is given as for `syno data show`. If the command was stopped or killed, the same command
    continues. If the records are complete, it rewrites damaged ones. The folder is a data set: use
    its path with `--data` of other commands.
    """
    from syno.data.description import describe_records
    from syno.data.prepare import estimate, prepare

    wanted = given.records
    if given.dry_run:
        cost = estimate(given.name, given.data_dir, wanted)
        described: dict[str, object] = {
            "images": cost.images,
            "bytes": cost.bytes,
            "seconds_of_one_worker": round(cost.seconds, 1),
            "out": given.out,
        }
    else:
        records = prepare(given.name, given.data_dir, given.out, wanted, workers=given.workers)
        described = {"out": given.out, **describe_records(records)}
    if given.as_json:
        output.print_json(described)
        return
    _print(described)
    if given.dry_run:
        output.say("Nothing was written.")


def _print(described: Mapping[str, object]) -> None:
    from syno.data.description import in_words

    rows = [[key.replace("_", " "), in_words(value)] for key, value in described.items()]
    output.console().print(output.facts(rows))
