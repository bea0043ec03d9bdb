"""Bad input through the command line: exit code 2, what is wrong, where, and what to do."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from PIL import Image
from torch import nn

import syno
from syno.cli.main import cli
from syno.store import Store, schema
from syno.store.seals import seal_of_stored

Disk = Callable[[Path, str], AbstractContextManager[Path]]

QUICK = ["--epochs", "1", "--images", "128", "--repeats", "20", "--max-nodes", "1000"]
# Nothing is rejected for being slow, and no process loads torch once more.
QUICK += ["--max-slowdown", "1000", "--no-isolate"]
DIGITS = ["search", "--data", "digits", "--model", "cnn-small", "--model-option", "width=4"]


class Ended(NamedTuple):
    code: int
    output: str
    message: str


def inside(*arguments: str | Path) -> Ended:
    """Run the command line in this process."""
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    return Ended(result.exit_code, result.stdout, result.stderr)


def outside(*arguments: str | Path, cwd: Path | None = None) -> Ended:
    """Run it in a process of its own, the way a shell does."""
    result = subprocess.run(
        [sys.executable, "-m", "syno.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "SYNO_DEBUG": ""},
        cwd=cwd,
        timeout=120,
    )
    return Ended(result.returncode, result.stdout, result.stderr)


def check_mistake(ended: Ended, *parts: str) -> None:
    """A user's mistake: code 2, one error that holds all `parts`, no traceback."""
    assert ended.code == 2, ended
    assert ended.message.count("error: ") == 1
    assert "Traceback" not in ended.output + ended.message
    for part in parts:
        assert part in ended.message


# Specifications.


def sample(**changes: str | list[str]) -> list[str]:
    """`syno sample` of a small specification with some options changed."""
    options: dict[str, str | list[str]] = {
        "--input": "[C_in, H]",
        "--output": "[C_out, H]",
        "--primary": ["C_in: 2", "C_out: 2", "H: 1"],
        "--coefficient": "k=3: 1",
        "--binding": "C_in=4,C_out=8,H=6",
        "--max-nodes": "1000",
    }
    options |= {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    arguments = ["sample"]
    for name, value in options.items():
        for one in [value] if isinstance(value, str) else value:
            arguments += [name, one]
    return arguments


SPECIFICATIONS = {
    "unknown variable in a shape": (
        {"input": "[C_in, X]"},
        ["unknown variable 'X'", 'in shape "[C_in, X]", column 8', "declare it, such as --primary"],
    ),
    "unknown variable in a binding": (
        {"binding": "C_in=4,C_out=8,H=6,Q=2"},
        ["unknown variable 'Q'", "in binding", "known variables: ", "what to do"],
    ),
    "zero size": (
        {"binding": "C_in=4,C_out=0,H=6"},
        ["'C_out' must be a positive integer, got 0", 'in binding "C_in=4,C_out=0,H=6", column'],
    ),
    "negative size": (
        {"binding": "C_in=4,C_out=8,H=-6"},
        ["'H' must be a positive integer, got -6", "in binding", "column 18"],
    ),
    "zero coefficient": (
        {"coefficient": "k=0: 1"},
        ["'k' must be a positive integer, got 0", 'in variable "k=0: 1", column 3'],
    ),
    "primary in a denominator": (
        {"output": "[C_out, H*C_in^-1]"},
        [
            "dimension 1 has the primary variable 'C_in' in a denominator",
            'in shape "[C_out, H*C_in^-1]"',
            "expected: primary variables with positive powers only",
        ],
    ),
    "dimension that does not exist": (
        {"passed_through": "0:7"},
        ["(0, 7) names a dimension that does not exist", "in [C_in, H] -> [C_out, H]"],
    ),
    "no pair of dimensions": (
        {"passed_through": "0"},
        ["'0' is not a pair of dimensions", "expected: OUTPUT:INPUT", "--passed-through"],
    ),
    "nothing connects: budgets": (
        {"primary": ["C_in: 0", "C_out: 0", "H: 0"]},
        [
            "no operator connects the shapes",
            '"[C_in, H] -> [C_out, H]"',
            "what to do: use primary variables with budgets such as C_in: 2, C_out: 2, H: 2",
        ],
    ),
    "nothing connects: depth": (
        {"max_depth": "1"},
        ["no operator connects the shapes", "what to do: use max_depth=5"],
    ),
    "nothing connects: cost": (
        {"max_macs": "1"},
        ["no operator connects the shapes", "what to do: use other constraints on MACs"],
    ),
}


@pytest.mark.parametrize("case", SPECIFICATIONS)
def test_a_specification_that_makes_no_sense(case: str) -> None:
    changes, parts = SPECIFICATIONS[case]
    check_mistake(inside(*sample(**changes)), *parts)


def test_the_remedies_are_true() -> None:
    none = {"--primary": ["C_in: 0", "C_out: 0", "H: 0"]}
    assert inside(*sample(primary=none["--primary"])).code == 2
    assert inside(*sample(primary=["C_in: 2", "C_out: 2", "H: 2"], count="1")).code == 0
    assert inside(*sample(max_depth="5", count="1")).code == 0


def test_the_small_specification_itself_is_fine() -> None:
    assert inside(*sample(count="1")).code == 0


# Networks.


def test_a_specification_of_another_rank_than_the_network() -> None:
    shapes = ["--input", "[C_in, H, H]", "--output", "[C_out, H, H]"]
    variables = [x for v in ("C_in: 2", "C_out: 2", "H: 1") for x in ("--primary", v)]
    ended = inside(*DIGITS, *shapes, *variables, "--store", "sqlite://")
    check_mistake(
        ended,
        "no slot of the network fits the specification",
        "has 4 dimensions, such as [N, C_in, H, W], and that of the specification has 3",
        "what to do: use the shapes of the layers",
    )


def test_a_specification_with_other_names_than_the_network() -> None:
    shapes = ["--input", "[N, A, H, H]", "--output", "[N, B, H, H]", "--passed-through", "0:0"]
    variables = [x for v in ("N: 0", "A: 2", "B: 2", "H: 1") for x in ("--primary", v)]
    ended = inside(*DIGITS, *shapes, *variables, "--store", "sqlite://")
    hint = "name the sizes of the layer C_in, C_out, H, W"
    check_mistake(ended, "gives no value to A, B\n", hint)


def test_a_network_without_slots() -> None:
    """The command line knows models that have slots; a program brings its own network."""
    net = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(1))
    with pytest.raises(syno.UserError) as caught:
        syno.search(net, "digits", store="sqlite://")
    for words in (
        "the network Sequential has no slots",
        "expected: at least one layer that `where` selects",
        "it has no convolution and no linear layer",
    ):
        assert words in str(caught.value)


# Data.


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two classes with four noisy images each, in the present folder."""
    folder = tmp_path / "images"
    for label in ("cats", "dogs"):
        (folder / label).mkdir(parents=True)
        for number in range(4):
            image = Image.effect_noise((16, 16), 60)
            image.save(folder / label / f"{number}.png")
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SYNO_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_data_folder_that_is_missing(images: Path) -> None:
    for data, parts in (
        (["cifar10", "--data-dir", "nowhere"], ["data folder 'nowhere' does not exist"]),
        (["cifar10"], ["data set 'cifar10' needs a data folder", "--data-dir", "SYNO_DATA"]),
        (["cifar10", "--data-dir", "."], ["is not in data folder '.'", "expected: a folder"]),
        (["./nothing"], ["nothing' does not exist"]),
        (["images"], ["needs a data folder", "write './images' for the folder here"]),
    ):
        check_mistake(inside("search", "--data", *data), *parts)


@pytest.mark.parametrize("given", [["./images"], ["images", "--data-dir", "."]])
def test_an_image_that_is_none_and_one_that_is_cut_off(images: Path, given: list[str]) -> None:
    command = ["search", "--resolution", "8", "--dry-run", "--data", *given]
    whole = (images / "dogs" / "2.png").read_bytes()
    (images / "dogs" / "2.png").write_bytes(whole[: len(whole) // 2])
    check_mistake(inside(*command), "dogs/2.png': image file is truncated", "replace or remove")
    (images / "dogs" / "2.png").write_text("a dog")
    check_mistake(
        inside(*command), "dogs/2.png': not an image of a known format", "replace or remove"
    )
    assert not list(images.parent.glob("cache/data/*/*.npy"))


# Stores.


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a study of one operator and no kept weights; tests work on copies."""
    path = tmp_path_factory.mktemp("finished") / "runs.db"
    one = ("--evaluations", "1", "--weights-limit", "0")
    ended = inside(*DIGITS, *one, "--store", path, *QUICK)
    assert ended.code == 0, ended
    return path


@pytest.fixture
def runs(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(finished, tmp_path / "runs.db"))


def test_a_store_from_a_newer_version(runs: Path) -> None:
    with sqlite3.connect(runs) as connection:
        # The row of a version is sealed in the same way by every Syno from version 5 on.
        row = {"version": 99, "written_by": "7.0", "applied": "2031-01-01", "definitions": "{}"}
        row["seal"] = seal_of_stored(schema.schema_version, row)
        connection.execute("INSERT INTO syno_schema VALUES (?, ?, ?, ?, ?)", list(row.values()))
    connection.close()
    for command in (["status", runs], ["resume", runs], [*DIGITS, "--store", runs]):
        said = ("a newer Syno wrote it", "install that Syno or a later one")
        check_mistake(inside(*command), f"'{runs}' has version 99", *said)


def test_a_number_of_evaluations_that_is_no_number_of_evaluations(runs: Path) -> None:
    for count in ("0", "-1", "1000000001", "1" + "0" * 400):
        for command in (
            ["resume", runs, "--evaluations", count, "--dry-run"],
            [*DIGITS, "--evaluations", count],
        ):
            ended = inside(*command)
            assert ended.code == 2, ended
            assert "is not in the range 1<=x<=1000000000" in ended.message, ended
    with pytest.raises(syno.UserError, match="'evaluations' is an integer of at most 1000000000"):
        syno.search(
            "resnet-small", "digits", evaluations=10**400, store=str(runs.parent / "new.db")
        )


HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(60)
"""


def test_a_store_that_another_process_has_locked(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Store.open.__func__  # type: ignore[attr-defined]
    impatient = classmethod(lambda cls, url, **o: opened(cls, url, **o | {"timeout": 0.5}))
    monkeypatch.setattr(Store, "open", impatient)
    holder = subprocess.Popen([sys.executable, "-c", HOLD, runs], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        ended = inside("resume", runs, "--evaluations", "2")
        check_mistake(ended, f"the store '{runs}' is locked", "wait for it or stop it", "resume")
        assert inside("status", runs).code == 0  # readers do not wait
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    assert inside("resume", runs, "--evaluations", "1").code == 0


def test_a_store_that_may_not_be_written(runs: Path, small_disk: Disk) -> None:
    if os.geteuid() == 0:
        with small_disk(runs.parent / "disk", "8m") as disk:
            store = Path(shutil.copy(runs, disk / "runs.db"))
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            _check_read_only(store)
    else:
        runs.chmod(stat.S_IRUSR)
        runs.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
        try:
            _check_read_only(runs)
        finally:
            runs.parent.chmod(stat.S_IRWXU)


def _check_read_only(store: Path) -> None:
    check_mistake(
        inside("resume", store, "--evaluations", "2"),
        f"the store '{store}' cannot be written: the file or its folder is read-only",
        "what to do: change the permissions",
    )
    ended = inside("status", store)
    assert ended.code == 0, ended
    assert "1 of 1" in ended.output
    check_mistake(
        inside(*DIGITS, "--store", store.with_name("new.db")),
        "cannot be opened or created",
        "what to do",
    )


@pytest.mark.slow
def test_a_disk_that_fills_up_loses_nothing_and_resume_goes_on(
    runs: Path, small_disk: Disk
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk; tests/store fills a database without one")
    with small_disk(runs.parent / "disk", "1m") as disk:
        store = Path(shutil.copy(runs, disk / "runs.db"))
        ballast = disk / "ballast"
        before = _answers(store)
        with ballast.open("wb", buffering=0) as file:
            # Room for the log and its index, and for few answers.
            room = shutil.disk_usage(disk).free - (176 << 10)
            file.write(b"\0" * room)
        ended = outside("resume", store, "--evaluations", "40", "--no-isolate")
        check_mistake(
            ended,
            f"the disk is full while writing the store '{store}'",
            "what was stored before is safe",
            "free some space, then run the same command with the same --name again",
        )
        kept = _answers(store)
        assert len(kept) > len(before)
        assert kept[: len(before)] == before
        ballast.unlink()
        ended = inside("resume", store, "--evaluations", str(len(kept) + 1), "--no-isolate")
        assert ended.code == 0, ended
        after = _answers(store)
        assert after[: len(kept)] == kept
        assert len(after) == len(kept) + 1


def _answers(store: Path) -> list[tuple[str | None, float | None, str]]:
    with Store.open(str(store), read_only=True) as opened:
        return [(e.key, e.accuracy, e.finished) for e in opened.summary().evaluations]
