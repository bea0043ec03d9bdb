"""How trained networks are quantized to INT8."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantization:
    """The engine of torch that computes in INT8, and on how many training images the ranges are
    calibrated, drawn by `seed`."""

    engine: str
    images: int = 256
    seed: int = 0

    @classmethod
    def of(cls, engine: str | None, images: int) -> Quantization:
        """The default engine for None. UserError where torch does not have the engine here."""
        from syno.quantize import checked_engine

        return cls(checked_engine(engine), images)
