"""Features of operators: numbers from which a surrogate model predicts results.

features(operator)          all features by name
FEATURES                    what each of them is
FeatureTable                rows of many operators, each computed once
"""

from syno.features.features import FEATURES, GRAPH_FEATURES, MAP_FEATURES, features
from syno.features.table import FeatureTable

__all__ = ["FEATURES", "GRAPH_FEATURES", "MAP_FEATURES", "FeatureTable", "features"]
