"""Texts that try to be more than texts, put into every place of a value."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

from syno.store.objective import Objective

MARKUP = (
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]></style></title></pre></svg></table><svg/onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    '<a href="javascript:alert(1)">here</a>',
    "&lt;b&gt;&#60;i&#62;",
    "$\\frac{1}{$",
)
CONTROL = ("\x1b]0;renamed\x07\x1b[2J", "\x9b31m", "\u202eesrever\u2066", "\ud800", "\0", "\u2028")
HOSTILE = "".join((*MARKUP, *CONTROL))

Change = Callable[[str], str]


def changed(value: Any, change: Change) -> Any:
    """`value` with every text in it changed: fields, items, and the names of dictionaries."""
    if isinstance(value, (enum.Enum, Objective)):  # of the code, not of a store
        return value
    if isinstance(value, str):
        return change(value)
    if dataclasses.is_dataclass(value):
        fields = [f for f in dataclasses.fields(value) if f.init]
        return dataclasses.replace(
            value, **{f.name: changed(getattr(value, f.name), change) for f in fields}
        )
    if isinstance(value, dict):
        return {changed(name, change): changed(item, change) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(changed(item, change) for item in value)
    return value


def count_texts(value: Any) -> int:
    """How many texts `changed` changes."""
    found = 0

    def count(text: str) -> str:
        nonlocal found
        found += 1
        return f"{text}{found}"

    changed(value, count)
    return found


def each_changed(value: Any, prefix: str) -> Iterator[Any]:
    """`value` with `prefix` before one text at a time."""
    for wanted in range(count_texts(value)):
        number = -1

        def change(text: str, wanted: int = wanted) -> str:
            nonlocal number
            number += 1
            return prefix + text if number == wanted else text

        yield changed(value, change)


class Structure(HTMLParser):
    """Elements, attributes and links of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: set[tuple[str, str]] = set()
        self.links: set[str] = set()
        self.comments = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in ("href", "src", "action")}

    def handle_comment(self, data: str) -> None:
        self.comments += 1


# How many of these there are follows from the code, the drawing and the lines of a text.
_COUNTED_OTHERWISE = {"span", "pre", "g", "path", "polygon", "polyline", "ellipse", "text", "svg"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069]")


def check_same_structure(hostile: str, plain: str) -> None:
    """Nothing of a hostile text became an element, an attribute, a link or a control character."""
    ours, theirs = Structure(hostile), Structure(plain)
    assert ours.attributes <= theirs.attributes
    assert set(ours.elements) <= set(theirs.elements)
    for tag in set(theirs.elements) - _COUNTED_OTHERWISE:
        assert ours.elements[tag] == theirs.elements[tag], tag
    assert ours.comments == theirs.comments == 0
    assert all(link.startswith("#") for link in ours.links)
    assert not _CONTROL.search(hostile)
    hostile.encode()
