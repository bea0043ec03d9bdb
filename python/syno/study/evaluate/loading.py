"""The data of a study: images or text, according to its fidelity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.data import KNOWN, DataSet, Records, TextData, is_text_data, load, load_text
from syno.data.custom import CustomData, CustomEvaluation
from syno.data.records import is_records
from syno.data.source import ARCHIVES, find_path

if TYPE_CHECKING:
    from syno.options import FidelityOptions
from syno.train import Fidelity

# A data set that is loaded by its name, and what a network may be trained on.
NamedData = DataSet | Records | TextData
Data = NamedData | CustomData | CustomEvaluation


# For a text without an official test split; only `syno report --final` reads it.
_TEST_SHARE = 0.1


def load_for(
    name: str,
    data_dir: str | None,
    fidelity: Fidelity,
    tokenizer: str = "bytes",
    *,
    progress: bool = True,
) -> NamedData:
    """Load the images or the text that a fidelity trains on.

    Args:
        name, data_dir: the data set, as in `syno.data.load`.
        fidelity: what the data is for.
        tokenizer: of text, as in `syno.data.load_text`.
        progress: whether to draw a progress bar.

    Raises:
        UserError: if the data is text and the fidelity is for images, or the reverse.
    """
    is_text = is_text_data(name, data_dir)
    if is_text != (fidelity.task == "text"):
        kind = "text" if is_text else "images"
        raise UserError(
            f"recipe '{fidelity.recipe.name}' trains on {fidelity.task}, and data set '{name}' is "
            f"{kind}\n  expected: a recipe for {kind}, such as "
            f"{'fast/text' if is_text else 'fast/short'}"
        )
    if is_text:
        return load_text(name, data_dir, tokenizer=tokenizer, test=_TEST_SHARE, progress=progress)
    if name not in KNOWN:
        path = find_path(name, data_dir, ARCHIVES, KNOWN)
        if is_records(path):
            return Records(path)
    return load(name, data_dir, size=fidelity.loaded_at, progress=progress)


def usual_fidelity(data: str, data_dir: str | None) -> str:
    """Return the name of the default fidelity of a search for a data set."""
    if data == "digits":
        return "digits"
    return "fast/text" if is_text_data(data, data_dir) else "tiny"


def fidelity_for(
    name: str | None,
    changes: Mapping[str, float | str | None],
    data: str,
    data_dir: str | None,
    recipe: str | None = None,
) -> Fidelity:
    """Return a fidelity with changes.

    Args:
        name: the name of the fidelity. Without it, the fidelity is that of the recipe, and without
            a recipe the default of the data set.
        changes: new values of fields of the fidelity. They become part of its name.
        data, data_dir: the data set.
        recipe: the name of a recipe that replaces that of the fidelity.

    Raises:
        UserError: for an unknown name, and for a change of a field that the fidelity does not have.
    """
    from syno.train import fidelity

    if name is None and recipe is None:
        name = usual_fidelity(data, data_dir)
    found = fidelity(name or recipe or "", recipe if name is not None else None)
    if not changes:
        return found
    own = found.name_with(changes)
    # The length of a training is a number of steps or of seconds, not both.
    if "steps" in changes and "seconds" not in changes:
        changes = {**changes, "seconds": None}
    elif "seconds" in changes and "steps" not in changes:
        changes = {**changes, "steps": None}
    return found.changed(name=own, **changes)


def chosen_fidelity(
    options: FidelityOptions,
    data: str,
    data_dir: str | None,
    recipe: str | None = None,
    seconds: float | None = None,
) -> Fidelity:
    """Return the fidelity that the options of a command select for a data set."""
    changes = {**options.changes} if seconds is None else {**options.changes, "seconds": seconds}
    return fidelity_for(options.fidelity, changes, data, data_dir, recipe)
