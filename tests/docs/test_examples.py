"""Every Python block of docs/ runs, and prints what the text block behind it says.

The blocks of a page run in order, in one namespace, in an empty folder.
"""

from __future__ import annotations

import contextlib
import io

import pytest

from .pages import PAGES, ROOT, blocks, name

RUNNABLE = [
    page
    for page in PAGES
    if page.parent == ROOT / "docs" and any(b.language == "python" for b in blocks(page))
]


# Pages whose examples compile, train or export whole networks.
LONG = ("code.md", "first-hour.md", "inference.md")
CASES = [
    pytest.param(page, marks=pytest.mark.slow if page.name in LONG else (), id=name(page))
    for page in RUNNABLE
]


@pytest.mark.parametrize("page", CASES)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page):
        if block.language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = "\n" * block.line + block.text  # so that tracebacks name the page's lines
            exec(compile(code, str(page), "exec"), namespace)
        if block.shown is not None:
            assert _lines(printed.getvalue()) == _lines(block.shown), f"line {block.line}"


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]
