"""The output of commands: results on stdout, progress and remarks on stderr.

The output of `--json` can therefore be piped while a progress bar moves. Rich is imported on first
use, because `syno --help` does not need it.

All text goes through `echo`, `print_json` or a console of this module, which print control
characters in escaped form: names in a store and the output of child processes are not trusted. Text
is never interpreted as markup; `heading` makes bold text.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import click

from syno._util.numbers import NOISY, duration
from syno._util.options import option
from syno._util.printable import json_escaped, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table as RichTable
    from rich.text import Text

    from syno._util.tables import Section, Table
    from syno.network.layers import LayerReport
    from syno.store import Store

# The width of tables where stdout is a file or a pipe: wide enough for formulas to stay whole.
_PIPE_WIDTH = 160

_LINE_EVERY = 10.0  # seconds between progress lines where there is no terminal


def as_json() -> bool:
    """Declare whether JSON is printed."""
    return option("Print JSON instead of text.", False, names="--json")


def dry_run() -> bool:
    """Declare whether nothing is done."""
    return option("Print what would be done and its cost, and do nothing.", False)


def console(*, stderr: bool = False) -> Console:
    """Return a Rich console on the present stdout or stderr."""
    from syno.cli.screen import Screen

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    return Screen(
        file=stream, highlight=False, soft_wrap=False, width=width, markup=False, emoji=False
    )


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print `text` to stdout or stderr."""
    click.echo(printable(text), err=err, nl=nl)


def say(text: str = "") -> None:
    """Print a remark to stderr."""
    echo(text, err=True)


def print_json(value: object) -> None:
    """Print `value` as indented JSON to stdout."""
    click.echo(json_escaped(json.dumps(value, indent=2, ensure_ascii=False)))


def heading(title: str, rest: str = "", *, before: str = "") -> Text:
    """Return a line with `title` in bold, and the text before and after it."""
    from rich.text import Text

    return Text.assemble(printable(before), (printable(title), "bold"), printable(rest))


def measured(title: str, *, noisy: bool, controls: Mapping[str, str] | None = None) -> None:
    """Print the heading of measurements; `noisy` if they were disturbed.

    controls: the fixed computations beside them in words, by what was measured.
    """
    rest = f"   {NOISY}" if noisy else ""
    console().print(heading(title, rest))
    for what, text in (controls or {}).items():
        echo(f"fixed computations{f' in {what}' if what else ''}: {text}")


def indented(text: str, by: int) -> Text:
    """Return `text`, indented by `by` columns."""
    from rich.text import Text

    lines = printable(text).rstrip("\n").split("\n")
    return Text("\n".join(f"{'':{by}}{line}" for line in lines))


def grid(found: Table) -> RichTable:
    """Return a table for a terminal; the brackets of a formula are not markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading, name in zip(found.headings, found.names(), strict=True):
        made.add_column(
            name,
            justify="right" if ">" in heading.removeprefix(name) else "left",
            no_wrap="~" not in heading.removeprefix(name),
            overflow="fold",
        )
    for row in found.rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


def show(found: Table) -> None:
    """Print a table: in the width of a terminal, or as aligned text to a file or a pipe."""
    screen = console()
    if not screen.is_terminal:
        echo("\n".join(found.lines()))
        return
    fitting, left_out = found.fitting(screen.width)
    screen.print(grid(fitting))
    if left_out:
        say(f"without the columns {', '.join(left_out)}, for which the terminal is too narrow")


def paragraph(title: str, text: str, rest: str = "") -> None:
    """Print a text below its title."""
    console().print(heading(title, rest))
    console().print(indented(text, 2), soft_wrap=True)


def sections(parts: Iterable[Section]) -> None:
    """Print parts with an empty line between them."""
    screen = console()
    for index, part in enumerate(parts):
        if index:
            screen.print()
        screen.print(heading(part.title, part.rest))
        if part.text:
            screen.print(indented(part.text, 2), soft_wrap=True)
        if part.facts:
            screen.print(facts(part.facts))
        if part.table is not None:
            show(part.table)
        if part.after:
            screen.print(part.after, soft_wrap=True)


def say_latest(store: Store, study: str | None) -> None:
    """Say which study of a store with several is taken if none is named."""
    names = [each.name for each in store.studies()]
    if study is None and len(names) > 1:
        say(f"study {names[-1]}, the latest of {len(names)}; --study NAME selects another")


def layers(report: LayerReport) -> None:
    """Print the layers of a network, and their totals."""
    screen = console()
    screen.print(heading("Layers"))
    show(report.as_table())
    for line in report.totals():
        screen.print(line, soft_wrap=not screen.is_terminal)


def facts(rows: Iterable[Sequence[str]]) -> RichTable:
    """Return a table without borders of names and values."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for row in rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


class Move(Protocol):
    """A function that moves a progress bar and sets the remark next to it."""

    def __call__(self, done: int, remark: str = "") -> None:
        """Move to `done`."""


class ProgressClock:
    """The elapsed and remaining time of steps that take about equally long.

    done: the steps that are complete at the beginning, which say nothing about the pace.
    """

    def __init__(self, done: int = 0, *, remaining: bool = True) -> None:
        self._began = time.monotonic()
        self._done = done
        self._remaining = remaining

    def words(self, done: float, total: float | None) -> str:
        """Return the elapsed time and, once a step is complete, the remaining time."""
        elapsed = time.monotonic() - self._began
        words = f"elapsed {duration(elapsed)}"
        if not self._remaining or not total or done <= self._done:
            return words
        left = elapsed * max(total - done, 0) / (done - self._done)
        return f"{words}, left {duration(left)}"


def line_move(description: str, total: int | None, clock: ProgressClock) -> Move:
    """Return a function that prints the progress every few seconds, where there is no terminal."""
    last = time.monotonic()

    def line(done: int, remark: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_EVERY:
            last = time.monotonic()
            count = f"{done:,}{f' of {total:,}' if total else ''}"
            words = [clock.words(done, total), *([remark] if remark else [])]
            say(f"{description}: {count}, {', '.join(words)}")

    return line


def progress_bar() -> Progress:
    """Return a progress bar on stderr; its tasks have the fields `clock` and `remark`."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
    from rich.progress import Task as RichTask
    from rich.text import Text

    class Times(ProgressColumn):
        def render(self, task: RichTask) -> Text:
            return Text(task.fields["clock"].words(task.completed, task.total))

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        Times(),
        TextColumn("{task.fields[remark]}", markup=False),
        console=console(stderr=True),
        transient=True,
    )


@contextlib.contextmanager
def progress(description: str, total: int | None, *, remaining: bool = True) -> Iterator[Move]:
    """Show a progress bar on stderr while the block runs.

    If stderr is not a terminal, remarks are printed every few seconds instead.

    Args:
        description: the text before the bar.
        total: the number of steps; None if it is unknown.
        remaining: whether the bar estimates the remaining time, which requires equal steps.

    Returns:
        A function of the number of completed steps and a remark.
    """
    if not sys.stderr.isatty():
        yield line_move(description, total, ProgressClock(remaining=remaining))
        return

    bar = progress_bar()
    with bar:
        clock = ProgressClock(remaining=remaining)
        task = bar.add_task(description, total=total, remark="", clock=clock)

        def move(done: int, remark: str = "") -> None:
            bar.update(task, completed=done, remark=remark)

        yield move
