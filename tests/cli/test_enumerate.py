"""`syno enumerate`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno import Operator, Specification
from syno.cli.main import cli
from syno.space.pace import EnumerationPace
from syno.space.space import Space

SHAPES = (
    *("--input", "[C_in, H]", "--output", "[C_out, H]", "--primary", "C_in: 2"),
    *("--primary", "C_out: 2", "--primary", "H: 1", "--coefficient", "k=3: 1"),
    *("--binding", "C_in=16,C_out=16,H=32"),
)
SMALL = ("enumerate", *SHAPES)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def listed(*arguments: str | Path) -> dict:
    result = run(*SMALL, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_graphs_structures_and_operators_are_counted_apart() -> None:
    found = listed("--depth", "5")
    assert found["graphs"] == sum(row["graphs"] for row in found["by_depth"])
    assert found["operators"] == sum(row["operators"] for row in found["by_depth"])
    assert found["operators"] == sum(found["by_primitives"].values())
    assert 0 < found["operators"] <= found["structures"]
    assert (found["complete_depth"], found["exhausted"], found["ended"]) == (5, True, "complete")


def test_the_same_whatever_the_threads_the_bound_and_the_names() -> None:
    want = listed("--depth", "4")
    for other in ("1", "2"):
        found = listed("--depth", "4", "--threads", other)
        for name in ("signature", "graphs", "structures", "operators", "by_depth"):
            assert found[name] == want[name], other
    for other in ("none", "loose"):  # graphs that come to nothing may be more
        found = listed("--depth", "4", "--bound", other)
        for name in ("structures", "operators", "by_primitives"):
            assert found[name] == want[name], other
    renamed = [a.replace("C_in", "A").replace("C_out", "B") for a in SMALL]
    again = json.loads(run(*renamed, "--depth", "4", "--json").stdout)
    assert again["signature"] == want["signature"]


def test_the_text_says_how_far_it_came_and_why_it_ended() -> None:
    done = run(*SMALL, "--depth", "3")
    assert done.exit_code == 0
    assert "complete up to depth 3\n" in done.stdout
    assert "structures (graphs with a matching to the input)" in done.stdout
    assert "signature " in done.stdout
    part = run(*SMALL, "--max-nodes", "200")
    assert part.exit_code == 0
    assert "--max-nodes ended the enumeration\n" in part.stdout
    timed = run("enumerate", "--preset", "paper/resnet18", "--max-seconds", "0.3")
    assert "--max-seconds ended the enumeration" in timed.stdout


def test_a_rule_that_is_off_is_not_asked() -> None:
    with_all = listed("--depth", "5", "--stats")
    without = listed("--depth", "5", "--stats", "--rule", "R6a=off")
    names = json.dumps(with_all["rejections"])
    assert "R6a view-above-share" in names
    assert "R6a view-above-share" not in json.dumps(without["rejections"])
    assert without["rules"] != with_all["rules"]
    assert without["rules_off"] == ["R6a"]
    assert without["structures"] > with_all["structures"]
    assert listed("--depth", "5", "--rule", "view-above-share=off")["rules"] == without["rules"]


def test_rejections_are_a_tree_that_adds_up() -> None:
    tree = listed("--depth", "5", "--stats")["rejections"]

    def check(node: dict) -> None:
        if "parts" in node:
            assert node["count"] == sum(part["count"] for part in node["parts"])
            for part in node["parts"]:
                check(part)
        else:
            assert node["doc"], node

    check(tree)
    groups = [part["name"] for part in tree["parts"]]
    assert groups[:2] == ["specification", "completion bound"]
    assert "other" not in groups
    assert sum(part["share"] for part in tree["parts"]) == pytest.approx(1, abs=1e-4)
    text = run(*SMALL, "--depth", "5", "--stats").stdout
    assert "rejections" in text
    assert "completion bound" in text


def test_draws_are_distinct_seeded_and_spread() -> None:
    first = listed("--depth", "5", "--sample", "6", "--seed", "3")
    keys = [o["key"] for o in first["operators_drawn"]]
    assert len(set(keys)) == 6
    again = listed("--depth", "5", "--sample", "6", "--seed", "3")
    assert [o["key"] for o in again["operators_drawn"]] == keys
    other = listed("--depth", "5", "--sample", "6", "--seed", "4")
    assert [o["key"] for o in other["operators_drawn"]] != keys
    costs = listed("--depth", "5", "--sample", "6", "--stratify", "macs")["operators_drawn"]
    macs = [o["macs"] for o in costs]
    assert macs == sorted(macs)
    assert macs[0] < macs[-1]
    kinds = listed("--depth", "5", "--sample", "5", "--stratify", "primitives")["operators_drawn"]
    assert len({json.dumps(o["primitives"], sort_keys=True) for o in kinds}) == 5
    assert " MACs " in run(*SMALL, "--depth", "3", "--sample", "2").stdout


def test_a_file_goes_on_where_it_ended_and_prints_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "small.space"
    whole = listed("--depth", "5")
    first = run(*SMALL, "--depth", "4", "--file", file)
    assert first.exit_code == 0, first.output
    assert f"wrote {file}" in first.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["small.space"]
    second = run(*SMALL, "--depth", "5", "--file", file, "--resume")
    assert second.exit_code == 0, second.output
    rows = [line.split() for line in second.stdout.splitlines()]
    depths = [row[0] for row in rows if len(row) == 3 and row[0].isdecimal()]
    assert depths == ["5"]
    assert "in the file, up to depth 4: " in second.stdout
    again = json.loads(run(*SMALL, "--file", file, "--resume", "--depth", "5", "--json").stdout)
    assert again["resumed_from"] == 5
    for name in ("signature", "graphs", "structures", "operators", "by_depth", "by_primitives"):
        assert again[name] == whole[name]


def test_what_is_not_completed_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "small.space"
    run(*SMALL, "--depth", "4", "--file", file)
    before = file.read_bytes()
    result = run(*SMALL, "--file", file, "--resume", "--max-nodes", "5")
    assert result.exit_code == 0, result.output
    assert "no further depth limit was completed" in result.stdout
    assert file.read_bytes() == before


def test_no_operator_is_a_negative_result() -> None:
    result = run(*SMALL, "--depth", "1")
    assert result.exit_code == 1
    assert "no operator connects the shapes within depth 1" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_ctrl_c_keeps_the_last_complete_depth_limit(tmp_path: Path) -> None:
    file = tmp_path / "r18.space"
    command = [sys.executable, "-m", "syno.cli", "enumerate", "--preset", "paper/resnet18"]
    child = subprocess.Popen(
        [*command, "--max-merges", "3", "--max-weights", "3", "--file", str(file), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wide = Specification.preset("paper/resnet18", max_merges=3, max_weights=3)
    deadline = time.monotonic() + 300
    while not (file.exists() and len(Space.load(file, wide))) and time.monotonic() < deadline:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 130, err
    assert "stopping; the last complete depth limit is kept" in err
    assert "Traceback" not in err
    found = json.loads(out)
    assert found["ended"] == "stopped"
    assert not found["exhausted"]
    kept = Space.load(file, wide)
    assert kept.complete_depth == found["complete_depth"] >= 1
    assert kept.signature() == found["signature"]
    assert [path.name for path in tmp_path.iterdir()] == ["r18.space"]


def test_the_time_left_follows_from_how_fast_limits_grow() -> None:
    now = 0.0
    estimate = EnumerationPace(lambda: now)
    assert estimate.seen(10) == (None, None)
    now = 1.0
    estimate.limit_completed(100)  # 100 graphs
    now = 3.0
    assert estimate.seen(300) == (100.0, None)
    estimate.limit_completed(500)  # 400 graphs
    now = 7.0  # 4 seconds into a limit of about 1,600 graphs, 800 of them seen
    assert estimate.seen(1300) == (200.0, 4.0)
    now = 20.0
    assert estimate.seen(500 + 3000)[1] is None


def test_walks_go_on_where_a_budget_ended_the_listing() -> None:
    arguments = ("--preset", "paper/resnet18", "--max-depth", "8", "--max-nodes", "3000")
    result = run("enumerate", *arguments, "--walks", "600", "--seed", "2", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    walks = found["walks"]
    assert found["complete_depth"] < walks["depth"] == 8
    assert walks["walks"] >= 600
    assert 0 < walks["new"] == len(walks["operators_found"]) <= walks["operators"]
    assert walks["operators"] <= walks["accepted"]
    assert 0 <= walks["coverage"] <= 1
    assert walks["at_least"] >= walks["operators"]
    specification = Specification.preset("paper/resnet18", max_depth=8)
    for one in walks["operators_found"][:10]:
        operator = Operator.from_text(one["text"], specification)
        assert operator.key == one["key"]
        assert sum(operator.primitives().values()) > found["complete_depth"]
        assert one["weight"] > 0
    again = run("enumerate", *arguments, "--walks", "600", "--seed", "2", "--threads", "1")
    assert f"found {walks['operators']:,} operators" in " ".join(again.stdout.split())
    assert f"coverage {walks['coverage']:.3f}" in again.stdout
    assert "± " in again.stdout


def test_there_are_no_walks_where_everything_is_listed() -> None:
    assert listed("--depth", "4", "--walks", "10")["walks"] is None
    assert listed("--depth", "4")["walks"] is None


def test_walks_for_a_while_may_find_what_no_budget_was_left_for() -> None:
    result = run(*SMALL, "--max-nodes", "1", "--walk-seconds", "0.01", "--sample", "2")
    assert result.exit_code == 0, result.output
    assert "0 operators (distinct" in " ".join(result.stdout.split())
    assert "beyond depth 1: " in result.stdout
    assert result.stdout.count("MACs") == 2
