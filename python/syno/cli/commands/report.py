"""`syno report`: the HTML page about a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.options import Options, option
from syno.cli import framework, options, output
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
    png: bool = option("Also write front.png and progress.png into the same folder.", False)
    as_json: bool = output.as_json()


@framework.command("report", _Arguments)
def command(given: _Arguments) -> None:
    """Write the report of a study as a self-contained HTML page.

    The command only reads the store, except with --final, which trains the finalists once more and
    stores their accuracy on the test split.
    """
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
