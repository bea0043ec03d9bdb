"""Records: what `prepare` stores, how it goes on, and reading at random."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import syno
from syno import UserError
from syno.data import Records, Stream, load
from syno.data.augment import Augmentation, Augmenter
from syno.data.batches import ImageBatches
from syno.data.prepare import RecordOptions, estimate, prepare

from .mixed import mixed_folder

SMALL = RecordOptions(longer_side=40, jpeg_share=0.4, shard_images=7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """33 images of mixed sizes, formats and modes in 3 classes; never changed."""
    return mixed_folder(tmp_path_factory.mktemp("mixed") / "images")


@pytest.fixture(scope="module")
def whole(folder: Path) -> Path:
    """The records of the folder; never changed."""
    return prepare(str(folder), None, folder.parent / "whole", SMALL).folder


def content(folder: Path) -> dict[str, bytes]:
    """What the files of a folder hold."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def originals(folder: Path, part: str) -> list[Image.Image]:
    """The images of a part in the order of the records."""
    return [Image.open(path) for path in sorted((folder / part).rglob("*.*"))]


def test_images_keep_order_labels_and_pixels(folder: Path, whole: Path) -> None:
    records = Records(whole)
    assert records.classes == ("n0000", "n0001", "n0002")
    for split, part, count in ((records.train, "train", 8), (records.test, "val", 3)):
        assert np.array_equal(split.labels, np.repeat(np.arange(3), count))
        for number, original in enumerate(originals(folder, part)):
            expected = original.convert("L" if original.mode == "L" else "RGB")
            if max(expected.size) > 40:
                factor = 40 / max(expected.size)
                size = tuple(max(1, round(side * factor)) for side in expected.size)
                expected = expected.resize(size, Image.Resampling.BOX)
            found = split.image(number)
            assert (found.mode, found.size) == (expected.mode, expected.size)
            difference = np.asarray(found).astype(int) - np.asarray(expected)
            jpeg = split.bytes_of(number)[:2] == b"\xff\xd8"
            assert np.abs(difference).mean() <= (6 if jpeg else 0)


def test_the_share_of_jpegs_is_the_one_that_was_asked(folder: Path, tmp_path: Path) -> None:
    for share in (0.0, 1.0):
        records = prepare(str(folder), None, tmp_path / str(share), RecordOptions(jpeg_share=share))
        heads = {records.train.bytes_of(i)[:2] for i in range(24)}
        assert heads <= ({b"\xff\xd8"} if share else {b"P5", b"P6"})
    # Which ones is drawn by number and seed: those of a smaller share are among those of a larger.
    drawn = []
    for share in (0.3, 0.6):
        records = prepare(
            str(folder), None, tmp_path / f"s{share}", RecordOptions(jpeg_share=share)
        )
        drawn.append({i for i in range(24) if records.train.bytes_of(i)[:2] == b"\xff\xd8"})
    assert drawn[0] < drawn[1]


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_any_number_of_workers_writes_the_same_bytes(
    folder: Path, whole: Path, tmp_path: Path, workers: int
) -> None:
    prepare(str(folder), None, tmp_path / "out", SMALL, workers=workers)
    assert content(tmp_path / "out") == content(whole)


def test_statistics_are_those_of_the_stored_training_pixels(whole: Path) -> None:
    records = Records(whole)
    pixels = []
    for i in range(len(records.train)):
        raw = records.train.bytes_of(i)
        image = np.asarray(records.train.image(i).convert("RGB")).reshape(-1, 3)
        pixels.append(image)
        assert raw
    every = np.concatenate(pixels) / 255
    # JPEG changes pixels a little behind the sums.
    assert np.allclose(records.mean, every.mean(axis=0), atol=0.01)
    assert np.allclose(records.std, every.std(axis=0), atol=0.01)


def test_an_archive_gives_the_same_records(folder: Path, whole: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "images"), "gztar", folder.parent, "images")
    records = prepare(archive, None, tmp_path / "out", SMALL)
    assert records.fingerprint == Records(whole).fingerprint


class TestDamage:
    @pytest.fixture
    def out(self, whole: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(whole, tmp_path / "out"))

    @pytest.mark.parametrize("damage", ["flipped", "truncated", "missing", "emptied"])
    @pytest.mark.parametrize(
        "name",
        ["shard-00001.rec", "shard-00001.json", "index.json", "index.npy", "plan.json"],
    )
    def test_is_noticed_and_mended_by_preparing_again(
        self,
        folder: Path,
        whole: Path,
        out: Path,
        name: str,
        damage: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        path = out / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 16
        if damage == "missing":
            path.unlink()
        else:
            half = data[: len(data) // 2]
            path.write_bytes({"flipped": data, "truncated": half, "emptied": b""}[damage])
        if name.endswith(".rec"):
            with pytest.raises(UserError, match=r"(?s)shard-00001.rec.*syno data prepare"):
                records = Records(out)
                for i in range(24):
                    records.train.image(i)
        elif name.startswith("index"):
            with pytest.raises(UserError, match=r"(?s)index.*syno data prepare"):
                Records(out)
        with caplog.at_level(logging.WARNING, "syno.data"):
            prepare(str(folder), None, out, SMALL)
        assert content(out) == content(whole)
        if name.startswith("shard"):
            assert "writing it anew" in caplog.text

    def test_a_load_of_damaged_records_names_the_record(self, out: Path) -> None:
        path = out / "shard-00000.rec"
        data = bytearray(path.read_bytes())
        data[-10] ^= 1
        path.write_bytes(data)
        with pytest.raises(UserError, match=r"record 6 in '.*shard-00000.rec' at byte .* damaged"):
            load(str(out), size=16)

    def test_records_that_are_not_finished_are_refused(self, out: Path) -> None:
        (out / "index.json").unlink()
        with pytest.raises(UserError, match=r"holds no finished records.*\n.*continues where it"):
            load(str(out), size=16)


class TestStops:
    # Stops for good behind so many images, so that a signal meets a shard half way.
    SLOW = """
import sys, time
import syno.data.prepare as module
real, count = module._encoded, 0
def slow(*arguments):
    global count
    count += 1
    if count == int(sys.argv[3]):
        print("half way", flush=True)
        time.sleep(float(sys.argv[4]))
    return real(*arguments)
module._encoded = slow
options = module.RecordOptions(longer_side=40, jpeg_share=0.4, shard_images=7)
records = module.prepare(sys.argv[1], None, sys.argv[2], options, workers=1)
print(records.fingerprint)
"""

    def start(self, folder: Path, out: Path, after: int, pause: float) -> subprocess.Popen[str]:
        package = str(Path(syno.__file__).parents[1])
        return subprocess.Popen(
            [sys.executable, "-c", self.SLOW, str(folder), str(out), str(after), str(pause)],
            env={**os.environ, "PYTHONPATH": package},
            stdout=subprocess.PIPE,
            text=True,
        )

    @pytest.mark.parametrize("after", [1, 12, 33])
    def test_a_killed_run_is_gone_on_with(
        self, folder: Path, whole: Path, tmp_path: Path, after: int
    ) -> None:
        out = tmp_path / "out"
        process = self.start(folder, out, after, 60)
        assert process.stdout is not None
        assert process.stdout.readline() == "half way\n"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        left = {path.name: path.stat().st_mtime_ns for path in out.glob("shard-*.rec")}
        assert len(left) == (after - 1) // 7
        prepare(str(folder), None, out, SMALL)
        assert content(out) == content(whole)
        assert all((out / name).stat().st_mtime_ns == stamp for name, stamp in left.items())

    def test_two_processes_at_once_write_one_set(
        self, folder: Path, whole: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        process = self.start(folder, out, 10, 0.5)
        assert process.stdout is not None
        assert process.stdout.readline() == "half way\n"
        records = prepare(str(folder), None, out, SMALL)
        assert process.communicate()[0].strip() == records.fingerprint
        assert content(out) == content(whole)

    def test_a_full_disk_keeps_what_is_whole(
        self, folder: Path, whole: Path, tmp_path: Path
    ) -> None:
        # A limit on the size of a file stands for the full disk: what is written beyond it fails.
        sizes = sorted(path.stat().st_size for path in whole.glob("shard-*.rec"))
        program = (
            "import resource, signal, sys\n"
            "limit = int(sys.argv[3])\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
            "from syno.cli.main import main\n"
            "sys.argv = ['syno', 'data', 'prepare', sys.argv[1], '--out', sys.argv[2],"
            " '--longer-side', '40', '--jpeg-share', '0.4', '--shard-images', '7']\n"
            "main()\n"
        )
        out = tmp_path / "out"
        package = str(Path(syno.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", program, str(folder), str(out), str(sizes[-1] - 1)],
            env={**os.environ, "PYTHONPATH": package},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert f"cannot write records into '{out}': File too large" in done.stderr
        assert "shards are complete and are kept" in done.stderr
        assert "Traceback" not in done.stderr
        assert not list(out.glob(".*.syno-*"))
        prepare(str(folder), None, out, SMALL)
        assert content(out) == content(whole)

    def test_other_options_or_another_source_are_refused(
        self, folder: Path, whole: Path, tmp_path: Path
    ) -> None:
        before = content(whole)
        with pytest.raises(
            UserError, match=r"(?s)another set of options.*'quality': 90.*another f"
        ):
            prepare(
                str(folder), None, whole, RecordOptions(longer_side=40, shard_images=7, quality=80)
            )
        other = mixed_folder(tmp_path / "other", classes=2)
        with pytest.raises(UserError, match="holds records of another source"):
            prepare(str(other), None, whole, SMALL)
        assert content(whole) == before

    def test_a_folder_of_something_else_is_left_alone(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(UserError, match=r"holds something else: notes.txt\n  give an empty"):
            prepare(str(folder), None, tmp_path, SMALL)
        assert [p.name for p in tmp_path.iterdir() if p.name != ".lock"] == ["notes.txt"]

    def test_a_folder_that_cannot_be_made(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UserError, match=r"cannot write records into '.*file/out': Not a dir"):
            prepare(str(folder), None, tmp_path / "file" / "out", SMALL)


def test_damaged_images_are_named_or_left_out_and_counted(tmp_path: Path) -> None:
    folder = mixed_folder(tmp_path / "images")
    paths = sorted((folder / "train").rglob("*.*"))
    for path in (paths[2], paths[9]):
        path.write_bytes(path.read_bytes()[:50])
    out = tmp_path / "out"
    with pytest.raises(UserError) as error:
        prepare(str(folder), None, out, RecordOptions(shard_images=20))
    assert f"cannot decode image '{paths[2]}'" in str(error.value)
    assert "2 files among the images up to 20 of 33" in str(error.value)
    assert "--skip-damaged" in str(error.value)
    shutil.rmtree(out)
    records = prepare(str(folder), None, out, RecordOptions(shard_images=20, skip_damaged=True))
    assert (len(records.train), records.skipped) == (22, 2)
    assert np.bincount(records.train.labels).tolist() == [7, 7, 8]


def test_an_estimate_is_near_what_is_written(folder: Path, whole: Path) -> None:
    cost = estimate(str(folder), None, SMALL)
    written = sum(path.stat().st_size for path in whole.glob("shard-*.rec"))
    assert cost.images == 33
    assert cost.bytes == written  # of so few images each is looked at
    assert cost.seconds > 0


@pytest.mark.parametrize(
    "options", [{"longer_side": 0}, {"quality": 101}, {"jpeg_share": 1.1}, {"shard_images": 0}]
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=rf"'{next(iter(options))}' is .*\n  expected: "):
        RecordOptions(**options)


def test_arrays_need_no_records(tmp_path: Path) -> None:
    rows = Stream(0).below(256, 20 * 3073).astype(np.uint8).reshape(20, 3073)
    rows[:, 0] = np.arange(20) % 2
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (tmp_path / name).write_bytes(rows.tobytes())
    with pytest.raises(UserError, match=r"is made of arrays.*\n  it needs no preparation"):
        prepare(str(tmp_path), None, tmp_path / "out")


class TestReading:
    def test_records_are_a_data_set_of_their_own(self, folder: Path, whole: Path) -> None:
        direct = load(str(folder), size=24)
        data = load(str(whole), size=24)
        assert data.classes == direct.classes
        assert np.array_equal(data.train.labels, direct.train.labels)
        assert data.train.images.shape == direct.train.images.shape
        # Those that were stored smaller or as JPEG differ a little.
        assert np.abs(data.train.images.astype(int) - direct.train.images).mean() < 6
        assert isinstance(data.train.images, np.memmap)

    def test_a_centred_view_is_the_scaled_middle(self, whole: Path) -> None:
        records = Records(whole)
        found = records.train.view(16).fetch(np.arange(24), 0, 0)
        for i in range(24):
            image = records.train.image(i).convert("RGB")
            side = min(image.size) * 0.875
            left, top = (image.width - side) / 2, (image.height - side) / 2
            box = (left, top, left + side, top + side)
            expected = image.resize((16, 16), Image.Resampling.BILINEAR, box=box)
            assert np.array_equal(np.moveaxis(found[i], 0, 2), np.asarray(expected))

    def test_a_random_part_depends_on_seed_epoch_and_number_alone(self, whole: Path) -> None:
        view = Records(whole).train.view(12, area=(0.1, 1.0))
        together = view.fetch(np.arange(24), 5, 2)
        for number in Stream(1).permutation(24)[:6]:
            alone = view.fetch(np.array([number]), 5, 2)
            assert np.array_equal(alone[0], together[number])
        assert not np.array_equal(view.fetch(np.arange(24), 5, 3), together)
        assert not np.array_equal(view.fetch(np.arange(24), 6, 2), together)
        height, width = Records(whole).train.sizes.T
        left, top, right, bottom = view.boxes(np.arange(24), 5, 2).T
        assert (left >= 0).all() and (top >= 0).all()
        assert (right <= width).all() and (bottom <= height).all()
        assert len(set((right - left).tolist())) > 6

    def test_batches_are_the_same_for_any_number_of_workers(self, whole: Path) -> None:
        records = Records(whole)
        view = records.train.view(16, area=(0.2, 1.0))
        augment = Augmenter(Augmentation(flip=True), records.mean, records.std, seed=4)

        def epoch(workers: int) -> list[Any]:
            batches = ImageBatches(view, augment, batch=5, seed=4, workers=workers)
            return [(i.numpy().tobytes(), n.tolist()) for i, n in batches.epoch(3)]

        assert epoch(0) == epoch(1) == epoch(4)

    def test_threads_read_at_random_without_disturbing_each_other(self, whole: Path) -> None:
        records = Records(whole)
        expected = [records.train.bytes_of(i) for i in range(24)]
        barrier = threading.Barrier(6)

        def reader(seed: int) -> bool:
            barrier.wait()
            order = np.concatenate([Stream(seed, i).permutation(24) for i in range(30)])
            return all(records.train.bytes_of(int(i)) == expected[i] for i in order)

        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(reader, range(6)))

    def test_grey_images_alone_stay_grey(self, tmp_path: Path) -> None:
        for i in range(12):
            place = tmp_path / f"grey/c{i % 2}"
            place.mkdir(parents=True, exist_ok=True)
            Image.effect_noise((20, 30), 40).save(place / f"{i}.png")
        records = prepare(str(tmp_path / "grey"), None, tmp_path / "out")
        assert records.channels == len(records.mean) == 1
        assert records.train.view(8).fetch(np.arange(4), 0, 0).shape == (4, 1, 8, 8)


@pytest.mark.slow
def test_cifar_at_mixed_sizes_survives_jpeg(real_data: Path, tmp_path: Path) -> None:
    data = load("cifar10", real_data, size=32)
    folder = mixed_folder(
        tmp_path / "images", classes=10, train=100, val=20, sizes=(120, 640),
        pixels=np.asarray(data.train.images[:2000]),
    )  # fmt: skip
    records = prepare(str(folder), None, tmp_path / "out", RecordOptions(shard_images=200))
    assert (len(records.train), len(records.test)) == (1000, 200)
    assert records.train.sizes.max() == 400
    jpegs = sum(records.train.bytes_of(i)[:2] == b"\xff\xd8" for i in range(1000))
    assert 70 <= jpegs <= 130


@pytest.mark.parametrize("opening", ['{"a":', "["])
def test_an_index_that_is_nested_deeply_is_damaged(
    whole: Path, tmp_path: Path, opening: str
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "records"))
    for depth in (100, 900, 1000, 100_000):  # around what Python's own parser takes
        closing = "1}" if opening != "[" else "]"
        nested = opening * depth + closing[:-1] + closing[-1] * depth
        (out / "index.json").write_text(f'{{"format": 1, "checksums": {nested}}}')
        with pytest.raises(UserError, match=r"index\.json|records"):
            Records(out)
