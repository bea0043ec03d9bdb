"""Tables that are generated from the code: constraints, presets, models and fidelities.

`SYNO_UPDATE_GOLDEN=1 pytest tests/docs -k tables` regenerates them; read the diff.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from syno import Specification, _core

from .pages import ROOT, between


def table(*rows: Iterable[object]) -> str:
    head, *body = [[str(cell) for cell in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *body])


def limits() -> str:
    def shown(value: object) -> str:
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)

    rows = [
        (f"`{d['name']}`", d["type"], shown(d["default"]), d["doc"])
        for d in _core.option_descriptors()
    ]
    return table(("constraint", "type", "default", "meaning"), *rows)


def presets() -> str:
    rows = []
    for name, doc in Specification.presets().items():
        found = Specification.preset(name)
        rows.append((f"`{name}`", doc, f"`{found.input}` to `{found.output}`"))
    return table(("preset", "what it is", "shapes"), *rows)


def models() -> str:
    from syno.network.models import describe, list_models

    rows = [
        (f"`{name}`", option, o.default, f"{o.least} to {o.most}", o.doc)
        for name in list_models()
        for option, o in describe(name).options.items()
    ]
    return table(("model", "option", "default", "range", "meaning"), *rows)


def catalogue() -> str:
    from syno._util.numbers import count
    from syno.network.models import list_models, summarise

    rows = []
    for name in list_models():
        found = summarise(name)
        shares = (found.slot_macs / found.macs, found.slot_params / found.params)
        rows.append(
            (
                f"`{name}`",
                "x".join(map(str, found.input_shape)),
                found.slots,
                len(found.bindings),
                f"{count(found.macs)}, {shares[0]:.0%}",
                f"{count(found.params)}, {shares[1]:.0%}",
            )
        )
    return table(("model", "input", "slots", "bindings", "MACs", "parameters"), *rows)


def fidelities() -> str:
    from syno.train import FIDELITIES

    rows = [
        (
            f"`{f.name}`",
            f"`{f.recipe.name}`",
            f"{f.resolution} px" if f.context is None else f"{f.context:,} tokens",
            f"{f.images:,}" if f.images else "all",
            _length(f),
            f.batch,
            f.holdout,
        )
        for f in FIDELITIES
    ]
    head = ("fidelity", "recipe", "input", "samples", "length", "batch size", "validation split")
    return table(head, *rows)


def _length(f: Any) -> str:
    for value, unit in ((f.epochs, "epochs"), (f.steps, "steps"), (f.seconds, "s")):
        if value is not None:
            return f"{value:,g} {unit}" if value < 1e5 else f"{value:,} {unit}"
    raise AssertionError(f"{f.name} has no length")


def recipes() -> str:
    from syno.train import recipe, recipe_names

    rows = []
    for name in recipe_names():
        r = recipe(name)
        sgd = f"SGD {r.momentum:g}{', Nesterov' if r.nesterov else ''}"
        rows.append(
            (
                f"`{name}`",
                r.version,
                sgd if r.optimizer == "sgd" else f"AdamW {r.betas[0]:g}, {r.betas[1]:g}",
                f"{r.learning_rate:g}",
                f"{r.weight_decay:g}",
                r.schedule,
                r.summary,
            )
        )
    head = ("recipe", "version", "optimizer", "rate", "decay", "schedule", "what it is")
    return table(head, *rows)


def ladders() -> str:
    from syno.study import ladder_names
    from syno.study.fidelity.ladder import ladder, ladder_summary

    rows = []
    for name in ladder_names():
        found = ladder(name)
        rungs = []
        for index, rung in enumerate(found.rungs):
            f = rung.fidelity
            images = f"{f.images:,}" if f.images else "all"
            how = ", resumed" if found.continues(index) else f" by `{f.recipe.name}`"
            size = "" if f.resolution is None else f" at {f.resolution} px"
            length = f"{f.epochs} epoch{'s' if f.epochs != 1 else ''}"
            rungs.append(f"{images}{size}, {length}{how}")
        rows.append((f"`{name}`", found.eta, "; ".join(rungs), ladder_summary(name)))
    return table(("ladder", "eta", "rungs", "what it is"), *rows)


def coverage() -> str:
    from syno.inference.library.coverage import covered

    rows = [(how, ", ".join(f"`{name}`" for name in names)) for how, names in covered().items()]
    return table(("computed by", "operators of ATen"), *rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "limits": ("specification.md", limits),
    "presets": ("specification.md", presets),
    "catalogue": ("models.md", catalogue),
    "models": ("models.md", models),
    "fidelities": ("training.md", fidelities),
    "recipes": ("training.md", recipes),
    "coverage": ("inference.md", coverage),
    "ladders": ("training.md", ladders),
}


@pytest.mark.parametrize("mark", TABLES)
def test_tables_are_those_of_the_code(mark):
    file, make = TABLES[mark]
    page = ROOT / "docs" / file
    start, end = between(page, mark)
    text = page.read_text(encoding="utf-8")
    if os.environ.get("SYNO_UPDATE_GOLDEN"):
        page.write_text(text[:start] + make() + text[end:], encoding="utf-8")
        return
    assert text[start:end] == make(), (
        "SYNO_UPDATE_GOLDEN=1 pytest tests/docs -k tables writes it anew"
    )


@pytest.mark.parametrize(
    ("heading", "method"),
    [
        ("Local search", "local"),
        ("Regularized evolution", "evolution"),
        ("The tree search of the paper", "tree"),
        ("Monte-Carlo graph search", "graph"),
    ],
)
def test_the_defaults_of_a_search_method_are_those_of_the_code(heading, method):
    from syno.study.methods import METHODS

    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", section, re.MULTILINE))
    options = inspect.signature(METHODS[method]).parameters.values()
    defaults = {o.name: o.default for o in options if o.kind is o.KEYWORD_ONLY}
    assert {name: float(value) for name, value in rows.items()} == pytest.approx(defaults, rel=1e-4)
