"""`syno report`: the page about a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.store import Store


@framework.command(
    name="report",
    examples=[
        ("the page", "syno report runs.db -o report.html"),
        ("with pictures for a paper beside it", "syno report runs.db -o out/report.html --png"),
        ("with accuracies on the test split", "syno report runs.db --final"),
        ("one study of several", "syno report runs.db --study resnet-small-digits-1"),
    ],
)
@click.argument("store")
@options.study_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("report.html"),
    show_default=True,
    help="The file to write.",
)
@click.option(
    "--final",
    is_flag=True,
    help="First evaluate the operators on a front, and the original, on the test split.",
)
@click.option("--data-dir", metavar="DIR", help="With --final: where the data is now, if it moved.")
@click.option("--png", is_flag=True, help="Also write front.png and progress.png beside it.")
@output.json_option
def command(
    store: str,
    study: str | None,
    out: Path,
    final: bool,
    data_dir: str | None,
    png: bool,
    as_json: bool,
) -> None:
    """Write the report of a study: one HTML page that needs no network and no other file.

    STORE is a file or a database URL; it is only read, except with --final, which trains the
    finalists once more and stores their accuracy on the test split.
    """
    from syno.report import gather, write_page, write_pictures
    from syno.store import Store

    with Store.open(store, create=False, read_only=not final) as opened:
        if final:
            _test_finalists(opened, study, data_dir)
        summary = opened.summary(study)
    report = gather(summary)
    written = [write_page(report, out)]
    if png:
        written += write_pictures(report, out.parent)
    if as_json:
        output.print_json({"study": summary.study.name, "written": [str(f) for f in written]})
        return
    for file in written:
        output.echo(f"wrote {file}")


def _test_finalists(store: Store, study: str | None, data_dir: str | None) -> None:
    from syno.report import format as fmt
    from syno.study.training.finalists import Finalists

    finalists = Finalists(store, study, data_dir)
    if not finalists.waiting:
        return
    with output.progress("testing finalists", len(finalists.waiting)) as move:
        for done, number in enumerate(finalists.waiting, start=1):
            value = finalists.evaluate(number)
            move(done, f"{fmt.quality(value, finalists.objective.name)} on the test split")
