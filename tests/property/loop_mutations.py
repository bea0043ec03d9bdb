"""The known bugs of `mutations.py` in sources for TVM and for Triton. None reads out of bounds."""

from __future__ import annotations

from .mutations import BUGS, Mutation


def listed(bugs: dict[str, tuple[str, ...]]) -> tuple[Mutation, ...]:
    """bug: operator, then pattern, replacement, pattern, replacement, ..."""
    assert set(bugs) == set(BUGS)
    return tuple(
        Mutation(bug, operator, tuple(zip(rest[::2], rest[1::2], strict=True)))
        for bug, (operator, *rest) in bugs.items()
    )


TVM = listed(
    {
        "bound of the window instead of the place": ("window", r"k - 1 < 5", "k - 1 < 3"),
        "padding on the wrong side": (
            *("even window", r"k - 2 >= 0", "k - 1 >= 0", r"k - 2 < 5", "k - 1 < 5"),
            *(r"h \+ k - 2\]", "h + k - 1]"),
        ),
        "padding shifted by one": (
            *("window", r"k - 1 >= 0", "k - 2 >= 0", r"k - 1 < 5", "k - 2 < 5"),
            *(r"h \+ k - 1\]", "h + k - 2]"),
        ),
        "extent off by one": ("window", r"k - 1 < 5", "k - 1 < 4"),
        "causal window taken as centred": (
            *("causal window", r"k - 2 >= 0,", "k - 1 >= 0, h + k - 1 < 5,"),
            *(r"h \+ k - 2\]", "h + k - 1]"),
        ),
        "window read backwards": ("even window", r"w0\[c, k\]", "w0[c, 3 - k]"),
        "windows of two axes swapped": ("two windows", r"w0\[c, k, l\]", "w0[c, l, k]"),
        "guard of a weight's window dropped": (
            *("window of a weight", r"h \+ k - 1 >= 0", "h >= 0", r"h \+ k - 1 < 5", "h < 5"),
            *(r"w0\[c, h \+ k - 1\]", "w0[c, tirx.truncmod(h + k + 4, 5)]"),
        ),
        "guard dropped after a rotation": (
            *("window of a rotation", r"H \+ k - 1 >= 0", "H >= 0", r"H \+ k - 1 < 5", "H < 5"),
            *(r"x\[c, H \+ k - 1\]", "x[c, tirx.truncmod(H + k + 4, 5)]"),
        ),
        "roll before pad": (
            *("window of a rotation", r"x\[c, H \+ k - 1\]", "x[c, tirx.truncmod(H + k, 5)]"),
            *(r"t0\[c, .*\]", "t0[c, h]"),
        ),
        "roll after pad": (
            *("rotated window", r"h \+ k - 1 >= 0", "tirx.truncmod(h + k + 1, 7) >= 1"),
            *(r"h \+ k - 1 < 5", "tirx.truncmod(h + k + 1, 7) < 6"),
            *(r"tirx\.truncmod\(h \+ k, 5\)", "tirx.truncmod(h + k + 1, 7) - 1"),
        ),
        "rotation the other way": ("rotation", r"h \+ 1, 5", "h + 4, 5"),
        "rotation of another dimension": (
            *("rotation", r"x\[tirx\.truncmod\(h \+ 1, 5\), w\]"),
            "x[h, tirx.truncmod(w + 1, 5)]",
        ),
        "rotation left out": ("rotation", r"tirx\.truncmod\(h \+ 1, 5\)", "h"),
        "stride begins one later": ("stride", r"3\*h\]", "3*h + 1]"),
        "stride left out": ("stride", r"3\*h\]", "h]"),
        "parts of a split swapped": ("split", r"4\*h \+ w\]", "4*w + h]"),
        "quotient and remainder swapped": (
            *("merge", r"\(h // 4\), \(h % 4\)", "(h % 8), (h // 8)"),
        ),
        "weight dimensions swapped": ("two weights", r"w0\[c, d\]", "w0[d, c]"),
        "groups of a weight swapped": ("groups", r"w0\[d, g, e\]", "w0[d, e, g]"),
        "reduction missing": ("window", r"\(\(0, 3\), ", "((1, 2), "),
        "reduction one too short": ("sum", r"\(\(0, 4\), ", "((1, 4), "),
        "mean instead of a sum": ("sum", r"te\.sum\(x", "te.sum(0.25 * x"),
        "repeat counted as a sum": ("expand", r"return x", "return 4.0 * x"),
        "weight left out": ("two weights", r" \* w1\[h, d\]", ""),
    }
)

TRITON = listed(
    {
        "bound of the window instead of the place": ("window", r"k - 1 < 5\n", "k - 1 < 3\n"),
        "padding on the wrong side": (
            *("even window", r"k - 2 >= 0", "k - 1 >= 0", r"k - 2 < 5\n", "k - 1 < 5\n"),
            *(r"x_at = 5\*c \+ h \+ k - 2", "x_at = 5*c + h + k - 1"),
        ),
        "padding shifted by one": (
            *("window", r"k - 1 >= 0", "k - 2 >= 0", r"k - 1 < 5\n", "k - 2 < 5\n"),
            *(r"x_at = 5\*image \+ h \+ k - 1", "x_at = 5*image + h + k - 2"),
        ),
        "extent off by one": ("window", r"k - 1 < 5\n", "k - 1 < 4\n"),
        "causal window taken as centred": (
            *("causal window", r"x_in &= h \+ k - 2 >= 0"),
            "x_in &= (h + k - 1 >= 0) & (h + k - 1 < 5)",
            *(r"x_at = 5\*c \+ h \+ k - 2", "x_at = 5*c + h + k - 1"),
        ),
        "window read backwards": ("even window", r"w0_at = 4\*c \+ k", "w0_at = 4*c + 3 - k"),
        "windows of two axes swapped": (
            *("two windows", r"w0_at = 9\*c \+ 3\*k \+ l", "w0_at = 9*c + k + 3*l"),
        ),
        "guard of a weight's window dropped": (
            *("window of a weight", r"h \+ k - 1 >= 0", "h >= 0", r"h \+ k - 1 < 5\n", "h < 5\n"),
            *(r"w0_at = 5\*c \+ h \+ k - 1", "w0_at = 5*c + (h + k + 4) % 5"),
        ),
        "guard dropped after a rotation": (
            *("window of a rotation", r"H \+ k - 1 >= 0", "H >= 0"),
            *(r"H \+ k - 1 < 5\n", "H < 5\n"),
            *(r"x_at = 5\*image \+ H \+ k - 1", "x_at = 5*image + (H + k + 4) % 5"),
        ),
        "roll before pad": (
            *("window of a rotation", r"x_at = 5\*image \+ H \+ k - 1"),
            "x_at = 5*image + (H + k) % 5",
            *(r"y_at = .*\n", "y_at = 5*image + H\n"),
        ),
        "roll after pad": (
            *("rotated window", r"h \+ k - 1 >= 0", "(h + k + 1) % 7 >= 1"),
            *(r"h \+ k - 1 < 5\n", "(h + k + 1) % 7 < 6\n"),
            *(r"x_at = .*\n", "x_at = 5*image + (h + k + 1) % 7 - 1\n"),
        ),
        "rotation the other way": ("rotation", r"5\*\(\(h \+ 1\) % 5\)", "5*((h + 4) % 5)"),
        "rotation of another dimension": (
            *("rotation", r"x_at = .*\n", "x_at = (w + 1) % 5 + 5*h\n"),
        ),
        "rotation left out": ("rotation", r"x_at = .*\n", "x_at = w + 5*h\n"),
        "stride begins one later": ("stride", r"image \+ 3\*h", "image + 3*h + 1"),
        "stride left out": ("stride", r"image \+ 3\*h", "image + h"),
        "parts of a split swapped": ("split", r"x_at = h", "x_at = h % 4 * 4 + h // 4"),
        "quotient and remainder swapped": ("merge", r"x_at = h", "x_at = h % 8 * 4 + h // 8"),
        "weight dimensions swapped": ("two weights", r"w0_at = 4\*c \+ d", "w0_at = 4*d + c"),
        "groups of a weight swapped": (
            *("groups", r"w0_at = 3\*g \+ e \+ 9\*d", "w0_at = 3*e + g + 9*d"),
        ),
        "reduction missing": (
            *("window", r"total \+= factor0", "total += tl.where(term == 1, factor0, 0.0)"),
        ),
        "reduction one too short": ("sum", r"\(term < 4\)", "(term < 3)"),
        "mean instead of a sum": ("sum", r"total \+= factor0", "total += factor0 / 4"),
        "repeat counted as a sum": ("expand", r"y_at, factor0,", "y_at, 4 * factor0,"),
        "weight left out": ("two weights", r"factor0 \* factor1 \*", "factor0 *"),
    }
)
