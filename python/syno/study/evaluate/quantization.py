"""How trained networks are quantized to INT8."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.errors import UserError
from syno.options import CALIBRATION_IMAGES, QuantizationOptions


@dataclass(frozen=True)
class Quantization:
    """How networks are quantized.

    engine: the engine of torch that computes in INT8.
    images: the number of training images that calibrate the ranges; `seed` selects them.
    """

    engine: str
    images: int = CALIBRATION_IMAGES
    seed: int = 0

    @classmethod
    def chosen(cls, options: QuantizationOptions) -> Quantization | None:
        """Return how the options quantize networks; None if they do not."""
        if options.quantize:
            return cls.of(options.engine, options.calibration_images)
        if options.engine is not None:
            raise UserError("--engine has no effect without --quantize\n  expected: --quantize")
        return None

    @classmethod
    def of(cls, engine: str | None, images: int) -> Quantization:
        """Make a Quantization; an engine of None is the default engine.

        Raises:
            UserError: if torch does not support the engine on this machine.
        """
        from syno.torch_int8 import checked_engine

        return cls(checked_engine(engine), images)
