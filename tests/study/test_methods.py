"""How operators are chosen."""

from __future__ import annotations

from collections import Counter

import pytest

from syno._util.errors import UserError
from syno.study import Candidates, DiverseSampling, Entry, History, UniformSampling
from syno.study.methods import Method, choose, make_method

from .fakes import FakeOperator, FakeSpace


def draw(method: Method, count: int, status: str = "ok") -> list[FakeOperator]:
    found: list[FakeOperator] = []
    for _ in range(count):
        entries = tuple(Entry(i + 1, op.key, status) for i, op in enumerate(found))
        operator = method.propose(History(len(found) + 1, entries))
        if operator is None:
            break
        found.append(operator)
    return found


def test_candidates_have_distinct_keys_and_keep_the_first_of_each():
    space = FakeSpace(10)
    found = [c.operator for c in Candidates(space)]
    assert found == [op for op in space.operators if not op.text.endswith("again")]


@pytest.mark.parametrize("name", ["uniform", "diverse"])
class TestEveryMethod:
    def test_draws_every_operator_once_and_then_none(self, name):
        space = FakeSpace(40)
        found = draw(make_method(name, Candidates(space), 0, {}), 100)
        assert len(found) == 40
        assert {op.key for op in found} == {op.key for op in space.operators}

    def test_gives_the_same_operators_for_the_same_seed(self, name):
        runs = [draw(make_method(name, Candidates(FakeSpace()), 3, {}), 30) for _ in range(2)]
        assert runs[0] == runs[1]
        assert runs[0] != draw(make_method(name, Candidates(FakeSpace()), 4, {}), 30)

    def test_goes_on_from_a_history_as_if_it_had_made_it(self, name):
        """A new method object given the log of another one continues exactly."""
        whole = draw(make_method(name, Candidates(FakeSpace()), 3, {}), 30)
        for cut in (1, 7, 29):
            entries = tuple(Entry(i + 1, op.key, "ok") for i, op in enumerate(whole[:cut]))
            fresh = make_method(name, Candidates(FakeSpace()), 3, {})
            assert fresh.propose(History(cut + 1, entries)) == whole[cut]


def test_uniform_draws_are_uniform():
    candidates = Candidates(FakeSpace(8))
    first = [draw(UniformSampling(candidates, seed), 1)[0].key for seed in range(4000)]
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
    found = draw(DiverseSampling(Candidates(space), 0), 30)
    windows = [op for op in found if op.primitives()["unfold"]]
    pairs = [op for op in found if op.primitives()["contract"] == 2]
    assert len(windows) >= 15
    assert len(pairs) >= 8
    assert len({tuple(op.primitives().items()) for op in found}) >= 5
    macs = [op.macs() for op in found]
    assert max(macs) >= 4 * min(macs)


def test_rejected_operators_do_not_fill_a_quota():
    candidates = Candidates(FakeSpace(400))
    method = DiverseSampling(candidates, 0, window=1.0, two_weights=0.0)
    windows = draw(method, 10, status="rejected")
    assert all(op.primitives()["unfold"] for op in windows)


def test_a_quota_that_cannot_be_met_does_not_end_the_search():
    class NoWindows(FakeSpace):
        def __init__(self) -> None:
            super().__init__(60)
            self.operators = [op for op in self.operators if not op.primitives()["unfold"]]

    space = NoWindows()
    keys = {op.key for op in space.operators}
    assert len(draw(DiverseSampling(Candidates(space), 0), 100)) == len(keys)


def test_diverse_draws_look_at_no_more_than_their_pool():
    looked: set[str] = set()

    class Watched(FakeOperator):
        def macs(self) -> int:
            looked.add(self.key)
            return super().macs()

    space = FakeSpace(300)
    space.operators = [Watched(op.text) for op in space.operators]
    method = DiverseSampling(Candidates(space), 0, pool=20)
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
        make_method(name, Candidates(FakeSpace(4)), 0, options)
