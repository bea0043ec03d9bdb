"""What a page has to say of the files of results that it quotes, from these files.

A remark is a mark in `provenance` (check_results.py), that other processes used the machine, or a
float32 engine of others that a comparison lacks.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import check_results
from pages.read import missing_engines, values_of
from pages.write import head, row
from project_files import ROOT
from syno.engines.engine import without

_READ = re.compile(r"""\b(?:read|agreement)\("(bench/results/[^"]+)"\)""")


def quoted(page: str) -> list[str]:
    """The files of results that a page reads, in their order."""
    return list(dict.fromkeys(_READ.findall(page)))


def of_file(path: Path) -> list[str]:
    """What is to be known of a file, in words."""
    found = check_results.read(path).remarks()
    content: Any = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else None
    if any(value is True for value in values_of(content, "noisy")):
        found.append("other processes used the machine")
    lacking = missing_engines(content)
    return [*found, *([f"compared {without(lacking)}"] if lacking else [])]


def remarks() -> None:
    """Print the remarks on the files of this page as a section; nothing without any."""
    page = Path(sys.modules["cog"].inFile).read_text(encoding="utf-8")
    found = {file: of_file(ROOT / file) for file in quoted(page)}
    if not any(found.values()):
        return
    print("## Remarks on the results\n")
    head("file | remarks")
    for file, each in found.items():
        if each:
            row("`{}` | {}", file, "; ".join(each))
