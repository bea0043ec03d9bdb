"""Highlighting never changes the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from syno.report import highlight


@pytest.mark.parametrize("file", ["highlight.py", "charts.py"])
def test_the_text_stays_the_same(file: str) -> None:
    code = (Path(highlight.__file__).parent / file).read_text()
    assert "".join(text for _, text in highlight.python(code)) == code


def test_kinds_of_words_get_their_class() -> None:
    pieces = highlight.python('def f(x):  # why\n    return "a<b" + str(3)\n')
    assert {("k", "def"), ("d", "f"), ("c", "# why"), ("s", '"a<b"'), ("b", "str"), ("n", "3")} <= (
        set(pieces)
    )
    assert highlight.python("not self.Error") == [
        ("k", "not"),
        ("", " "),
        ("b", "self"),
        ("", ".Error"),
    ]


@pytest.mark.parametrize(
    "code", ["for (int i = 0; i < n; '", "x = '\ud800'", "x = 1\0", "x\r\n\ry\ufeff"]
)
def test_code_that_is_no_python_stays_the_same(code: str) -> None:
    assert "".join(text for _, text in highlight.python(code)) == code
