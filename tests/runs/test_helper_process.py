"""Processes that Syno starts: where they find modules, and where programs are found."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from syno import UserError
from syno.codegen.native import find_compiler
from syno.runs import helper_process

# What a process started by this one is asked to do, by `main` of a module that lies nowhere else.
SHOWN = """
import json, os, sys
def main():
    print(json.dumps({"path": sys.path, "argv": sys.argv[1:], "there": "PYTHONPATH" in os.environ}))
"""


def python(code: str, folder: Path, *, flags: tuple[str, ...] = (), **environment: str) -> str:
    """What Python code prints that is run in a folder."""
    here = str(Path(helper_process.__file__).resolve().parents[2])
    path = os.pathsep.join([here, *filter(None, [environment.pop("PYTHONPATH", "")])])
    done = subprocess.run(
        [sys.executable, *flags, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


START = """
import os, subprocess, sys
import syno
from syno.runs import helper_process
os.chdir({other!r})
done = subprocess.run(helper_process.command({module!r}, "a", "b"), capture_output=True, text=True,
                      env=helper_process.environment())
print(done.stdout or done.stderr)
"""


def test_a_helper_finds_modules_where_its_parent_does_and_not_where_it_went(tmp_path: Path) -> None:
    start, other = tmp_path / "start", tmp_path / "other"
    for folder in (start, other):
        folder.mkdir()
        (folder / "shown.py").write_text(SHOWN)
    for name in ("json", "runpy", "importlib", "sitecustomize", "shown"):
        (other / f"{name}.py").write_text("raise SystemExit('not this one')\n")
    found = json.loads(python(START.format(other=str(other), module="shown"), start))
    assert found["argv"] == ["a", "b"] and not found["there"]
    assert str(start) in found["path"]  # what '' was when Syno was imported
    assert str(other) not in found["path"] and all(map(os.path.isabs, found["path"]))


def test_relative_entries_stay_what_they_were(tmp_path: Path) -> None:
    start, other = tmp_path / "start", tmp_path / "other"
    for folder, text in ((start, SHOWN), (other, "raise SystemExit('not this one')\n")):
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "shown.py").write_text(text)
    code = START.format(other=str(other), module="shown")
    found = json.loads(python("import sys; sys.path.append('lib')\n" + code, start, flags=("-P",)))
    assert str(start / "lib") in found["path"] and "lib" not in found["path"]
    found = json.loads(python(code, start, flags=("-P",), PYTHONPATH="lib"))
    assert str(start / "lib") in found["path"]


def test_a_colon_in_the_name_of_a_folder_is_no_separator(tmp_path: Path) -> None:
    start = tmp_path / "a:b"
    start.mkdir()
    (start / "shown.py").write_text(SHOWN)
    found = json.loads(python(START.format(other=str(tmp_path), module="shown"), start))
    assert str(start) in found["path"]


SCRIPT = """
import multiprocessing, os, sys
from syno.runs import helper_process

def path(_):
    return sys.path

if __name__ == "__main__":
    os.chdir(sys.argv[1])
    with helper_process.safe_spawning():
        assert os.environ["PYTHONSAFEPATH"] == "1"
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(sys.argv[1] in pool.map(path, [0])[0])
    assert "PYTHONSAFEPATH" not in os.environ
    print(os.environ["PYTHONPATH"])
"""


def test_pools_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    script, hostile, witness = tmp_path / "script.py", tmp_path / "hostile", tmp_path / "witness"
    script.write_text(SCRIPT)
    (hostile / "lib").mkdir(parents=True)
    for folder in (hostile, hostile / "lib"):  # PYTHONPATH has a relative entry, too
        for name in ("multiprocessing", "pickle", "socket", "sitecustomize"):
            (folder / f"{name}.py").write_text(f"open({str(witness)!r}, 'w')\n")
    here = str(Path(helper_process.__file__).resolve().parents[2])
    before = os.pathsep.join([here, "lib"])
    done = subprocess.run(
        [sys.executable, str(script), str(hostile)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"} | {"PYTHONPATH": before},
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["False", before], done.stderr
    assert not witness.exists()


def test_blocks_of_safe_spawning_may_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    first, second = helper_process.safe_spawning(), helper_process.safe_spawning()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert os.environ["PYTHONSAFEPATH"] == "1"
    second.__exit__(None, None, None)
    assert os.environ["PYTHONSAFEPATH"] == ""
    assert multiprocessing.active_children() == []


def test_programs_are_not_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "tool").write_text("#!/bin/sh\n")
        (folder / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", "bin"]))
    assert helper_process.find_program("tool") is None
    assert helper_process.find_program("./tool") is None
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", str(tmp_path / "bin")]))
    assert helper_process.find_program("tool") == str(tmp_path / "bin" / "tool")
    assert helper_process.find_program(str(tmp_path / "tool")) == str(tmp_path / "tool")


def test_a_compiler_is_not_named_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = find_compiler().path
    (tmp_path / "g++").symlink_to(compiler)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "./g++")
    find_compiler.cache_clear()
    try:
        with pytest.raises(
            UserError,
            match=rf"CXX names the compiler '\./g\+\+' by a relative path(?s:.*)CXX={tmp_path}/g",
        ):
            find_compiler()
        assert find_compiler("./g++").path == str(tmp_path / "g++")  # said in this very call
    finally:
        find_compiler.cache_clear()


def test_the_command_line_protects_what_libraries_start(tmp_path: Path) -> None:
    code = (
        "import os\nfrom syno.runs.helper_process import protect_command_line\n"
        "protect_command_line()\nprint(os.environ['PATH'], os.environ['PYTHONSAFEPATH'])"
    )
    path = os.pathsep.join([".", "/usr/bin", "", "bin", "/bin"])
    assert python(code, tmp_path, PATH=path).split() == ["/usr/bin:/bin", "1"]
