"""What a result says about the machine and the software it comes from."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import socket
import subprocess
from pathlib import Path

from syno.store import capture_environment
from syno.store.environment import commit_of
from syno.store.records import canonical_json


def test_an_environment_names_device_libraries_threads_and_rules():
    found = capture_environment(threads=2, rules="7")
    assert found.device
    assert found.libraries["numpy"] == importlib.metadata.version("numpy")
    assert platform.python_version() in found.platform
    assert (found.threads, found.rules) == (2, "7")


def test_an_environment_names_the_commit_of_a_source_tree():
    root = Path(__file__).resolve().parents[2]
    found = capture_environment(threads=1, rules="1")
    if not (root / ".git").exists() or "site-packages" in capture_environment.__code__.co_filename:
        assert found.commit == ""
        return
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert found.commit in (commit, commit + "+")


def test_only_changed_sources_make_a_plus(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    files = ["python/syno/a.py", "bench/results/a.json", "docs/a.md", "README.md", "bench/a.py"]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    clean = commit_of(tmp_path)
    assert re.fullmatch("[0-9a-f]{40}", clean)
    for name in files[1:4]:  # such as the file into which a command is just writing
        (tmp_path / name).write_text("")
    assert commit_of(tmp_path) == clean
    for name in ("python/syno/a.py", "bench/a.py"):
        (tmp_path / name).write_text("after\n")
        assert commit_of(tmp_path) == clean + "+"
        (tmp_path / name).write_text("before\n")
    assert commit_of(tmp_path) == clean


def test_an_environment_says_nothing_about_host_or_user():
    text = canonical_json(capture_environment(threads=1, rules="1"))
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text
    assert re.search(r'"device":"[^"]+"', text)


def test_equal_environments_have_equal_digests():
    first, second = (capture_environment(threads=t, rules="1") for t in (1, 1))
    assert first.digest == second.digest
    assert first.digest != capture_environment(threads=2, rules="1").digest
