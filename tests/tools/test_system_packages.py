"""tools/system_packages.sh on machines that lack something, played by a PATH of stand-ins."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ["bash", "dirname", "nproc", "mktemp", "rm", "tail", "env"]


@pytest.fixture
def machine(tmp_path):
    """Runs the script where only the named commands exist: {name: body of a shell script}."""

    def run(commands):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in NEEDED:
            (folder / name).symlink_to(shutil.which(name))
        for name, body in commands.items():
            (folder / name).write_text(f"#!/bin/bash\n{body}\n")
            (folder / name).chmod(0o755)
        script = str(ROOT / "tools/system_packages.sh")
        environment = {"PATH": str(folder), "TMPDIR": str(tmp_path), "LOG": str(tmp_path / "log")}
        return subprocess.run(
            ["bash", script, "--all"],
            env=environment,
            capture_output=True,
            text=True,
            cwd=os.fspath(tmp_path),
        )

    return run


COMPLETE = {"c++": "exit 0", "python3": "exit 0", "dot": "exit 0", "ccache": "exit 0"}
USER = {"id": "echo 1000", "sudo": "exit 1", "apt-get": "exit 99"}
SUPERUSER = {"id": "echo 0", "apt-get": 'echo "$@" >>"$LOG"'}


def test_a_complete_machine_is_left_alone(machine):
    result = machine({**COMPLETE, **USER})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_without_permission_the_missing_packages_are_named(machine):
    result = machine({"python3": "exit 0", **USER})
    assert result.returncode == 1
    assert result.stderr.startswith("error: these system packages are missing")
    assert "may not install them: g++ libgtest-dev\n" in result.stderr
    assert "apt-get install g++ libgtest-dev graphviz ccache libbenchmark-dev\n" in result.stderr


def test_what_only_some_features_need_does_not_stop_the_set_up(machine):
    result = machine({"c++": "exit 0", "python3": "exit 0", **USER})
    assert result.returncode == 0
    assert "only some features need them: graphviz ccache" in result.stdout


def test_with_permission_they_are_installed(machine, tmp_path):
    result = machine({"python3": "exit 1", "dot": "exit 0", "ccache": "exit 0", **SUPERUSER})
    assert result.returncode == 0, result.stderr
    calls = (tmp_path / "log").read_text().splitlines()
    assert calls[0] == "update"
    assert calls[1].endswith(" g++ libgtest-dev python3-venv python3-dev")
    assert calls[2].endswith(" libbenchmark-dev")


def test_a_failed_installation_shows_what_apt_said(machine):
    apt = 'echo "E: no space left"; [ "$1" = update ]'
    result = machine({"python3": "exit 0", **SUPERUSER, "apt-get": apt})
    assert result.returncode == 1
    assert "E: no space left" in result.stderr
    assert "apt-get could not install g++ libgtest-dev" in result.stderr
