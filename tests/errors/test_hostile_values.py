"""Values that fit no type: surrogates, huge numbers, deep nesting, odd keys, odd paths."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import SPECIFICATION

from syno import Operator, Space, Specification, UserError, rule
from syno._util import checks
from syno.data import load, load_text
from syno.data.tokens import from_json as tokenizer
from syno.network.models import describe
from syno.operators import zoo
from syno.operators.specification import checked_binding
from syno.space.rules import describe_rule, load_rules, rule_set
from syno.store import Store
from syno.store.objective import objective_of
from syno.study.fidelity.ladder import Ladder, ladder
from syno.train import Fidelity, fidelity
from syno.train.recipe import Recipe, recipe

HUGE, LONG = 10**400, 10**5000
SURROGATE = "\ud800"


def deep(depth: int = 5000) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def specify(**changes: Any) -> Specification:
    given = {"input": "[C_in, H]", "output": "[C_out, H]", "primary": ["C_in: 2", "C_out: 2"]}
    return Specification(**given | changes)


def with_limits(**limits: Any) -> Specification:
    return Specification.from_json(
        json.dumps({"input": "[H]", "output": "[H]", "primary": ["H: 1"], "limits": limits})
    )


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "surrogate in a text": (lambda: Operator.from_text(SURROGATE), "half of a surrogate pair"),
    "surrogate in a formula": (lambda: Operator.parse(f"y = {SURROGATE}"), "half of a surrogate"),
    "surrogate in a shape": (lambda: specify(input=SURROGATE), "'input' holds a character"),
    "surrogate in a preset": (lambda: Specification.preset(SURROGATE), "half of a surrogate pair"),
    "surrogate in a binding": (lambda: checked_binding({SURROGATE: 1}), "half of a surrogate"),
    "surrogate in a binding's text": (lambda: checked_binding(SURROGATE), "half of a surrogate"),
    "surrogate in a rule": (lambda: rule_set([SURROGATE]), "half of a surrogate pair"),
    "surrogate in a rule's name": (lambda: describe_rule(SURROGATE), "half of a surrogate pair"),
    "surrogate in a rule's doc": (
        lambda: rule("U1", "name", kind="exact", doc=SURROGATE)(lambda g, s: None),
        "the doc of a rule holds a character",
    ),
    "huge limit": (lambda: specify(min_macs=HUGE), "limit 'min_macs' is a number"),
    "long limit": (lambda: specify(min_macs=LONG), "an integer of about 5001 digits"),
    "huge dimension": (lambda: specify(passed_through=[(2**63, 0)]), "at most 2\\^63 - 1"),
    "large dimension": (
        lambda: specify(passed_through=[(2**31, 0)]), "from -2147483647 to 2\\^31 - 1"
    ),
    "huge size": (lambda: checked_binding({"H": LONG}), "cannot be bound to an integer of about"),
    "huge layer": (lambda: specify(layer_macs=[HUGE]), "a number of 'layer_macs' is a number"),
    "limit named self": (lambda: with_limits(self=1), "unknown argument or limit 'self'"),
    "limit named input": (lambda: with_limits(input=1), "unknown argument or limit 'input'"),
    "digits in a specification": (
        lambda: Specification.from_json('{"input": ' + "9" * 5000 + "}"),
        "the specification is not valid JSON: Exceeds the limit",
    ),
    "deep specification": (
        lambda: Specification.from_json("[" * 100_000), "JSON: it is nested too deeply"
    ),
    "deep operator": (lambda: Operator.from_json("[" * 100_000), "JSON: it is nested too deeply"),
    "digits in an operator": (
        lambda: Operator.from_json('{"out": ' + "9" * 5000 + "}"), "operator is not valid JSON"
    ),
    "long number in an operator": (
        lambda: Operator.from_json({"out": LONG, "in": [], "steps": [], "match": []}),
        "the number an integer of about 5001 digits",
    ),
    "number that is no text": (lambda: Operator.from_json(b"\xff\xfe\xff"), "is not valid JSON"),
    "number of plans": (
        lambda: zoo.load("conv1x1").plans(zoo.binding("conv1x1"), HUGE), "'limit' is an integer"
    ),
    "number of a plan": (
        lambda: zoo.load("conv1x1").source(zoo.binding("conv1x1"), plan=LONG), "at most 1000, got"
    ),
    "seed": (
        lambda: zoo.load("conv1x1").mean_square(zoo.binding("conv1x1"), -1), "'seed' is an integer"
    ),
    "threads": (
        lambda: Space.enumerate(SPECIFICATION, depth=1, threads=2**31),
        "'threads' is an integer of at most 512",
    ),
    "rules that are no list": (
        lambda: Space.enumerate(SPECIFICATION, depth=1, rules_off=1), "'rules_off' is no list"
    ),
    "seconds": (
        lambda: Space.enumerate(SPECIFICATION, depth=1, max_seconds=HUGE),
        "'max_seconds' is a number",
    ),
    "model that is no text": (lambda: describe(LONG), "unknown model 'an integer of about"),
    "recipe named self": (lambda: Recipe.from_json({"self": 1}), "an unknown entry 'self'"),
    "recipe with a number as a key": (lambda: Recipe.from_json({1: 1}), "is not a string"),
    "recipe that is a list": (lambda: Recipe.from_json([]), "a recipe is not an object"),
    "long batch": (lambda: recipe_with(batch=-LONG), "batch = an integer of about 5001 digits"),
    "fidelity named self": (lambda: Fidelity.from_json({"self": 1}), "cannot read a fidelity"),
    "fidelity that is a text": (lambda: Fidelity.from_json("a"), "a fidelity is not an object"),
    "fidelity of a recipe that is none": (
        lambda: Fidelity.from_json({"recipe": b""}), "a recipe is not an object"
    ),
    "changed by self": (lambda: fidelity("fast/digits").changed(**{"self ": 1}), "has no 'self '"),
    "ladder without rungs": (lambda: Ladder.from_json({}), "a ladder has no field 'rungs'"),
    "ladder of numbers": (lambda: Ladder.from_json({"rungs": [0]}), "a ladder's rung is not an"),
    "tokenizer without a name": (lambda: tokenizer({}), "a tokenizer has no field 'name'"),
    "tokenizer of another name": (lambda: tokenizer({"name": "r"}), "unknown tokenizer 'r'"),
    "tokenizer that is none": (
        lambda: tokenizer({"name": "byte-pair", "model": {}}), "not a tokenizer of the package"
    ),
    "long name of a recipe": (lambda: recipe("x" * 10**5 + ".toml"), "there is no recipe file"),
    "long name of a ladder": (lambda: ladder("x" * 10**5), "unknown ladder 'xxx"),
    "long path of rules": (lambda: load_rules("x" * 300), "cannot read the rules"),
    "NUL in a path of rules": (lambda: load_rules("a\0.py"), "without NUL"),
    "long name of a store": (lambda: Store.open("x" * 300), "(?s)the store 'xxx.*name too"),
    "NUL in a store": (lambda: Store.open("a\0.db"), "(?s)cannot open the store .*NUL"),
    "surrogate in a store": (lambda: Store.open("a\ud800.db"), "surrogates not allowed"),
    "store below a file": (lambda: Store.open(f"{__file__}/runs.db"), "there is no folder"),
    "address that is none": (lambda: Store.open("e://:"), "is not the address of a store"),
    "address with a surrogate": (
        lambda: Store.open("postgresql:///a\ud800"), "the address of a store holds a character"
    ),
    "address that is no text": (lambda: Store.open(3), "the address of a store is a string, got 3"),
    "long name of data": (lambda: load("x" * 300, "/tmp"), "cannot look for data at 'xxx"),
    "long path of data": (lambda: load("./" + "x" * 300), "cannot look for data at './xxx"),
    "NUL in data": (lambda: load_text("./a\0b"), "(?s)cannot look for data at .*NUL"),
    "long path of a space": (
        lambda: Space.load("x" * 300, SPECIFICATION), "File name too long"
    ),
    "NUL in a space": (lambda: Space.load("a\0b", SPECIFICATION), "without NUL"),
    "deep Python data": (
        lambda: Operator.from_json({"out": deep(), "in": 1, "steps": 1, "match": 1}), "not a"
    ),
}  # fmt: skip


def recipe_with(**changes: Any) -> Recipe:
    return Recipe.from_json(recipe("fast/digits").to_json() | changes)


@pytest.mark.parametrize("case", CASES)
def test_is_a_user_error(case: str) -> None:
    call, words = CASES[case]
    with pytest.raises(UserError, match=words) as refused:
        call()
    assert len(str(refused.value)) < 4000
    str(refused.value).encode()


def test_settings_without_a_fidelity_are_judged_by_accuracy() -> None:
    for settings in ({"fidelity": 1}, {"fidelity": {"recipe": [1]}}, 3):
        assert objective_of(settings).name == "accuracy"


def test_files_with_hostile_content_are_user_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for content in (b"a = " + b"9" * 5000, b"\xff", b"a = " + b"[" * 50_000, b"a = \0"):
        path.write_bytes(content)
        for read in (recipe, ladder, fidelity):
            with pytest.raises(UserError, match=r"cannot read (recipe|ladder)"):
                read(str(path))


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_of_numpy_are_whole(value: Any) -> None:
    assert checks.whole("a number", value, 0, 5) == 3
    assert checks.is_whole(value, 0, 5) == (type(value) is int)  # JSON knows no other


@pytest.mark.parametrize(
    "value", [True, 3.0, "3", None, math.nan, 6, -1, LONG, 1j], ids=lambda v: type(v).__name__
)
def test_what_is_no_whole_number_in_range_is_refused(value: Any) -> None:
    too_large = isinstance(value, int) and value > 5
    bound = "most 5" if too_large else "least 0"
    with pytest.raises(UserError, match=f"a number is an integer of at {bound}, got ") as refused:
        checks.whole("a number", value, 0, 5, hint="take 3")
    assert str(refused.value).endswith("\n  hint: take 3")
    assert not checks.is_whole(value, 0, 5)


def test_what_a_message_repeats_is_short() -> None:
    for value in ("x" * 10**6, [1] * 10**6, LONG, [LONG], deep(), {"a": deep()}):
        assert len(checks.shown(value)) < 300
    assert checks.shown({"a": [1, "b"]}) == "{'a': [1, 'b']}"
