"""The cache: never half written, never believed when damaged, safe with several processes."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import syno
from syno import UserError
from syno.data import cache, load, load_text, loading
from syno.data.loading import decode_all
from syno.runs.cache_folder import cache_folder


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one each time images are decoded."""
    seen: list[int] = []

    def counted(*arguments: object) -> object:
        seen.append(1)
        return decode_all(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("syno.data.loading.decode_all", counted)
    return seen


def only_cache(folder: Path) -> Path:
    """The one finished cache."""
    (found,) = (path for path in (folder / "data").iterdir() if path.is_dir())
    return found


def test_a_second_load_decodes_nothing_and_maps_the_file(photos: Path, decodes: list[int]) -> None:
    load("photos", photos)
    again = load("photos", photos)
    assert len(decodes) == 1
    assert isinstance(again.train.images, np.memmap)


def test_another_size_or_a_changed_image_is_decoded_anew(photos: Path, decodes: list[int]) -> None:
    first = load("photos", photos)
    load("photos", photos, size=4)
    assert len(decodes) == 2
    source = photos / "train/cat/000.png"
    source.write_bytes((photos / "train/dog/000.png").read_bytes())
    os.utime(source, ns=(1, 1))
    changed = load("photos", photos)
    assert len(decodes) == 3
    assert not np.array_equal(first.train.images[0], changed.train.images[0])
    assert first.fingerprint != changed.fingerprint


@pytest.mark.parametrize("name", [*(f"{a}.npy" for a in loading._ARRAYS), "meta.json"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing", "emptied"])
def test_a_damaged_cache_is_noticed_and_built_again(
    photos: Path,
    cache_dir: Path,
    decodes: list[int],
    caplog: pytest.LogCaptureFixture,
    name: str,
    damage: str,
) -> None:
    expected = load("photos", photos, cache=False)
    load("photos", photos)
    path = only_cache(cache_dir) / name
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    match damage:
        case "truncated":
            path.write_bytes(content[: len(content) // 2])
        case "flipped":
            path.write_bytes(content)
        case "missing":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
    with caplog.at_level(logging.WARNING, "syno.data"):
        again = load("photos", photos)
    assert len(decodes) == 3
    assert "is damaged" in caplog.text
    assert np.array_equal(again.train.images, expected.train.images)
    assert np.array_equal(again.test.labels, expected.test.labels)
    load("photos", photos)
    assert len(decodes) == 3


def test_a_meta_file_of_another_format_is_damage(photos: Path, cache_dir: Path) -> None:
    load("photos", photos)
    folder = only_cache(cache_dir)
    (folder / "meta.json").write_text(json.dumps([1, 2]))
    with pytest.raises(cache.Damaged, match=r"meta\.json is damaged"):
        cache.read(folder, loading._ARRAYS)


def test_a_cache_of_another_version_is_built_again(
    photos: Path, cache_dir: Path, decodes: list[int]
) -> None:
    load("photos", photos)
    path = only_cache(cache_dir) / "meta.json"
    meta = json.loads(path.read_text())
    meta["format"] = cache.FORMAT + 1
    del meta["seal"]
    path.write_text(json.dumps({**meta, "seal": cache._seal(meta)}))
    with pytest.raises(cache.Damaged, match=f"format {cache.FORMAT + 1}, not {cache.FORMAT}"):
        cache.read(path.parent, loading._ARRAYS)
    load("photos", photos)
    assert len(decodes) == 2


def test_a_full_disk_leaves_no_half_cache(
    photos: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: cache.ArrayWriter, block: np.ndarray) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache.ArrayWriter, "add", full)
        with pytest.raises(UserError, match=r"(?s)cannot write the data cache.*disk is full.*SYNO"):
            load("photos", photos)
    assert [path.suffix for path in (cache_dir / "data").iterdir()] == [".lock"]
    assert len(load("photos", photos).train) == 9


# A limit on the size of a file stands for the full disk: what is written beyond it fails.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
from syno import UserError
from syno.data import load, load_text
try:
    load("photos", sys.argv[1]) if sys.argv[2] == "images" else load_text(sys.argv[1])
except UserError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["images", "text"])
def test_a_disk_that_fills_up_while_writing_leaves_no_half_cache(
    photos: Path, tmp_path: Path, cache_dir: Path, kind: str
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"line number {i}" for i in range(50)))
    source = photos if kind == "images" else text
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(source), kind],
        env={**os.environ, "PYTHONPATH": str(Path(syno.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"cannot write the data cache '{cache_dir}/data': File too large" in done.stdout
    assert "set SYNO_CACHE" in done.stdout
    assert [path.suffix for path in (cache_dir / "data").iterdir()] == [".lock"]
    if kind == "images":
        assert len(load("photos", photos).train) == 9
    else:
        assert load_text(str(text)).documents["train"] == 45


def test_a_cache_folder_that_cannot_be_made_is_named(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        UserError, match=r"(?s)cannot write the data cache '.*file/data'.*cache=False"
    ):
        load("photos", photos)
    assert len(load("photos", photos, cache=False).train) == 9


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNO_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert cache_folder() == Path("/one")
    monkeypatch.delenv("SYNO_CACHE")
    assert cache_folder() == Path("/two/syno")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/three")
    assert cache_folder() == Path("/three/.cache/syno")
    monkeypatch.setenv("XDG_CACHE_HOME", "a-folder-of-wherever-this-runs")
    assert cache_folder() == Path("/three/.cache/syno")


# Decoding stops for a while after the first image array is open, so that a signal or a second
# process meets a build half way.
SLOW = """
import sys, time
import syno.data.loading as module
real = module.decode_all
def slow(*arguments):
    for block in real(*arguments):
        yield block
        print("half way", flush=True)
        time.sleep(float(sys.argv[2]))
module.decode_all = slow
print(len(module.load("photos", sys.argv[1]).train))
"""


def start(photos: Path, pause: float) -> subprocess.Popen[str]:
    """A process that builds the cache and pauses in the middle."""
    environment = {**os.environ, "PYTHONPATH": str(Path(syno.__file__).parents[1])}
    if inherited := os.environ.get("PYTHONPATH"):
        environment["PYTHONPATH"] += os.pathsep + inherited
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(photos), str(pause)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(process: subprocess.Popen[str]) -> str:
    """Blocks until the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_build_that_is_killed_leaves_nothing_that_is_believed(
    photos: Path, cache_dir: Path, decodes: list[int]
) -> None:
    process = start(photos, 60)
    assert first_line(process) == "half way"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = sorted(path.name for path in (cache_dir / "data").iterdir() if path.is_dir())
    assert len(left) == 1
    assert ".tmp-" in left[0]
    assert len(load("photos", photos).train) == 9
    assert len(decodes) == 1
    assert ".tmp-" not in only_cache(cache_dir).name


def test_a_second_process_waits_for_the_first_and_uses_its_cache(
    photos: Path, decodes: list[int]
) -> None:
    process = start(photos, 0.5)
    assert first_line(process) == "half way"
    assert len(load("photos", photos).train) == 9
    assert decodes == []
    assert process.communicate()[0].split() == ["9"]


def test_an_error_while_decoding_leaves_no_folder_behind(
    photos: Path, cache_dir: Path, make_folder: Callable[..., Path]
) -> None:
    (photos / "test/dog/001.png").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot decode image"):
        load("photos", photos)
    assert [path.suffix for path in (cache_dir / "data").iterdir()] == [".lock"]
