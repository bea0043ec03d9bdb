"""Python source as HTML with a few colours, by the standard tokenizer."""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize
from html import escape

_CLASSES = {
    tokenize.COMMENT: "c",
    tokenize.STRING: "s",
    tokenize.NUMBER: "n",
    tokenize.OP: "",
}


def python(code: str) -> str:
    """The HTML of `code`: escaped, with `<span class>` around comments, strings and the like.

    Text the tokenizer cannot read comes back escaped and plain; the characters are never changed.
    """
    try:
        return "".join(_pieces(code))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return escape(code)


def _pieces(code: str) -> list[str]:
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pieces: list[str] = []
    position = 0
    named = ""  # `def` or `class` just read: the next name is what is being defined
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if not token.string.strip() or token.type == tokenize.ENDMARKER:
            continue
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        pieces.append(escape(code[position:begin]))
        name = _class_of(token, named)
        text = escape(code[begin:end])
        pieces.append(f'<span class="{name}">{text}</span>' if name else text)
        named = token.string if token.string in ("def", "class") else ""
        position = end
    pieces.append(escape(code[position:]))
    return pieces


def _class_of(token: tokenize.TokenInfo, named: str) -> str:
    if token.type != tokenize.NAME:
        return _CLASSES.get(token.type, "")
    if named:
        return "d"
    if keyword.iskeyword(token.string):
        return "k"
    return "b" if token.string == "self" or hasattr(builtins, token.string) else ""
