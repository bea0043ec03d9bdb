"""How operators are chosen."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.study import DiverseSampling, History, HistoryEntry, Members, UniformSampling
from syno.study.methods import METHODS, GraphSearch, Method, choose, make_method, parse_method

from .fakes import FakeOperator, FakeSpace, RealSpace, number


@functools.cache
def small_members() -> Members:
    """Real operators: learning methods look at their steps."""
    return Members(RealSpace())


@pytest.fixture(scope="module", autouse=True)
def _forget():
    yield
    small_members.cache_clear()


def value_of(operator: Any) -> float | None:
    """Operators with common primitives have similar values; one in nine fails."""
    if number(operator.key + "fate", 9) == 0:
        return None
    counts = operator.primitives()
    common = counts.get("unfold", 0) + 0.3 * counts.get("contract", 0)
    return (common + number(operator.key, 100) / 400) / 4


def entry(ask: int, operator: Any, told: dict[int, int]) -> HistoryEntry:
    if ask not in told:
        return HistoryEntry(ask, operator.key, None)
    value = value_of(operator)
    status = "error" if value is None else "ok"
    return HistoryEntry(ask, operator.key, status, value or 0.0, told=told[ask])


def answered(operators: Sequence[Any], first: int = 1) -> tuple[HistoryEntry, ...]:
    numbered = list(enumerate(operators, start=first))
    return tuple(entry(ask, op, {ask: ask}) for ask, op in numbered)


def draw(method: Method, count: int, status: str | None = None) -> list[Any]:
    found: list[Any] = []
    for _ in range(count):
        entries = answered(found)
        if status is not None:
            entries = tuple(HistoryEntry(e.ask, e.key, status) for e in entries)
        operator = method.propose(History(len(found) + 1, entries))
        if operator is None:
            break
        found.append(operator)
    return found


def test_members_have_distinct_keys_and_keep_the_first_of_each():
    space = FakeSpace(10)
    found = [c.operator for c in Members(space)]
    assert found == [op for op in space.operators if not op.text.endswith("again")]


@pytest.mark.parametrize("name", METHODS)
class TestEveryMethod:
    def test_draws_every_operator_once_and_then_none(self, name):
        found = draw(make_method(name, small_members(), 0, {}), 1000)
        assert len(found) == len(small_members())
        assert {op.key for op in found} == {c.key for c in small_members()}

    def test_gives_the_same_operators_for_the_same_seed(self, name):
        runs = [draw(make_method(name, small_members(), 3, {}), 30) for _ in range(2)]
        assert runs[0] == runs[1]
        assert runs[0] != draw(make_method(name, small_members(), 4, {}), 30)

    def test_goes_on_from_a_history_as_if_it_had_made_it(self, name):
        """A new method object given the log of another one continues exactly."""
        whole = draw(make_method(name, small_members(), 3, {}), 40)
        for cut in (1, 7, 39):
            fresh = make_method(name, small_members(), 3, {})
            assert fresh.propose(History(cut + 1, answered(whole[:cut]))) == whole[cut]

    def test_several_workers_lead_to_the_proposals_that_the_history_gives(self, name):
        """Answers arrive late and in another order; a new object repeats each proposal."""
        method = make_method(name, small_members(), 3, {})
        rng = random.Random(5)
        open_, told, found = [], {}, []
        for ask in range(1, 61):
            while len(open_) >= 8 or (open_ and rng.random() < 0.3):
                told[open_.pop(rng.randrange(len(open_)))] = ask - 1
            history = History(ask, tuple(entry(i + 1, op, told) for i, op in enumerate(found)))
            operator = method.propose(history)
            assert make_method(name, small_members(), 3, {}).propose(history) == operator
            found.append(operator)
            open_.append(ask)

    def test_operators_of_the_user_that_are_not_in_the_space_do_no_harm(self, name):
        known = draw(make_method(name, small_members(), 3, {}), 12)
        entries = (HistoryEntry(1, "0" * 32, "ok", 0.9), *answered(known, first=2))
        operator = make_method(name, small_members(), 3, {}).propose(History(14, entries))
        assert operator not in known

    def test_values_that_change_with_later_results_are_replaced(self, name):
        """As with a ladder: each proposal sees other ranks of all operators."""
        method = make_method(name, small_members(), 3, {})
        found = []
        for ask in range(1, 41):
            entries = tuple(
                HistoryEntry(i + 1, op.key, "ok", (value_of(op) or 0.5) / (1 + (ask + i) % 3))
                for i, op in enumerate(found)
            )
            history = History(ask, entries)
            operator = method.propose(history)
            assert make_method(name, small_members(), 3, {}).propose(history) == operator
            found.append(operator)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("local", {"samples": 0}, "'samples'"),
        ("local", {"restarts": 1.5}, "restarts is a share"),
        ("local", {"restarts": "some"}, "'restarts' is a number, got 'some'"),
        ("diverse", {"window": "some"}, "'window' is a number, got 'some'"),
        ("local", {"width": 3}, "no such option"),
        ("evolution", {"population": 1}, "'population'"),
        ("evolution", {"population": 5, "tournament": 6}, "tournament"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(UserError, match=message):
        make_method(name, small_members(), 0, options)


def test_options_are_numbers_or_words():
    assert parse_method("graph") == ("graph", {})
    found = parse_method("surrogate:model=auto, refit=4,local=0.5,x=false")
    assert found == ("surrogate", {"model": "auto", "refit": 4, "local": 0.5, "x": False})
    for text in ("", "local:", "local:samples", "local:=2", ":samples=2"):
        with pytest.raises(UserError, match="does not name a search method"):
            parse_method(text)


def test_neighbors_share_most_steps():
    members = small_members()
    first = members[len(members) - 1]
    found = members.neighbors(first.key, 3)
    assert len(found) >= 3
    depth = sum(first.primitives.values())
    assert all(abs(sum(c.primitives.values()) - depth) <= 2 for c in found)
    with pytest.raises(UserError, match="no operator of the space"):
        members.neighbors("0" * 32, 3)


def test_what_is_out_of_reach_is_no_neighbor():
    members = small_members()
    options = {"samples": 5, "restarts": 0.0}
    sampled = draw(make_method("local", members, 3, {"samples": 10**6}), 40)
    alone = draw(make_method("local", members, 3, {**options, "reach": 0}), 40)
    assert [o.key for o in alone] == [o.key for o in sampled]
    near = draw(make_method("local", members, 3, {**options, "reach": 12}), 40)
    space = members.search_space
    places = [members.place(o.key) for o in near]
    for ask in range(6, 40):
        distances = [space.distance(places[ask], other) for other in places[:ask]]
        assert min(distances) <= 12


def test_uniform_draws_are_uniform():
    members = Members(FakeSpace(8))
    first = [draw(UniformSampling(members, seed), 1)[0].key for seed in range(4000)]
    counts = Counter(first)
    assert len(counts) == 8
    assert all(400 < n < 600 for n in counts.values())  # 500 expected, deviation 21


def test_a_choice_depends_on_seed_ask_number_and_purpose():
    items = list(range(1000))
    start = choose(items, 1, 1, "draw")
    assert choose(items, 1, 1, "draw") == start
    others = [(2, 1, "draw"), (1, 2, "draw"), (1, 1, "other")]
    assert all(choose(items, *other) != start for other in others)


def test_diverse_draws_keep_their_quotas_and_spread():
    space = FakeSpace(400)
    found = draw(DiverseSampling(Members(space), 0), 30)
    windows = [op for op in found if op.primitives()["unfold"]]
    pairs = [op for op in found if op.primitives()["contract"] == 2]
    assert len(windows) >= 15
    assert len(pairs) >= 8
    assert len({tuple(op.primitives().items()) for op in found}) >= 5
    macs = [op.macs() for op in found]
    assert max(macs) >= 4 * min(macs)


def test_rejected_operators_do_not_fill_a_quota():
    members = Members(FakeSpace(400))
    method = DiverseSampling(members, 0, window=1.0, two_weights=0.0)
    windows = draw(method, 10, status="rejected")
    assert all(op.primitives()["unfold"] for op in windows)


def test_a_quota_that_cannot_be_met_does_not_end_the_search():
    class NoWindows(FakeSpace):
        def __init__(self) -> None:
            super().__init__(60)
            self.operators = [op for op in self.operators if not op.primitives()["unfold"]]

    space = NoWindows()
    keys = {op.key for op in space.operators}
    assert len(draw(DiverseSampling(Members(space), 0), 100)) == len(keys)


def test_diverse_draws_look_at_no_more_than_their_pool():
    looked: set[str] = set()

    class Watched(FakeOperator):
        def macs(self) -> int:
            looked.add(self.key)
            return super().macs()

    space = FakeSpace(300)
    space.operators = [Watched(op.text) for op in space.operators]
    method = DiverseSampling(Members(space), 0, pool=20)
    assert len(draw(method, 50)) == 50
    assert len(looked) == 20


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("best", {}, "no search method 'best'\n  expected: one of uniform, diverse"),
        ("uniform", {"window": 0.5}, "'uniform' has no such option: .*'window'"),
        ("diverse", {"window": 1.5}, "window is a share of the operators, from 0 to 1, got 1.5"),
        ("diverse", {"pool": 0}, "'pool' is an integer of at least 1, got 0"),
    ],
)
def test_a_method_that_cannot_be_made_says_why(name, options, message):
    with pytest.raises(UserError, match=message):
        make_method(name, Members(FakeSpace(4)), 0, options)


def test_a_graph_search_follows_the_prior_of_a_subclass():
    class Guided(GraphSearch):
        def prior(self, history):
            return [float(c.has_window) for c in self._members]

    plain = GraphSearch(small_members(), 3, samples=4)
    guided = Guided(small_members(), 3, samples=4, pull=20.0)
    windows = [
        sum(op.primitives().get("unfold", 0) > 0 for op in draw(method, 30))
        for method in (plain, guided)
    ]
    assert windows[1] > windows[0]
