"""Data sets as memory-mapped arrays: images (digits, CIFAR, any image folder or archive of one) and
text.

Needs NumPy and Pillow (scikit-learn for ``digits``, tokenizers for byte pairs), never torch.
"""

from syno.data.dataset import DataSet, Split
from syno.data.loading import KNOWN, load
from syno.data.random import Stream
from syno.data.records import Records
from syno.data.text import TextBatches, TextData, is_text_data, load_text

__all__ = [
    "KNOWN",
    "DataSet",
    "Records",
    "Split",
    "Stream",
    "TextBatches",
    "TextData",
    "is_text_data",
    "load",
    "load_text",
]
