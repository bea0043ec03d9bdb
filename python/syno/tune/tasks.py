"""The tasks of a grid, each of which has a folder for its results."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.checks import from_file
from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.tune.grid import Grid, Target, TuningPlace

if TYPE_CHECKING:
    from syno.operands.lookup import NamedOperator

ORIGINAL = "original"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.@+-]+")


@dataclass(frozen=True)
class TuningTask:
    """An operator in all layers of a place, on one device and in one back end.

    target, place, operator, back_end: the names of what is tuned; `original` is the operator of the
    original layers. folder: of the results. text: of the operator, empty for the original layers;
    problem: why there is no operator to tune; empty if there is one. sizes: values of
    variables that it comes with. whole: whether the task is the whole network of `model`. Other
    fields are those of `Grid` and `Target`.
    """

    target: str
    place: str
    operator: str
    back_end: str
    folder: Path
    text: str
    problem: str
    sizes: Mapping[str, int]
    binding: Mapping[str, int]
    model: str | None
    layer: tuple[int, int] | None
    device: str
    threads: int
    rpc_key: str | None
    tvm_target: str | None
    batch: int
    size: int | None
    trials: int
    plans: int
    rounds: int
    tracker: str | None = None
    secret: str | None = None
    whole: bool = False

    @property
    def name(self) -> str:
        """The task in words."""
        return f"{self.operator} in {self.place}, {self.back_end} on {self.target}"

    @property
    def key(self) -> str:
        """A digest of all that decides the result."""
        left_out = ("folder", "problem", "tracker", "secret")
        content = {k: v for k, v in self.as_json().items() if k not in left_out}
        if self.tracker is not None:
            content["remote"] = True
        if not self.whole:
            del content["whole"]  # results from before there were whole networks stay valid
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def as_json(self) -> JsonObject:
        """All fields as plain values, for `from_json`."""
        return {
            **asdict(self),
            "folder": str(self.folder),
            "layer": self.layer and list(self.layer),
        }

    @classmethod
    def from_json(cls, fields: JsonObject) -> TuningTask:
        """The task of such fields."""
        layer = fields["layer"]
        found = {**fields, "folder": Path(str(fields["folder"]))}
        found["layer"] = tuple(layer) if isinstance(layer, list) else None
        return cls(**found)  # type: ignore[arg-type]


def tasks_of(grid: Grid) -> list[TuningTask]:
    """All tasks of a grid: for each target and place, the original layers and then the operators.

    A missing operator becomes a task with a `problem`.

    Raises:
        UserError: a model is unknown, or the folder of a task is not below the root of the grid.
    """
    from syno.network import models

    for place in grid.places:
        if place.model is not None:
            models.describe(place.model)
    found = []
    for target in grid.targets:
        for place in grid.places:
            subjects: list[tuple[str, Path, NamedOperator | str | None]] = []
            if grid.baseline:
                folder = target.prefix / target.baseline_dir
                subjects.append((ORIGINAL, folder, None))
            for operand in place.operators:
                subjects += _operators(operand, target, place)
            for name, folder, named in subjects:
                for back_end in grid.back_ends:
                    found.append(_task(grid, target, place, name, folder, named, back_end))
    if grid.root is not None:
        _check_inside(grid.root, found)
    return found


def _check_inside(root: Path, tasks: Sequence[TuningTask]) -> None:
    """A grid of somebody else must not write or delete files anywhere."""
    for task in tasks:
        with from_file("cannot keep results in", task.folder):
            inside = task.folder.resolve().is_relative_to(root.resolve())
        if not inside:
            raise UserError(
                f"the results of {task.name} would lie outside of the folder of the grid\n"
                f"  expected: a folder below '{root.resolve()}'      got: '{task.folder.resolve()}'"
                "\n  what to do: change 'prefix', 'name' or 'baseline_dir' of the target, or allow "
                "it with --outside (`read_grid(..., outside=True)`)"
            )


def _operators(
    operand: str, target: Target, place: TuningPlace
) -> list[tuple[str, Path, NamedOperator | str | None]]:
    """The operators of an operand with the folders of their results; a text says what is wrong."""
    from syno.operands.lookup import named_operators

    beside = target.prefix / operand
    in_folder = place.from_folders and beside.is_dir()
    try:
        named = named_operators([str(beside) if in_folder else operand])
    except UserError as error:
        problem = str(error)
        if place.from_folders:
            problem = f"there is no operator in the folder '{beside}', and no operator '{operand}'"
        return [(operand, target.prefix / _safe(operand), problem)]
    if in_folder and len(named) == 1:
        return [(operand, beside, named[0])]
    return [(each.name, target.prefix / _safe(each.name), each) for each in named]


def _task(
    grid: Grid,
    target: Target,
    place: TuningPlace,
    name: str,
    folder: Path,
    named: NamedOperator | str | None,
    back_end: str,
) -> TuningTask:
    known = None if named is None or isinstance(named, str) else named
    return TuningTask(
        target=target.name,
        place=place.name,
        operator=name,
        back_end=back_end,
        folder=folder / _safe(place.name) / f"{back_end}-{target.device}",
        text="" if known is None else known.operator.text,
        problem=named if isinstance(named, str) else "",
        sizes={} if known is None else dict(known.sizes),
        binding=dict(grid.binding),
        model=place.model,
        layer=place.layer,
        device=target.device,
        threads=target.threads,
        rpc_key=target.rpc_key,
        tvm_target=target.target,
        batch=grid.batch,
        size=grid.size,
        trials=grid.trials,
        plans=grid.plans,
        rounds=grid.rounds,
        tracker=target.tracker,
        secret=None if target.secret is None else str(target.secret),
        whole=place.whole,
    )


def _safe(name: str) -> str:
    """A name as one folder, or as folders below each other where it has slashes."""
    parts = [_UNSAFE.sub("-", part) for part in name.split("/") if part not in ("", ".", "..")]
    return "/".join(parts) or "operator"
