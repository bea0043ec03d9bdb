"""What a study was asked to do: stored with it as JSON, so that `resume` needs nothing else."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from syno._util import checks
from syno._util.errors import UserError
from syno.options import EVALUATIONS, METHOD

# The method of a study whose operators were named one by one (`syno train`), not searched.
GIVEN = "given"


@dataclass(frozen=True)
class StudySettings:
    """All options of a search.

    model: name of a model, or None for a module of the user's, which `resume` must be given again;
    data: name of a data set or path of one, `fingerprint` names its content; tokenizer: of text;
    fidelity: as `Fidelity.to_json`, with a ladder that of its top; ladder: as `Ladder.to_json`,
    with `fingerprints` of the data as each rung loads it; training: `deadline_s`, `max_slowdown`,
    `isolate`, `memory_limit`, `max_attempts`; space: `max_nodes` and `rules_off` of the
    enumeration; method: how operators are chosen, with `method_options`; latency: `repeats`,
    `warmup`, `threads`; evaluations: operators to train; seconds: time limit over all runs
    together, None for none; baseline: whether the original network is evaluated first.
    """

    model: str | None = None
    model_options: dict[str, Any] = field(default_factory=dict)
    data: str | None = None
    data_dir: str | None = None
    tokenizer: str = "bytes"
    fingerprint: str = ""
    fidelity: dict[str, Any] = field(default_factory=dict)
    ladder: dict[str, Any] | None = None
    training: dict[str, Any] = field(default_factory=dict)
    space: dict[str, Any] = field(default_factory=dict)
    method: str = METHOD
    method_options: dict[str, Any] = field(default_factory=dict)
    latency: dict[str, Any] = field(default_factory=dict)
    evaluations: int = EVALUATIONS
    seconds: float | None = None
    seed: int = 0
    baseline: bool = True

    def __post_init__(self) -> None:
        hint = "pass the number of operators to train, such as 20"
        checks.whole(
            "'evaluations'", self.evaluations, least=1, most=checks.MOST_COUNTED, hint=hint
        )
        if self.seconds is not None and self.seconds <= 0:
            raise UserError(f"seconds must be positive, got {self.seconds:g}")
        checks.whole("'seed'", self.seed, least=0)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> StudySettings:
        """Reads what `to_json` wrote; UserError names options this Syno does not know."""
        unknown = sorted(set(content) - {f.name for f in dataclasses.fields(cls)})
        if unknown:
            raise UserError(
                "the study has settings that this version of Syno does not know: "
                f"{', '.join(unknown)}\n"
                "  what to do: resume it with the version of Syno that started it, or a later one"
            )
        return cls(**content)

    def changed(self, **limits: Any) -> StudySettings:
        """The same with other limits; values that are None stay as they were."""
        return dataclasses.replace(self, **{k: v for k, v in limits.items() if v is not None})
