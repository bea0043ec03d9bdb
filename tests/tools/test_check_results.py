"""tools/check_results.py: a result file says which sources it comes from."""

import json
import subprocess
from pathlib import Path

import pytest

import check_results
from check_results import Provenance

ROOT = Path(__file__).resolve().parents[2]
COMMIT = "0123456789" * 4
HISTORY = {COMMIT}


@pytest.mark.parametrize(
    ("commits", "marks", "wrong"),
    [
        ([COMMIT], {}, None),
        ([COMMIT], {"note": "the fan was broken"}, None),
        ([], {}, "it has no commit"),
        ([""], {}, "it has no commit"),
        ([], {"commit": "unknown"}, None),
        ([COMMIT + "+"], {}, "it was measured with changed sources"),
        ([COMMIT, COMMIT + "+"], {}, "it was measured with changed sources"),
        ([COMMIT + "+"], {"tree": "changed"}, None),
        ([COMMIT], {"tree": "changed"}, "marked as if they were not"),
        (["f" * 40], {}, "ffffffff is not in the history"),
        (["f" * 40], {"commit": "written afterwards"}, None),
        (["v0.1"], {}, "'v0.1' is no commit"),
        ([COMMIT + "+"], {"tree": "fine"}, "its provenance has tree: 'fine'"),
        ([COMMIT], {"why": "x"}, "its provenance has why: 'x'"),
    ],
)
def test_a_file_without_a_commit_or_from_changed_sources_is_refused_unless_it_says_so(
    commits, marks, wrong
):
    found = check_results.problems(Provenance(tuple(commits), marks), HISTORY)
    if wrong is None:
        assert found == []
    else:
        assert any(wrong in each for each in found)


def test_commits_are_found_wherever_they_stand(tmp_path):
    content = {"layers": [{"environment": {"commit": "a"}}, {"commit": "b"}], "commit": "a"}
    for name, text in (
        ("one.json", json.dumps(content | {"provenance": {"commit": "unknown"}})),
        ("two.jsonl", json.dumps(content) + "\nnot read\n"),
        ("three.txt", "# a command\n# provenance commit: unknown\n1 2\n"),
    ):
        (tmp_path / name).write_text(text)
    assert check_results.read(tmp_path / "one.json").commits == ("a", "b")
    assert check_results.read(tmp_path / "two.jsonl") == Provenance(("a", "b"), {})
    assert check_results.read(tmp_path / "three.txt").marks == {"commit": "unknown"}


def test_a_new_file_is_checked_against_the_history(tmp_path):
    results = tmp_path / "bench/results"
    results.mkdir(parents=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    path = results / "new.json"
    path.write_text(json.dumps({"environment": {"commit": head.stdout.strip()}}))
    assert check_results.violations(tmp_path) == []
    path.write_text(json.dumps({"environment": {"commit": COMMIT}}))
    assert check_results.violations(tmp_path) == [
        "bench/results/new.json: its commit 01234567 is not in the history"
    ]
    path.write_text("[1, 2")
    assert "cannot be read" in check_results.violations(tmp_path)[0]
    assert check_results.main([str(tmp_path)]) == 1


def test_every_file_of_results_says_where_it_is_from():
    assert check_results.violations(ROOT) == []
