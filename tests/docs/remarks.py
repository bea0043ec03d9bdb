"""What a page has to say of the files of results that it quotes, written from these files.

A remark is a mark in `provenance` (tools/check_results.py), that other processes used the machine,
or a float32 engine that a comparison lacks. Each page with remarks has them as a table between
`<!-- remarks -->` and `<!-- end of remarks -->`; SYNO_UPDATE_GOLDEN=1 pytest tests/docs -k remarks
writes it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from syno.engines.engine import without

from .figures import blocks, missing_engines, parsed, values
from .pages import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import check_results

MARK = "remarks"
HEADING = "## Remarks on the results"
FOLDER = "bench/results/"


def quoted(page: Path) -> list[str]:
    """The files of results that the comments of a page name, in their order."""
    found = [
        file
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.comment is not None
        for file in parsed(block.comment).files
        if file.startswith(FOLDER)
    ]
    return list(dict.fromkeys(found))


def remarks(path: Path) -> list[str]:
    """What is to be known of a file, in words."""
    content = content_of(path)
    found = check_results.read(path).remarks()
    if any(value is True for value in values(content, "noisy")):
        found.append("other processes used the machine")
    lacking = missing_engines(content)
    return [*found, *([f"compared {without(lacking)}"] if lacking else [])]


def content_of(path: Path) -> Any:
    """The content of a JSON file; None for others, which have nothing that is looked for."""
    return json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else None


def table(page: Path) -> str:
    """The remarks on the files of a page; empty without any."""
    rows = [(file, remarks(ROOT / file)) for file in quoted(page)]
    rows = [(file, found) for file, found in rows if found]
    if not rows:
        return ""
    lines = [f"| `{file}` | {'; '.join(found)} |\n" for file, found in rows]
    return "".join(["| file | remarks |\n", "| --- | --- |\n", *lines])
