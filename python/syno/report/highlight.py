"""Python source in pieces of a few kinds, by the standard tokenizer, for colours on a page."""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize

# (class of the style sheet, or nothing; text)
Pieces = list[tuple[str, str]]

_CLASSES = {
    tokenize.COMMENT: "c",
    tokenize.STRING: "s",
    tokenize.NUMBER: "n",
    tokenize.OP: "",
}


def python(code: str) -> Pieces:
    """`code` in pieces with the class of each: comments, strings and the like.

    Text the tokenizer cannot read is one plain piece; the characters are never changed.
    """
    try:
        return _pieces(code)
    except (tokenize.TokenError, SyntaxError, ValueError):  # ValueError: surrogates, NUL
        return [("", code)]


def _pieces(code: str) -> Pieces:
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pieces: Pieces = []
    position = 0
    named = ""  # `def` or `class` just read: the next name is what is being defined
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if not token.string.strip() or token.type == tokenize.ENDMARKER:
            continue
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        name = _class_of(token, named)
        pieces += [("", code[position:begin]), (name, code[begin:end])]
        named = token.string if token.string in ("def", "class") else ""
        position = end
    pieces.append(("", code[position:]))
    return [(name, text) for name, text in pieces if text]


def _class_of(token: tokenize.TokenInfo, named: str) -> str:
    if token.type != tokenize.NAME:
        return _CLASSES.get(token.type, "")
    if named:
        return "d"
    if keyword.iskeyword(token.string):
        return "k"
    return "b" if token.string == "self" or hasattr(builtins, token.string) else ""
