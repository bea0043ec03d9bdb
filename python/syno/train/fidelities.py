"""Fidelities: how much a network is trained (data, resolution, length). Needs no torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno._util.json_types import JsonObject
from syno._util.numbers import counted
from syno.train.recipe import Recipe, read_recipe, recipe, recipe_names

# Fields of a fidelity before there were recipes.
_FORMER = (
    *("batch", "learning_rate", "momentum", "weight_decay", "warmup", "label_smoothing"),
    *("clip_norm", "crop", "flip"),
)


@dataclass(frozen=True)
class Fidelity:
    """How much a network is trained, with the recipe. Only outcomes of equal fidelities compare.

    Images (custom data has the first and the last of them):
    images: the number of training images, a fixed stratified sample; None for all.
    resolution: height and width of the input of the network, in pixels.
    epochs: passes over the training images.

    Text:
    context: tokens of a sequence.
    steps, seconds: the length of the training: one of the two.
    held_tokens: tokens of the validation split that are evaluated; None for all.

    holdout: the share of the training split that forms the validation split; `split_seed` selects
        it.
    """

    name: str
    images: int | None = None
    resolution: int | None = None
    epochs: int | None = None
    recipe: Recipe = field(default_factory=lambda: recipe("fast/digits"))
    holdout: float = 0.1
    split_seed: int = 0
    context: int | None = None
    steps: int | None = None
    seconds: float | None = None
    held_tokens: int | None = None

    def __post_init__(self) -> None:
        checks.text("the name of a fidelity", self.name)
        if not isinstance(self.recipe, Recipe):
            self._refuse("recipe", self.recipe, "a Recipe, such as syno.train.recipe('fast/short')")
        for name, least in (
            ("images", 2),
            ("resolution", 1),
            ("epochs", 1),
            ("context", 1),
            ("steps", 1),
            ("held_tokens", 2),
        ):
            value = getattr(self, name)
            if value is not None and not checks.is_whole(value, least):
                self._refuse(name, value, f"a whole number of at least {least}")
        if self.seconds is not None and not self.seconds > 0:
            self._refuse("seconds", self.seconds, "above 0")
        if not 0.0 < self.holdout < 1.0:
            self._refuse("holdout", self.holdout, "above 0 and below 1")
        self._check_task()

    def _check_task(self) -> None:
        images = ("images", "resolution", "epochs")
        text = ("context", "steps", "seconds", "held_tokens")
        foreign = {"images": text, "text": images, "custom": ("resolution", *text)}[self.task]
        for name in foreign:
            if getattr(self, name) is not None:
                expected = f"none: its recipe '{self.recipe.name}' is for {self.task}"
                self._refuse(name, getattr(self, name), expected)
        needed = {"images": images[1:], "text": ("context",), "custom": ("epochs",)}[self.task]
        for name in needed:
            if getattr(self, name) is None:
                self._refuse(
                    name, None, f"a whole number; recipe '{self.recipe.name}' is for {self.task}"
                )
        if self.task == "text" and (self.steps is None) == (self.seconds is None):
            raise UserError(
                f"fidelity '{self.name}' has steps = {self.steps} and seconds = {self.seconds}\n"
                "  expected: one of the two"
            )
        if self.task == "images" and self.batch < 2:
            raise UserError(
                f"fidelity '{self.name}' cannot have batch = {self.batch}\n"
                "  expected: a whole number of at least 2: one image has no batch statistics"
            )

    @property
    def length(self) -> str:
        """How long a training is in words: `2 epochs of 1,024 samples`."""
        if self.steps is not None:
            return counted(self.steps, "step")
        if self.epochs is None:
            return f"{self.seconds:g} s"
        few = "" if self.images is None else f" of {counted(self.images, 'sample')}"
        return counted(self.epochs, "epoch") + few

    @property
    def task(self) -> str:
        """`images`, `text` or `custom`."""
        return self.recipe.task

    @property
    def batch(self) -> int:
        """The batch size."""
        return self.recipe.batch

    @property
    def loaded_at(self) -> int | None:
        """Height and width in pixels of the loaded images; the input has `resolution`."""
        return self.recipe.augmented_at or self.resolution

    def changed(self, **changes: Any) -> Fidelity:
        """Return the fidelity with other fields, including those of its recipe such as `batch`."""
        own = {f.name for f in dataclasses.fields(self)}
        amount = {key: value for key, value in changes.items() if key in own}
        how = {key: value for key, value in changes.items() if key not in own}
        known = [f.name for f in dataclasses.fields(Recipe)]
        for key in how:
            if key not in known:
                raise UserError(f"a fidelity has no '{key}'{nearest(key, [*sorted(own), *known])}")
        if how:
            amount["recipe"] = dataclasses.replace(amount.get("recipe", self.recipe), **how)
        return dataclasses.replace(self, **amount)

    def name_with(self, changes: Mapping[str, float | str | None]) -> str:
        """Return the name of the fidelity with changes, such as `tiny-epochs2-bfloat16`."""
        words = (v if isinstance(v, str) else f"{key}{v:g}" for key, v in changes.items())
        return "-".join([self.name, *words])

    def to_json(self) -> JsonObject:
        """Return all fields, for storage and comparison."""
        return asdict(self)

    @staticmethod
    def from_json(fields: object) -> Fidelity:
        """Read the document of `to_json`, including one from before there were recipes.

        Raises:
            UserError: for an unknown field, and for a missing one.
        """
        content = checks.fields("a fidelity", fields)
        if "recipe" in content:
            content["recipe"] = Recipe.from_json(content["recipe"])
        else:
            former = {key: content.pop(key) for key in _FORMER if key in content}
            content["recipe"] = Recipe.from_json({"name": "stored", "version": 0, **former})
        return _made(content)

    def _refuse(self, name: str, value: object, expected: str) -> None:
        raise UserError(
            f"fidelity '{self.name}' cannot have {name} = {checks.shown(value)}\n"
            f"  expected: {expected}"
        )


def fidelity(name: str, recipe_name: str | None = None) -> Fidelity:
    """Return a named fidelity, or the first rung of a recipe file.

    Args:
        name: of the fidelity or the recipe.
        recipe_name: a recipe that replaces that of the fidelity.

    Raises:
        UserError: for an unknown name, with a list of the known names.
    """
    found = _named(name)
    if recipe_name is None or found.recipe.name == recipe_name:
        return found
    other = recipe(recipe_name)
    return found.changed(name=f"{found.name}-{other.name}", recipe=other)


def _named(name: str) -> Fidelity:
    for entry in FIDELITIES:
        if entry.name == name:
            return entry
    if name in recipe_names() or name.endswith(".toml"):
        return rungs(name)[0]
    known = [entry.name for entry in FIDELITIES]
    raise UserError(
        f"unknown fidelity '{name}'\n  expected: one of {', '.join(known)}{nearest(name, known)}"
    )


def rungs(recipe_name: str) -> tuple[Fidelity, ...]:
    """Return the fidelities of a recipe file.

    Raises:
        UserError: for a file without fidelities.
    """
    how, tables = read_recipe(recipe_name)
    if not tables:
        raise UserError(
            f"recipe '{recipe_name}' has no rung\n  expected: a table [[rung]] with its name, "
            "resolution and epochs, or context and steps; or a fidelity to use it with"
        )
    return tuple(_made({"name": how.name, **table, "recipe": how}) for table in tables)


def _made(content: dict[str, Any]) -> Fidelity:
    try:
        return Fidelity(**content)
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(f"cannot read a fidelity: {error}\n  got: {', '.join(content)}") from error


FIDELITIES: tuple[Fidelity, ...] = tuple(rung for name in recipe_names() for rung in rungs(name))
