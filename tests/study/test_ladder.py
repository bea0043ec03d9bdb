"""Ladders as values and files: what is refused, and which rungs are one training."""

from __future__ import annotations

import dataclasses
import json

import pytest

from syno._util.errors import UserError
from syno.study import Ladder, Rung, ladder_names
from syno.study.fidelity.ladder import ladder, ladder_summary, resolve_ladder
from syno.train import Fidelity, recipe

CONSTANT = recipe("fast/steady")
COSINE = recipe("fast/short")


def rung(name: str, epochs: int = 1, how=CONSTANT, width: float = 1.0, **amounts) -> Rung:
    content = {"images": 100, "resolution": 8} | amounts
    return Rung(Fidelity(name, epochs=epochs, recipe=how, **content), width)


def test_the_named_ladders_can_be_read_and_go_through_json():
    assert set(ladder_names()) >= {"fast/cifar", "fast/digits", "fast/steady"}
    for name in ladder_names():
        found = ladder(name)
        assert ladder_summary(name)
        assert len(found.rungs) == 3
        assert Ladder.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_an_unknown_ladder_names_what_is_like_it():
    with pytest.raises(UserError, match=r"unknown ladder 'fast/cifer'") as caught:
        ladder("fast/cifer")
    assert "did you mean: fast/cifar" in str(caught.value)
    with pytest.raises(UserError, match=r"there is no ladder file 'mine\.toml'"):
        ladder("mine.toml")


@pytest.mark.parametrize(
    ("rungs", "eta", "message"),
    [
        ([rung("a")], 3, "cannot have 1 rungs\n  expected: at least two"),
        ([], 3, "cannot have 0 rungs"),
        (
            [rung("a"), rung("b", 2)],
            1,
            "cannot have eta = 1\n  expected: a whole number of at least",
        ),
        ([rung("a"), rung("b", 2)], 2.5, "cannot have eta = 2.5"),
        ([rung("a"), rung("b", 2)], True, "cannot have eta = True"),
        ([rung("a"), rung("a", 2)], 3, "cannot have two rungs named 'a'"),
        (
            [rung("a", images=200), rung("b", 2)],
            3,
            "cannot have images = 100 in rung 'b'\n  expected: at least those of rung 'a', 200",
        ),
        (
            [rung("a", images=None), rung("b", 2)],
            3,
            "cannot have images = 100 in rung 'b'\n  expected: all, as rung 'a' has",
        ),
        ([rung("a", resolution=16), rung("b", 2)], 3, "cannot have resolution = 8 in rung 'b'"),
        ([rung("a", 4), rung("b", 2, resolution=16)], 3, "cannot have epochs = 2 in rung 'b'"),
        ([rung("a"), rung("b", how=COSINE)], 3, "cannot have no more than rung 'a' in rung 'b'"),
        ([rung("a"), rung("b", 2, holdout=0.5)], 3, "holdout = 0.5 in rung 'b'\n  expected: 0.1"),
        ([rung("a"), rung("b", 2, split_seed=1)], 3, "split_seed = 1 in rung 'b'"),
        ([rung("a", width=0.5), rung("b", 2, width=0.5)], 3, "width = 0.5 in rung 'b'"),
        ([rung("a", width=1.0), rung("b", 2, width=0.5)], 3, "width = 0.5 in rung 'b'"),
        (
            [rung("a", width=0.0), rung("b")],
            3,
            "width = 0.0 in rung 'a'\n  expected: a share above",
        ),
        ([rung("a", width=2.0), rung("b")], 3, "width = 2.0 in rung 'a'"),
    ],
)
def test_ladders_that_make_no_sense_are_refused(rungs, eta, message):
    with pytest.raises(UserError) as caught:
        Ladder("bad", tuple(rungs), eta)
    assert message in str(caught.value)


def test_a_rung_for_text_is_refused():
    text = Fidelity("t", context=8, steps=10, recipe=recipe("fast/text"))
    with pytest.raises(UserError, match=r"a rung for text \('t'\)"):
        Ladder("bad", (Rung(text), rung("b")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("eta = 3\n[[rungs]]\n", "unknown entry 'rungs'"),
        ("rung = 3\n", "has a `rung` that is not a list of tables"),
        ("[[rung]]\nresolution = 8\nepochs = 1\n", "rung 1 of ladder 'mine' has no recipe"),
        ('recipe = "fast/short"\n[[rung]]\nepochs = 1\n', "a rung needs resolution and epochs"),
        ('recipe = "fast/shirt"\n[[rung]]\nepochs = 1\n', "did you mean: fast/short"),
        (
            'recipe = "fast/short"\n[[rung]]\nresolution = 8\nepochs = 1\nimagse = 3\n',
            "did you mean: images",
        ),
        ("eta = \n", "cannot read ladder 'mine'"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, content, message):
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(UserError) as caught:
        ladder(str(tmp_path / "mine.toml"))
    assert message in str(caught.value)


def test_a_file_of_ones_own_may_change_the_recipe_and_the_width(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'recipe = "fast/steady"\neta = 2\n'
        "[[rung]]\nresolution = 8\nepochs = 1\nwidth = 0.5\nbatch = 16\n"
        '[[rung]]\nname = "whole"\nresolution = 8\nepochs = 1\n'
    )
    found = ladder(str(tmp_path / "mine.toml"))
    assert [r.name for r in found.rungs] == ["mine-1", "whole"]
    assert [r.width for r in found.rungs] == [0.5, 1.0]
    assert [r.fidelity.batch for r in found.rungs] == [16, CONSTANT.batch]
    assert found.eta == 2
    assert resolve_ladder(found, 4).eta == 4


def test_rungs_that_add_epochs_at_a_constant_rate_are_one_training():
    found = Ladder("l", (rung("a", 1), rung("b", 2), rung("c", 4)))
    assert [found.stretch(i) for i in range(3)] == [(0, 2)] * 3
    assert [found.continues(i) for i in range(3)] == [False, True, True]
    top = found.rungs[2].fidelity
    assert [found.training(i) for i in range(3)] == [(top, 1), (top, 2), (top, None)]


def test_rungs_of_a_falling_rate_are_trainings_of_their_own():
    found = Ladder("l", (rung("a", 1, COSINE), rung("b", 2, COSINE)))
    assert [found.continues(i) for i in range(2)] == [False, False]
    assert [found.training(i) for i in range(2)] == [(r.fidelity, None) for r in found.rungs]


@pytest.mark.parametrize(("epochs", "one"), [((2, 4, 8), True), ((3, 4, 8), False)])
def test_rungs_at_the_ends_of_cycles_are_one_training(epochs, one):
    cycles = dataclasses.replace(CONSTANT, schedule="cyclic", cycles=4)
    found = Ladder("l", tuple(rung(str(e), e, cycles) for e in epochs))
    assert found.continues(1) is one
    assert found.continues(2) is one


def test_growing_images_are_never_cut():
    growing = dataclasses.replace(CONSTANT, progressive=((0.0, 0.5), (0.5, 1.0)))
    assert not Ladder("l", (rung("a", 1, growing), rung("b", 2, growing))).continues(1)


@pytest.mark.parametrize(
    "above",
    [
        rung("b", 2, images=200),
        rung("b", 2, resolution=16),
        rung("b", 2, COSINE),
        rung("b", 2, dataclasses.replace(CONSTANT, batch=32)),
    ],
)
def test_what_changes_more_than_epochs_trains_anew(above):
    assert not Ladder("l", (rung("a"), above)).continues(1)
    assert not Ladder("l", (rung("a", width=0.5), rung("b", 2))).continues(1)
