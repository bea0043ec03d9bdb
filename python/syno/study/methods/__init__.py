"""Search methods by name. A new method needs a file and an entry in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.study.members import Members
from syno.study.methods.diverse import DiverseSampling
from syno.study.methods.evolution import Evolution
from syno.study.methods.graph import GraphSearch
from syno.study.methods.history import History, HistoryEntry, Trial
from syno.study.methods.local import LocalSearch
from syno.study.methods.method import Method, choose, make_with_options
from syno.study.methods.surrogate import SurrogateSearch
from syno.study.methods.tree import TreeSearch
from syno.study.methods.uniform import UniformSampling

__all__ = [
    "METHODS",
    "DiverseSampling",
    "Evolution",
    "GraphSearch",
    "History",
    "HistoryEntry",
    "LocalSearch",
    "Method",
    "SurrogateSearch",
    "TreeSearch",
    "Trial",
    "UniformSampling",
    "choose",
    "make_method",
    "parse_method",
]

METHODS: dict[str, Callable[..., Method]] = {
    "uniform": UniformSampling,
    "diverse": DiverseSampling,
    "local": LocalSearch,
    "evolution": Evolution,
    "surrogate": SurrogateSearch,
    "tree": TreeSearch,
    "graph": GraphSearch,
}


def parse_method(method: str | Mapping[str, Json]) -> tuple[str, dict[str, Json]]:
    """Split `NAME`, `NAME:OPTION=VALUE,...` or a mapping into a method's name and options.

    A value is a number, `true`, `false`, or else a text.

    Raises:
        UserError: for a text of another form, and for a mapping without the key `name`.
    """
    if not isinstance(method, str):
        given = checks.fields("'method'", method)
        found = checks.text("the name of a method", checks.field("'method'", given, "name"))
        return found, {key: value for key, value in given.items() if key != "name"}
    name, colon, rest = (each.strip() for each in method.partition(":"))
    options: dict[str, Json] = {}
    for part in rest.split(",") if colon else ():
        option, equals, value = (each.strip() for each in part.partition("="))
        if not option or not equals:
            raise UserError(
                f"'{checks.short(method)}' does not name a search method with options\n"
                "  expected: NAME or NAME:OPTION=VALUE,OPTION=VALUE, such as "
                "local:samples=20,restarts=0.2"
            )
        options[option] = _value(value)
    if not name:
        raise UserError(f"'{checks.short(method)}' does not name a search method")
    return name, options


def _value(text: str) -> Json:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def make_method(name: str, members: Members, seed: int, options: Mapping[str, object]) -> Method:
    """Make the search method of this name.

    Raises:
        UserError: for an unknown name, and for an unknown option.
    """
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise UserError(f"there is no search method '{name}'\n  expected: one of {known}")
    return make_with_options(
        f"the search method '{name}'", METHODS[name], members, seed, options=options
    )
