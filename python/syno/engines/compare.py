"""Times of whole networks in several inference engines, measured in turns in one run."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from syno._util import checks
from syno._util.errors import UserError, first_line
from syno._util.inputs import Inputs, arguments, shown
from syno._util.network_copy import copy_network
from syno._util.tensors import check_network, dense, described
from syno._util.threads import check_threads
from syno._util.torch_threads import torch_threads
from syno.engines import engine as engines
from syno.engines.engine import FLOAT32, Engine, Outputs, Prepared
from syno.measure.timing import (
    PAUSE,
    Controls,
    Timing,
    control,
    interleaved,
    speedup,
    stream,
)

# The largest difference from the eager network that a float32 engine may have, relative to the
# largest output.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class NetworkTime:
    """A network in an inference engine.

    network: its name; engine: the name of the engine; precision: its number format; own: whether
        the engine is part of Syno.
    best_ms, median_ms: best time and median; low_ms, high_ms: first and third quartile.
    error: largest difference from the output of the same network in eager PyTorch, relative to the
        largest output there.
    over_eager, over_rival, over_best: how many times as fast it is as the first network in eager
        PyTorch, in the fastest float32 engine that is not part of Syno, and in the fastest float32
        engine of all; medians of the ratios of each round.
    outside: the share of a call's time that is not spent in kernels of layers, the median of calls
        that measure both; None for engines that do not know it.
    accuracy: what `score` gave for the network in the engine; None without it.
    """

    network: str
    engine: str
    precision: str
    own: bool
    best_ms: float
    median_ms: float
    low_ms: float
    high_ms: float
    error: float
    over_eager: float
    over_rival: float
    outside: float | None = None
    over_best: float | None = None
    accuracy: float | None = None


# Runs a network in an engine on arguments of the example's shapes.
On = Callable[..., Outputs]


@dataclass
class EngineComparison:
    """Times of networks in engines.

    rival, best: the names of the fastest float32 engine that is not part of Syno, and of the
        fastest float32 engine of all, for the first network.
    failures: why an engine could not run a network, by (network, engine).
    controls: times of fixed computations, which vary if other processes use the machine; None
        before the measurement.
    """

    threads: int
    rounds: int
    times: list[NetworkTime] = field(default_factory=list)
    rival: str = ""
    best: str = ""
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    controls: Controls | None = None

    @property
    def noisy(self) -> bool:
        """Whether other processes used the machine."""
        return self.controls is not None and self.controls.noisy

    @property
    def missing(self) -> tuple[str, ...]:
        """Float32 engines of others that the first network was not measured in."""
        first = next((each.network for each in self.times), None)
        return engines.missing_rivals(each.engine for each in self.times if each.network == first)

    def to_json(self) -> dict[str, object]:
        """Everything that was measured, as plain values."""
        return {
            "times": [dataclasses.asdict(time) for time in self.times],
            "rival": self.rival,
            "best": self.best,
            "failures": [
                {"network": network, "engine": engine, "reason": reason}
                for (network, engine), reason in self.failures.items()
            ],
            "threads": self.threads,
            "rounds": self.rounds,
            "missing": list(self.missing),
            **_described(self.controls),
            "noisy": self.noisy,
        }


def _described(controls: Controls | None) -> dict[str, object]:
    if controls is None:
        return {}
    return {
        "control": dataclasses.asdict(controls.product),
        "stream": dataclasses.asdict(controls.stream) | {"gb_s": controls.stream_gb_s},
    }


def compare_engines(
    networks: Mapping[str, nn.Module],
    example: Inputs,
    names: Sequence[str | Engine] = engines.DEFAULT,
    *,
    threads: int = 1,
    rounds: int = 30,
    progress: Callable[[int, int, str], None] = lambda *_: None,
    score: Callable[[On], float] | None = None,
) -> EngineComparison:
    """Measure networks in inference engines.

    All pairs of a network and an engine run in turns, so that the ratios of one round hold on a
    machine whose speed varies. The output of each pair is compared with the network in eager
    PyTorch before anything is measured.

    Args:
        networks: networks by name; the first one is the original, with which others are compared.
        example: the input of all networks, with the batch as first dimension; a tuple for several.
        names: names of engines, or engines; `eager` is always measured.
        threads: number of threads.
        rounds: number of measurements of each pair, at least 2.
        progress: called with (completed steps, all steps, description).
        score: gives the accuracy of a network from a function that runs it on arguments of the
            example's shapes; for engines that have one.

    Raises:
        UserError: an engine is unknown or not available, no network is given, or a float32 engine
            computes something else than eager PyTorch.
    """
    check_threads(threads)
    if not isinstance(networks, Mapping) or not networks:
        raise UserError(
            "there is no network to measure\n  expected: a dict with at least one network"
            f"      got: {described(networks)}"
        )
    for given in arguments(example):
        dense("'example'", given)
    rounds = checks.whole("'rounds'", rounds, least=2)
    chosen = [
        engines.get(each) if isinstance(each, str) else each
        for each in ("eager", *checks.listed("names", names, "engines"))
    ]
    if odd := [each for each in chosen if not hasattr(each, "prepare")]:
        raise UserError(
            f"'names' holds {described(odd[0])}, which is no engine\n"
            f"  expected: of {', '.join(engines.names())}"
        )
    chosen = list({each.name: each for each in chosen}.values())
    total = len(networks) * len(chosen) + 1
    scores: dict[tuple[str, Engine], float] = {}
    calls: dict[tuple[str, Engine], Callable[[], Outputs]] = {}
    errors: dict[tuple[str, Engine], float] = {}
    found = EngineComparison(threads, rounds)
    with torch_threads(threads), torch.inference_mode():
        for number, (network, net) in enumerate(networks.items()):
            check_network(net, complex_numbers=True)
            net = copy_network(net).eval()
            expected = computed(network, net, example)
            for place, each in enumerate(chosen):
                progress(number * len(chosen) + place, total, f"{network} in {each.name}")
                try:
                    run = each.prepare(net, example, threads)
                    error = relative_error(run(), expected)
                except UserError as reason:
                    found.failures[network, each.name] = str(reason)
                    continue
                _check(network, each, error)
                calls[network, each], errors[network, each] = run, error
                if score is not None and isinstance(run, Prepared) and run.on is not None:
                    scores[network, each] = score(run.on)
        progress(total - 1, total, f"measuring {len(calls)} pairs")
        *seconds, products, streams = interleaved(
            [*calls.values(), control(), stream()], rounds, pause=PAUSE
        )
        shares = {
            pair: _outside(call, call.outside, rounds)
            for pair, call in calls.items()
            if isinstance(call, Prepared) and call.outside is not None
        }
    progress(total, total, "done")
    by_pair = dict(zip(calls, seconds, strict=True))
    found.controls = Controls(Timing.of(products), Timing.of(streams))
    original = next(iter(networks))
    medians = {
        each: Timing.of(times).median_ms
        for (network, each), times in by_pair.items()
        if network == original and each.precision == FLOAT32
    }
    rival = min((each for each in medians if not each.own), key=medians.__getitem__)
    best = min(medians, key=medians.__getitem__)
    found.rival, found.best = rival.name, best.name
    for (network, each), times in by_pair.items():
        low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
        found.times.append(
            NetworkTime(
                network=network,
                engine=each.name,
                precision=each.precision,
                own=each.own,
                best_ms=1e3 * min(times),
                median_ms=1e3 * middle,
                low_ms=1e3 * low,
                high_ms=1e3 * high,
                error=errors[network, each],
                over_eager=speedup(by_pair[original, chosen[0]], times),
                over_rival=speedup(by_pair[original, rival], times),
                over_best=speedup(by_pair[original, best], times),
                outside=shares.get((network, each)),
                accuracy=scores.get((network, each)),
            )
        )
    return found


def computed(name: str, net: nn.Module, example: Inputs) -> list[torch.Tensor]:
    """What a network gives in eager PyTorch. UserError where it fails on the example."""
    try:
        found = net(*arguments(example))
    except UserError:
        raise
    except Exception as error:  # whatever a network raises
        raise UserError(
            f"the network '{name}' fails on the example: {first_line(error)}\n"
            f"  in an example of {shown(example)}"
        ) from error
    several = list(found) if isinstance(found, (tuple, list)) else [found]
    if not several or not all(isinstance(each, torch.Tensor) and each.numel() for each in several):
        raise UserError(
            f"the network '{name}' gives no tensor with values\n"
            f"  expected: one tensor, or a tuple of tensors      got: {described(found)}"
        )
    return [each.clone() for each in several]


def _outside(call: Callable[[], Outputs], outside: Callable[[], float], rounds: int) -> float:
    """The median share of the time outside of layers, each after a call without a clock."""
    shares = []
    for _ in range(rounds):
        time.sleep(PAUSE)
        call()
        shares.append(outside())
    return statistics.median(shares)


def relative_error(outputs: Outputs, expected: Sequence[torch.Tensor]) -> float:
    """The largest difference, each output relative to its largest element."""
    several = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    shapes, wanted = ([list(each.shape) for each in found] for found in (several, expected))
    if shapes != wanted:
        raise UserError(
            "the outputs have other shapes than in eager PyTorch\n"
            f"  expected: {wanted}      got: {shapes}"
        )
    # The maximum of tensors keeps NaN.
    return (
        torch.stack([_relative(*pair) for pair in zip(several, expected, strict=True)]).max().item()
    )


def _relative(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    return (found - expected).abs().max() / expected.abs().max().clamp(min=1e-30)


def _check(network: str, each: Engine, error: float) -> None:
    """UserError where a float32 engine computes something else; NaN counts as that."""
    if each.precision == FLOAT32 and not error <= TOLERANCE:
        raise UserError(
            f"the engine '{each.name}' computes something else than eager PyTorch for {network}\n"
            f"  expected: a difference of at most {TOLERANCE:g} of the largest output"
            f"      got: {error:.2g}"
        )
