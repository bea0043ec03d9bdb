"""Results in pages are generated: tools/pages, and what the comments of the pages must keep to."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .pages import PAGES, ROOT, name, prose

sys.path.insert(0, str(ROOT / "tools"))
from pages import head, read, row, say, show
from pages.read import missing_engines
from pages.remarks import of_file, quoted

RESULTS = "bench/results/"
_SNIPPET = re.compile(r"<!-- \[\[\[cog\n.*?<!-- \[\[\[end\]\]\] -->", re.DOTALL)
# rules.md is written from the catalogue.
QUOTING = [
    page
    for page in PAGES
    if page == ROOT / "README.md" or (page.parent == ROOT / "docs" and page.name != "rules.md")
]


def snippets(page: Path) -> str:
    return "\n".join(_SNIPPET.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", QUOTING, ids=name)
def test_a_page_names_the_files_that_it_quotes_or_the_page_that_does(page: Path) -> None:
    files = quoted(snippets(page))
    text = prose(page)
    if page.name not in ("README.md", "choose.md"):  # they link the pages with the whole results
        assert [file for file in files if file.removeprefix(RESULTS) not in text] == []


@pytest.mark.parametrize("page", QUOTING, ids=name)
def test_a_page_that_quotes_results_ends_with_the_remarks_on_them(page: Path) -> None:
    found = _SNIPPET.findall(page.read_text(encoding="utf-8"))
    remarks = [place for place, each in enumerate(found) if "\nremarks()\n" in each]
    assert remarks == ([len(found) - 1] if quoted(snippets(page)) else [])


def test_every_file_of_results_is_quoted() -> None:
    files = {file for page in QUOTING for file in quoted(snippets(page))}
    assert {RESULTS + path.name for path in (ROOT / RESULTS).iterdir()} == files


# What looks like the result of a measurement.
_RESULT = re.compile(
    r"(?<![\w.,])(?:\d[\d,]*\.\d+ ?(?:x|%|ms|nats|points|times as fast)|\d+ ?(?:%|ms|GFLOP/s))"
    r"(?!\w)"
)
# Settings, confidences, and what others published.
_TYPED = {
    *("0.35x", "0.2 %", "1 %", "5 %", "75 %", "90 %", "95 %", "98 %", "125 %", "50 ms"),
    *("1.03 times as fast", "72.65 %", "0.514 ms", "70.84 %", "0.582 ms"),
}


def typed(text: str) -> set[str]:
    """The numbers of a page that look like results and stand outside of generated parts."""
    text = _SNIPPET.sub("", text)
    text = re.sub(r"^```.*?^```$|`[^`]*`|\]\([^)]*\)", "", text, flags=re.MULTILINE | re.DOTALL)
    return {" ".join(match.split()) for match in _RESULT.findall(text)}


@pytest.mark.parametrize("page", QUOTING, ids=name)
def test_no_result_is_typed(page: Path) -> None:
    assert typed(page.read_text(encoding="utf-8")) - _TYPED == set()


def test_a_typed_result_is_found_and_a_generated_one_is_not() -> None:
    page = "It is 1.31x as fast, at 84 %.\n\n<!-- [[[cog\n]]] -->\n2.5x\n<!-- [[[end]]] -->\n"
    assert typed(page) == {"1.31x", "84 %"}


PAGE = """<!-- [[[cog
kernels = read("bench/results/kernels.json")
say("It runs {} rounds.", kernels.rounds)
]]] -->
It runs 60 rounds.
<!-- [[[end]]] -->
"""


def checked(page: Path, text: str) -> subprocess.CompletedProcess[str]:
    page.write_text(text, encoding="utf-8")
    options = ["-P", "--check", "--diff", "-I", str(ROOT / "tools"), "-p", "from pages import *"]
    command = [sys.executable, "-m", "cogapp", *options, str(page)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_page_that_differs_from_its_file_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert checked(page, PAGE).returncode == 0
    done = checked(page, PAGE.replace("runs 60", "runs 61"))
    assert done.returncode != 0 and "+It runs 60 rounds." in done.stdout
    assert "KeyError: 'turns'" in checked(page, PAGE.replace(".rounds", ".turns")).stderr


@pytest.mark.parametrize(
    ("template", "value", "shown"),
    [
        ("{:.2f}x", 2.346, "2.35x"),
        ("{:.0%}", 0.7349, "73 %"),
        ("{:+.2%}", 0.0049, "+0.49 %"),
        ("{:.1M}", 1_234_000_000, "1,234.0 M"),
        ("{:,}", 1364992, "1,364,992"),
        ("{:.3g}", 0.04991, "0.0499"),
        ("`{}`", "conv2d", "`conv2d`"),
    ],
)
def test_values_are_written_as_pages_print_them(template: str, value: Any, shown: str) -> None:
    assert show(template, value) == shown


def test_tables_and_paragraphs_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    head("engine | ms >")
    row("{} | {:.1f} ({:.2f}x)", "eager", (3.25, 1))
    row("{} | {:.1f} ({:.2f}x)", "other", None)
    say("\nAs {:.1f} ms.\n", 3.25)
    assert capsys.readouterr().out.splitlines() == [
        "| engine | ms |",
        "| --- | ---: |",
        "| eager | 3.2 (1.00x) |",
        "| other | |",
        "As 3.2 ms.",
    ]
    with pytest.raises(AssertionError, match="1 values too many"):
        row("{}", 1, 2)


def test_the_entries_of_a_file_are_chosen_by_their_values() -> None:
    batches = read(f"{RESULTS}kernels.json").batches
    assert batches(batch=1).times.where(kernel="conv2d cpp").macs == [115_605_504] * 4
    with pytest.raises(LookupError, match=re.escape("0 entries have {'batch': 3}")):
        batches(batch=3)


COMMIT = "0123456789" * 4
ENGINES = ("eager", "inductor", "onnxruntime", "openvino")


def times(*engines: str) -> list[dict[str, str]]:
    return [{"network": "none", "engine": engine} for engine in engines]


def written(path: Path, **content: Any) -> list[str]:
    path.write_text(json.dumps(content), encoding="utf-8")
    return of_file(path)


def test_remarks_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    environment = {"commit": COMMIT + "+"}
    assert written(path, environment={"commit": COMMIT}, noisy=False) == []
    assert written(path, environment=environment, provenance={"tree": "changed"}) == [
        "from changed sources on `01234567`"
    ]
    assert written(path, provenance={"commit": "unknown", "note": "Why."}) == [
        "its commit is not recorded",
        "Why.",
    ]
    assert written(path, layers=[{"noisy": False}, {"noisy": True}]) == [
        "other processes used the machine"
    ]
    assert written(path, times=times(*ENGINES)) == []
    assert written(path, times=times("eager", "syno", "openvino")) == [
        "compared without TorchInductor, ONNX Runtime"
    ]


def test_an_engine_that_one_layer_lacks_is_missing() -> None:
    layers = [{"times": times(*ENGINES)}, {"times": times(*ENGINES[:2], "syno-cpp")}]
    assert missing_engines({"layers": layers}) == ("onnxruntime", "openvino")
    assert missing_engines({"times": [{"name": "operator-1", "compiled": 0.9}]}) == ()
