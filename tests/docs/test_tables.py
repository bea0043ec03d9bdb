"""The tables of search methods in docs/methods.md have the defaults of the code."""

from __future__ import annotations

import inspect
import re

import pytest

from .pages import ROOT


@pytest.mark.parametrize(
    ("heading", "method"),
    [
        ("Local search", "local"),
        ("Regularized evolution", "evolution"),
        ("The tree search of the paper", "tree"),
        ("Monte-Carlo graph search", "graph"),
    ],
)
def test_the_defaults_of_a_search_method_are_those_of_the_code(heading, method):
    from syno.study.methods import METHODS

    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", section, re.MULTILINE))
    options = inspect.signature(METHODS[method]).parameters.values()
    defaults = {o.name: o.default for o in options if o.kind is o.KEYWORD_ONLY}
    assert {name: float(value) for name, value in rows.items()} == pytest.approx(defaults, rel=1e-4)
