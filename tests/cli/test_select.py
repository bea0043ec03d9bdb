"""`syno select`, and its folders as operands of other commands."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno import Operator, UserError
from syno.cli.main import cli
from syno.operands.operand import load_operator
from syno.operators.summary import identity
from syno.store import Outcome, Store
from syno.study.selection import Choice, choose, distance

from .conftest import CONV, HERE, LINEAR, ORIGINAL, SPECIFICATION, outcome


def syno(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def answer(
    accuracy: float, latency_ms: float, macs: int, params: int, **primitives: int
) -> Outcome:
    found = outcome(accuracy, latency_ms)
    return dataclasses.replace(found, macs=macs, params=params, primitives=primitives)


@pytest.fixture
def study(tmp_path: Path) -> str:
    """A baseline of 90 % and operators around it; `a` and `b` are near twins."""
    path = str(tmp_path / "study.db")
    operators = {
        "a": answer(0.89, 1.0, 1000, 100, reduce=1, contract=1),
        "b": answer(0.895, 1.1, 1100, 100, reduce=1, contract=1),
        "c": answer(0.92, 2.0, 4000, 100, reduce=1, contract=1),
        "d": answer(0.889, 0.5, 500, 50, reduce=1, contract=1),
        "e": answer(0.91, 1.2, 1100, 100, reduce=1, contract=1, shift=1),
    }
    with Store.open(path) as store:
        made = store.create_study(
            "s",
            specification=(SPECIFICATION.key, json.loads(SPECIFICATION.to_json())),
            settings={"model": "resnet-small", "data": "digits"},
            seed=0,
        )
        first = store.ask(made, 0, None, "w")
        store.tell(first.id, Outcome("ok", accuracy=0.9, rung="tiny", latency=ORIGINAL), HERE)
        for number, (name, told) in enumerate(operators.items(), start=1):
            text = (LINEAR if number % 2 else CONV) + "\n" * number
            asked = store.ask(made, number, (text, name * 32), "w")
            store.tell(asked.id, told, HERE)
        failed = store.ask(made, 6, ("f", "f" * 32), "w")
        store.tell(failed.id, Outcome("error", reason="crash"), HERE)
    return path


def names(study: str, **options: object) -> str:
    with Store.open(study, read_only=True) as store:
        found = choose(store.summary(), **{"top": 10, **options})  # type: ignore[arg-type]
    return "".join(choice.key[0] for choice in found)


def test_the_order_is_that_of_a_figure(study: str) -> None:
    assert names(study) == "dabec"
    assert names(study, by="macs") == "daebc"  # of equal MACs the more accurate
    assert names(study, by="params") == "dceba"
    assert names(study, by="accuracy") == "cebad"
    assert names(study, top=2) == "da"


def test_the_margin_counts_points_below_the_reference(study: str) -> None:
    assert names(study, within=1.0) == "abec"  # 89 % is one point below 90 %
    assert names(study, within=0.5) == "bec"
    assert names(study, within=0.0) == "ec"
    assert names(study, within=1.0, reference="best") == "ec"
    assert names(study, within=50.0, reference="best") == "dabec"


def test_the_front_has_what_no_other_operator_beats(study: str) -> None:
    assert names(study, front=True) == "dabec"  # each slower one is more accurate
    assert names(study, front=True, by="macs") == "daec"  # e costs as much as b
    assert names(study, front=True, by="params") == "dc"
    assert names(study, front=True, by="accuracy") == "cebad"
    assert names(study, front=True, within=1.0, by="macs") == "aec"


def test_a_long_front_is_selected_evenly_with_both_ends(study: str) -> None:
    assert names(study, front=True, top=5) == "dabec"
    assert names(study, front=True, top=3) == "dbc"
    assert names(study, front=True, top=2) == "dc"
    assert names(study, front=True, top=1) == "d"
    assert names(study, front=True, top=3, diverse=True) == "dae"


def test_near_twins_are_taken_once(study: str) -> None:
    assert names(study, diverse=True) == "daec"
    assert names(study, diverse=True, top=3) == "dae"
    assert names(study, diverse=True, least_distance=0.0) == "dabec"
    assert names(study, diverse=True, least_distance=100.0) == "d"
    assert names(study, diverse=True, by="accuracy") == "cebd"


def test_the_distance_counts_steps_and_doublings() -> None:
    def made(macs: int | None, params: int, **primitives: int) -> Choice:
        return Choice("k", "t", 0.5, 1, None, None, macs, params, primitives)

    first = made(1000, 100, reduce=1, contract=1)
    assert distance(first, first) == 0
    assert distance(first, made(2000, 100, reduce=1, contract=1)) == 1
    assert distance(first, made(500, 400, reduce=1, contract=1)) == 3
    assert distance(first, made(1000, 100, reduce=2, unfold=1)) == 3
    assert distance(first, made(None, 100, reduce=1, contract=1)) == 0
    second = made(3000, 50, shift=2)
    assert distance(first, second) == distance(second, first)


def test_several_seeds_count_as_their_mean(study: str) -> None:
    with Store.open(study) as store:
        more = dataclasses.replace(answer(0.85, 1.0, 1000, 100), seed=8, measurement=None)
        store.add_evaluation(store.study(), 1, more, HERE)
        other = dataclasses.replace(more, rung="large", accuracy=0.99)
        store.add_evaluation(store.study(), 1, other, HERE)
        (found,) = [c for c in choose(store.summary(), top=9) if c.key[0] == "a"]
    assert found.accuracy == pytest.approx(0.87)  # of the rung of the baseline
    assert found.seeds == 2


def test_a_study_without_a_baseline_is_compared_with_its_best(tmp_path: Path) -> None:
    path = str(tmp_path / "bare.db")
    with Store.open(path) as store:
        made = store.create_study("s", specification=("k", {}), settings={}, seed=0)
        asked = store.ask(made, 1, (LINEAR, "a" * 32), "w")
        store.tell(asked.id, answer(0.5, 1.0, 10, 10, reduce=1), HERE)
    with pytest.raises(UserError, match="--reference best"):
        names(path, within=1.0)
    assert names(path, within=1.0, reference="best") == "a"
    assert names(path) == "a"


def test_the_folders_are_operands_of_other_commands(study: str, tmp_path: Path) -> None:
    out = tmp_path / "selected"
    words = ["select", "--store", study, "--top", "3", "--diverse", "--within", "2", "--json"]
    result = syno(*words, "-o", str(out))
    assert result.exit_code == 0, result.output
    listed = json.loads(result.stdout)["operators"]
    folders = sorted(path.name for path in out.iterdir())
    linear, conv = (identity(text)[:8] for text in (LINEAR, CONV))
    assert folders == [f"0.8890_{conv}", f"0.8900_{linear}", f"0.9100_{linear}"]
    assert [Path(entry["folder"]).name for entry in listed] == folders
    assert [entry["id"][:8] for entry in listed] == [conv, linear, linear]

    one = out / f"0.8900_{linear}"
    for op in (one, one / "operator.txt"):
        found = load_operator(str(op), store=None, study=None)
        assert found == Operator.from_text(LINEAR)
        # The sizes come with it: no --binding is needed.
        assert found.specification is not None
        assert found.specification.bindings == SPECIFICATION.bindings
    for command in ("show", "verify"):
        result = syno(command, str(one))
        assert result.exit_code == 0, result.output
    result = syno("export", str(one), "-o", str(tmp_path / "op.py"))
    assert result.exit_code == 0, result.output


def test_a_folder_of_several_is_refused_where_one_is_expected(study: str, tmp_path: Path) -> None:
    out = tmp_path / "selected"
    assert syno("select", "--store", study, "-o", str(out)).exit_code == 0
    result = syno("show", str(out))
    assert result.exit_code == 2
    assert "contains 5 operators instead of one" in result.stderr
    assert f"0.9200_{identity(LINEAR)[:8]}" in result.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    result = syno("show", str(empty))
    assert result.exit_code == 2
    assert "contains no operator" in result.stderr


def test_one_operator_is_one(study: str, tmp_path: Path) -> None:
    result = syno("select", "--store", study, "--top", "1", "-o", str(tmp_path / "chosen"))
    assert "wrote 1 operator to" in result.stderr


def test_a_folder_with_something_in_it_is_left_alone(study: str, tmp_path: Path) -> None:
    out = tmp_path / "selected"
    out.mkdir()
    (out / "mine").touch()
    result = syno("select", "--store", study, "-o", str(out))
    assert result.exit_code == 2
    assert "is not empty" in result.stderr
    assert [path.name for path in out.iterdir()] == ["mine"]
    result = syno("select", "--store", study, "-o", str(out / "mine"))
    assert result.exit_code == 2
    assert "cannot write the selection" in result.stderr


def test_none_is_exit_code_1_and_says_what_was_asked(study: str, tmp_path: Path) -> None:
    result = syno("select", "--store", study, "--within", "0", "--by", "macs", "--top", "1")
    assert result.exit_code == 0
    with Store.open(study) as store:
        made = store.create_study("none", specification=("k", {}), settings={}, seed=0)
        asked = store.ask(made, 1, ("t", "a" * 32), "w")
        store.tell(asked.id, Outcome("error", reason="crash"), HERE)
    out = str(tmp_path / "selected")
    result = syno("select", "--store", study, "--study", "none", "--within", "1", "-o", out)
    assert result.exit_code == 1
    assert "no operator of 'none' is at most 1 points below the original network" in result.stderr
    assert not Path(out).exists()


def test_an_unknown_study_is_a_mistake(study: str) -> None:
    result = syno("select", "--store", study, "--study", "other")
    assert result.exit_code == 2
    assert "there is no study 'other'" in result.stderr


def test_an_order_by_the_loss_of_images_is_a_mistake(study: str) -> None:
    result = syno("select", "--store", study, "--by", "loss")
    assert result.exit_code == 2
    assert "is about images: its operators have no loss" in result.output
    assert "--by accuracy" in result.output


@pytest.mark.parametrize("name", ["operator.txt", "specification.json"])
def test_a_file_of_a_selection_that_changed_is_refused(
    study: str, tmp_path: Path, name: str
) -> None:
    syno("select", "--store", study, "--top", "1", "--out", str(tmp_path / "chosen"))
    (folder,) = (tmp_path / "chosen").iterdir()
    assert syno("show", str(folder)).exit_code == 0
    file = folder / name
    file.write_text(file.read_text() + "\n")
    done = syno("show", str(folder))
    assert done.exit_code == 2
    assert f"the file '{file}' has changed since `syno select` wrote it" in done.output
    alone = tmp_path / "mine.txt"  # changed on purpose
    alone.write_text((folder / "operator.txt").read_text())
    assert load_operator(str(alone), store=None, study=None) is not None
