"""Graphviz drawings inside a page."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from xml.etree import ElementTree

from markupsafe import Markup

from syno._util.printable import printable
from syno.report import markup
from syno.runs.helper_process import find_program

INSTALL_HINT = (
    "Graphviz is not installed, so operators are drawn as text. "
    "Install it with `apt install graphviz` (Debian, Ubuntu) or `brew install graphviz`, and write "
    "the report again to get drawings."
)
_TIME_LIMIT = 20.0  # seconds for one drawing; a graph of a dozen nodes takes 30 ms
_SVG = "{http://www.w3.org/2000/svg}"
_POINTS = re.compile(r"[\d.]+pt")
# What Graphviz makes nodes, edges and labels of.
_ELEMENTS = frozenset({"svg", "g", "path", "polygon", "polyline", "ellipse", "text"})
_ATTRIBUTES = frozenset(
    {"width", "height", "viewBox", "transform", "fill", "stroke", "stroke-width", "points", "d"}
    | {"stroke-dasharray", "cx", "cy", "rx", "ry", "x", "y", "text-anchor"}
    | {"font-family", "font-size", "font-weight", "font-style"}
)
_NOTHING = Markup()


@dataclass(frozen=True)
class SvgDrawing:
    """Inline SVG, or the reason why there is none."""

    svg: Markup = _NOTHING
    problem: str = ""


def graphviz() -> str | None:
    """The path of `dot`, or None."""
    return find_program("dot")


def render_drawings(sources: Sequence[str]) -> list[SvgDrawing]:
    """Render each Graphviz source, in order, two at a time."""
    program = graphviz()
    if program is None:
        return [SvgDrawing(problem=INSTALL_HINT)] * len(sources)
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda source: _draw_one(program, source), sources))


def _draw_one(program: str, source: str) -> SvgDrawing:
    if not source.strip():
        return SvgDrawing()
    try:
        result = subprocess.run(
            [program, "-Tsvg"],
            input=source.encode("utf-8", "backslashreplace"),
            capture_output=True,
            timeout=_TIME_LIMIT,
            cwd=os.sep,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        return SvgDrawing(problem=f"Graphviz could not draw this operator: {error}")
    if result.returncode != 0:
        reason = result.stderr.decode(errors="replace").strip().split("\n", 1)[0]
        return SvgDrawing(problem=f"Graphviz could not draw this operator: {reason}")
    try:
        return SvgDrawing(svg=inline(result.stdout))
    except ElementTree.ParseError as error:
        return SvgDrawing(problem=f"Graphviz wrote a drawing that cannot be read: {error}")


def inline(svg: bytes) -> Markup:
    """Convert an SVG document to an element of a page that holds only shapes and text.

    Links, images, scripts, the white background, and the ids and titles that repeat in every
    drawing are removed. Colors stay; the style sheet inverts them on a dark page.
    """
    (root,) = _shapes(ElementTree.fromstring(svg))
    ground = root.find("g/polygon[@fill='white']")
    if ground is not None and ground.get("stroke") in ("transparent", "none", "white"):
        root[0].remove(ground)
    # Points at natural size: a page may shrink a wide drawing but must not blow up a small one.
    width = root.attrib.pop("width", "")
    root.attrib.pop("height", None)
    if _POINTS.fullmatch(width):
        root.set("style", f"width:{width}")
    root.attrib = {"role": "img", "aria-label": "drawing of the operator", **root.attrib}
    return markup.drawing(root)


def _shapes(found: ElementTree.Element) -> list[ElementTree.Element]:
    """Return an element with only the attributes of a shape, or its contents."""
    name = found.tag.removeprefix(_SVG)
    inside = [shape for child in found for shape in _shapes(child)]
    if name not in _ELEMENTS:
        return inside if name == "a" else []
    kept = ElementTree.Element(name)
    for attribute, value in found.attrib.items():
        if attribute in _ATTRIBUTES and "url(" not in value:
            kept.set(attribute, "inherit" if attribute == "font-family" else value)
    kept.extend(inside)
    if name == "text":
        kept.text = printable(found.text or "")
    return [kept]
