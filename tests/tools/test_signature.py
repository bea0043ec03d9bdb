"""tools/signature.py and tools/check_commits.py: what the search finds is what commits say."""

import subprocess
from pathlib import Path

import pytest

import check_commits
import signature

ROOT = Path(__file__).resolve().parents[2]


def test_the_search_finds_what_the_signature_in_git_says():
    """A change on purpose: `make signature`, and `Signature: ...` in the message of the commit."""
    assert "\n".join(signature.lines()) + "\n" == signature.GOLDEN.read_text()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with the file of the signature, and a commit that the rule does not ask."""
    _git(tmp_path, "init", "--quiet")
    (tmp_path / check_commits.SIGNATURE).parent.mkdir(parents=True)
    _commit(tmp_path, check_commits.SIGNATURE, "Signature: " + 16 * "a" + "\n", "The signature")
    _commit(tmp_path, "src/syno/space/old.cpp", "1\n", "Before the rule")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("src/syno/space/state.cpp", "States are smaller\n\nNo functional change"),
        ("src/syno/rules/rule.cpp", f"A rule\n\nSignature: {16 * 'a'}"),
        ("src/syno/space/state_test.cpp", "A test of states"),
        ("src/syno/emit/print.cpp", "A printer"),
    ],
)
def test_a_commit_passes_that_says_what_it_changes_or_leaves_the_search_alone(
    project: Path, file: str, message: str
):
    _commit(project, file, "1\n", message)
    assert check_commits.violations(project, _first(project)) == []


def test_a_commit_that_touches_the_search_silently_is_named(project: Path):
    _commit(project, "src/syno/key/key.cpp", "1\n", "Faster keys, no functional change at all")
    (found,) = check_commits.violations(project, _first(project))
    assert "(Faster keys, no functional change at all) touches the search" in found
    assert "make signature" in found


def test_a_signature_that_is_not_the_one_in_git_is_named(project: Path):
    _commit(project, "src/syno/key/key.cpp", "1\n", f"Other keys\n\nSignature: {16 * 'b'}")
    (found,) = check_commits.violations(project, _first(project))
    assert 16 * "a" in found and 16 * "b" in found


def test_a_clone_without_history_is_asked_for_its_newest_commit(project: Path):
    assert "(Before the rule) touches the search" in check_commits.violations(project, 40 * "0")[0]


def _first(project: Path) -> str:
    """The commit that the fixture made last."""
    log = ["git", "-C", str(project), "log", "--format=%H", "--grep=Before the rule"]
    return subprocess.run(log, check=True, capture_output=True, text=True).stdout.strip()


def _commit(project: Path, file: str, text: str, message: str) -> None:
    (project / file).parent.mkdir(parents=True, exist_ok=True)
    (project / file).write_text(text)
    _git(project, "add", file)
    names = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    _git(project, *names, "commit", "--quiet", "--message", message)


def _git(project: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(project), *arguments], check=True, capture_output=True)
