"""What every page must keep to."""

from __future__ import annotations

import re

import pytest

from .pages import PAGES, ROOT, blocks, name, prose


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_begins_with_its_title_and_has_only_one(page):
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        text = text.replace(block.text, "")
    text = re.sub(
        r"<!--.*?-->\s*", "", text, flags=re.DOTALL
    )  # who made it, where figures are from
    titles = [line for line in text.splitlines() if line.startswith("# ")]
    assert text.startswith("# ") and len(titles) == 1


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_fenced_block_names_its_language(page):
    assert [block.line for block in blocks(page) if not block.language] == []


_PATH = re.compile(
    r"`((?:src|python|tests|tools|docs|bench|fuzz|examples|cmake)/[\w./-]*[\w/])(?:[:`])"
)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_that_a_page_names_exists(page):
    assert [path for path in _PATH.findall(prose(page)) if not (ROOT / path).exists()] == []
