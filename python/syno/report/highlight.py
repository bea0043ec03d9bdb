"""Python source in pieces of a few kinds, by Pygments, for colours on a page."""

from __future__ import annotations

from itertools import groupby

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

# (class of the style sheet, or nothing; text)
Pieces = list[tuple[str, str]]

_CLASSES = {
    Comment: "c",
    String: "s",
    Number: "n",
    Keyword: "k",
    Operator.Word: "k",
    Name.Function: "d",
    Name.Class: "d",
    Name.Builtin: "b",
    Name.Exception: "b",
}
_lexer = PythonLexer()


def python(code: str) -> Pieces:
    """`code` in pieces with the class of each: comments, strings and the like.

    The characters are never changed, whatever they are.
    """
    # Not get_tokens, which changes ends of lines.
    tokens = ((_class_of(kind), text) for _, kind, text in _lexer.get_tokens_unprocessed(code))
    joined = groupby(tokens, key=lambda token: token[0])
    return [(name, "".join(text for _, text in group)) for name, group in joined]


def _class_of(kind: _TokenType) -> str:
    """The class of a kind of token, or of the nearest kind above that has one."""
    while kind is not None:
        if kind in _CLASSES:
            return _CLASSES[kind]
        kind = kind.parent
    return ""
