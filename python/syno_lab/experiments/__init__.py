"""The paper's experiments on synthesis, with its figures beside ours."""

from syno_lab.experiments.ablation import Ablation, Guided, distance_ablation
from syno_lab.experiments.canonical import CanonicalRate, SizeRow, canonical_rate

__all__ = [
    "Ablation",
    "CanonicalRate",
    "Guided",
    "SizeRow",
    "canonical_rate",
    "distance_ablation",
]
