"""`syno report`: the HTML page about a study, and the figures of the paper."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util.errors import UserError
from syno._util.options import Options, option
from syno.cli import framework, options, output
from syno.cli.extension import DrawFigures, extensions
from syno.operands.options import study as study_option

if TYPE_CHECKING:
    from syno.store import Store


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    study: str | None = study_option()
    out: Path = option("File to write.", Path("report.html"), names="-o/--out")
    final: bool = option(
        "First evaluate the operators on a front and the baseline network on the test split.", False
    )
    data_dir: str | None = option(
        "With --final: the new folder of the data, if it has moved.", None, metavar="DIR"
    )
    figures: Path | None = option(
        "Instead of the page, draw the paper's figures from one's own results into this folder, as "
        "PDF, PNG and CSV.",
        None,
        metavar="DIRECTORY",
        unset="no figures",
    )
    results: tuple[Path, ...] = option(
        "With --figures: file that a command wrote with --json, or a folder of them; can be "
        "repeated.",
        cast(tuple[Path, ...], ()),
        metavar="FILE_OR_DIRECTORY",
    )
    only: str = option(
        "With --figures: names of figures, separated by commas.",
        "",
        unset="all",
        metavar="NAMES",
    )
    png: bool = option("Also write front.png and progress.png into the same folder.", False)
    as_json: bool = output.as_json()


@framework.command("report", _Arguments)
def command(given: _Arguments) -> int:
    """Write the report of a study as a self-contained HTML page, or the figures of the paper.

    The command only reads the store, except with --final, which trains the finalists once more and
    stores their accuracy on the test split. --figures draws the paper's figures from the files of
    --results and, if it is there, the store, beside what is published. Figures 5 and 6 are drawn
    from what is published alone if there is nothing else. The command lists a figure without one's
    own data with the command that makes them; the exit code is 1 if no figure was drawn.
    """
    if given.figures is not None:
        return _figures(given, given.figures)
    if given.results or given.only:
        raise UserError("--results and --only are for figures\n  expected: --figures DIR with them")
    _page(given)
    return framework.OK


def _figures(given: _Arguments, folder: Path) -> int:
    if given.final or given.png or given.study is not None:
        raise UserError("--final, --png and --study are for the page\n  expected: not --figures")
    modules = [each.figures for each in extensions() if each.figures]
    if not modules:
        raise UserError(
            "no package that draws the figures is installed\n"
            "  what to do: install Syno with its package syno_lab"
        )
    draw: DrawFigures = importlib.import_module(modules[0]).draw
    wrote = draw(
        given.results,
        _present_store(given),
        folder,
        options.names(given.only),
        as_json=given.as_json,
    )
    return framework.OK if wrote else framework.NEGATIVE


def _present_store(given: _Arguments) -> str | None:
    """The store; None where none is named, and the usual one is not there."""
    usual = given.store == _Arguments.__dataclass_fields__["store"].default
    return None if usual and not Path(given.store).exists() else given.store


def _page(given: _Arguments) -> None:
    from syno.report import gather, write_page, write_pictures
    from syno.store import Store

    with Store.open(given.store, create=False, read_only=not given.final) as opened:
        if given.final:
            _test_finalists(opened, given.study, given.data_dir)
        output.say_latest(opened, given.study)
        summary = opened.summary(given.study)
    report = gather(summary)
    written = [write_page(report, given.out)]
    if given.png:
        written += write_pictures(report, given.out.parent)
    if given.as_json:
        output.print_json({"study": summary.study.name, "written": [str(f) for f in written]})
        return
    for file in written:
        output.echo(f"wrote {file}")


def _test_finalists(store: Store, study: str | None, data_dir: str | None) -> None:
    from syno.study.training.finalists import Finalists

    finalists = Finalists(store, study, data_dir)
    if not finalists.waiting:
        return
    with output.progress("testing finalists", len(finalists.waiting)) as move:
        for done, number in enumerate(finalists.waiting, start=1):
            value = finalists.evaluate(number)
            move(done, f"{finalists.objective.shown(value)} on the test split")
