"""tools/changed_tests.py: the tests that a change concerns, the nearest first, within a time."""

import json
import subprocess
from pathlib import Path

import pytest

from changed_tests import changed_since, fitting, nearest

FILES = {
    "python/syno/__init__.py": "from syno.low import low\n_LAZY = {'high': 'syno.high'}\n",
    "python/syno/low.py": "low = 1\n",
    "python/syno/middle/__init__.py": "from .part import part\n",
    "python/syno/middle/part.py": "from syno.low import low\npart = low\n",
    "python/syno/middle/other.py": "other = 2\n",
    "python/syno/high.py": "def high():\n    from syno.middle import part\n    return part\n",
    "python/syno/cli/main.py": "TABLE = {'other': 'syno.middle.other'}\n",
    "python/syno/cli/commands/show_it.py": "from syno.high import high\n",
    "tests/api/test_low.py": "import syno\nsyno.low\n",
    "tests/api/test_high.py": "import syno\nsyno.high()\n",
    "tests/api/test_part.py": "from syno.middle import part\n",
    "tests/api/test_script.py": "SCRIPT = 'script.py'\n",
    "tests/api/script.py": "from syno.high import high\n",
    "tests/cli/test_show.py": "from syno.cli.main import TABLE\nrun(['show-it'])\n",
    "tests/docs/test_pages.py": "ROOT = '.'\n",
    "tests/golden/test_golden.py": "",
    "docs/page.md": "# A page\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def found(project: Path, *changed: str) -> list[str]:
    return [path.stem[5:] for path in nearest(project, set(map(Path, changed)))]


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("python/syno/low.py", ["low", "part", "high", "script", "show"]),
        ("python/syno/middle/part.py", ["part", "high", "script", "show"]),
        ("python/syno/middle/other.py", ["show"]),
        ("python/syno/high.py", ["high", "script", "show"]),
        ("python/syno/cli/commands/show_it.py", ["show"]),
        ("tests/api/script.py", ["script"]),
        ("tests/api/conftest.py", ["high", "low", "part", "script"]),
        ("tests/golden/some.txt", ["golden"]),
        ("docs/page.md", ["pages"]),
        ("src/syno/graph.cpp", []),
    ],
)
def test_what_uses_a_changed_file_is_concerned(project: Path, changed: str, tests: list[str]):
    assert found(project, changed) == tests


def test_as_many_run_as_fit_into_the_time(project: Path) -> None:
    kept = project / ".pytest_cache/v/syno/seconds"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"tests/api/test_low.py::a": 9.0, "tests/api/test_low.py::b": 1.0}))
    tests = nearest(project, {Path("python/syno/low.py")})
    assert fitting(project, tests, 12.0) == tests[:1]
    assert fitting(project, tests, 13.5) == tests[:2]
    assert fitting(project, tests, 5.0) == tests[:1]
    assert fitting(project, tests, 1000.0) == tests
    # Of two that are equally near, the shorter one comes first.
    kept.write_text(json.dumps({"tests/api/test_script.py::a": 9.0}))
    assert found(project, "python/syno/high.py") == ["high", "show", "script"]


def test_a_change_is_what_git_says(project: Path) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", project, *name, *words], check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    assert changed_since(project, "HEAD") == set()
    (project / "python/syno/low.py").write_text("low = 2\n")
    (project / "new.py").touch()
    assert changed_since(project, "HEAD") == {Path("python/syno/low.py"), Path("new.py")}
    with pytest.raises(SystemExit, match="git cannot compare with 'nothing'"):
        changed_since(project, "nothing")
