"""How trained networks are quantized to INT8."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.errors import UserError
from syno.options import CALIBRATION_IMAGES, QuantizationOptions


@dataclass(frozen=True)
class Quantization:
    """The engine of torch that computes in INT8, and on how many training images the ranges are
    calibrated, drawn by `seed`."""

    engine: str
    images: int = CALIBRATION_IMAGES
    seed: int = 0

    @classmethod
    def chosen(cls, options: QuantizationOptions) -> Quantization | None:
        """How networks are quantized; None where they are not."""
        if options.quantize:
            return cls.of(options.engine, options.calibration_images)
        if options.engine is not None:
            raise UserError("--engine has no effect without --quantize\n  expected: --quantize")
        return None

    @classmethod
    def of(cls, engine: str | None, images: int) -> Quantization:
        """The default engine for None. UserError where torch does not have the engine here."""
        from syno.quantize import checked_engine

        return cls(checked_engine(engine), images)
