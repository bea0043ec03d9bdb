"""Every result that README.md and docs/ print is that of the file which a comment names.

How such a comment is written stands in figures.py.
"""

from __future__ import annotations

import copy
import json
import os
import re
from bisect import bisect_right
from typing import Any

import pytest

from .figures import Block, Text, blocks, numbers, page_problems, parsed, problems, read, wrapped
from .pages import PAGES, ROOT, name, prose
from .rewriting import rewrite, rewritten, shown

RESULTS = "bench/results/"
# rules.md is written from the catalogue, and tests/cli compares it. The others quote no results.
QUOTING = [
    page
    for page in PAGES
    if page.name == "README.md" or (page.parent.name == "docs" and page.name != "rules.md")
]
CHECKED = [
    (page, block)
    for page in QUOTING
    for block in blocks(page.read_text(encoding="utf-8"))
    if block.comment is not None
]


@pytest.mark.parametrize("page", QUOTING, ids=name)
def test_every_figure_of_a_page_is_that_of_its_file(page):
    if os.environ.get("SYNO_UPDATE_GOLDEN"):
        rewrite(page)
    assert page_problems(page) == []


def test_every_file_of_results_is_quoted_and_every_page_names_its_files():
    quoted = set()
    for page in QUOTING:
        text = page.read_text(encoding="utf-8")
        files = {
            file
            for block in blocks(text)
            if block.comment is not None
            for file in parsed(block.comment).files
            if file.startswith(RESULTS)
        }
        assert [
            file for file in sorted(files) if file.removeprefix(RESULTS) not in prose(page)
        ] == [], name(page)
        quoted |= files
    there = {RESULTS + path.name for path in (ROOT / RESULTS).iterdir()}
    assert sorted(there - quoted) == []


def changed(text: str, start: int, end: int) -> str:
    """The text with another last digit in the number at text[start:end]."""
    at = max(i for i in range(start, end) if text[i].isdigit())
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]


def parts(block: Block) -> list[Block]:
    """A table's rows as tables of their own, so that one is checked at a time."""
    if not block.is_table:
        return [block]
    head, separator, *rows = block.text.splitlines()
    texts = ["\n".join([head, separator, row]) for row in rows]
    return [Block(text, block.line, block.comment) for text in texts]


def checked_numbers(part: Block) -> list[Any]:
    """The numbers of a block that its comment has to vouch for."""
    found = numbers(part.text)
    if not part.is_table:
        return [number for number in found if number.measured]
    head, _ = part.rows()
    columns = parsed(part.comment).columns
    ends, end = [], part.text.rindex("\n") + 1
    for cell in part.text[end:].strip("|").split("|"):
        end += len(cell) + 1
        ends.append(end)
    settings = {0, *(i for i, column in enumerate(head) if columns.get(column) == "given")}
    settings -= {i for i, column in enumerate(head) if columns.get(column, "given") != "given"}
    start = part.text.rindex("\n")
    return [n for n in found if n.start > start and bisect_right(ends, n.start) not in settings]


def test_a_changed_number_of_a_page_is_noticed():
    tried, unnoticed = 0, []
    for page, block in CHECKED:
        for part in parts(block):
            for number in checked_numbers(part):
                tried += 1
                text = changed(part.text, number.start, number.end)
                if not problems(Block(text, part.line, part.comment)):
                    unnoticed.append(f"{name(page)}:{part.line}: {number.text}")
    assert tried > 800
    assert unnoticed == []


def shaken(value: Any, place: str = "") -> Any:
    """The same value with every number changed, each by another share."""
    if isinstance(value, dict):
        return {key: shaken(each, f"{place}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [shaken(each, f"{place}.{i}") for i, each in enumerate(value)]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, int) and value <= 12:
        return value  # batches and depths, by which entries are chosen
    return type(value)(value * (1.1 + 0.001 * (sum(map(ord, place)) % 97)) + 1)


@pytest.mark.parametrize(
    ("page", "block"), CHECKED, ids=[f"{name(page)}:{block.line}" for page, block in CHECKED]
)
def test_a_changed_file_is_noticed(page, block):
    files = parsed(block.comment).files
    for altered in files:
        if altered.endswith(".py"):
            continue

        def reader(file: str, altered: str = altered) -> Any:
            return other(file) if file == altered else read(file)

        assert problems(block, reader), f"{altered} may hold anything"


def other(file: str) -> Any:
    """A file with other numbers in it."""
    path = ROOT / file
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return wrapped(shaken(json.loads(text)))
    if path.suffix == ".jsonl":
        return shuffled(read(file))
    return Text(re.sub(r"\d(?=\b)", lambda digit: str((int(digit[0]) + 3) % 10), text))


def shuffled(table: Any) -> Any:
    """A ranking whose accuracies, costs and settings are others."""
    from dataclasses import replace

    found = copy.copy(table)
    found.runs = [
        replace(
            run,
            accuracy=None if run.accuracy is None else (7.3 * run.accuracy + run.operator / 9) % 1,
            seconds=run.seconds * 1.5,
        )
        for run in table.runs
    ]
    found.entries = [
        replace(each, macs=each.macs * (2 + i % 3), params=each.params * 3)
        for i, each in enumerate(table.entries)
    ]
    low = {
        key: value + 1 if type(value) is int else value for key, value in table.settings.low.items()
    }
    found.settings = replace(table.settings, low=low, max_slowdown=9.9)
    return found


@pytest.mark.parametrize(
    ("page", "block"), CHECKED, ids=[f"{name(page)}:{block.line}" for page, block in CHECKED]
)
def test_numbers_are_written_anew_from_a_changed_file(page, block):
    files = [file for file in parsed(block.comment).files if file.endswith(".json")]
    if not files:
        return

    def reader(file: str) -> Any:
        return other(file) if file in files else read(file)

    assert rewritten(block) == block.text
    new = rewritten(block, reader)
    left = problems(Block(new, block.line, block.comment), reader)
    # An entry that is chosen by a number is not found in the changed file.
    assert [each for each in left if "Error: " not in each] == []
    assert new != block.text or left


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [
        ("1.14x", 2.346, "2.35x"),
        ("84 %", 0.7349, "73 %"),
        ("25.2 M", 1_234_000_000, "1,234.0 M"),
        ("1,364,992", 99, "99"),
        ("+0.053", -0.0601, "-0.060"),
        ("+0.053", 0.0601, "+0.060"),
        ("16 ms", 17.4, "17"),
    ],
)
def test_a_number_keeps_its_decimals_and_its_unit(text, value, written):
    (number,) = numbers(text)
    assert shown(number, value) == written


PAGE = """Text.

<!-- figures: bench/results/kernels.json
runs # rounds => kernels.rounds
-->
It runs 60 rounds.

| what | rounds |
| --- | --- |
| all | 60.0 |
"""


def found(text: str) -> list[str]:
    return [problem for block in blocks(text) for problem in problems(block)]


def test_a_table_without_a_comment_is_found():
    assert found(PAGE) == ["no figures comment says where 60.0 comes from"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("runs 60", "runs 61", "61 is printed where the file gives 60"),
        ("60 rounds.", "60 rounds, 99.5 % of all.", "says where 99.5 % comes from"),
        ("runs 60 rounds", "has 60 rounds", "'runs # rounds' stands 0 times in the text"),
        ("=> kernels.rounds", "=> kernels.turns", "KeyError: 'turns'"),
        ("=> kernels.rounds", "=> kernels.batches(batch=3)", "0 entries have {'batch': 3}"),
        ("kernels.json", "none.json", "there is no file bench/results/none.json"),
    ],
)
def test_what_is_wrong_is_named(old, new, message):
    text = PAGE.partition("\n| what")[0]
    assert found(text) == []
    assert message in "\n".join(found(text.replace(old, new)))


@pytest.mark.parametrize(
    ("text", "value", "right"),
    [
        ("1.14x", 1.1435, True),
        ("1.14x", 1.1451, False),
        ("84 %", 0.8408, True),
        ("84 %", 0.8351, True),
        ("84 %", 0.8349, False),
        ("25.2 M", 25_165_824, True),
        ("49.2 k", 49_152, True),
        ("1,364,992", 1_364_992, True),
        ("1,364,992", 1_364_993, False),
        ("-0.341", -0.3414, True),
        ("0.341", -0.3414, False),
    ],
)
def test_a_number_is_right_when_the_value_rounds_to_it(text, value, right):
    (number,) = numbers(f"it has {text} here")
    assert number.measured
    assert number.shows(value) is right


def test_numbers_in_names_code_and_links_are_no_figures():
    text = "ResNet-18, 3x3, `0.5`, [a](b-0.5.md), PyTorch 2.13, C++17, w0, section 9.4, 10^9, 16 px"
    assert [number.text for number in numbers(text)] == ["16"]
