"""What is in git is meant to be there."""

from pathlib import Path

from project_files import project_files

ROOT = Path(__file__).resolve().parents[2]


def test_no_file_is_what_a_command_left_behind():
    """Databases belong to tests of old versions; nothing lies in the root that no page names."""
    names = list(project_files(ROOT))
    assert len(names) > 500
    heads = {name: (ROOT / name).open("rb").read(15) for name in names if (ROOT / name).is_file()}
    left = [n for n, head in heads.items() if head == b"SQLite format 3"]
    assert [name for name in left if not name.is_relative_to("tests/store/data")] == []
    root = {name.name for name in names if len(name.parts) == 1}
    assert {n for n in root if "." not in n} == {"LICENSE", "Makefile"}
