"""The Markdown files of the project, as their tests read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block; `shown` is the ```text block that stands right behind it, if any."""

    language: str
    text: str
    line: int
    shown: str | None = None


def name(page: Path) -> str:
    """The path below the root."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    result = []
    for place, match in enumerate(found):
        following = found[place + 1] if place + 1 < len(found) else None
        shown = None
        if following is not None and following[1] == "text":
            between = text[match.end() : following.start()]
            shown = following[2] if not between.strip() else None
        line = text.count("\n", 0, match.start()) + 1
        result.append(Block(match[1], match[2], line, shown))
    return result


def prose(page: Path) -> str:
    """The text without fenced blocks and comments."""
    return _COMMENT.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
