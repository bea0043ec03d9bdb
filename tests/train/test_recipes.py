"""Recipes: the files, what they say, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from syno import UserError
from syno.train import Recipe, fidelity, recipe, recipe_names, rungs


def test_all_recipes_are_read_and_say_what_they_are() -> None:
    assert set(recipe_names()) >= {
        *("paper/cifar100", "paper/imagenet", "paper/gpt2"),
        *("fast/digits", "fast/short", "fast/cifar", "fast/progressive", "fast/text"),
    }
    for name in recipe_names():
        found = recipe(name)
        assert found.name == name
        assert found.version >= 1
        assert found.summary
        assert Recipe.from_json(found.to_json()) == found
        assert rungs(name)[0].recipe == found


def test_the_recipes_of_the_paper_are_the_papers() -> None:
    cifar = recipe("paper/cifar100")
    assert (cifar.learning_rate, cifar.momentum, cifar.weight_decay) == (0.1, 0.9, 1e-3)
    assert (cifar.batch, cifar.clip_norm, cifar.schedule, cifar.warmup) == (128, 5.0, "cosine", 0)
    assert (cifar.crop, cifar.pad, cifar.flip, cifar.cutout) == (2, "reflect", True, 3)
    assert dict(cifar.least_accuracy) == {1: 0.1, 3: 0.2, 5: 0.25, 10: 0.3, 30: 0.5, 60: 0.6}
    full = fidelity("paper/cifar100")
    assert (full.resolution, full.epochs, full.images) == (224, 100, None)
    imagenet = recipe("paper/imagenet")
    assert (imagenet.batch, imagenet.learning_rate, imagenet.schedule) == (1024, 0.5, "cyclic")
    assert (imagenet.label_smoothing, imagenet.precision) == (0.1, "float16")
    assert (imagenet.weight_decay, imagenet.decay_everything) == (5e-5, False)
    assert imagenet.flip_average
    gpt2 = recipe("paper/gpt2")
    assert (gpt2.optimizer, gpt2.betas, gpt2.learning_rate) == ("adamw", (0.9, 0.95), 3e-4)
    assert (gpt2.weight_decay, gpt2.clip_norm, gpt2.batch) == (0.1, 1.0, 1)
    short, long = rungs("paper/gpt2")
    assert (short.context, short.seconds, short.steps) == (2048, 1800, None)
    assert (long.context, long.seconds, long.steps) == (2048, None, 100_000)


def test_an_unknown_recipe_names_what_is_like_it() -> None:
    with pytest.raises(UserError) as error:
        recipe("paper/cifar10")
    first, second, third = str(error.value).split("\n")
    assert first == "unknown recipe 'paper/cifar10'"
    assert "fast/cifar, fast/custom, fast/digits" in second
    assert third.startswith("  did you mean: paper/cifar100")


def test_a_recipe_of_ones_own_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "learning_rate = 0.3\nbatch = 16\nprogressive = [[0.0, 0.5], [0.5, 1]]\n"
        "[least_accuracy]\n10 = 0.5\n2 = 0.1\n[[rung]]\nresolution = 16\nepochs = 2\n"
    )
    found = recipe(str(path))
    assert (found.name, found.learning_rate, found.batch) == ("mine", 0.3, 16)
    assert found.least_accuracy == ((2, 0.1), (10, 0.5))
    assert found.progressive == ((0.0, 0.5), (0.5, 1))
    own = fidelity(str(path))
    assert (own.name, own.resolution, own.epochs) == ("mine", 16, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch = ", "cannot read recipe 'mine': "),
        ("batsh = 3", "has an unknown entry 'batsh'"),
        ("batsh = 3", "did you mean: batch, betas?"),
        ("batch = 1.5", "cannot have batch = 1.5\n  expected: a whole number of at least 1"),
        ("batch = true", "cannot have batch = True"),
        ("flip = 1", "cannot have flip = 1\n  expected: true or false"),
        ('optimizer = "adam"', "expected: one of sgd, adamw\n  did you mean: adamw?"),
        ("optimizer = 3", "cannot have optimizer = '3'"),
        ('learning_rate = "big"', "cannot have learning_rate = 'big'"),
        ("learning_rate = 0.0", "expected: above 0 and below inf"),
        ("learning_rate = nan", "cannot have learning_rate = nan"),
        ("warmup = 1.0", "expected: at least 0 and below 1"),
        ("final_rate = 1.5", "expected: a share of the peak from 0 to 1"),
        ("betas = [0.9]", "cannot have betas = (0.9,)"),
        ("betas = 3", "recipe 'mine' cannot have betas = 3"),
        ("progressive = [[0.5, 1.0]]", "expected: shares of the epochs, ascending from 0 on"),
        ("progressive = [[0.0, 0.5], [0.0, 1.0]]", "cannot have progressive"),
        ("progressive = [1]", "cannot read recipe 'mine': "),
        ("area = [0.5, 0.1]", "expected: the least and largest share"),
        ("[least_accuracy]\nfirst = 0.1", "has a bad table least_accuracy"),
        ("[least_accuracy]\n3 = 10", "each with an accuracy from 0 to 1"),
        ("least_accuracy = 3", "has a bad table least_accuracy"),
        ("[rung]\nepochs = 3", "has a `rung` that is not a list of tables"),
        ("[[rung]]\nepochs = 3", "fidelity 'mine' cannot have resolution = None"),
        ("[[rung]]\nlength = 3", "cannot read a fidelity"),
        ("batch = 3", "recipe '{path}' has no rung"),
    ],
)
def test_a_bad_recipe_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        fidelity(str(path))
    assert message.format(path=path) in str(error.value)


def test_a_missing_or_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no recipe file"):
        recipe(str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot read recipe 'binary'"):
        recipe(str(tmp_path / "binary.toml"))


def test_a_recipe_can_be_compared_and_kept_in_a_set() -> None:
    first = recipe("fast/cifar")
    assert replace(first) == first
    assert len({first, replace(first), replace(first, batch=3)}) == 2
