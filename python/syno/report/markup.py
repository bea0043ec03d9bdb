"""HTML from templates that escape every value, and the few texts that are HTML already.

Whatever comes from a store reaches a page as a value of a template, and a template escapes its
values: a text is HTML only as a `Markup`, and this file alone makes one.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable
from importlib import resources
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from syno._util.printable import printable


def render(template: str, **values: object) -> Markup:
    """The HTML of `templates/<template>` with `values`, each of them escaped unless it is HTML."""
    return Markup(_environment().get_template(template).render(values))


def joined(parts: Iterable[Markup]) -> Markup:
    """Parts one after the other."""
    return Markup("").join(parts)


def asset(name: str) -> Markup:
    """A file of `assets/`, which stands in the page as it is."""
    return Markup((resources.files("syno.report") / "assets" / name).read_text(encoding="utf-8"))


def plotly_library() -> Markup:
    """Plotly's script."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


def drawing(root: ElementTree.Element) -> Markup:
    """An element and what is in it, its texts and attributes escaped."""
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=True))


def embedded_json(value: object) -> Markup:
    """`value` as JSON inside a script element, which no text in it can end."""
    text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _finite(value: object) -> object:
    """`value` without infinities and NaN, which JSON has no form for."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@functools.cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("syno.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: object) -> object:
    """What a template puts out for `value`: a text without control characters."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
