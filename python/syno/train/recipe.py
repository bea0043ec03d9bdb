"""Recipes: how a network is trained, as named and versioned files. This module needs no torch.

A recipe defines how a network is trained, and a `Fidelity` how much. The files are in `recipes/`. A
file also holds the fidelities that the recipe was made for; its name stands for the first of them.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno._util.file_catalogue import FileCatalogue
from syno._util.json_types import JsonObject

TASKS = ("images", "text", "custom")
OPTIMIZERS = ("sgd", "adamw")
SCHEDULES = ("constant", "linear", "cosine", "one-cycle", "cyclic")
PRECISIONS = ("float32", "bfloat16", "float16")
PADS = ("mean", "zero", "reflect")
_FILES = FileCatalogue("recipe", "syno.train", "recipes")


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    version: increases when a recipe of this name changes.
    task: `images`, `text`, or `custom` data.

    optimizer: `sgd` (with `momentum`, `nesterov`) or `adamw` (with `betas`).
    learning_rate: the peak learning rate. A module or parameter may have a multiplier
        (optimizers.py).
    step_scales: whether the learning-rate multipliers of the weights of operators are used.
    weight_decay: not applied to normalization layers and biases, unless `decay_everything`.
    batch: the batch size.
    clip_norm: the largest norm of the gradient of all parameters together; None for no limit.
    label_smoothing: the share of the target that is spread over all classes.
    schedule: `constant`, `linear`, `cosine`, `one-cycle` or `cyclic` (schedules.py).
    warmup: the share of the steps in which the learning rate rises.
    final_rate: the final learning rate, as a share of the peak.
    cycles: the number of cycles of `cyclic`.
    ema: the decay of the exponential moving average of the weights, which become the weights of the
        network at the end; None for no average.
    precision: of forward and backward pass (`float32`, `bfloat16`, `float16`); weights are float32.
    channels_last: whether feature maps have this memory format, in networks without compiled
        operators.
    compile: whether torch.compile compiles the network.

    Images only:
    crop, pad, flip, cutout, area: as in `syno.data.augment.Augmentation`.
    augmented_at: height and width in pixels at which images are loaded and augmented, before they
        are scaled to the resolution of the fidelity; None for that resolution.
    progressive: pairs (share of the epochs, share of the resolution from there on), ascending.
    flip_average: whether evaluation averages the scores of an image and its mirror image.
    least_accuracy: pairs (epoch, accuracy). A training whose validation accuracy after that epoch
        is lower is rejected.
    """

    name: str
    version: int = 1
    summary: str = ""
    task: str = "images"
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    step_scales: bool = True
    momentum: float = 0.9
    nesterov: bool = True
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 5e-4
    decay_everything: bool = False
    batch: int = 64
    clip_norm: float | None = None
    label_smoothing: float = 0.0
    schedule: str = "cosine"
    warmup: float = 0.0
    final_rate: float = 0.0
    cycles: int = 1
    ema: float | None = None
    precision: str = "float32"
    channels_last: bool = False
    compile: bool = False
    crop: int = 0
    pad: str = "mean"
    flip: bool = False
    cutout: int = 0
    area: tuple[float, float] | None = None
    augmented_at: int | None = None
    progressive: tuple[tuple[float, float], ...] = ()
    flip_average: bool = False
    least_accuracy: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("name", "summary"):
            checks.text(f"the {name} of a recipe", getattr(self, name))
        for name, known in (
            ("task", TASKS),
            ("optimizer", OPTIMIZERS),
            ("schedule", SCHEDULES),
            ("precision", PRECISIONS),
            ("pad", PADS),
        ):
            if getattr(self, name) not in known:
                value = str(getattr(self, name))
                self._refuse(name, value, f"one of {', '.join(known)}{nearest(value, known)}")
        for name, least in (("version", 0), ("batch", 1), ("cycles", 1), ("crop", 0)):
            self._whole(name, getattr(self, name), least)
        self._whole("cutout", self.cutout, 0)
        if self.augmented_at is not None:
            self._whole("augmented_at", self.augmented_at, 1)
        for name in ("nesterov", "decay_everything", "channels_last", "compile", "flip"):
            self._boolean(name)
        self._boolean("flip_average")
        self._boolean("step_scales")
        for name in ("momentum", "warmup", "label_smoothing"):
            self._number(name, getattr(self, name), 0.0, 1.0)
        self._number("weight_decay", self.weight_decay, 0.0, math.inf)
        self._number("learning_rate", self.learning_rate, 0.0, math.inf, open_=True)
        if self.clip_norm is not None:
            self._number("clip_norm", self.clip_norm, 0.0, math.inf, open_=True)
        if not checks.is_number(self.final_rate) or not 0.0 <= self.final_rate <= 1.0:
            self._refuse("final_rate", self.final_rate, "a share of the peak from 0 to 1")
        if self.ema is not None:
            self._number("ema", self.ema, 0.0, 1.0)
        self._check_pairs()

    def _check_pairs(self) -> None:
        for name in ("betas", "area", "progressive", "least_accuracy"):
            value = getattr(self, name)
            if not isinstance(value, tuple) and not (name == "area" and value is None):
                self._refuse(name, value, "a list of numbers or of pairs")
        ascending = "ascending from 0 on, each with a share of the resolution above 0 and at most 1"
        starts = [start for start, _ in self.progressive]
        shares = [share for _, share in self.progressive]
        right = not starts or (
            starts[0] == 0.0 and starts == sorted(set(starts)) and starts[-1] < 1
        )
        if not right or not all(0 < share <= 1 for share in shares):
            self._refuse("progressive", self.progressive, f"shares of the epochs, {ascending}")
        if len(self.betas) != 2 or not all(0.0 <= beta < 1.0 for beta in self.betas):
            self._refuse("betas", self.betas, "two numbers of at least 0 and below 1")
        if self.area is not None and len(self.area) != 2:
            self._refuse("area", self.area, "two numbers, the least and the largest share")
        if self.area is not None and not 0.0 < self.area[0] <= self.area[1] <= 1.0:
            self._refuse("area", self.area, "the least and largest share, above 0 and at most 1")
        epochs = [epoch for epoch, _ in self.least_accuracy]
        if epochs != sorted(set(epochs)) or not all(
            epoch >= 1 and 0.0 <= accuracy <= 1.0 for epoch, accuracy in self.least_accuracy
        ):
            expected = "epochs from 1 on, ascending, each with an accuracy from 0 to 1"
            self._refuse("least_accuracy", self.least_accuracy, expected)

    def to_json(self) -> JsonObject:
        """Return all fields, for storage and comparison."""
        return asdict(self)

    @staticmethod
    def from_json(content: object) -> Recipe:
        """Read the document of `to_json`.

        Raises:
            UserError: for an unknown field, and for an invalid value.
        """
        known = [field.name for field in fields(Recipe)]
        content = checks.fields("a recipe", content)
        name = checks.text("a recipe's name", content.get("name", "without a name"))
        for key in content:
            if key not in known:
                raise UserError(
                    f"recipe '{name}' has an unknown entry '{checks.short(key)}'\n"
                    f"  expected: {', '.join(known)}{nearest(key, known)}"
                )
        try:
            return Recipe(**{key: _frozen(value) for key, value in content.items()})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise UserError(f"cannot read recipe '{name}': {error}") from error

    def _boolean(self, name: str) -> None:
        if not isinstance(getattr(self, name), bool):
            self._refuse(name, getattr(self, name), "true or false")

    def _whole(self, name: str, value: object, least: int) -> None:
        if not checks.is_whole(value, least):
            self._refuse(name, value, f"a whole number of at least {least}")

    def _number(
        self, name: str, value: object, low: float, high: float, *, open_: bool = False
    ) -> None:
        inside = checks.is_number(value) and low <= value < high
        if not inside or (open_ and value == low):
            least = "above" if open_ else "at least"
            self._refuse(name, value, f"{least} {low:g} and below {high:g}")

    def _refuse(self, name: str, value: object, expected: str) -> None:
        raise UserError(
            f"recipe '{self.name}' cannot have {name} = {checks.shown(value)}\n"
            f"  expected: {expected}"
        )


def recipe(name: str) -> Recipe:
    """Return the recipe of this name, or of a .toml file.

    Raises:
        UserError: for an unknown name, with similar names, and for a file that is not a recipe.
    """
    return read_recipe(name)[0]


def recipe_names() -> tuple[str, ...]:
    """Return the names that `recipe` knows."""
    return _FILES.names()


# A recipe, and the tables of its rungs.
_Content = tuple[Recipe, tuple[dict[str, object], ...]]


@cache
def _shipped(name: str) -> _Content:
    return _read(name)


def read_recipe(name: str) -> _Content:
    """Read a recipe and the rungs of its file, each a table of fields of `Fidelity`."""
    return _shipped(name) if name in recipe_names() else _read(name)


def _read(name: str) -> _Content:
    title, content = _FILES.read(name)
    rungs = content.pop("rung", [])
    if not isinstance(rungs, list) or not all(isinstance(rung, dict) for rung in rungs):
        raise UserError(f"recipe '{title}' has a `rung` that is not a list of tables, [[rung]]")
    table = content.pop("least_accuracy", {})
    try:
        content["least_accuracy"] = sorted((int(epoch), float(a)) for epoch, a in table.items())
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"recipe '{title}' has a bad table least_accuracy: {checks.shown(table)}\n"
            "  expected: [least_accuracy] with lines such as 10 = 0.3"
        ) from error
    return Recipe.from_json({"name": title, **content}), tuple(rungs)


def _frozen(value: object) -> Any:
    """Convert lists to tuples, so that a recipe is hashable and equals its stored form."""
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value
