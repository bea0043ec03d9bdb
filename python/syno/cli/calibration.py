"""Options of commands with networks in INT8, whose ranges come from images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, option
from syno.cli import options

if TYPE_CHECKING:
    import torch

    from syno.codegen.export.formats import ExportSubject
    from syno.engines.compare import On
    from syno.inference import QuantizedNetwork
    from syno.train.fidelities import Fidelity


def _samples() -> int:
    words = "Number of training images that give the ranges of values in INT8."
    return option(words, 300, minimum=1, metavar="N")


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions(Options):
    """What ranges of values between layers are taken from."""

    section = "INT8"

    data: str | None = options.optional_data("--precision int8 and auto require it")
    data_dir: str | None = options.data_dir()
    samples: int = _samples()
    keep: tuple[str, ...] = option(
        "Module whose layers stay in float32; can be repeated.", (), metavar="NAME"
    )
    most_error: float | None = option(
        "What --precision auto may change in the results: the root of the mean square, as a share "
        "of that of the results.",
        None,
        metavar="SHARE",
        unset="0.05",
    )


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Options):
    """Data that networks in engines are calibrated on and scored by."""

    section = "Data"

    data: str | None = options.optional_data("ranges of INT8 from one random input, no accuracy")
    data_dir: str | None = options.data_dir()
    samples: int = _samples()
    images: int = option(
        "Number of images of the validation split that the accuracy is measured on.",
        2000,
        minimum=1,
        metavar="N",
    )


class Images:
    """Images of a data set: some of the training split for ranges, and some to score networks by.

    UserError for data that is not there, and for text.
    """

    def __init__(self, given: CalibrationOptions | ScoreOptions, name: str) -> None:
        from syno.data import load

        self._data = load(name, data_dir=given.data_dir)
        self._samples = given.samples

    @property
    def model_options(self) -> dict[str, int]:
        """What a model for the data is built with."""
        return {"classes": len(self._data.classes), "channels": self._data.channels}

    def samples(self, size: int, seed: int) -> Iterator[torch.Tensor]:
        """Batches of training images of this size in pixels."""
        from syno.train import training_images

        return training_images(self._data, self._fidelity(size), self._samples, seed=seed)

    def score(self, example: torch.Tensor, count: int) -> Callable[[On], float]:
        """Return a function that gives the accuracy of what takes inputs like the example.

        It is measured on so many images of the validation split.
        """
        import torch

        from syno.train.samples import validation_images

        size, batch = int(example.shape[-1]), len(example)
        images, labels = validation_images(self._data, self._fidelity(size), max(count, batch))
        whole = len(images) // batch * batch

        def accuracy(run: On) -> float:
            right = 0
            for begin in range(0, whole, batch):
                scores = run(images[begin : begin + batch])
                if not isinstance(scores, torch.Tensor) or scores.dim() != 2:
                    raise UserError(
                        "the accuracy is that of a network with one tensor of scores for an image\n"
                        "  what to do: omit --data"
                    )
                right += int((scores.argmax(1) == labels[begin : begin + batch]).sum())
            return right / whole

        return accuracy

    def _fidelity(self, size: int) -> Fidelity:
        from syno.train import fidelity

        return fidelity("small").changed(resolution=size, images=None)


def quantized(
    subject: ExportSubject, given: CalibrationOptions, precision: str, seed: int
) -> tuple[ExportSubject, QuantizedNetwork]:
    """Return the network of a subject in INT8 or auto as a subject, and the network itself.

    Raises:
        UserError: there are no data, they are not of the network's kind, or the network cannot be
            quantized.
    """
    from syno.inference import quantize

    if given.data is None:
        raise UserError(
            f"--precision {precision} takes the ranges of values from samples\n"
            "  what to do: add --data NAME, the data that the network was trained on"
        )
    shape = subject.inputs[0].shape
    if len(subject.inputs) != 1 or len(shape) != 4:
        raise UserError(
            f"--precision {precision} of the command line is for networks of images\n"
            "  what to do: use syno.quantize, which takes samples of any shape"
        )
    batches = Images(given, given.data).samples(int(shape[-1]), seed)
    more = {} if given.most_error is None else {"most_error": given.most_error}
    made = quantize(subject.module, batches, keep=given.keep, formats=precision, **more)
    return replace(subject, module=made, precision="int8"), made
