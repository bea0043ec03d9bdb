"""The features of many operators, each computed once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError
from syno.features.features import (
    FEATURES,
    MAP_FEATURES,
    features,
    graph_features,
    has_layers,
)
from syno.operators.operator import Operator


class FeatureTable:
    """Rows of features by semantic key.

    An operator that cannot be examined as a linear map has NaN for the features of the map, and
    `failures` says why.
    """

    def __init__(self) -> None:
        self._rows: dict[str, NDArray[np.float64]] = {}
        self.failures: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, operator: Operator) -> NDArray[np.float64]:
        """Return the features in the order of `FEATURES`."""
        key = operator.key
        if key not in self._rows:
            try:
                row = np.array(list(features(operator).values()))
            except UserError as error:
                self.failures[key] = str(error)
                row = np.full(len(FEATURES), np.nan)
                if has_layers(operator):
                    row[len(MAP_FEATURES) :] = list(graph_features(operator).values())
            self._rows[key] = row
        return self._rows[key]

    def matrix(self, operators: Iterable[Operator]) -> NDArray[np.float64]:
        """Return a row for each operator, [operators, features]."""
        rows = [self.row(operator) for operator in operators]
        return np.stack(rows) if rows else np.zeros((0, len(FEATURES)))
