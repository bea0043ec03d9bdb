"""Other ways to make a network faster, with the same goal, recipe and distillation."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from syno._util.errors import UserError, first_line
from syno._util.inputs import arguments
from syno.adaptation.pipeline.assembly import assembled, empty, plain
from syno.adaptation.pipeline.goals import Goal
from syno.adaptation.pipeline.in_format import OWN_INT8, in_format
from syno.adaptation.pipeline.kinds import by_slot
from syno.adaptation.pipeline.pool import Candidate
from syno.adaptation.pipeline.progress import Progress
from syno.adaptation.pipeline.results import AdaptedNetwork, NetworkRow
from syno.adaptation.pipeline.rivals.low_rank import low_rank
from syno.adaptation.pipeline.rivals.pruning import has_torch_pruning, pruned, torch_pruned
from syno.adaptation.pipeline.run import AdaptationRun, Scored
from syno.engines import engine as engines
from syno.network.channels.groups import ChannelGroup, channel_groups
from syno.study.fronts import LATENCY
from syno.study_options import RIVAL_FORMATS, RIVALS, TORCH_PRUNING
from syno.train import Fidelity

# The original in engines of others, where they are installed.
_ENGINES = ("eager", "onnxruntime", "openvino", "syno", "syno-cpp")
# The original in other number formats, with its accuracy.
_FORMATS = ("openvino-default", "onnxruntime-int8", "openvino-int8", "syno-cpp-bf16", OWN_INT8)
# The hand-made replacement of convolutions, in all slots, whatever its latency is.
_CLASSIC = "depthwise-separable"
# Pruned channels come in multiples of so many, which kernels compute as fast as one less.
_LANES = 16
# A size is searched until the latency is within this share of the original's, or so often.
_NEAR, _TRIES = 0.02, 5

Rows = list[tuple[NetworkRow, nn.Module | None]]


@dataclass(frozen=True)
class Way:
    """A way to make a network smaller: `make` of a share from 0 to 1; fresh: with new weights."""

    kind: str
    name: str
    about: str
    make: Callable[[float], nn.Module]
    fresh: bool = False


class Step(NamedTuple):
    """A part of the work, in words."""

    what: str
    do: Callable[[], None]


class Rivals:
    """Makes, trains and measures the rivals of an adaptation."""

    def __init__(self, run: AdaptationRun, scored: Scored) -> None:
        self._run, self._subject, self._journal = run, run.subject, run.journal
        self._options, self._clock, self._seed = run.options, run.clock, run.seed
        self._kinds, self._selector, self._fits = scored.kinds, scored.selector, scored.fits
        self._pool = scored.pool
        self._failures: dict[str, str] = {}
        self._rows: Rows = []

    def rows(
        self,
        kinds: Collection[str],
        networks: Sequence[AdaptedNetwork],
        goals: Sequence[Sequence[Goal]],
        progress: Progress,
    ) -> tuple[Rows, dict[str, str]]:
        """The rivals of these kinds, of all goals for latency, and why some have no result."""
        steps = []
        for kind, each in self._steps(networks, goals):
            assert kind in RIVALS
            if kind in kinds:
                steps.append(each)
        for number, (what, step) in enumerate(steps):
            progress(number, len(steps), what)
            try:
                step()
            except UserError as error:
                self._failures[what] = first_line(error)
        progress(len(steps), len(steps), "")
        return self._rows, self._failures

    def _steps(
        self, networks: Sequence[AdaptedNetwork], goals: Sequence[Sequence[Goal]]
    ) -> Iterator[tuple[str, Step]]:
        """What is to be done, each with its kind (`syno.study_options.RIVALS`)."""
        yield "engines", Step("the original in other engines", self._other_engines)
        for name in engines.available(_FORMATS):
            if name != self._options.engine:
                in_it = functools.partial(self._in_format, name)
                yield RIVAL_FORMATS, Step(f"the original in {name}", in_it)
        first = networks[0].name
        tuned = functools.partial(self._tuned_original, first)
        yield "trained-on", Step("the original, trained on", tuned)
        classic = self._everywhere_it_fits(_CLASSIC)
        if classic:
            everywhere = f"{_CLASSIC} everywhere"
            about = f"in {len(classic)} of {len(by_slot(self._kinds))} slots"
            train = functools.partial(self._one_operator, everywhere, about, classic)
            yield _CLASSIC, Step(everywhere, functools.partial(train, first, everywhere))
        for network, wanted in zip(networks, goals, strict=True):
            if all(goal.resource != LATENCY for goal in wanted):
                continue
            one = functools.partial(self._everywhere, network, wanted)
            yield "one-operator", Step(f"one operator everywhere, {network.name}", one)
            for way in self._ways():
                sized = functools.partial(self._sized, way, network)
                yield way.kind, Step(f"{way.name}, {network.name}", sized)
        # Where the latencies are in float32, networks have no other format yet.
        for name in engines.available([OWN_INT8]) if self._run.delivery.is_exact else ():
            for network in networks:
                in_it = functools.partial(self._in_format, name, network)
                yield RIVAL_FORMATS, Step(f"{network.name} in {name}", in_it)

    def _ways(self) -> Iterator[Way]:
        bare, example = plain(self._subject.original), self._subject.example

        def narrower(share: float) -> nn.Module:
            return pruned(bare, self._channel_groups, share, _LANES)

        yield Way("pruning", "channel pruning", "channels of the smallest weights pruned", narrower)
        if has_torch_pruning():
            yield Way(
                TORCH_PRUNING,
                "Torch-Pruning",
                "channels of the smallest norms of groups pruned",
                lambda share: torch_pruned(bare, example, share, _LANES),
            )
        yield Way(
            "narrower",
            "narrower network",
            "as pruned, from random weights, with the original as teacher",
            lambda share: _fresh(narrower(share), self._seed),
            fresh=True,
        )
        yield Way(
            "low-rank",
            "low rank",
            "singular value decomposition in each slot",
            lambda share: low_rank(self._subject.original, share),
        )

    @functools.cached_property
    def _channel_groups(self) -> list[ChannelGroup]:
        return channel_groups(plain(self._subject.original), *arguments(self._subject.example))

    def _sized(self, way: Way, network: AdaptedNetwork) -> None:
        """A network of the latency of the adapted one, trained as long as it, or as all of it."""
        wanted = network.row.ratio
        assert wanted is not None
        name = f"{way.name} {network.name}"
        share, ratio = self._journal.once(
            "size",
            f"{way.name if not way.fresh else 'channel pruning'} {network.name}",
            lambda: list(self._share(way, wanted)),
        )
        fidelity = self._longer(network) if way.fresh else self._fidelity(network.name)
        self._train(
            name,
            way.about,
            lambda: self._refreshed(way.make(share)),
            lambda: way.make(share),
            ratio,
            fidelity,
            way.name,
        )

    def _share(self, way: Way, wanted: float) -> tuple[float, float]:
        """The size with a latency nearest to `wanted` of the original's, by bisection."""
        low, high = 0.02, 1.0
        best: tuple[float, float] | None = None
        share = wanted
        for _ in range(_TRIES):
            ratio = self._clock.ratio(way.make(share))
            if best is None or abs(ratio - wanted) < abs(best[1] - wanted):
                best = share, ratio
            if abs(ratio - wanted) < _NEAR:
                break
            low, high = (share, high) if ratio < wanted else (low, share)
            share = (low + high) / 2
        assert best is not None
        return best

    def _longer(self, network: AdaptedNetwork) -> Fidelity:
        """The fidelity for a training from random weights in the time of the whole adaptation."""
        fidelity = self._fidelity(network.name)
        before = sum(
            seconds
            for phase, seconds in self._journal.seconds.items()
            if phase not in ("rivals", "fine-tuning", "test split", "original")
        )
        tuning = max(network.row.seconds / max(self._options.seeds, 1), 1e-9)
        factor = (tuning + before) / tuning
        recipe = dataclasses.replace(
            fidelity.recipe, learning_rate=5 * fidelity.recipe.learning_rate, warmup=0.2
        )
        found = self._journal.once("longer", network.name, lambda: factor)
        if fidelity.epochs is not None:
            return fidelity.changed(epochs=max(round(found * fidelity.epochs), 1), recipe=recipe)
        assert fidelity.steps is not None
        return fidelity.changed(steps=max(round(found * fidelity.steps), 1), recipe=recipe)

    def _everywhere(self, network: AdaptedNetwork, goals: Sequence[Goal]) -> None:
        chosen = self._selector.everywhere(goals)
        name = f"one operator {network.name}"
        if chosen is None:
            raise UserError("no operator reaches the goal in all slots that it fits")
        choice = self._selector.candidates(chosen)
        operators = {each.name for each in choice.values() if each.is_operator}
        about = f"{', '.join(sorted(operators))} in all slots"
        self._one_operator(name, about, choice, network.name, "one operator everywhere")

    def _everywhere_it_fits(self, name: str) -> dict[str, Candidate]:
        """An operator of the zoo in all slots that it fits; empty without one."""
        known = [each for each in self._pool if each.name == name]
        choice: dict[str, Candidate] = {}
        for candidate, kind in itertools.product(known[:1], self._kinds.values()):
            try:
                kind.binding(candidate)
            except UserError:  # the slots of this kind keep their layer
                continue
            choice |= dict.fromkeys(kind.slots, candidate)
        return choice

    def _one_operator(
        self, name: str, about: str, choice: Mapping[str, Candidate], length: str, way: str
    ) -> None:
        """A network with the choice, trained as long as the adapted network `length`."""

        def build() -> nn.Module:
            return assembled(
                self._subject, self._kinds, choice, self._fits, refit=self._run.refitting
            )

        def structure() -> nn.Module:
            return empty(self._subject, self._kinds, choice)

        ratio = self._journal.once("ratio", name, lambda: self._clock.ratio(build()))
        self._train(name, about, build, structure, ratio, self._fidelity(length), way)

    def _fidelity(self, name: str) -> Fidelity:
        """How long an adapted network was fine-tuned."""
        return self._run.lengths.fidelity(name, lambda: plain(self._subject.original), 1)

    def _tuned_original(self, first: str) -> None:
        """The original, trained as long as the network of the first goal."""
        self._train(
            "original, trained on",
            "the same recipe and distillation",
            lambda: plain(self._subject.original),
            lambda: plain(self._subject.original),
            1.0,
            self._fidelity(first),
            "original, trained on",
        )

    def _train(
        self,
        name: str,
        about: str,
        build: Callable[[], nn.Module],
        structure: Callable[[], nn.Module],
        ratio: float,
        fidelity: Fidelity,
        way: str,
    ) -> None:
        progress = self._run.told(f"fine-tuning {name}")
        row, net = self._run.tuner.network(name, about, build, structure, ratio, fidelity, progress)
        params = sum(p.numel() for p in net.parameters())
        row = dataclasses.replace(self._run.delivered(row, net), params=params, way=way)
        self._rows.append((row, net))

    def _other_engines(self) -> None:
        """The original network in every engine that is installed."""
        wanted = [name for name in engines.available(_ENGINES) if name != self._options.engine]
        found = self._journal.once("engines", "original", lambda: self._engine_ratios(wanted))
        for name, ratio in found.items():
            self._rows.append(
                (
                    NetworkRow(
                        name=f"original, {name}",
                        about="the same network",
                        value=self._exact,
                        ratio=ratio,
                        latency_ms=ratio * self._original_ms,
                        engine=name,
                        way="original, other engines",
                    ),
                    None,
                )
            )

    def _engine_ratios(self, names: Sequence[str]) -> dict[str, float]:
        found = {}
        for name in names:
            try:
                found[name] = self._clock.ratio_in(name, self._subject.original)
            except UserError as error:
                self._failures[f"original, {name}"] = first_line(error)
        return found

    def _in_format(self, engine: str, network: AdaptedNetwork | None = None) -> None:
        """The original, or a network, in the number format of an engine, and how good it is."""
        self._rows.append(in_format(self._run, engine, network))

    def _refreshed(self, net: nn.Module) -> nn.Module:
        self._subject.refresh(net)
        return net

    @property
    def _exact(self) -> float:
        """The objective of the original in float32."""
        found: float = self._journal.get("original", "")["value"]
        return found

    @property
    def _original_ms(self) -> float:
        found: float = self._journal.get("original", "")["latency_ms"]
        return found


def _fresh(net: nn.Module, seed: int) -> nn.Module:
    """The network with random initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in net.modules():
            reset = getattr(module, "reset_parameters", None)
            if callable(reset):
                reset()
    return net
