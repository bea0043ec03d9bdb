"""Relative links and their anchors lead somewhere."""

from __future__ import annotations

import re

import pytest

from .pages import PAGES, name, prose

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)
_OUTSIDE = ("http://", "https://", "mailto:")


def anchors(text: str) -> set[str]:
    """The anchors of a page: `<a id=...>`, and those that Markdown viewers make of headings."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {*_ANCHOR.findall(text), *(heading.strip().replace(" ", "-") for heading in plain)}


def broken(page) -> list[str]:
    found = []
    for link in _LINK.findall(prose(page)):
        if link.startswith(_OUTSIDE):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            found.append(f"{link}: there is no {target.name}")
        elif anchor and anchor not in anchors(prose(target)):
            found.append(f"{link}: {target.name} has no such heading")
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_resolves(page):
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '# One thing\n<a id="old"></a>\n'
        "[a](#one-thing) [b](missing.md) [c](page.md#other) [d](#old)\n"
    )
    assert [line.partition(":")[0] for line in broken(page)] == ["missing.md", "page.md#other"]
