"""Drawings: by Graphviz, and as text without it."""

from __future__ import annotations

import shutil

import pytest

from syno.report import drawing
from syno.report.tree import tree

# conv2d of a 3 x 3 window, one spatial dimension, with an expanded repeat and a merge.
FORM = {
    "out": [{"size": "C_out"}, {"size": "H"}, {"size": "s"}],
    "in": [{"size": "C_in", "unordered": True}, {"size": "H"}],
    "steps": [
        {"op": "reduce", "size": "C_in", "out": "r0"},
        {"op": "reduce", "size": "k", "out": "r1"},
        {"op": "unfold", "in": ["o1", "r1"], "out": "c0"},
        {"op": "merge", "in": "c0", "block": "s", "out": ["c1", "c2"]},
        {"op": "split", "in": ["c1", "c2"], "out": "c3"},
        {"op": "expand", "in": "o2"},
        {"op": "contract", "dims": [["o0", "drop"], ["r0", "keep"], ["r1", "keep"]]},
    ],
    "match": ["r0", "c3"],
}


def test_text_tree_shows_inputs_weights_and_what_is_expanded() -> None:
    assert tree(FORM).splitlines() == [
        "input x",
        "├─ x[0] size C_in = r0  reduce, size C_in",
        "└─ x[1] size H = c3  split",
        "   ├─ c1  merge, div s",
        "   │  └─ c0  unfold",
        "   │     ├─ o1  output dimension 1, size H",
        "   │     └─ r1  reduce, size k",
        "   └─ c2  merge, mod s",
        "      └─ c0  (drawn above)",
        "weight w0",
        "├─ o0 (drop)  output dimension 0, size C_out",
        "├─ r0 (keep)  reduce, size C_in",
        "└─ r1 (keep)  reduce, size k",
        "expanded (the result repeats along these)",
        "└─ o2  output dimension 2, size s",
    ]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_drawings_fit_into_a_page() -> None:
    good, bad, empty = drawing.render_drawings(
        ['digraph { a [label="x < y"]; a -> b }', "digraph {", ""]
    )
    assert good.svg.startswith('<svg role="img" aria-label="drawing of the operator"')
    assert "x &lt; y" in good.svg
    assert " id=" not in good.svg
    assert "<title>" not in good.svg
    assert bad.svg == ""
    assert "syntax error" in bad.problem
    assert empty == drawing.SvgDrawing()


def test_without_graphviz_the_note_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (only,) = drawing.render_drawings(["digraph { a -> b }"])
    assert only.svg == ""
    assert "apt install graphviz" in only.problem
