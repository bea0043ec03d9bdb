"""The candidates of slots: operators of the zoo, of stores, and samples of the space."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

from torch import nn

from syno._util.errors import UserError
from syno.network.placeholder import Placeholder, checked_slots
from syno.operands.layers import in_words_of
from syno.operands.lookup import NamedOperator
from syno.operators import zoo
from syno.operators.operator import Operator
from syno.operators.specification import NO_TOTALS, Specification, read_specification
from syno.space.walks import walk
from syno.store import Store
from syno.store.front import pareto_front

if TYPE_CHECKING:
    from syno.study.evaluate.network import Network

ORIGINAL, REMOVED = "original", "removed"
# The size of a window.
WINDOW = "k"
# Values of the coefficients of operators of the zoo, apart from the size of a window.
_FACTORS = (2, 4, 8)
# A rank is one of these parts of the channels of the first slot, of so many if it has no channels.
_RANKS, _RANK_OF = (16, 8, 4, 2), 64
_CHANNELS = ("C_in", "C_out", "H_in", "H_out")
# Shares of the MACs of the slots' layers that samples of the space have.
_LEAST_SHARE, _MOST_SHARE = 0.03, 0.75
_WALKS = 50_000


class CandidateDocument(TypedDict):
    """A `Candidate` as plain values."""

    name: str
    source: str
    text: str
    sizes: dict[str, int]


@dataclass(frozen=True)
class Candidate:
    """What may stand in a slot.

    name: the name of an operator with the values of its coefficients, `original` or `removed`.
    source: `network`, `zoo`, `store`, `sample`, `mutation`, or `given`.
    text: of the operator, in the slots' names of variables; empty without an operator.
    sizes: of the variables that the slots have no values for.
    """

    name: str
    source: str
    text: str = ""
    sizes: dict[str, int] = field(default_factory=dict, hash=False)

    @cached_property
    def operator(self) -> Operator:
        """The operator."""
        return Operator.from_text(self.text)

    @property
    def is_operator(self) -> bool:
        """Whether it is an operator, and not the original layer or no layer."""
        return bool(self.text)

    def to_json(self) -> CandidateDocument:
        """The candidate as plain values."""
        return {"name": self.name, "source": self.source, "text": self.text, "sizes": self.sizes}


ORIGINAL_LAYER = Candidate(ORIGINAL, "network")
NO_LAYER = Candidate(REMOVED, "network")


def candidates(
    network: Network,
    *,
    zoo_too: bool,
    samples: int,
    seed: int,
    given: Sequence[NamedOperator] = (),
    store: Store | None = None,
) -> list[Candidate]:
    """Gather the operators that may stand in the slots of a network, each once.

    Args:
        network: the network, with its slots.
        zoo_too: whether the operators of the zoo are candidates.
        samples: how many operators are sampled of the default space of the network.
        seed: of the samples.
        given: further operators.
        store: whose studies give the operators on their fronts of MACs and accuracy.
    """
    known = _zoo() if zoo_too else []
    archive = [] if store is None else _archive(store)
    parts: list[Iterable[Candidate]] = []
    for slot in _forms(network.template):
        parts += [_variants(given, slot, "given"), _variants(known, slot, "zoo")]
        parts.append(_variants(archive, slot, "store"))
    parts.append(_samples(network, samples, seed))
    found: dict[tuple[str, tuple[tuple[str, int], ...]], Candidate] = {}
    taken: Counter[str] = Counter()
    for one in itertools.chain(*parts):
        key = one.text, tuple(sorted(one.sizes.items()))
        if key in found:
            continue
        taken[one.name] += 1
        if taken[one.name] > 1:  # the same operator in the words of another kind of slot
            one = dataclasses.replace(one, name=f"{one.name} ({taken[one.name]})")
        found[key] = one
    return list(found.values())


def check_given(template: nn.Module, given: Sequence[NamedOperator]) -> None:
    """Raise a UserError for an operator of the user that fits no slot of a network.

    Args:
        template: the network with its slots, which know their shapes.
        given: the operators.
    """
    forms = _forms(template)
    for each in given:
        reasons = {_misfit(each, slot) for slot in forms}
        if None in reasons:
            continue
        inside = " or ".join(f"[N, {', '.join(slot.sizes[0])}]" for slot in forms)
        raise UserError(
            f"the operator '{each.name}' fits no slot of the network\n"
            f"  expected: an operator with weights for inputs {inside}      "
            f"got: [{', '.join(each.operator.input)}] to [{', '.join(each.operator.output)}]"
            + "".join(f"\n  {reason}" for reason in sorted(filter(None, reasons)))
        )


def _misfit(named: NamedOperator, slot: Placeholder) -> str | None:
    """Why an operator cannot stand in a kind of slot; None if it can."""
    try:
        in_words_of(slot, named.operator)
    except UserError as error:
        return str(error).splitlines()[0]
    return None if any(_variants([named], slot, "")) else "it has no weights that could be fitted"


def _forms(template: nn.Module) -> list[Placeholder]:
    """The first slot of each kind of input and output, such as maps and sequences."""
    found: dict[tuple[tuple[str, ...], ...], Placeholder] = {}
    for slot in checked_slots(template).values():
        found.setdefault(tuple(map(tuple, slot.sizes)), slot)
    return list(found.values())


def _zoo() -> list[NamedOperator]:
    return [NamedOperator(name, zoo.load(name), zoo.binding(name)) for name in zoo.names()]


def _variants(
    named: Iterable[NamedOperator], slot: Placeholder, source: str
) -> Iterator[Candidate]:
    """Operators in the names of the slots, with each choice of values for their coefficients."""
    kernel = getattr(slot.original, "kernel_size", (3,))
    window = int(kernel[0]) if isinstance(kernel, tuple) else 3
    for each in named:
        try:
            operator = in_words_of(slot, each.operator)
        except UserError:  # it has other dimensions
            continue
        if not operator.weight_names.names:  # without weights, there is nothing to fit
            continue
        defaults = _defaults(each.operator)
        free = [
            name
            for name in operator.variables
            if name not in slot.binding and name != operator.batch and name not in defaults
        ]
        values = [_values(operator, name, slot, window) for name in free]
        for chosen in itertools.product(*values):
            sizes = defaults | dict(zip(free, chosen, strict=True))
            yield Candidate(name_with_sizes(each.name, sizes), source, operator.text, sizes)


def _values(operator: Operator, name: str, slot: Placeholder, window: int) -> Sequence[int]:
    """The values of a coefficient: a window, a rank in shares of the channels, or a factor."""
    if name == WINDOW:
        return (max(window, 3),)
    if name in operator.reductions and len(re.findall(rf"\b{name}\b", operator.text)) == 1:
        channels = min(slot.binding.get(each, _RANK_OF) for each in _CHANNELS)
        return [channels // part for part in _RANKS if channels // part > 1] or _FACTORS
    return _FACTORS


def _defaults(operator: Operator) -> dict[str, int]:
    return {} if operator.specification is None else dict(operator.specification.defaults)


def name_with_sizes(name: str, sizes: Mapping[str, int]) -> str:
    """The name of an operator with its sizes but that of its windows."""
    shown = ",".join(f"{key}={value}" for key, value in sizes.items() if key != WINDOW)
    return f"{name}[{shown}]" if shown else name


def _archive(store: Store) -> list[NamedOperator]:
    """The operators on the fronts of MACs and quality of all studies."""
    found = []
    for record in store.studies():
        summary = store.summary(record)
        points = [
            (float(trial.macs), summary.objective.score(quality), trial.ask, trial)
            for trial in summary.compared
            if trial.macs is not None and (quality := summary.quality(trial)) is not None
        ]
        for trial in pareto_front(points):
            if trial.text is None:
                continue
            specification = read_specification(record.specification)
            operator = Operator.from_text(trial.text, specification)
            found.append(NamedOperator(operator.structure[:8], operator, {}))
    return found


def _samples(network: Network, count: int, seed: int) -> Iterator[Candidate]:
    """Operators of the default space for the slots, of fewer MACs than their layers."""
    from syno.study.specifications import usual_specification

    specification = usual_specification(network) if count else None
    if specification is None:
        return
    bound = _bound(specification, network.template)
    walks = walk(bound, count=_WALKS, max_operators=40 * count, seed=seed, threads=1)
    chosen = random.Random(seed).sample(range(len(walks)), min(count, len(walks)))
    sizes = dict(bound.defaults)
    for place in sorted(chosen):
        operator = walks[place]
        own = {name: value for name, value in sizes.items() if name in operator.variables}
        yield Candidate(operator.structure[:8], "sample", operator.text, own)


def _bound(specification: Specification, template: nn.Module) -> Specification:
    """The specification with the layers of the network and limits on MACs."""
    from syno.network.surgery import slot_bindings

    layers = slot_bindings(template, specification)
    bound = specification.with_changes(
        bindings=[], multiplicities=None, layer_macs=None, **NO_TOTALS
    ).with_changes(**layers)
    macs = sum(layers["layer_macs"] or [])
    if not macs:
        return bound
    return bound.with_changes(
        min_macs=int(_LEAST_SHARE * macs), max_macs=max(int(_MOST_SHARE * macs), 1)
    )
