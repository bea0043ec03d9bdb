"""The settings of a study as names and values in groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.declaration import stored_names
from syno.operators.specification import read_specification
from syno.study_options import SearchOptions

if TYPE_CHECKING:
    from syno.operators.specification import Specification
    from syno.store import Environment, StudySummary

Pairs = tuple[tuple[str, str], ...]

_TRAINING = ("model", "model_options", "data", "fidelity", "training", "latency")
_SEARCH = ("method", "method_options", *stored_names(SearchOptions), "space")


def study_settings(summary: StudySummary) -> dict[str, Pairs]:
    """Return the settings of a study, its specification, and the environment of its results.

    The folder of the data is omitted, because a report is shared and a path may be private.
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
    """Return a setting as text, such as `images 10000, epochs 3`."""
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {shown(item)}" for name, item in value.items() if item not in (None, "", {})
        )
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


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
        ("constraints", shown(_changed_limits(specification)) or "the defaults"),
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
