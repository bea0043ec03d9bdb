"""Image data sets as memory-mapped arrays: digits, CIFAR, and any image folder or archive of one.

Needs NumPy and Pillow (scikit-learn for ``digits``), never torch.
"""

from syno.data.dataset import DataSet, Split
from syno.data.loading import KNOWN, load
from syno.data.random import Stream

__all__ = ["KNOWN", "DataSet", "Split", "Stream", "load"]
