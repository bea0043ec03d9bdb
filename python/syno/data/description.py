"""A data set as plain values."""

from __future__ import annotations

import numpy as np

from syno._util.json_types import JsonObject
from syno.data.dataset import DataSet
from syno.data.records import Records
from syno.data.text import TextData


def describe_images(data: DataSet) -> JsonObject:
    """Counts, sizes and statistics of images."""
    counts = np.bincount(data.train.labels, minlength=len(data.classes))
    return {
        "name": data.name,
        "kind": "images",
        "train_images": len(data.train),
        "test_images": len(data.test),
        "skipped": data.skipped,
        "classes": list(data.classes),
        "train_images_a_class": [int(counts.min()), int(counts.max())],
        "channels": data.channels,
        "size": data.size,
        "mean": [round(value, 4) for value in data.mean],
        "std": [round(value, 4) for value in data.std],
        "fingerprint": data.fingerprint,
    }


def describe_text(data: TextData) -> JsonObject:
    """Counts and the beginning of a text."""
    tokens = {
        "train": len(data.train_tokens),
        "held": len(data.validation_tokens),
        "test": len(data.test_tokens),
    }
    return {
        "name": data.name,
        "kind": "text",
        "tokenizer": data.tokenizer.name,
        "vocabulary": data.vocabulary,
        "documents": data.documents,
        "text_bytes": data.text_bytes,
        "tokens": tokens,
        "begins": data.tokenizer.decode(data.train_tokens[:60]),
        "fingerprint": data.fingerprint,
    }


def describe_records(records: Records) -> dict[str, object]:
    """Counts, and what is on disk."""
    return {
        "train_images": len(records.train),
        "test_images": len(records.test),
        "skipped": records.skipped,
        "classes": len(records.classes),
        "channels": records.channels,
        "bytes": sum(path.stat().st_size for path in records.folder.glob("shard-*.rec")),
        "fingerprint": records.fingerprint,
    }


def in_words(value: object) -> str:
    """A value of a description as text."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {part:,}" for name, part in value.items())
    if isinstance(value, list):
        text = ", ".join(map(str, value[:12]))
        return f"{text}, ... ({len(value)})" if len(value) > 12 else text
    return f"{value:,}" if isinstance(value, int) else str(value)
