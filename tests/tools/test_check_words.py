"""tools/check_words.py and tools/check_length.py: what they find."""

import pytest

import check_length
import check_words


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("see .." + "/shared/design", "a folder beside the checkout"),
        ("cd /wor" + "k/main", "a path of one machine"),
        ("/roo" + "t/.cache", "a path of one account"),
        ("--index https://pyp" + "i.org/simple", "a registry's host"),
        ("written in this ses" + "sion", "talk about how the text was made"),
        ("as the C" + "EO wants", "talk about who made the text"),
    ],
)
def test_a_forbidden_word_is_found_with_its_file_and_line(tmp_path, text, why):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text(f"# A page\n\nText, then {text}.\n")
    (found,) = check_words.violations(tmp_path)
    assert found.startswith(f"docs/page.md:3: {why} found: ")


def test_ordinary_text_passes(tmp_path):
    text = "A session of SQLAlchemy; framework/rules; https://docs.python.org; shared/ weights\n"
    (tmp_path / "page.md").write_text(text)
    (tmp_path / "image.png").write_bytes(b"\x89PNG\xff\xfe")
    assert check_words.violations(tmp_path) == []


def test_only_the_ci_script_may_look_beside_the_checkout(tmp_path):
    (tmp_path / ".ci").mkdir()
    for name in [".ci/run", ".ci/other"]:
        (tmp_path / name).write_text("ls .." + "/shared\n")
    (found,) = check_words.violations(tmp_path)
    assert found.startswith(".ci/other:1:")


def test_a_file_that_a_comment_cites_must_exist(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part/here.h").write_text("// As part/here.h and gone.h say; FILE.py is any.\n")
    (tmp_path / "part/code.py").write_text(
        '"""See here.h.\n\nAnd other/here.h."""\nname = "no_comment.py"  # code.py, lost.cpp\n'
    )
    assert check_words.missing_files(tmp_path) == [
        "part/code.py:1: a file that does not exist is cited: 'other/here.h'",
        "part/code.py:4: a file that does not exist is cited: 'lost.cpp'",
        "part/here.h:1: a file that does not exist is cited: 'gone.h'",
    ]


def test_a_long_file_needs_a_reason_in_its_head(tmp_path):
    lines = ["x = 1"] * 600
    (tmp_path / "fits.py").write_text("\n".join(lines))
    (tmp_path / "long.py").write_text("\n".join([*lines, "y = 2"]))
    (tmp_path / "table.py").write_text("\n".join(["# Over 600 lines: one table.", *lines]))
    (tmp_path / "late.py").write_text("\n".join([*lines, "# Over 600 lines: too late."]))
    found = check_length.violations(tmp_path)
    assert [line.split(":")[0] for line in found] == ["late.py", "long.py"]
    assert "601 lines, more than 600" in found[0]
