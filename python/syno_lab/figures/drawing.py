"""A figure and its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A row of a CSV file.
Row = Mapping[str, object]


@dataclass(frozen=True)
class Drawing:
    """A figure, and the rows of its CSV file, which all have the same columns. `source` says where
    a row is from: `measured: FILE`, or `published: ...`."""

    figure: Figure
    rows: Sequence[Row]

    @property
    def published_only(self) -> bool:
        """Whether nothing in it is measured here."""
        return not any(str(row["source"]).startswith("measured") for row in self.rows)
