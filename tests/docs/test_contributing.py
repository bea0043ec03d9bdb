"""CONTRIBUTING.md lists the files that name one of a kind, and no others."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .pages import ROOT

PAGE = ROOT / "CONTRIBUTING.md"


@dataclass(frozen=True)
class Kind:
    """What is added.

    names: matches where one of the kind is named.
    scope: the files in which all that match are listed, as globs.
    outside: of these files, those that no list has to name.
    mentions: matches where a listed file has to do with the kind without naming one.
    """

    names: str
    scope: tuple[str, ...]
    outside: str = r"(?!)"
    mentions: str = r"(?!)"


def _found(file: str, pattern: str) -> list[str]:
    return re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def _any_of(names: list[str], prefix: str = "") -> str:
    assert len(names) > 1
    return rf"\b{prefix}(?:{'|'.join(sorted(names))})\b"


def _primitives() -> Kind:
    declared = _found("src/syno/graph/primitive.h", r"^extern const PrimitiveInfo (k\w+)Info;")
    return Kind(
        names=rf"\b(?:Primitive|ExpressionKind)::k[A-Z]|{_any_of(declared)[:-2]}Info\b"
        r"|[\"'](?:unfold|contract)[\"']",
        scope=("src/syno/**/*.h", "src/syno/**/*.cpp", "python/syno/**/*.py"),
        # What rules are about is their own affair; a view of a plan has a name of its own.
        outside=r"_test\.|/rules/catalogue/|^src/syno/plan/plan\.cpp$|^src/syno/emit/",
        mentions=r"\bmax_unfolds\b|\bUnfold\b|\benum class ExpressionKind\b|\bstruct RandomMix\b",
    )


def _rules() -> Kind:
    declared = _found("src/syno/rules/catalogue.h", r"^extern const Rule (k\w+);")
    return Kind(
        # A rule and a reason have one name.
        names=rf"(?<!reason::)(?<!Reason ){_any_of(declared)}",
        scope=("src/syno/**/*.h", "src/syno/**/*.cpp"),
        mentions=r"\bcatalogue\(\)|\bclass Guarantee\b|\bGuarantee::k|\bRuleSet\b|^# Rules$",
    )


def _rewrites() -> Kind:
    declared = _found("src/syno/key/points.h", r"^(?:void|bool) (\w+)\(Points& points\);")
    return Kind(
        names=_any_of(declared),
        scope=("src/syno/**/*.h", "src/syno/**/*.cpp"),
        mentions=r"\bAlgebra::\w+\(",
    )


def _conditions() -> Kind:
    headers = ("src/syno/quality/quality.h", "src/syno/quality/wasted.h")
    declared = [name for h in headers for name in _found(h, r"constexpr Reason (k\w+) =")]
    return Kind(
        names=_any_of(declared, "reason::"),
        scope=("src/syno/**/*.h", "src/syno/**/*.cpp"),
        mentions=r"constexpr Reason k\w+ =|\breads_future\b",
    )


def _methods() -> Kind:
    table = _found("python/syno/study/methods/__init__.py", r"^METHODS[^{]*\{([^}]*)\}")[0]
    # Tests of other parts use the simplest method.
    ours = set(re.findall(r": (\w+)", table)) - {"UniformSampling"}
    return Kind(
        names=rf"\b(?:{'|'.join(sorted(ours))})\b",
        scope=("python/syno/**/*.py", "tests/**/*.py"),
        mentions=r"\bUniformSampling\b|`diverse`|uniform, diverse"
        r"|^class (?:Method|History|LearningMethod)\b|\b_core\.SearchMethod\b|\bSearchMethod, \w+>",
    )


KINDS = {
    "A primitive": _primitives,
    "A rule": _rules,
    "A rewrite of the key": _rewrites,
    "A quality condition": _conditions,
    "A search method": _methods,
}


def listed(heading: str) -> set[str]:
    """The files that the list under `heading` names: `a/{b,c}.h` is two, `a/<name>.cpp` every file
    of the folder with that ending, tests apart where it has none."""
    body = PAGE.read_text(encoding="utf-8").split(f"**{heading}**", 1)[1].split("\n**", 1)[0]
    files: set[str] = set()
    for token in re.findall(r"`([\w./{},<>]+/[\w./{},<>]+\.\w+|[\w./]+/[\w.<>{},]+\})`", body):
        for path in _spelled_out(token):
            found = [p.relative_to(ROOT).as_posix() for p in _matches(path)]
            assert found, f"{heading}: no file {path}"
            files.update(found)
    return files


def _spelled_out(token: str) -> Iterator[str]:
    parts = [part.split(",") for part in re.split(r"[{}]", token)]
    return ("".join(choice) for choice in itertools.product(*parts))


def _matches(path: str) -> list[Path]:
    found = sorted(ROOT.glob(re.sub(r"(?:<\w+>_?)+", "*", path)))
    if "<" in path and "_test." not in path:
        found = [p for p in found if "_test." not in p.name]
    return found


def naming(kind: Kind) -> set[str]:
    """The files of its scope that name one of the kind."""
    named = re.compile(kind.names)
    outside = re.compile(kind.outside)
    return {
        name
        for glob in kind.scope
        for path in ROOT.glob(glob)
        if not outside.search(name := path.relative_to(ROOT).as_posix())
        and named.search(path.read_text(encoding="utf-8"))
    }


def test_every_file_of_every_list_exists():
    headings = re.findall(r"^\*\*(An? [^*]+)\*\*", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(headings) > 15
    for heading in headings:
        assert listed(heading) or heading == "A layer", heading


@pytest.mark.parametrize("heading", KINDS)
def test_every_file_that_names_one_is_listed(heading):
    found = naming(KINDS[heading]())
    assert len(found) > 2
    assert sorted(found - listed(heading)) == []


@pytest.mark.parametrize("heading", KINDS)
def test_every_listed_file_names_one(heading):
    kind = KINDS[heading]()
    known = re.compile(f"{kind.names}|{kind.mentions}", re.MULTILINE)
    silent = [
        f for f in listed(heading) if not known.search((ROOT / f).read_text(encoding="utf-8"))
    ]
    assert sorted(silent) == []
