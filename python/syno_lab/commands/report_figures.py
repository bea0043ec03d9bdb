"""`syno report --figures`: the figures of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from syno.cli import output
from syno_lab.figures import Missing, read_sources, write_figures


def draw(
    results: Sequence[Path],
    store: str | None,
    folder: Path,
    only: Sequence[str],
    *,
    as_json: bool,
) -> bool:
    """Draw figures from files and a store into a folder, and say whether one was drawn.

    A figure without one's own data is listed with the command that makes them.
    """
    sources = read_sources(results, store)
    found = write_figures(sources, folder, only)
    missing = [each for each in found if isinstance(each, Missing) or each.published_only]
    written = [each for each in found if not isinstance(each, Missing)]
    if as_json:
        output.print_json(
            {
                "written": {each.plan.name: [str(file) for file in each.files] for each in written},
                "missing": {each.plan.name: each.plan.command for each in missing},
                "ignored": sources.ignored,
            }
        )
        return bool(written)
    for each in written:
        alone = ", published values alone" if each.published_only else ""
        output.echo(
            f"wrote {each.files[0]} (.png, .csv): {each.plan.paper}, {each.plan.title}{alone}"
        )
    for absent in missing:
        output.echo(f"no data for {absent.plan.name} ({absent.plan.paper}): {absent.plan.command}")
    return bool(written)
