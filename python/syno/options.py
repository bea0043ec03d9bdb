"""Options of searches and trainings: how networks are trained, timed, and kept apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from syno._util.options import Options, memory_size, option
from syno._util.threads import MOST_THREADS

if TYPE_CHECKING:
    from syno.study.fidelity.ladder import Ladder, Rung
    from syno.train import Fidelity


DEFAULT_STORE = "sqlite:///runs.db"
# How many operators a search trains, and how it chooses them, unless it is told.
EVALUATIONS = 20
METHOD = "uniform"
CALIBRATION_IMAGES = 256  # that quantization takes the ranges of numbers from


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """How networks are trained.

    Args:
        fidelity: how long and by which recipe, or the name of a fidelity. Default: `digits` for
            that data set, `fast/text` for a text, otherwise `tiny`.
        ladder: rungs in place of one fidelity, or the name or file of a ladder: each operator is
            trained at the lowest, and the best 1/`eta` of a rung are promoted to the next.
        eta: the best 1/`eta` of a rung are promoted. Default: that of the ladder.
        tokenizer: of a text, `bytes` or `byte-pair`.
        deadline_s: wall-clock limit of one training, in seconds. An isolated evaluation that takes
            twice as long and 30 s more is killed; without a limit, after 8 times what the baseline
            took and 30 s more.
        max_slowdown: an operator whose training step takes longer than so many of the baseline's is
            rejected before training; `math.inf` rejects none.
    """

    section: ClassVar[str] = "Training"
    fidelity: Fidelity | str | None = option("How networks are trained.", None, shown=False)
    ladder: Ladder | str | Sequence[Rung] | None = option(
        "Rungs in place of one fidelity: each operator is trained at the lowest rung, and the "
        "best of a rung are promoted to the next. fast/cifar, fast/digits, fast/steady, or a "
        ".toml file.",
        None,
        metavar="NAME",
    )
    eta: int | None = option(
        "The best 1/N of a rung are promoted.", None, metavar="N", unset="that of the ladder"
    )
    tokenizer: str = option("Of text.", "bytes", choices=("bytes", "byte-pair"))
    deadline_s: float | None = option(
        "Wall-clock limit of one training; an isolated evaluation is killed after twice that and "
        "30 s more.",
        None,
        minimum=0,
        above=True,
        metavar="SECONDS",
        unset="killed after 8 times what the baseline took and 30 s more",
    )
    max_slowdown: float = option(
        "Reject operators whose training step takes longer than so many of the original's.",
        4.0,
        minimum=0,
        above=True,
    )


@dataclass(frozen=True, kw_only=True)
class TimingOptions(Options):
    """How networks are timed: one sample, `warmup` runs, then `repeats` timed ones.

    Args:
        repeats: timed runs of a network.
        warmup: runs before those.
        threads: threads of timing, and of training.
    """

    section: ClassVar[str] = "Timing"
    repeats: int = option("Timed runs of a network.", 30, minimum=20)
    warmup: int = option("Runs before those.", 5, minimum=1)
    threads: int = option("Threads of training and timing.", 1, minimum=1, maximum=MOST_THREADS)


@dataclass(frozen=True, kw_only=True)
class IsolationOptions(Options):
    """Whether an evaluation has a process of its own, and what it may take.

    Args:
        isolate: each evaluation in a process of its own, so that an operator that crashes, hangs
            or runs out of memory is a failure with its reason and the search continues. Default:
            where it is possible, on Linux and for a network whose classes can be imported.
        memory_limit: bytes that an isolated evaluation may hold. Default: three quarters of the
            machine's memory.
        max_attempts: without isolation, an operator is given up after so many attempts that ended
            the process of the search. Default: 5. The end of the search never counts with
            isolation, where a crash of the evaluation is known, nor against the baseline.
    """

    section: ClassVar[str] = "Isolation"
    isolate: bool | None = option(
        "Each evaluation in a process of its own: what crashes, hangs or eats memory is a failure, "
        "and the search goes on.",
        None,
        unset="on where it is possible: Linux",
    )
    memory_limit: int | None = option(
        "What an isolated evaluation may hold, as 4G.",
        None,
        minimum=1,
        metavar="BYTES",
        parse=memory_size,
        unset="three quarters of the machine's",
    )
    max_attempts: int | None = option(
        "Without isolation, an operator is given up after N attempts that ended the process of "
        "the search. The end of the search never counts with isolation, nor against the baseline.",
        None,
        minimum=1,
        metavar="N",
        unset="5",
    )


@dataclass(frozen=True, kw_only=True)
class FidelityOptions(Options):
    """A fidelity by name, and what is changed in it."""

    section: ClassVar[str] = "Training"
    fidelity: str | None = option(
        "How networks are trained: digits, tiny, small, medium. Default: tiny, digits for that "
        "data set, or fast/text for a text.",
        None,
        metavar="NAME",
    )
    images: int | None = option("Changes its images.", None, minimum=1)
    resolution: int | None = option("Changes its resolution.", None, minimum=1)
    epochs: int | None = option("Changes its epochs.", None, minimum=1)
    steps: int | None = option("Changes its steps (text).", None, minimum=1)
    context: int | None = option("Changes its context (text).", None, minimum=1)
    batch: int | None = option("Changes its batch.", None, minimum=1)

    @property
    def changes(self) -> dict[str, int]:
        """The fields that are changed."""
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if k != "fidelity" and v is not None}


@dataclass(frozen=True, kw_only=True)
class QuantizationOptions(Options):
    """Whether and how each trained network is quantized to INT8, too."""

    section: ClassVar[str] = "Quantization"
    quantize: bool = option(
        "Also bring each trained network to INT8, and measure its accuracy and latency.", False
    )
    engine: str | None = option(
        "What of torch computes in INT8: fbgemm, x86, onednn, qnnpack.",
        None,
        unset="the first there is",
        metavar="NAME",
    )
    calibration_images: int = option(
        "Training images that --quantize takes the ranges of numbers from.",
        CALIBRATION_IMAGES,
        minimum=1,
    )
