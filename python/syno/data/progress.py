"""Progress bars on standard error: on terminals and in notebooks, so that logs stay clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def bar(text: str, total: int | None, enabled: bool = True) -> Iterator[Callable[[int], None]]:
    """Yields `advance(count)`; `total` None means unknown. Silent elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    hidden = not (enabled and (console.is_terminal or console.is_jupyter))
    with Progress(*columns, console=console, disable=hidden, transient=True) as progress:
        task = progress.add_task(text, total=total)
        yield lambda count: progress.advance(task, count)
