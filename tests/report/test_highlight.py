"""Highlighting never changes the code."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from syno.report import highlight


def stripped(markup: str) -> str:
    return html.unescape(re.sub(r"</?span[^>]*>", "", markup))


@pytest.mark.parametrize("file", ["highlight.py", "charts.py"])
def test_the_text_stays_the_same(file: str) -> None:
    code = (Path(highlight.__file__).parent / file).read_text()
    assert stripped(highlight.python(code)) == code


def test_kinds_of_words_get_their_class() -> None:
    markup = highlight.python('def f(x):  # why\n    return "a<b" + str(3)\n')
    assert '<span class="k">def</span> <span class="d">f</span>' in markup
    assert '<span class="c"># why</span>' in markup
    assert '<span class="s">&quot;a&lt;b&quot;</span>' in markup
    assert '<span class="b">str</span>' in markup
    assert '<span class="n">3</span>' in markup


def test_code_that_is_no_python_comes_back_escaped() -> None:
    assert highlight.python("for (int i = 0; i < n; '") == html.escape("for (int i = 0; i < n; '")
