"""Space: enumerated once, accessed by index, kept in a file."""

import itertools
from collections import Counter

import pytest

from syno import Specification, UserError
from syno.space.space import Space

SPECIFICATION = Specification(
    "[C_in, H]",
    "[C_out, H]",
    ["C_in: 2", "C_out: 2", "H: 1"],
    ["k=3: 1"],
    bindings=["C_in=16, C_out=16, H=32"],
)


@pytest.fixture(scope="module")
def space():
    return Space.enumerate(SPECIFICATION, depth=5)


def test_it_is_a_sequence_of_operators_with_distinct_keys(space):
    operators = list(space)
    assert len(operators) == len(space)
    assert len({o.key for o in operators}) == len(space)
    assert space[-1] == operators[-1]
    with pytest.raises(IndexError):
        space[len(space)]
    fresh = [o.with_specification(SPECIFICATION) for o in operators[:5]]
    assert [o.key for o in fresh] == [o.key for o in operators[:5]]
    assert [space.depth_of(i) for i in range(5)] == [sum(o.primitives().values()) for o in fresh]
    assert all(o.refusals() == [] for o in fresh)


def test_deeper_limits_hold_the_smaller_ones(space):
    limits = []
    Space.enumerate(SPECIFICATION, depth=5, on_limit=limits.append)
    assert [s.complete_depth for s in limits] == [1, 2, 3, 4, 5]
    for smaller, larger in itertools.pairwise(limits):
        assert {o.key for o in smaller} <= {o.key for o in larger}
    assert limits[-1].signature() == space.signature()


def test_it_goes_on_from_a_space(space):
    first = Space.enumerate(SPECIFICATION, depth=3)
    again = Space.enumerate(SPECIFICATION, depth=5, before=first)
    assert again.signature() == space.signature()
    assert [o.key for o in again] == [o.key for o in space]
    ended = Space.enumerate(SPECIFICATION, depth=5, before=first, max_nodes=1)
    assert (ended.ended, ended.complete_depth) == ("max_nodes", 3)
    assert ended.signature() == first.signature()


def test_progress_may_end_it():
    wide = Specification.preset("paper/resnet18", max_merges=2, max_weights=3)
    seen = []

    def stop(status):
        seen.append(status.nodes)
        return False

    space = Space.enumerate(wide, progress=stop)
    assert len(seen) == 1
    assert space.ended == "stopped"
    assert not space.exhausted

    def fail(status):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        Space.enumerate(wide, progress=fail)


def test_a_file_holds_everything(space, tmp_path):
    path = tmp_path / "a.space"
    space.save(path)
    again = Space.load(path, SPECIFICATION)
    assert [o.text for o in again] == [o.text for o in space]
    assert [o.key for o in again] == [o.key for o in space]
    for name in ("counts", "by_depth", "by_primitives", "rejections", "signature"):
        assert getattr(again, name)() == getattr(space, name)()
    assert again.complete_depth == 5
    # Another order of declaration is the same specification.
    turned = SPECIFICATION.with_changes(primary=SPECIFICATION.primary[::-1])
    assert len(Space.load(path, turned)) == len(space)


def test_uniform_draws_are_uniform_over_seeds(space):
    few = Space.enumerate(SPECIFICATION, depth=3)
    size, seeds = len(few), 4000
    counts = Counter(few.sample(1, seed)[0].key for seed in range(seeds))
    expected = seeds / size
    chi_square = sum((counts[o.key] - expected) ** 2 / expected for o in few)
    # Mean size - 1, deviation sqrt(2 * (size - 1)); six deviations.
    assert chi_square < size - 1 + 6 * (2 * (size - 1)) ** 0.5


def test_quantiles_take_one_of_each_group(space):
    macs = sorted(o.macs() for o in space)
    count = 7
    drawn = [o.macs() for o in space.sample(count, 5, "macs")]
    for group, value in enumerate(drawn):
        begin, end = (len(macs) * g // count for g in (group, group + 1))
        assert macs[begin] <= value <= macs[end - 1]
    assert len({o.key for o in space.sample(10**6, 1, "params")}) == len(space)
    one, two = (space.sample(9, 2, "macs", threads=t) for t in (1, 2))
    assert one == two


def test_multisets_take_turns(space):
    kinds = len(space.by_primitives())
    drawn = space.sample(kinds, 1, "primitives")
    assert len({str(sorted(o.primitives().items())) for o in drawn}) == kinds
    everything = space.sample(10**6, 1, "primitives")
    assert len({o.key for o in everything}) == len(everything) == len(space)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": -1}, "'depth' is an integer of at least 0"),
        ({"max_nodes": 0}, "'max_nodes' is an integer of at least 1"),
        ({"max_memory": True}, "'max_memory' is an integer"),
        ({"threads": 1.5}, "'threads' is an integer"),
        ({"bound": "tight"}, "unknown bound 'tight'"),
        ({"rules_off": ["R0"]}, "unknown rule 'R0'"),
    ],
)
def test_mistakes_are_told(arguments, message):
    with pytest.raises(UserError, match=message):
        Space.enumerate(SPECIFICATION, **arguments)


def test_it_needs_layers_and_knows_its_draws(space):
    with pytest.raises(UserError, match="no layer to enumerate operators for"):
        Space.enumerate(Specification.preset("paper/readme"))
    with pytest.raises(UserError, match="expected a Specification, got str"):
        Space.enumerate("paper/resnet18")
    with pytest.raises(UserError, match="operators cannot be sampled by 'cost'"):
        space.sample(1, 0, "cost")
    with pytest.raises(UserError, match="'count' is an integer of at least 0, got -1"):
        space.sample(-1)
