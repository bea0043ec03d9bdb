"""What a study was asked, as names and values under a few headings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from syno._util import numbers as fmt

if TYPE_CHECKING:
    from syno.operators.specification import Specification
    from syno.store import Environment, StudySummary

Pairs = tuple[tuple[str, str], ...]

_TRAINING = ("model", "model_options", "data", "fidelity", "training", "latency")
_SEARCH = ("method", "method_options", "space", "evaluations", "seconds", "seed")


def asked(summary: StudySummary) -> dict[str, Pairs]:
    """Study, specification, training and search settings, and the environments of the results.

    The data folder stays out: a report travels, and a path says more about its writer than about
    the data.
    """
    settings = summary.settings
    last = summary.evaluations[-1] if summary.evaluations else summary.baseline
    groups = {
        "Study": (("name", summary.study.name), ("started", _time(summary.study.created))),
        "Specification": _specification(summary.study.specification),
        "Network and training": _settings(settings, _TRAINING),
        "Search": _settings(settings, _SEARCH),
        "Environment": _environment(last.environment) if last is not None else (),
    }
    return {heading: pairs for heading, pairs in groups.items() if pairs}


def _time(iso: str) -> str:
    return iso.replace("T", " ")[:19] + " UTC"


def _settings(settings: Mapping[str, object], names: tuple[str, ...]) -> Pairs:
    return tuple((name, shown(settings[name])) for name in names if settings.get(name) is not None)


def shown(value: object) -> str:
    """A setting in words: `images 10000, epochs 3`, one entry a comma."""
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {shown(item)}" for name, item in value.items() if item not in (None, "", {})
        )
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_specification(content: object) -> Specification:
    """A study's specification from what the store holds of it. UserError when it is none."""
    from syno.operators.specification import Specification

    return Specification.from_json(content if isinstance(content, str) else json.dumps(content))


def _specification(content: object) -> Pairs:
    specification = read_specification(content)
    bindings = "\n".join(
        " ".join(f"{name}={value}" for name, value in binding.items())
        + (f"  (in {count} layers)" if count > 1 else "")
        for binding, count in zip(specification.bindings, specification.multiplicities, strict=True)
    )
    return (
        ("input", specification.input),
        ("output", specification.output),
        ("primary", ", ".join(specification.primary)),
        ("coefficient", ", ".join(specification.coefficient)),
        ("bindings", bindings),
        ("limits", shown(_changed_limits(specification)) or "the defaults"),
        ("key", specification.key),
    )


def _changed_limits(specification: Specification) -> dict[str, float]:
    from syno import _core

    defaults = {entry["name"]: entry["default"] for entry in _core.option_descriptors()}
    return {name: v for name, v in specification.limits.items() if v != defaults[name]}


def _environment(environment: Environment) -> Pairs:
    return (
        ("device", environment.device),
        ("platform", environment.platform),
        ("threads", fmt.count(environment.threads)),
        ("rules", environment.rules),
        ("commit", environment.commit),
        ("libraries", ", ".join(f"{k} {v}" for k, v in sorted(environment.libraries.items()))),
    )
