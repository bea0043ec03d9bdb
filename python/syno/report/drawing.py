"""Graphviz sources as pictures inside a page."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from syno._helper_process import find_program

INSTALL_HINT = (
    "Graphviz is not installed, so operators are drawn as text. "
    "`apt install graphviz` (Debian, Ubuntu) or `brew install graphviz` brings the pictures "
    "the next time the report is written."
)
_TIME_LIMIT = 20.0  # seconds for one drawing; a graph of a dozen nodes takes 30 ms


@dataclass(frozen=True)
class Drawing:
    """Inline SVG, or why there is none."""

    svg: str = ""
    problem: str = ""


def graphviz() -> str | None:
    """The path of `dot`, or None."""
    return find_program("dot")


def draw(sources: Sequence[str]) -> list[Drawing]:
    """A drawing for each Graphviz source, in order; two at a time."""
    program = graphviz()
    if program is None:
        return [Drawing(problem=INSTALL_HINT)] * len(sources)
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda source: _draw_one(program, source), sources))


def _draw_one(program: str, source: str) -> Drawing:
    if not source.strip():
        return Drawing()
    try:
        result = subprocess.run(
            [program, "-Tsvg"],
            input=source.encode(),
            capture_output=True,
            timeout=_TIME_LIMIT,
            cwd=os.sep,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        return Drawing(problem=f"Graphviz did not draw this operator: {error}")
    if result.returncode != 0:
        reason = result.stderr.decode(errors="replace").strip().split("\n", 1)[0]
        return Drawing(problem=f"Graphviz did not draw this operator: {reason}")
    return Drawing(svg=inline(result.stdout.decode()))


def inline(svg: str) -> str:
    """`svg` ready to stand in a page beside others.

    The head of the file, comments, the white ground, and the ids and titles that repeat in every
    drawing go away.
    Colours stay: the style sheet turns them around on a dark page.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s(?:id|xmlns:xlink|xlink:title)="[^"]*"', "", svg)
    svg = re.sub(
        r'<polygon fill="white" stroke="(?:transparent|none|white)"[^>]*/>\n?', "", svg, count=1
    )
    svg = re.sub(r'font-family="[^"]*"', 'font-family="inherit"', svg)
    # Points at natural size: a page may shrink a wide drawing but must not blow up a small one.
    svg = re.sub(r'width="([\d.]+)pt" height="([\d.]+)pt"', r'style="width:\1pt"', svg, count=1)
    return svg.replace("<svg", '<svg role="img" aria-label="drawing of the operator"', 1)
