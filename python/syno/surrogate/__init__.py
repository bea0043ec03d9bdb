"""Surrogate models: what results operators will have, predicted from their features."""

from syno.surrogate.data import SurrogateData
from syno.surrogate.models import MODELS, Prediction, SurrogateModel, fit_model, select_model
from syno.surrogate.targets import normal_scores

__all__ = [
    "MODELS",
    "Prediction",
    "SurrogateData",
    "SurrogateModel",
    "fit_model",
    "normal_scores",
    "select_model",
]
