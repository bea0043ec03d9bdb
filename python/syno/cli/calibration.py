"""Options of the commands that write networks in INT8."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, option
from syno.cli import options

if TYPE_CHECKING:
    from syno.codegen.export.formats import ExportSubject
    from syno.inference import QuantizedNetwork


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions(Options):
    """What ranges of values between layers are taken from."""

    section = "INT8"

    data: str | None = options.optional_data("--precision int8 requires it")
    data_dir: str | None = options.data_dir()
    samples: int = option(
        "Number of training images that give the ranges of values.", 300, minimum=1, metavar="N"
    )
    keep: tuple[str, ...] = option(
        "Module whose layers stay in float32; can be repeated.", (), metavar="NAME"
    )


def quantized(
    subject: ExportSubject, given: CalibrationOptions, seed: int
) -> tuple[ExportSubject, QuantizedNetwork]:
    """Return the network of a subject in INT8 as a subject, and the network itself.

    Raises:
        UserError: there are no data, they are not of the network's kind, or the network cannot be
            quantized.
    """
    from syno.data import load
    from syno.inference import quantize
    from syno.train import fidelity, training_images

    if given.data is None:
        raise UserError(
            "--precision int8 takes the ranges of values from samples\n"
            "  what to do: add --data NAME, the data that the network was trained on"
        )
    shape = subject.inputs[0].shape
    if len(subject.inputs) != 1 or len(shape) != 4:
        raise UserError(
            "--precision int8 of the command line is for networks of images\n"
            "  what to do: use syno.quantize, which takes samples of any shape"
        )
    images = load(given.data, data_dir=given.data_dir)
    how = fidelity("small").changed(resolution=int(shape[-1]), images=None)
    batches = training_images(images, how, given.samples, seed=seed)  # type: ignore[arg-type]
    made = quantize(subject.module, batches, keep=given.keep)
    return replace(subject, module=made, precision="int8"), made
