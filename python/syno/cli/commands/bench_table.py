"""`syno bench table`: trains the operators of a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syno._util.errors import UserError
from syno._util.options import Options, option, required
from syno.cli import framework, options, output


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    configuration: Path | None = option(
        "Configuration of a new table (TOML); not needed if the table exists.", None
    )
    data_dir: str | None = options.data_dir()
    limit: int | None = option("Maximum number of trainings.", None, minimum=0, unset="no limit")
    latency: bool = option(
        "Measure the latency of compiled networks instead of training.", False
    )
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
    raise NotImplementedError
