"""How trained networks are quantized to INT8."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno.options import CALIBRATION_IMAGES, QuantizationOptions
from syno.store.documents import Details
from syno.store.records import INT8

if TYPE_CHECKING:
    from syno.inference import QuantizedNetwork

# The engine that runs networks that `syno.quantize` returned, and the one of the original network
# that they are compared with.
INTEGERS, FLOATS = "syno-cpp-int8", "syno-cpp"


@dataclass(frozen=True)
class Quantization:
    """How networks are quantized.

    engine: that computes in INT8; results of earlier versions name one of torch.
    images: the number of training images that calibrate the ranges; `seed` selects them.
    """

    engine: str = INTEGERS
    images: int = CALIBRATION_IMAGES
    seed: int = 0

    @classmethod
    def chosen(cls, options: QuantizationOptions) -> Quantization | None:
        """Return how the options quantize networks; None if they do not."""
        return cls(images=options.calibration_images) if options.quantize else None


def details_of(made: QuantizedNetwork) -> Details:
    """What the store keeps of a quantized network: how much of it multiplies integers."""
    return {
        "calibration_images": made.images,
        "network_macs": sum(row.macs for row in made.rows),
        "int8_macs": sum(row.macs for row in made.rows if row.format == INT8),
        "float_parts": dict(Counter(row.kind for row in made.rows if row.format != INT8)),
    }
