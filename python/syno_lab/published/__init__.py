"""What the paper, its artifact and alphaNAS publish, as data with their sources and conditions.

operators.csv: the operators of the paper's artifact: accuracies in percent (an `imagenet_top1` of 0
    was not recorded), MACs, parameters, and latencies of the network in ms at batch size 1.
networks.csv: the original networks, from the same artifact. Empty cells are not published.
    `least_cifar100_top1` is the accuracy from which an operator loses at most one point on
    CIFAR-100; of ResNet-34 it is inferred from the means that the paper states for its Figure 5,
    and without one every published operator of the network counts.
statements.csv: single figures with the condition under which they hold. Those of alphaNAS (Jin,
    Phothilimthana, Roy: "Neural Architecture Search using Property Guided Synthesis", OOPSLA 2022)
    are as the paper quotes them.

Times of the artifact's TVM kernels are not comparable with anything: the bound test of every window
in the generated code compares with the window and not with the map, so that most of the work is
skipped.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

NOT_COMPARABLE = "published, not comparable"
_UNKNOWN = ("", "-", "0.00")


@dataclass(frozen=True)
class Platform:
    """A device and a compiler of the artifact's latencies; `column` of the files."""

    column: str
    device: str
    compiler: str

    @property
    def comparable(self) -> bool:
        """Whether its kernels do all of their work."""
        return self.compiler != "TVM"

    @property
    def label(self) -> str:
        """Device and compiler in words."""
        return f"{self.device}, {self.compiler}"


PLATFORMS = tuple(
    Platform(f"ms_{column}_{compiler.lower()}", device, compiler)
    for column, device in (
        ("arm_cpu", "Arm CPU"),
        ("mobile_gpu", "mobile GPU"),
        ("a100", "A100"),
    )
    for compiler in ("TVM", "Inductor")
)


@dataclass(frozen=True)
class PublishedNetwork:
    """A network of the artifact with an operator in its slots, or the original one.

    operator: its name there, empty for the original. cifar100, imagenet: top-1 accuracy in percent;
    None where it is not published. least_cifar100: of an original, see the head of the module.
    gmacs, mparams: of the network. milliseconds: by the column of a platform, where published.
    """

    model: str
    operator: str
    cifar100: float | None
    imagenet: float | None
    least_cifar100: float | None
    gmacs: float | None
    mparams: float | None
    milliseconds: dict[str, float]


@dataclass(frozen=True)
class Statement:
    """A single published figure: what it is of, its name, value and unit, when it holds, and where
    it stands."""

    subject: str
    what: str
    value: float
    unit: str
    condition: str
    source: str


@cache
def networks() -> tuple[PublishedNetwork, ...]:
    """The original networks."""
    return tuple(map(_network, _rows("networks.csv")))


@cache
def operators() -> tuple[PublishedNetwork, ...]:
    """The networks with operators."""
    return tuple(map(_network, _rows("operators.csv")))


@cache
def statements() -> tuple[Statement, ...]:
    """The single figures."""
    return tuple(
        Statement(**{**row, "value": float(row["value"])})  # type: ignore[arg-type]
        for row in _rows("statements.csv")
    )


def statement(subject: str, what: str) -> Statement:
    """The figure of that name. KeyError where there is none."""
    for each in statements():
        if (each.subject, each.what) == (subject, what):
            return each
    raise KeyError(f"{subject}: {what}")


@dataclass(frozen=True)
class Fastest:
    """The fastest published operator of a model on a platform that loses at most one point.

    speedup: over the original network; above 1 is faster.
    """

    model: str
    platform: Platform
    operator: str
    cifar100: float | None
    milliseconds: float
    original_ms: float

    @property
    def speedup(self) -> float:
        """How many times as fast as the original."""
        return self.original_ms / self.milliseconds


def fastest(platform: Platform) -> list[Fastest]:
    """The bars of the paper's Figure 5 for a platform, a model each."""
    found = []
    for original in networks():
        best = min(
            (
                each
                for each in operators()
                if each.model == original.model
                and platform.column in each.milliseconds
                and (each.cifar100 or 0.0) >= (original.least_cifar100 or 0.0)
            ),
            key=lambda each: each.milliseconds[platform.column],
        )
        found.append(
            Fastest(
                original.model,
                platform,
                best.operator,
                best.cifar100,
                best.milliseconds[platform.column],
                original.milliseconds[platform.column],
            )
        )
    return found


def _network(row: dict[str, str]) -> PublishedNetwork:
    known = {name: float(cell) for name, cell in row.items() if _is_number(name, cell)}
    return PublishedNetwork(
        model=row["model"],
        operator=row.get("operator", ""),
        cifar100=known.get("cifar100_top1"),
        imagenet=known.get("imagenet_top1"),
        least_cifar100=known.get("least_cifar100_top1"),
        gmacs=known.get("gmacs"),
        mparams=known.get("mparams"),
        milliseconds={p.column: known[p.column] for p in PLATFORMS if p.column in known},
    )


def _is_number(name: str, cell: str) -> bool:
    texts = ("model", "operator", "primitives_output_to_input", "weights")
    return name not in texts and cell not in _UNKNOWN


def _rows(name: str) -> list[dict[str, str]]:
    text = (files(__name__) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
