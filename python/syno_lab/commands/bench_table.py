"""`syno bench table`: trains the operators of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syno._util.command_line import command_line
from syno._util.errors import UserError
from syno._util.options import Options, option, required
from syno.cli import framework, options, output


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    configuration: Path | None = option(
        "Configuration of a new table (TOML). An existing table takes its symmetries.", None
    )
    data_dir: str | None = options.data_dir()
    limit: int | None = option("Maximum number of trainings.", None, minimum=0, unset="no limit")
    latency: bool = option("Measure the latency of compiled networks instead of training.", False)
    out: Path = required(
        "File of the table (.jsonl.gz); an existing table is continued.", names="--out/-o"
    )
    show: bool = option("Print the table without training.", False)
    as_json: bool = output.as_json()


@framework.command("bench table", _Arguments)
def command(given: _Arguments) -> int:
    """Train every operator of a space, as a table for `syno bench search`.

    The order is random, so that the operators of an unfinished table are a uniform sample. The same
    command continues a table that was stopped or killed. The exit code is 1 while trainings are
    pending.
    """
    from syno.runs.file_lock import written_by_one
    from syno_lab.benchmark import BenchmarkTable, Configuration, generate, new_table
    from syno_lab.benchmark.generator import adopt, jobs
    from syno_lab.benchmark.latency import measure_latencies
    from syno_lab.benchmark.tables import described, summary

    if not given.out.exists():
        if given.configuration is None or given.show:
            raise UserError(
                f"there is no table '{given.out}'\n  what to do: create it with --configuration"
            )
        with written_by_one(given.out):
            made = new_table(Configuration.read(given.configuration), given.data_dir)
            made.write(given.out)
    elif given.configuration is not None:
        adopt(given.out, Configuration.read(given.configuration))
    if not given.show:
        work = measure_latencies if given.latency else generate
        with output.progress("latencies" if given.latency else "trainings", None) as move:
            work(
                given.out,
                data_dir=given.data_dir,
                limit=given.limit,
                progress=lambda done, total, what: move(done, f"of {total:,}: {what}"),
            )
    table = BenchmarkTable.read(given.out)
    if given.as_json:
        output.print_json(described(table))
    else:
        for line in summary(table):
            output.echo(line)
    left = len(set(jobs(table)) - {(r.operator, r.seed) for r in table.results})
    if left:
        again = command_line("bench", "table", "--out", str(given.out))
        output.say(f"{left:,} trainings are pending: `{again}` continues")
    return framework.NEGATIVE if left else framework.OK
