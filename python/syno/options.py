"""Options that searches, trainings and adaptations share, in groups, each declared once.

Signatures, documentation, the command line and stored documents follow from the fields:
`syno._util.declaration` and `syno.cli.options`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from syno._util.declaration import documented
from syno._util.options import Options, Stored, disk_size, memory_size, option
from syno._util.threads import MOST_THREADS

if TYPE_CHECKING:
    from syno.study.fidelity.ladder import Ladder, Rung
    from syno.train import Fidelity


KERNELS = ("eager", "compiled")
# Bytes of trained weights that a study keeps.
WEIGHTS_LIMIT = 1 << 30
# The attempts after which an operator is given up that ends the process of the search.
MAX_ATTEMPTS = 5
_ALWAYS = Stored(always=True)
# What trains and runs networks on a CPU where the options leave it open and there is a compiler.
DEFAULT_ENGINE = "compiled"
CALIBRATION_IMAGES = 256  # from which quantization determines the ranges of values


@documented
@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options):
    """How networks are trained."""

    section: ClassVar[str] = "Training"
    fidelity: Fidelity | str | None = option(
        "The fidelity of the training, or its name.",
        None,
        unset="`digits` for that data set, `fast/text` for text, otherwise `tiny`",
        shown=False,
    )
    ladder: Ladder | str | Sequence[Rung] | None = option(
        "Rungs of successive halving, instead of a fidelity: each operator is trained at the "
        "lowest rung, and the best of a rung are promoted to the next. fast/cifar, fast/digits, "
        "fast/steady, or a .toml file.",
        None,
        metavar="NAME",
    )
    eta: int | None = option(
        "Promote the best 1/N of a rung.", None, metavar="N", unset="that of the ladder"
    )
    tokenizer: str = option("Tokenizer of text.", "bytes", choices=("bytes", "byte-pair"))
    deadline_s: float | None = option(
        "Wall-clock limit of one training; an isolated evaluation is killed after twice this time "
        "plus 30 s.",
        None,
        minimum=0,
        above=True,
        metavar="SECONDS",
        unset="killed after 8 times the time of the baseline plus 30 s",
        stored=_ALWAYS,
    )
    max_slowdown: float = option(
        "Reject operators whose training step takes more than this many times as long as that of "
        "the baseline.",
        4.0,
        more="`math.inf` rejects none.",
        minimum=0,
        above=True,
        stored=Stored(always=True, absent=math.inf),
    )
    kernels: str | None = option(
        "What computes operators while they are trained on a CPU: PyTorch, or compiled C++.",
        None,
        more="In float32 or bfloat16, these are the `eager` modules of PyTorch or `compiled` C++ "
        "with its gradients; anything else is computed by the eager modules.",
        choices=KERNELS,
        unset="compiled if there is a C++ compiler",
        stored=Stored(absent="eager"),
    )
    weights_limit: int = option(
        "Disk space for the trained weights of the networks on the Pareto front, such as 200M; 0 "
        "keeps none.",
        WEIGHTS_LIMIT,
        more="In Python, a number of bytes. `syno.export_network` makes networks of the weights of "
        "the baseline and of these operators.",
        minimum=0,
        metavar="BYTES",
        parse=disk_size,
        stored=Stored(),
    )


@documented
@dataclass(frozen=True, kw_only=True)
class TimingOptions(Options):
    """How the latency of a network is measured: on one sample, after `warmup` runs."""

    section: ClassVar[str] = "Timing"
    repeats: int = option("Number of timed runs of a network.", 30, minimum=20, stored=_ALWAYS)
    warmup: int = option("Number of runs before the timed runs.", 5, minimum=1, stored=_ALWAYS)
    threads: int = option(
        "Number of threads of training and timing.",
        1,
        minimum=1,
        maximum=MOST_THREADS,
        stored=_ALWAYS,
    )
    latency: str | None = option(
        "Engine that runs the networks whose latency is measured.",
        None,
        more="It runs the original network, too: `compiled` (`syno.compile`), `eager` PyTorch, or "
        "`inductor` (`torch.compile` with constant weights). With `predicted`, no latency is "
        "measured, and the search uses predictions (docs/tuning.md). Networks that are trained "
        "on a GPU are measured in `eager` PyTorch by default.",
        choices=("compiled", "eager", "inductor", "predicted"),
        unset="compiled if there is a C++ compiler",
        stored=Stored(always=True, absent="eager"),
    )
    predictor: str | None = option(
        "With --latency predicted: the predictor, a file of `syno bench latency --predictor`.",
        None,
        more="`LatencyPredictor.save` writes such a file.",
        metavar="FILE",
        unset="learns from the store alone",
        stored=Stored(),
    )


@documented
@dataclass(frozen=True, kw_only=True)
class IsolationOptions(Options):
    """Whether each evaluation runs in a separate process, and the limits of this process."""

    section: ClassVar[str] = "Isolation"
    isolate: bool | None = option(
        "Run each evaluation in a separate process: an operator that crashes, hangs or exceeds the "
        "memory fails, and the search continues.",
        None,
        more="It is possible for a network whose classes can be imported.",
        unset="on if possible (Linux)",
        stored=_ALWAYS,
    )
    memory_limit: int | None = option(
        "Memory limit of an isolated evaluation, such as 4G.",
        None,
        more="In Python, a number of bytes.",
        minimum=1,
        metavar="BYTES",
        parse=memory_size,
        unset="three quarters of the machine",
        stored=_ALWAYS,
    )
    max_attempts: int | None = option(
        "Without isolation, abandon an operator after N attempts that ended the process of the "
        "search.",
        None,
        more="Attempts with isolation do not count, because a crash of the evaluation is "
        "recognized, and neither do those of the baseline.",
        minimum=1,
        metavar="N",
        unset="5",
        stored=Stored(always=True, absent=MAX_ATTEMPTS),
    )


@documented
@dataclass(frozen=True, kw_only=True)
class RayOptions(Options):
    """Workers on a Ray cluster, which Ray places on its nodes (docs/workers.md)."""

    section: ClassVar[str] = "Workers on a Ray cluster"
    ray: str | None = option(
        "Start the workers on a Ray cluster: auto, or HOST:PORT; --jobs is their number.",
        None,
        more="`auto` is the cluster that this machine belongs to. By default, there are as many "
        "workers as the cluster has room for.",
        metavar="ADDRESS",
        unset="no cluster",
    )
    cores_per_worker: int = option(
        "Number of cores of each worker.",
        1,
        more="It has as many threads.",
        minimum=1,
        maximum=MOST_THREADS,
        metavar="N",
    )
    gpus_per_worker: float = option(
        "GPUs of each worker: a share of one, such as 0.5, or a whole number.",
        0.0,
        more="Without GPUs, networks are trained on the CPU.",
        minimum=0,
        metavar="X",
    )
    worker_tags: tuple[str, ...] = option(
        "What the workers offer (`syno worker --tags`), which is also the custom resource of the "
        "nodes that they run on, if there is one of this name; can be repeated.",
        (),
        metavar="TAG",
    )

    def __post_init__(self) -> None:
        """Refuse what has no effect without a cluster."""
        super().__post_init__()
        if self.ray is None:
            why = "only workers on a Ray cluster have it\n  what to do: pass ray (--ray), too"
            self.refuse(why, "cores_per_worker", "gpus_per_worker", "worker_tags")


@documented
@dataclass(frozen=True, kw_only=True)
class AdaptOptions(Options):
    """How operators for the layers of a trained network are chosen (`syno.adapt`)."""

    section: ClassVar[str] = "Adaptation"
    zoo: bool = option(
        "Take the operators of the zoo as candidates.",
        True,
        more="They have several sizes of their coefficients.",
    )
    samples: int = option(
        "Number of operators to sample of the default space of the network.", 40, minimum=0
    )
    mutations: int = option(
        "Number of operators to try that are one move away from the best candidates.", 60, minimum=0
    )
    keep: int = option("Number of candidates of a slot to fit and to score.", 8, minimum=1)
    fit_images: int = option(
        "Number of training samples to fit operators to.",
        512,
        more="Of text, 16 tokens are a sample.",
        minimum=8,
    )
    activation_mib: int = option(
        "Largest memory of the activations that are kept for the fits, in MiB.",
        2048,
        more="What needs more streams, one slot at a time.",
        minimum=1,
    )
    score_images: int = option(
        "Number of validation samples to compare a network with the original on.",
        512,
        more="One slot is replaced then; the best candidates are compared on four times as many.",
        minimum=8,
    )
    score: str = option(
        "What a candidate costs: the error of its fit, the distance of the network's outputs, or "
        "both.",
        "both",
        choices=("fit", "distance", "both"),
    )
    pairs: bool = option("Measure how slots depend on each other.", True)
    widths: bool = option(
        "Give a network fewer channels where its outputs stay nearer than with operators.", True
    )
    blocks: bool = option(
        "Leave out whole blocks where that makes a network nearest to the original.", True
    )
    refit: bool = option("Fit the operators of a chosen network again, behind each other.", True)
    kernels: str | None = option(
        "What computes operators during the fine-tuning: PyTorch, or compiled C++.",
        None,
        choices=KERNELS,
        unset="compiled if there is a C++ compiler",
    )
    distill_features: bool = option("Match the outputs of the slots, too.", False)
    engine: str | None = option(
        "Inference engine of the latencies, as in `syno bench network`.",
        None,
        more="It also decides the number format of the networks: `syno-cpp-int8`, `syno-cpp-auto`.",
        metavar="NAME",
        unset="syno-cpp, or syno for a network that cannot be written as such a library",
    )
    threads: int = option("Number of threads.", 1, minimum=1, maximum=MOST_THREADS)
    rounds: int = option("Number of timed runs of a network.", 60, minimum=20)
    kernel_rounds: int = option("Number of timed runs of an operator in a slot.", 40, minimum=20)
    seeds: int = option("Number of seeds of the fine-tuning.", 1, minimum=1)


@dataclass(frozen=True, kw_only=True)
class FidelityOptions(Options):
    """A fidelity by name, and changes of its fields."""

    section: ClassVar[str] = "Training"
    fidelity: str | None = option(
        "How much networks are trained: digits, tiny, small, medium, ...",
        None,
        metavar="NAME",
        unset="tiny; digits for that data set; fast/text for text",
    )
    images: int | None = option(
        "Number of training images.", None, minimum=1, unset="that of the fidelity"
    )
    resolution: int | None = option(
        "Height and width of the images in pixels.", None, minimum=1, unset="that of the fidelity"
    )
    epochs: int | None = option("Number of epochs.", None, minimum=1, unset="that of the fidelity")
    steps: int | None = option(
        "Number of training steps (text).", None, minimum=1, unset="that of the fidelity"
    )
    context: int | None = option(
        "Context length in tokens (text).", None, minimum=1, unset="that of the fidelity"
    )
    batch: int | None = option("Batch size.", None, minimum=1, unset="that of the fidelity")
    precision: str | None = option(
        "Precision of the forward and backward pass: float32, bfloat16 or float16.",
        None,
        metavar="NAME",
        unset="that of the fidelity",
    )

    @property
    def changes(self) -> dict[str, int | str]:
        """The fields of the fidelity to change, with their values."""
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if k != "fidelity" and v is not None}


@dataclass(frozen=True, kw_only=True)
class QuantizationOptions(Options):
    """Whether and how each trained network is also quantized to INT8."""

    section: ClassVar[str] = "Quantization"
    quantize: bool = option(
        "Also quantize each trained network to INT8, and measure its accuracy and latency.",
        False,
        more="It is quantized by `syno.quantize`, runs as a C++ library, and is compared with the "
        "original network as such a library in float32.",
    )
    calibration_images: int = option(
        "Number of training images for the calibration of --quantize.",
        CALIBRATION_IMAGES,
        minimum=1,
    )
