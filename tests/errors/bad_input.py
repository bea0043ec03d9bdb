"""What the tables of bad input share: a small specification, and the form of a message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from syno.cli.main import cli


class Ended(NamedTuple):
    code: int
    output: str
    message: str


def run(arguments: Sequence[str | Path], given: str | bytes | None = None) -> Ended:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], input=given)
    return Ended(result.exit_code, result.stdout, result.stderr)


# Lines after the first that tell more than that something is wrong.
_MORE = re.compile(
    r"^  (in |expected: |got: |hint: |what to do: |known |such as: |presets: |`syno )", re.M
)


def check(ended: Ended, *parts: str) -> None:
    """The documented form, and all `parts`."""
    assert ended.code == 2, ended
    assert ended.message.startswith("error: "), ended.message
    assert ended.message.count("error: ") == 1, ended.message
    assert "Traceback" not in ended.message
    assert "a fault in Syno" not in ended.message
    assert not ended.output, ended.output
    first, _, rest = ended.message.partition("\n")
    assert not first.endswith("."), first
    assert _MORE.search(rest), f"nothing says where, what was expected, or what to do: {ended}"
    for part in parts:
        assert part in ended.message, ended.message


# A small specification; cases change some of its options.
Options = dict[str, str | list[str] | None]
SMALL: Options = {
    "--input": "[C_in, H]",
    "--output": "[C_out, H]",
    "--primary": ["C_in: 2", "C_out: 2", "H: 1"],
    "--coefficient": "k=3: 1",
    "--binding": "C_in=4,C_out=8,H=6",
}


def line(command: str, changes: Options) -> list[str]:
    arguments = [command]
    for name, value in (SMALL | changes).items():
        if value is None:
            continue
        for one in [value] if isinstance(value, str) else value:
            arguments += [name] if one == "" and name in FLAGS else [name, one]
    return arguments


FLAGS = ("--resume", "--json", "--stats")
