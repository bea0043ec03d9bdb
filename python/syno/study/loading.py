"""The data of a study, as its fidelity trains on it."""

from __future__ import annotations

from syno._errors import UserError
from syno.data import KNOWN, DataSet, Records, TextData, is_text_data, load, load_text
from syno.data.records import is_records
from syno.data.source import ARCHIVES, find_path
from syno.train import Fidelity


def load_for(
    name: str,
    data_dir: str | None,
    fidelity: Fidelity,
    tokenizer: str = "bytes",
    *,
    progress: bool = True,
) -> DataSet | Records | TextData:
    """Images or text, as the fidelity trains on. UserError where the data is the other."""
    is_text = is_text_data(name, data_dir)
    if is_text != (fidelity.task == "text"):
        kind = "text" if is_text else "images"
        raise UserError(
            f"recipe '{fidelity.recipe.name}' trains on {fidelity.task}, and data set '{name}' is "
            f"{kind}\n  expected: a recipe for {kind}, such as "
            f"{'fast/text' if is_text else 'fast/short'}"
        )
    if is_text:
        return load_text(name, data_dir, tokenizer=tokenizer, progress=progress)
    if name not in KNOWN:
        path = find_path(name, data_dir, ARCHIVES, KNOWN)
        if is_records(path):
            return Records(path)
    return load(name, data_dir, size=fidelity.loaded_at, progress=progress)
