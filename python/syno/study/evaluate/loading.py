"""The data of a study: images or text, as its fidelity trains on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.data import KNOWN, DataSet, Records, TextData, is_text_data, load, load_text
from syno.data.records import is_records
from syno.data.source import ARCHIVES, find_path

if TYPE_CHECKING:
    from syno.options import FidelityOptions
from syno.train import Fidelity

Data = DataSet | Records | TextData


# Of a text without an official test part, for `syno report --final` alone.
_TEST_SHARE = 0.1


def load_for(
    name: str,
    data_dir: str | None,
    fidelity: Fidelity,
    tokenizer: str = "bytes",
    *,
    progress: bool = True,
) -> Data:
    """Images or text, as the fidelity trains on. UserError where the data is the other.

    tokenizer: of text, as in `syno.data.load_text`.
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
    """The name of the fidelity that data is usually trained with in a search."""
    if data == "digits":
        return "digits"
    return "fast/text" if is_text_data(data, data_dir) else "tiny"


def fidelity_for(
    name: str | None,
    changes: Mapping[str, float | None],
    data: str,
    data_dir: str | None,
    recipe: str | None = None,
) -> Fidelity:
    """A fidelity's name, else the recipe's own, else what the data is usually trained with; with
    what `changes` put in its place, which its name then says.

    UserError for an unknown name, and for a change that it does not have.
    """
    from syno.train import fidelity

    if name is None and recipe is None:
        name = usual_fidelity(data, data_dir)
    found = fidelity(name or recipe or "", recipe if name is not None else None)
    if not changes:
        return found
    own = "-".join([found.name, *(f"{key}{value:g}" for key, value in changes.items())])
    # A training lasts so many steps or so many seconds, not both.
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
    """The fidelity that options choose for some data."""
    changes = {**options.changes} if seconds is None else {**options.changes, "seconds": seconds}
    return fidelity_for(options.fidelity, changes, data, data_dir, recipe)
