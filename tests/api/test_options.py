"""Options as dataclasses: their checks, what they refuse, and what names a group of them."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import syno
from syno import _core
from syno._util.declaration import document, documented, restored, takes
from syno._util.options import Options, Stored, declared, group, like, memory_size, option
from syno.network.sampler import MAX_NODES
from syno.space.options import WALK_BUDGETS


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (syno.SpaceOptions, {"max_nodes": 0}, "'max_nodes' is an integer of at least 1, got 0"),
        (syno.SpaceOptions, {"max_nodes": True}, "'max_nodes' is an integer"),
        (syno.SpaceOptions, {"rules_off": "R6a"}, "'rules_off' is no list"),
        (syno.TrainOptions, {"max_slowdown": 0.0}, "'max_slowdown' is a number above 0, got 0"),
        (syno.TrainOptions, {"max_slowdown": math.nan}, "'max_slowdown' is a number above 0"),
        (syno.TrainOptions, {"deadline_s": "1 h"}, "'deadline_s' is a number, got '1 h'"),
        (syno.TrainOptions, {"tokenizer": "words"}, "'tokenizer' is one of bytes, byte-pair"),
        (syno.TimingOptions, {"repeats": 3}, "'repeats' is an integer of at least 20, got 3"),
        (syno.IsolationOptions, {"isolate": 1}, "'isolate' is True or False"),
        (syno.IsolationOptions, {"memory_limit": 0}, "'memory_limit' is an integer of at least 1"),
        (syno.IsolationOptions, {"max_attempts": 0}, "'max_attempts' is an integer of at least 1"),
    ],
)
def test_a_value_out_of_its_range_is_a_mistake(
    kind: type[Options], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(syno.UserError, match=message):
        kind(**given)


def test_values_have_their_type_afterwards() -> None:
    space = syno.SpaceOptions(max_nodes=np.int64(7), rules_off=["R6a"])
    assert (space.max_nodes, type(space.max_nodes)) == (7, int)
    assert space.rules_off == ("R6a",)
    assert syno.TrainOptions(max_slowdown=2).max_slowdown == 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        space.max_nodes = 3  # type: ignore[misc]


def test_budgets_have_the_defaults_of_c() -> None:
    (nodes,) = (d for d in _core.enumerate_options() if d["name"] == "max_nodes")
    assert syno.SpaceOptions().max_nodes == nodes["default"] == MAX_NODES
    assert {d["name"] for d in WALK_BUDGETS} == {"count", "width", "max_operators", "seconds"}
    assert {d["name"] for d in _core.trial_options()} == {"trials", "depth", "max_seconds"}
    for descriptor in (*_core.enumerate_options(), *WALK_BUDGETS, *_core.trial_options()):
        assert descriptor["doc"]
        assert descriptor["minimum"] <= descriptor["default"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shade(Options):
    """For tests."""

    depth: int = option("How dark.", 3, minimum=1)


@documented
@dataclasses.dataclass(frozen=True)
class Paint(Options):
    """How a wall is painted."""

    colour: str = option("The colour; can be repeated.", "red", more="A name.", unset="red")
    _: dataclasses.KW_ONLY
    layers: int = option("Number of layers.", 1, minimum=1, stored=Stored(name="coats"))
    names: str | Sequence[str] = option("Names.", (), stored=Stored())
    width: float = option("The width.", 2.0, stored=Stored(always=True, absent=math.inf))
    shade: Shade = group(Shade)


@takes(Paint)
def paint(given: Paint) -> str:
    """Paint a wall.

    Returns:
        What was painted.
    """
    return f"{given.colour} {given.shade.depth} {given.layers}"


def test_a_function_takes_the_options_of_a_class() -> None:
    assert paint() == "red 3 1"
    assert paint("blue", layers=2, shade=Shade(depth=5)) == "blue 5 2"
    assert paint(**Paint("green", layers=3)) == "green 3 3"
    assert paint(shade=None) == "red 3 1"  # type: ignore[arg-type]
    signature = inspect.signature(paint)
    assert list(signature.parameters) == ["colour", "layers", "names", "width", "shade"]
    assert signature.parameters["shade"].default is None
    wrong: Any = paint
    with pytest.raises(TypeError, match="paint: too many positional arguments"):
        wrong("red", 2)
    with pytest.raises(syno.UserError, match="'layers' is an integer of at least 1, got 0"):
        paint(layers=0)


def test_an_unknown_argument_names_its_group_or_the_nearest_one() -> None:
    wrong: Any = paint
    with pytest.raises(syno.UserError, match=r"no argument 'depth'\n.*shade=syno.Shade\(depth="):
        wrong("red", depth=5)
    with pytest.raises(
        syno.UserError,
        match="no argument 'layer'\n  did you mean: layers\\?\n  expected: one of colour, layers",
    ):
        wrong("red", layer=5)


def test_the_documentation_explains_each_option_once() -> None:
    args = """Args:
    colour: the colour. A name. Default: red.
    layers: number of layers.
    names: names.
    width: the width.
    shade: for tests."""
    assert Paint.__doc__ == f"How a wall is painted.\n\n{args}\n"
    assert paint.__doc__ == f"Paint a wall.\n\n{args}\n\nReturns:\n    What was painted."


def test_options_are_stored_and_read_again() -> None:
    assert document(Paint()) == {"width": 2.0}
    given = Paint(layers=2, names="one", width=math.inf)
    stored = document(given)
    assert stored == {"coats": 2, "names": ["one"], "width": None}
    assert restored(Paint, stored) == given
    assert restored(Paint, {}) == Paint(width=math.inf)


def test_a_field_is_that_of_another_class_with_changes() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Other(Options):
        layers: int | None = like(Paint, "layers", default=None)

    assert Other().layers is None
    with pytest.raises(syno.UserError, match="'layers' is an integer of at least 1"):
        Other(layers=0)


def test_every_option_of_a_study_is_in_the_signature_on_the_command_line_and_explained() -> None:
    from syno.cli.options import parameters
    from syno.study_options import AdaptationOptions, ResumeOptions, TrainingsOptions

    functions = {
        syno.StudyOptions: syno.search,
        ResumeOptions: syno.resume,
        TrainingsOptions: syno.train_operators,
        AdaptationOptions: syno.adapt,
    }
    for kind, function in functions.items():
        known = inspect.signature(function).parameters
        words = re.sub(r"\s+", " ", function.__doc__ or "")
        for each in dataclasses.fields(kind):
            assert each.name in known
            assert f" {each.name}: " in words
        shown = {parameter.name for parameter in parameters(kind)}
        assert {each.name for each in declared(kind) if each.shown} <= shown


def test_what_has_no_effect_is_refused() -> None:
    Shade().refuse("it is night", "depth")
    with pytest.raises(syno.UserError, match="'depth' of Shade has no effect here: it is night"):
        Shade(depth=5).refuse("it is night", "depth")


def test_amounts_of_memory() -> None:
    assert [memory_size(text) for text in ("1", "500M", "2 GB", "3k")] == [
        1,
        500 << 20,
        2 << 30,
        3 << 10,
    ]
    for text in ("", "0", "M", "-1", "2T"):
        with pytest.raises(syno.UserError, match="is not an amount of memory"):
            memory_size(text)


def test_every_option_that_a_study_stores_is_in_its_settings_and_in_the_report() -> None:
    from syno.report.settings import _SEARCH
    from syno.study.settings import StudySettings
    from syno.study_options import SearchOptions

    values = {"int": 3, "float": 2.5, "bool": True, "str": "macs"}
    texts = {"constraint": ("macs<=100",)}
    given = {each.name: texts.get(each.name, values[each.kind]) for each in declared(SearchOptions)}
    made = StudySettings(**given)
    stored = made.to_json()
    assert StudySettings.from_json(stored) == made
    for each in declared(SearchOptions):
        assert each.stored is not None
        assert stored[each.stored_name] == document(made)[each.stored_name]  # type: ignore[literal-required]
        assert each.stored_name in _SEARCH
        usual = StudySettings().to_json()
        assert (each.stored_name in usual) == each.stored.always
