"""Versions: what pyproject.toml admits, what constraints.txt pins, and the digests in locks/."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LISTED = [
    *PROJECT["build-system"]["requires"],
    *PROJECT["project"]["dependencies"],
    *(line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra),
]
# A CPU build and the registry's build of one version are different files.
WITHOUT_DIGEST = {"torch"}


def pins(text: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z][\w.-]*)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


PINS = pins((ROOT / "constraints.txt").read_text())
LOCKS = {path.stem: path.read_text() for path in (ROOT / "locks").glob("*.txt")}


@pytest.mark.parametrize("line", sorted(set(LISTED)))
def test_a_requirement_admits_its_pin_and_ends_below_the_next_major_version(line: str) -> None:
    requirement = Requirement(line)
    pin = Version(PINS[canonicalize_name(requirement.name)])
    assert pin in requirement.specifier
    assert Version(f"{pin.major + 1}") not in requirement.specifier
    assert Version(f"{pin.major}.9999") in requirement.specifier or "==" in line


def test_every_pin_is_locked_once() -> None:
    assert set(LOCKS) == {"dev", "extras"}
    locked = [pins(text) for text in LOCKS.values()]
    assert not set(locked[0]) & set(locked[1])
    assert locked[0] | locked[1] == {k: v for k, v in PINS.items() if k not in WITHOUT_DIGEST}
    # What `make venv` installs is all that Syno and its extra `dev` name.
    named = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
    names = {canonicalize_name(Requirement(line).name) for line in named}
    assert names - WITHOUT_DIGEST <= set(pins(LOCKS["dev"]))


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_digests(name: str) -> None:
    text = LOCKS[name].replace("\\\n", " ")
    for line in filter(lambda line: not line.startswith("#"), text.splitlines()):
        assert re.fullmatch(r"[\w.-]+==\S+( +--hash=sha256:[0-9a-f]{64})+ *", line), line[:100]


def test_only_what_has_a_digest_is_installed() -> None:
    """Every `pip install` of the tools says --require-hashes, but that of torch and of Syno."""
    for script in (ROOT / "tools").glob("*.sh"):
        for line in re.findall(r"^.*pip.* install .*$", script.read_text(), re.MULTILINE):
            free = ('"$torch"', "--editable .", "dist/*.whl", "uv==$UV", "# ")
            assert "--require-hashes" in line or any(word in line for word in free), line
