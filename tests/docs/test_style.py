"""What every page must keep to."""

from __future__ import annotations

import pytest

from .pages import PAGES, blocks, name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_begins_with_its_title_and_has_only_one(page):
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        text = text.replace(block.text, "")
    titles = [line for line in text.splitlines() if line.startswith("# ")]
    assert text.startswith("# ") and len(titles) == 1


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_fenced_block_names_its_language(page):
    assert [block.line for block in blocks(page) if not block.language] == []
