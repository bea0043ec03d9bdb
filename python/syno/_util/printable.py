"""Texts of strangers on a terminal or a page: control characters are shown, never obeyed.

A name in a store, an output of a child process or a file name may hold escape sequences, which move
the cursor or rename the window, and characters that reverse the direction of writing, which let a
text show as another. Both come out as the escapes by which Python and JSON write them.
"""

from __future__ import annotations

import re
import unicodedata

# Control, format (directions of writing, zero-width, tags), surrogates, separators of lines and
# paragraphs. ASCII letters, spaces, line ends and tabs are never looked up.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")


def printable(text: str, *, line: bool = False) -> str:
    r"""Return `text` with `\x1b` and the like written out; line ends and tabs stay.

    line: whether line ends and tabs are written out as well, for a text that stands in a line.
    """
    if text.isprintable():
        return text
    if line:
        text = text.replace("\n", "\\n").replace("\t", "\\t")
    return _UNUSUAL.sub(_shown, text.replace("\r\n", "\n"))


def is_printable(text: str) -> bool:
    """Whether `printable` leaves `text`, in one line, as it is."""
    return printable(text, line=True) == text


def json_escaped(document: str) -> str:
    """Return a JSON document of the same value whose strings hold no such character as it is."""
    return _UNUSUAL.sub(_as_json, document)


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def _as_json(found: re.Match[str]) -> str:
    character = found[0]
    if unicodedata.category(character) not in _HIDDEN:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
