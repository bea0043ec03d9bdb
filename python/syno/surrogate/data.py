"""What a surrogate model learned from: operators' features and results, as a document.

Models are not stored, but fitted again: a fit takes less than a second, and its document can be
read by people and by other versions of the libraries.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from syno._util import checks
from syno._util.arguments import checked, path
from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.features import FEATURES
from syno.runs.files import read_json, write_text

FORMAT = "syno surrogate"
# Rises with every change of the features.
VERSION = 1
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class SurrogateData:
    """Operators of one study.

    source: where they are from, in words. rows: features in the order of `FEATURES`, [operators,
    features]; NaN where one is not known. values: the results, greater is better, of which only the
    order counts.
    """

    source: str
    rows: NDArray[np.float64]
    values: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.values)

    def to_json(self) -> JsonObject:
        """Return the document; `from_json` reads it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "features": list(FEATURES),
            "rows": [
                [float(f"{x:.6g}") if math.isfinite(x) else None for x in r] for r in self.rows
            ],
            "values": [float(value) for value in self.values],
        }

    @classmethod
    def from_json(cls, content: object) -> SurrogateData:
        """Read a document of `to_json`.

        Raises:
            UserError: for another format, another version, other features, and damaged content.
        """
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise UserError(
                "this is no data of a surrogate model\n"
                f'  expected: a document with "format": "{FORMAT}"\n'
                "  what to do: name a study as STORE:STUDY, or a file of `SurrogateData.save`"
            )
        version, names = content.get("version"), content.get("features")
        if version != VERSION or names != list(FEATURES):
            raise UserError(
                "the data of the surrogate model was written by another version of Syno\n"
                f"  expected: version {VERSION} with {len(FEATURES)} features      "
                f"got: version {checks.shown(version)} with "
                f"{len(names) if isinstance(names, list) else 'no'} features\n"
                "  what to do: start from the study itself, as STORE:STUDY, whose features are "
                "computed again"
            )
        try:
            rows = np.array(
                [[math.nan if x is None else float(x) for x in row] for row in content["rows"]]
            ).reshape(-1, len(FEATURES))
            values = tuple(float(value) for value in content["values"])
            found = cls(str(content["source"]), rows, values)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the data of the surrogate model is damaged: {error}") from None
        if len(rows) != len(values) or not all(map(math.isfinite, values)):
            raise UserError(
                f"the data of the surrogate model is damaged: {len(rows)} rows of features, "
                f"{sum(map(math.isfinite, values))} finite results"
            )
        return found

    @checked(path=path)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document to a file."""
        target = Path(path)
        with checks.from_file("cannot write the data of a surrogate model", target):
            write_text(target, json.dumps(self.to_json()) + "\n")

    @classmethod
    @checked(path=path)
    def load(cls, path: str | os.PathLike[str]) -> SurrogateData:
        """Read a file that `save` wrote.

        Raises:
            UserError: as `from_json` does, and where the file cannot be read.
        """
        return cls.from_json(read_json(Path(path), "the data of a surrogate model", _MOST_BYTES))
