"""Tables that pages print of what the code declares."""

from __future__ import annotations

from typing import Any

from pages.write import head, row


def limits() -> None:
    """The constraints of a search space."""
    from syno import _core

    head("constraint | type | default | meaning")
    for d in _core.option_descriptors():
        default = d["default"]
        shown = {True: "yes", False: "no"}[default] if isinstance(default, bool) else default
        row("`{}` | {} | {} | {}", d["name"], d["type"], shown, d["doc"])


def presets() -> None:
    """The specifications that have a name."""
    from syno import Specification

    head("preset | what it is | shapes")
    for name, doc in Specification.presets().items():
        found = Specification.preset(name)
        row("`{}` | {} | `{}` to `{}`", name, doc, (found.input, found.output))


def models() -> None:
    """The options of the models by name."""
    from syno.network.models import describe, list_models

    head("model | option | default | range | meaning")
    for name in list_models():
        for option, o in describe(name).options.items():
            row("`{}` | {} | {} | {} to {} | {}", name, option, o.default, (o.least, o.most), o.doc)


def catalogue() -> None:
    """The models by name, with their sizes."""
    from syno._util.numbers import count
    from syno.network.models.summary import entries

    head("model | input | slots | bindings | MACs | parameters")
    for each in entries():
        row(
            "`{}` | {} | {} | {} | {}, {:.0%} | {}, {:.0%}",
            each["name"],
            "x".join(map(str, each["input_shape"])),
            each["slots"],
            len(each["bindings"]),
            (count(each["macs"]), each["slot_macs"] / each["macs"]),
            (count(each["params"]), each["slot_params"] / each["params"]),
        )


def fidelities() -> None:
    """The fidelities by name."""
    from syno.train import FIDELITIES

    head("fidelity | recipe | input | samples | length | batch size | validation split")
    for f in FIDELITIES:
        row(
            "`{}` | `{}` | {} | {} | {} | {} | {}",
            f.name,
            f.recipe.name,
            _input(f),
            f"{f.images:,}" if f.images else "all",
            _length(f),
            f.batch,
            f.holdout,
        )


def _input(f: Any) -> str:
    if f.context is not None:
        return f"{f.context:,} tokens"
    return "as the data" if f.resolution is None else f"{f.resolution} px"


def _length(f: Any) -> str:
    for value, unit in ((f.epochs, "epochs"), (f.steps, "steps"), (f.seconds, "s")):
        if value is not None:
            return f"{value:,g} {unit}" if value < 1e5 else f"{value:,} {unit}"
    raise AssertionError(f"{f.name} has no length")


def recipes() -> None:
    """The recipes by name."""
    from syno.train import recipe, recipe_names

    head("recipe | version | optimizer | rate | decay | schedule | what it is")
    for name in recipe_names():
        r = recipe(name)
        sgd = f"SGD {r.momentum:g}{', Nesterov' if r.nesterov else ''}"
        adamw = f"AdamW {r.betas[0]:g}, {r.betas[1]:g}"
        row(
            "`{}` | {} | {} | {:g} | {:g} | {} | {}",
            name,
            r.version,
            sgd if r.optimizer == "sgd" else adamw,
            r.learning_rate,
            r.weight_decay,
            r.schedule,
            r.summary,
        )


def ladders() -> None:
    """The ladders of fidelities by name."""
    from syno.study import ladder_names
    from syno.study.fidelity.ladder import ladder, ladder_summary

    head("ladder | eta | rungs | what it is")
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
        row("`{}` | {} | {} | {}", name, found.eta, "; ".join(rungs), ladder_summary(name))


def coverage() -> None:
    """What computes the operators of ATen in compiled networks."""
    from syno.inference.library.coverage import covered

    head("computed by | operators of ATen")
    for how, names in covered().items():
        row("{} | {}", how, ", ".join(f"`{name}`" for name in names))
