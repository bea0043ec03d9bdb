"""The known bugs of `mutations.py` in sources for C++. None reads out of bounds.

A row of the output is computed in vectors: `lane` is a place in a vector that begins at `l`. Rows
are loaded as they lie in memory; a bug in the order within a row has a `gather` in place of the
load.
"""

from __future__ import annotations

from .loop_mutations import listed

_LOAD = r"load_part\(from{n} \+ {tile}l, first{n} - l, last{n} - l\)"
_LOAD_X = _LOAD.format(n=0, tile="")
_LOAD_WEIGHT = _LOAD.format(n=1, tile=r"c \* 5 \+ ")
_GATHER_X = r"gather_at\(a0 \+ \(.*\), places0, k_, l\)"


def _gather(value: str) -> str:
    """A load of `value`, an expression of `h`, the place within the row."""
    return f"gather(kLength - l, [&](long lane) {{ const long h = l + lane; return {value}; }})"


CPP = listed(
    {
        "bound of the window instead of the place": ("window", r"-k_ \+ 6", "-k_ + 4"),
        "padding on the wrong side": (
            *("even window", r"a0 \+ \(k_ - 2\)", "a0 + (k_ - 1)"),
            *(r"-k_ \+ 2", "-k_ + 1", r"-k_ \+ 7", "-k_ + 6"),
        ),
        "padding shifted by one": (
            *("window", r"a0 \+ \(k_ - 1\)", "a0 + (k_ - 2)"),
            *(r"-k_ \+ 1", "-k_ + 2", r"-k_ \+ 6", "-k_ + 7"),
        ),
        "extent off by one": ("window", r"-k_ \+ 6", "-k_ + 5"),
        "causal window taken as centred": (
            *("causal window", r"a0 \+ \(k_ - 2\)", "a0 + (k_ - 1)"),
            *(r"-k_ \+ 2", "-k_ + 1", r"-k_ \+ 7", "-k_ + 6"),
        ),
        "window read backwards": ("even window", r"a1\[4\*c \+ k_\]", "a1[4*c + 3 - k_]"),
        "windows of two axes swapped": (
            *("two windows", r"a1\[9\*c_ \+ 3\*k_ \+ l_\]", "a1[9*c_ + k_ + 3*l_]"),
        ),
        "guard of a weight's window dropped": (
            *("window of a weight", _LOAD_WEIGHT, _gather("a1[5*c + (h + k_ + 4) % 5]")),
        ),
        "guard dropped after a rotation": (
            *("window of a rotation", _GATHER_X, _gather("a0[((h + 1) % 5 + k_ + 4) % 5]")),
        ),
        "roll before pad": (
            *("window of a rotation", _GATHER_X),
            _gather("h + k_ >= 1 && h + k_ < 6 ? a0[(h + k_) % 5] : 0.0f"),
        ),
        "roll after pad": (
            *("rotated window", _GATHER_X + ";"),
            _gather(
                "(h + k_ + 1) % 7 >= 1 && (h + k_ + 1) % 7 < 6 ? a0[(h + k_ + 1) % 7 - 1] : 0.0f"
            )
            + ";",
        ),
        "rotation the other way": ("rotation", r"\(h_ \+ 1\) % 5", "(h_ + 4) % 5"),
        "rotation of another dimension": (
            *("rotation", r"5\*\(\(h_ \+ 1\) % 5\)", "5*h_"),
            *(_LOAD_X, _gather("from0[(h + 1) % 5]")),
        ),
        "rotation left out": ("rotation", r"5\*\(\(h_ \+ 1\) % 5\)", "5*h_"),
        "stride begins one later": ("stride", r"from0 \+ 3 \* l", "from0 + 1 + 3 * l"),
        "stride left out": ("stride", r"from0 \+ 3 \* l, 3", "from0 + l, 1"),
        "parts of a split swapped": ("split", _LOAD_X, _gather("from0[h % 4 * 4 + h / 4]")),
        "quotient and remainder swapped": (
            *("merge", _LOAD_X, _gather("from0[h % 8 * 4 + h / 8]")),
        ),
        "weight dimensions swapped": ("two weights", r"a1\[4\*c \+ d_\]", "a1[4*d_ + c]"),
        "groups of a weight swapped": (
            *("groups", r"a1\[3\*g_ \+ c \+ 9\*d_\]", "a1[g_ + 3*c + 9*d_]"),
        ),
        "reduction missing": ("window", r"k_ = 0; k_ < 3", "k_ = 1; k_ < 2"),
        "reduction one too short": ("sum", r"w_ = 0; w_ < 4", "w_ = 1; w_ < 4"),
        "mean instead of a sum": ("sum", r"splat\(a0\[w_\]\)", "splat(0.25f * a0[w_])"),
        "repeat counted as a sum": ("expand", r"p = p0;", "p = 4.0f * p0;"),
        "weight left out": ("two weights", r"p = p0 \* p1;", "p = p0;"),
    }
)
