"""Orbits against brute force: the interpreter's output, transformed by numpy."""

import itertools
import json

import numpy as np
import pytest

import syno
from marks import slow_but, with_slow
from syno import Operator, Space, Specification
from syno.space.orbits import mean_difference, orbit_keys, orbits

SHAPES = "[N, C_in: unordered, H, H]", "[N, C_out: unordered, H, H]"
IMAGES = ["mirror 2", "mirror 3", "exchange 2 3"]


def specification(symmetries=(), **limits):
    return Specification(
        *SHAPES,
        ["N: 0", "C_in: 2", "C_out: 2", "H: 1"],
        ["k=3: 2", "s=2: 2"],
        bindings=["C_in=4, C_out=4, H=6"],
        passed_through=[(0, 0)],
        symmetries=list(symmetries),
        **{
            "max_depth": 5,
            "max_shifts": 2,
            "negative_shifts": True,
            "even_windows": True,
            "max_strides": 2,
            "min_weight_params": 2,
            "min_unfold_ratio": 1.5,
            "max_merges": 1,
        }
        | limits,
    )


@pytest.fixture(scope="module")
def space():
    return Space.enumerate(specification(), threads=1)


def position_map(operator):
    """How often each output position reads each input position, over all channels: [h, w, h, w].

    It does not depend on how channels, weights and reductions are numbered.
    """
    binding = {"C_in": 4, "C_out": 4, "H": 6}
    weights = [np.ones(shape, dtype=np.int64) for shape in operator.weight_shapes(binding)]
    x = np.zeros((36, 4, 36), dtype=np.int64)
    x[np.arange(36), :, np.arange(36)] = 1
    y = operator.interpret(binding, x.reshape(36, 4, 6, 6), weights)
    return np.moveaxis(y.sum(1), 0, -1).reshape(6, 6, 6, 6)


def images(found, *, mirrors=True, exchange=True):
    """What the symmetries make of a map."""
    for h, w, t in itertools.product((False, mirrors), (False, mirrors), (False, exchange)):
        image = found
        if h:
            image = image[::-1, :, ::-1, :]
        if w:
            image = image[:, ::-1, :, ::-1]
        if t:
            image = image.transpose(1, 0, 3, 2)
        yield image


@pytest.mark.parametrize("step", slow_but([5, 20], 20))
def test_operators_of_one_orbit_have_maps_that_a_symmetry_relates(space, step):
    found = orbits(list(space), specification(IMAGES))
    larger = [orbit for orbit in found if len(orbit) > 1]
    assert len(larger) > 50
    sizes = {len(orbit) for orbit in larger}
    assert max(sizes) >= 4
    assert max(sizes) <= 8
    for orbit in larger[::step]:
        first = position_map(space[orbit[0]])
        for other in orbit[1:]:
            other_map = position_map(space[other])
            assert any(np.array_equal(other_map, image) for image in images(first))


def made_of(form):
    """For each coordinate, the output positions that it is made of."""
    found = {"o2": {"o2"}, "o3": {"o3"}}
    for step in form["steps"]:
        used = step.get("in", [])
        below = set()
        for name in [used] if isinstance(used, str) else used:
            below |= found.get(name, set())
        made = step.get("out", [])
        for name in [made] if isinstance(made, str) else made:
            found[name] = below
    return found


@pytest.mark.parametrize(
    "mirrored", with_slow([{"o2"}, {"o3"}, {"o2", "o3"}], {"o3"}, {"o2", "o3"})
)
def test_a_mirrored_operator_that_exists_is_in_the_orbit(space, mirrored):
    """Cyclic shifts turn round; splits, merges and windows of odd size stay as they are."""
    wanted = specification(IMAGES)
    checked = turned = 0
    for operator in list(space)[::3]:
        form = operator.to_json()
        below = made_of(form)
        sizes = [step.get("size", "") + step.get("block", "") for step in form["steps"]]
        used = {step["op"] for step in form["steps"]}
        even = "unfold" in used and any("s" in size for size in sizes)
        of_others = any(
            step["op"] == "shift" and not below.get(step["in"]) for step in form["steps"]
        )
        mixed = any(made & mirrored and made - mirrored for made in below.values())
        # An image exists where mirrored output dimensions are read at mirrored input dimensions.
        mixed |= any(
            bool(below.get(form["match"][d], set()) & mirrored) != (f"o{d}" in mirrored)
            for d in (2, 3)
        )
        if even or of_others or mixed or "stride" in used:
            continue
        steps = []
        for step in form["steps"]:
            if step["op"] == "shift" and below[step["in"]] <= mirrored:
                turned += 1
                step = dict(step, d=-step["d"])
            steps.append(step)
        image = Operator.from_json(dict(form, steps=steps), wanted)
        assert image.orbit == operator.with_specification(wanted).orbit
        checked += 1
    assert checked > 100
    assert turned > 30


def test_an_operator_with_exchanged_dimensions_is_in_the_orbit(space):
    wanted = specification(["exchange 2 3"])
    swap = {"o2": "o3", "o3": "o2"}
    for operator in list(space)[::5]:
        form = operator.to_json()
        text = json.dumps(form["steps"])
        text = text.replace('"o2"', '"o?"').replace('"o3"', '"o2"').replace('"o?"', '"o3"')
        match = [swap.get(name, name) for name in form["match"]]
        match[2], match[3] = match[3], match[2]
        image = Operator.from_json(dict(form, steps=json.loads(text), match=match), wanted)
        assert image.orbit == operator.with_specification(wanted).orbit


def test_a_result_that_is_transposed_is_in_the_orbit_under_transpose(space):
    turned = specification(["transpose 2 3"])
    for operator in list(space)[::10]:
        form = operator.to_json()
        match = list(form["match"])
        match[2], match[3] = match[3], match[2]
        other = Operator.from_json(dict(form, match=match), turned)
        own = operator.with_specification(turned)
        # The input is transposed here; with the exchange it is the output.
        both = turned.with_changes(symmetries=["transpose 2 3", "exchange 2 3"])
        assert other.with_specification(both).orbit == own.with_specification(both).orbit
        assert other.key != own.key


def test_orbits_of_the_papers_specification():
    wanted = Specification.preset("paper/resnet18", symmetries=["exchange 2 3"])
    space = Space.enumerate(wanted, depth=6, threads=1)
    counts = space.counts()
    assert counts["operators"] == len(
        Space.enumerate(Specification.preset("paper/resnet18"), depth=6)
    )
    alone = sum(len(orbit) == 1 for orbit in space.orbits())
    assert counts["operators"] == 2 * counts["orbits"] - alone
    turned = wanted.with_changes(symmetries=["exchange 2 3", "transpose 2 3"])
    assert len(orbits(list(space), turned)) * 2 == counts["orbits"]


def test_without_symmetries_nothing_changes(space):
    plain = specification()
    assert "symmetries" not in json.loads(plain.to_json())
    assert plain.key != specification(IMAGES).key
    assert specification(reversed(IMAGES)).key == specification(IMAGES).key
    assert Specification.from_json(specification(IMAGES).to_json()).symmetries == IMAGES
    assert space[0].orbit == space[0].key
    assert orbit_keys(list(space), plain) == [operator.key for operator in space]
    assert "orbits" not in space.counts()


@pytest.mark.slow
def test_samples_are_one_of_each_orbit(space):
    wanted = specification(IMAGES)
    symmetric = Space.enumerate(wanted, threads=1)
    assert symmetric.keys() == space.keys()
    for by in ("none", "macs", "primitives"):
        found = symmetric.sample(40, seed=1, stratify=by)
        assert len({operator.orbit for operator in found}) == len(found) > 10
    assert len(symmetric.sample(10**6)) == symmetric.counts()["orbits"]


@pytest.mark.slow
def test_a_sampler_offers_one_of_each_orbit(space):
    wanted = specification(IMAGES)
    sampler = syno.Sampler.from_specification(wanted)
    assert len(sampler.operators) == sampler.statistics()["orbits"] < len(space)
    assert len({operator.orbit for operator in sampler.operators}) == len(sampler.operators)
    assert syno.Sampler.from_specification(specification()).operators == list(space)


@pytest.mark.parametrize(
    ("symmetry", "message"),
    [
        ("mirror", "dimension of 'mirror'"),
        ("mirror 9", "does not exist"),
        ("mirror -1", "a number from 0"),
        ("exchange 2 2", "one dimension twice"),
        ("exchange 1 2", "different sizes"),
        ("turn 2", "expected mirror, exchange or transpose"),
        ("mirror 2 3", "symmetry"),
    ],
)
def test_wrong_symmetries_are_named(symmetry, message):
    with pytest.raises(syno.UserError, match=message):
        specification([symmetry])


def test_a_causal_dimension_has_no_mirror():
    with pytest.raises(syno.UserError, match="causal"):
        Specification(
            "[N, L: causal, C]",
            "[N, L: causal, C]",
            ["N: 0", "L: 0", "C: 1"],
            symmetries=["mirror 1"],
        )


def test_differences_within_orbits():
    assert mean_difference([[1.0, 2.0], [5.0], [1.0, 1.0]]) == (0.5, 2)
    assert mean_difference([[1.0]]) == (0.0, 0)
