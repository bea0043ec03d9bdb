"""`syno experiment ranking`: how well a short training ranks operators."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.command_line import command_line
from syno._util.errors import UserError
from syno._util.options import Options, option, required
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno_lab.experiments.agreement import Agreement
    from syno_lab.experiments.ranking import RankingFile


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    data: str | None = option(
        "Data set of images; not needed if the table exists.", None, metavar="NAME"
    )
    data_dir: str | None = options.data_dir()
    model: str = options.model("resnet-small")
    model_options: Mapping[str, int | str] = options.model_options()
    operators: int = option(
        "Number of operators to sample, in addition to those of the zoo.", 100, minimum=1
    )
    low: str = option("Fidelity of the low rung.", "tiny", metavar="FIDELITY")
    high: str = option("Fidelity of the high rung.", "fast/cifar16", metavar="FIDELITY")
    high_epochs: int = option("Number of epochs at the high rung.", 14, minimum=1)
    seeds: int = option("Number of seeds at the low rung.", 2, minimum=1)
    part: int = option("Train one of N operators at the high rung.", 3, minimum=1, metavar="N")
    arms: int = option("Number of operators to train also without initial scales.", 30, minimum=0)
    max_slowdown: float = option(
        "Exclude operators whose training step takes more than this many times as long as that of "
        "the baseline.",
        1.8,
        minimum=0,
        above=True,
    )
    seed: int = options.seed()
    jobs: int = option("Number of processes.", 1, minimum=1)
    limit: int | None = option("Maximum number of trainings.", None, minimum=0, unset="no limit")
    out: Path = required(
        "File of the table (JSON lines); an existing table is continued.", names="--out/-o"
    )
    picture: Path | None = option("File for a plot (PNG).", None)
    show: bool = option("Print the table without training.", False)
    as_json: bool = output.as_json()


@framework.command("experiment ranking", _Arguments)
def command(given: _Arguments) -> int:
    """Train many operators briefly, some of them longer, and compare the rankings.

    The operators are sampled before any training. Each is trained at the low rung with several
    seeds, and one of three, selected by strata, at the high rung. The same command continues an
    unfinished table, with the settings of its file. The exit code is 1 while trainings are
    pending.
    """
    from syno.runs.file_lock import written_by_one
    from syno_lab.experiments import ranking
    from syno_lab.experiments.agreement import agreement
    from syno_lab.experiments.pictures import save_ranking

    if not given.out.exists():
        if given.show:
            raise UserError(
                f"there is no table '{given.out}'\n  what to do: omit --show to create it"
            )
        with written_by_one(given.out):
            _make(given)
    if given.show:
        table = ranking.RankingFile.read(given.out)
    else:
        with output.progress("trainings", None) as move:
            table = ranking.run(
                given.out,
                data_dir=given.data_dir,
                jobs=given.jobs,
                limit=given.limit,
                progress=lambda done, total, what: move(done, f"of {total:,}: {what}"),
            )
    found = agreement(table)
    if given.picture is not None:
        save_ranking(table, found, given.picture)
    if given.as_json:
        output.print_json(dataclasses.asdict(found))
    else:
        _print(found, table)
    left = next(table.waiting(), None)
    if left is not None:
        again = command_line("experiment", "ranking", "--out", str(given.out))
        output.say(f"not finished: `{again}` continues")
    return framework.OK if left is None else framework.NEGATIVE


def _make(given: _Arguments) -> None:
    from syno_lab.experiments.ranking_setup import new_settings, new_table

    if given.data is None:
        raise UserError(f"there is no table '{given.out}' yet\n  expected: --data, to create it")
    settings = new_settings(
        data=given.data,
        draw=given.seed,
        model=given.model,
        model_options=dict(given.model_options),
        low=given.low,
        high=given.high,
        high_epochs=given.high_epochs,
        seeds=given.seeds,
        part=given.part,
        arms=given.arms,
        max_slowdown=given.max_slowdown,
    )
    with output.progress("sampling operators", given.operators) as move:
        table = new_table(
            settings, given.data_dir, given.operators, lambda done, total, what: move(done, what)
        )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    table.write(given.out)


def _print(found: Agreement, table: RankingFile) -> None:
    from syno_lab.experiments.tables import arms_table, best_ten, correlations_table, summary

    screen = output.console()
    output.show(correlations_table(found))
    if found.recall is not None:
        screen.print(
            f"\n{found.recall} of the best ten at the high rung are the best ten at the low one"
        )
    if found.arms:
        output.show(arms_table(found))
    screen.print(f"\n{summary(found)}")
    best = best_ten(table)
    if best:
        screen.print(f"best at the high rung: {best}")
