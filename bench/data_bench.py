"""Loading rates: Syno's caches and records beside torchvision's ImageFolder with a DataLoader.

    python bench/data_bench.py --out bench/results/data.json

Two made image folders, the same on every machine: small (32 x 32, PNG) and large (mixed sizes of
300 to 640 pixels, JPEG). Both sides do the same: a shift by up to 4 pixels and a mirror at 32
pixels, a random part scaled to 224 and a mirror at full size, float32, normalised. Each round times
one epoch of every loader, in turn, so that what disturbs the machine disturbs all; a loader's rate
is its best round, and a ratio is the median over the rounds. Workers of a DataLoader are processes
that live on between epochs; Syno's are threads. torch computes with one thread.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from syno.data import Stream, load
from syno.data.augment import Augmentation, Augmenter
from syno.data.batches import ImageBatches
from syno.data.prepare import RecordOptions, prepare
from syno.network.models.torchvision_shim import import_torchvision
from syno.store.environment import capture_environment

WORKERS = (0, 1, 2)
Loader = Callable[[], int]  # one epoch; how many images came out


def image(stream: Stream, width: int, height: int) -> Image.Image:
    """Coarse shapes with a little noise, for JPEG about as hard as a photograph."""
    small = stream.below(256, 8 * 8 * 3).astype(np.uint8).reshape(8, 8, 3)
    smooth = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
    noise = stream.below(25, width * height).reshape(height, width, 1) - 12
    return Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8))


def make_folder(root: Path, count: int, sizes: tuple[int, int], suffix: str) -> int:
    """train/<class>/<image> with `count` images in 10 classes, and a few to test; bytes in all."""
    stream = Stream(3)
    for part, images in (("train", count), ("test", 20)):
        for i in range(images):
            folder = root / part / f"class{i % 10}"
            folder.mkdir(parents=True, exist_ok=True)
            width, height = (int(s) + sizes[0] for s in stream.below(sizes[1] - sizes[0] + 1, 2))
            image(stream, width, height).save(folder / f"{i:05}{suffix}", quality=90)
    return sum(path.stat().st_size for path in root.rglob(f"*{suffix}"))


def folder_loaders(root: Path, steps: list[Any], batch: int) -> dict[str, Loader]:
    """torchvision's ImageFolder in torch's DataLoader."""
    torchvision = import_torchvision()
    transforms = torchvision.transforms
    chain = transforms.Compose(
        [
            *steps,
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize((0.5,) * 3, (0.25,) * 3),
        ]
    )
    found = torchvision.datasets.ImageFolder(root / "train", chain)
    made: dict[str, Loader] = {}
    for workers in WORKERS:
        loader = torch.utils.data.DataLoader(
            found, batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )

        def epoch(loader: Any = loader) -> int:
            return sum(len(labels) for _, labels in loader)

        made[f"ImageFolder, {workers} workers"] = epoch
    return made


def syno_loaders(name: str, reader: Any, augment: Augmenter, batch: int) -> dict[str, Loader]:
    """ImageBatches."""
    made: dict[str, Loader] = {}
    for workers in WORKERS:
        batches = ImageBatches(reader, augment, batch=batch, seed=0, workers=workers)

        def epoch(batches: ImageBatches = batches) -> int:
            return sum(len(labels) for _, labels in batches.epoch(0))

        made[f"{name}, {workers} workers"] = epoch
    return made


def measure(loaders: dict[str, Loader], images: int, rounds: int, base: str) -> dict[str, Any]:
    """Images a second of each loader, and how many times as fast as the loader of `base` with as
    many workers."""
    rates: dict[str, list[float]] = {name: [] for name in loaders}
    for turn in range(rounds + 1):  # the first warms up
        for name, epoch in loaders.items():
            started = time.perf_counter()
            count = epoch()
            if count != images:
                raise SystemExit(f"{name} gave {count} images, not {images}")
            rate = count / (time.perf_counter() - started)
            if turn:
                rates[name].append(rate)
    result = {}
    for name, found in rates.items():
        beside = rates[f"{base}, {name.rpartition(', ')[2]}"]
        result[name] = {
            "images_per_s": round(max(found), 1),
            "over_image_folder": round(
                statistics.median(a / b for a, b in zip(found, beside, strict=True)), 2
            ),
        }
    return result


def small(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """32 x 32 pixels: the cache of decoded images."""
    transforms = import_torchvision().transforms
    root = folder / "small"
    size = make_folder(root, count, (32, 32), ".png")
    started = time.perf_counter()
    data = load(str(root), progress=False)
    first = time.perf_counter() - started
    started = time.perf_counter()
    load(str(root), progress=False)
    again = time.perf_counter() - started
    augment = Augmenter(Augmentation(crop=4, flip=True), data.mean, data.std, seed=0)
    loaders = folder_loaders(root, [transforms.RandomCrop(32, padding=4)], 256)
    loaders |= syno_loaders("cache", data.train, augment, 256)
    return {
        "images": count,
        "bytes": size,
        "first_load_s": round(first, 2),
        "load_from_cache_s": round(again, 3),
        "loaders": measure(loaders, count, rounds, "ImageFolder"),
    }


def large(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Mixed sizes to 224 pixels: records of several kinds."""
    transforms = import_torchvision().transforms
    root = folder / "large"
    size = make_folder(root, count, (300, 640), ".jpg")
    loaders = folder_loaders(root, [transforms.RandomResizedCrop(224, (0.08, 1.0))], 32)
    prepared = {}
    for share in (0.1, 1.0):
        started = time.perf_counter()
        out = folder / f"records-{share}"
        records = prepare(str(root), None, out, RecordOptions(jpeg_share=share), progress=False)
        prepared[f"jpeg share {share}"] = {
            "images_per_s": round(count / (time.perf_counter() - started), 1),
            "bytes": sum(path.stat().st_size for path in out.glob("*.rec")),
        }
        augment = Augmenter(Augmentation(flip=True), records.mean, records.std, seed=0)
        view = records.train.view(224, area=(0.08, 1.0))
        loaders |= syno_loaders(f"records, {share:.0%} JPEG", view, augment, 32)
    return {
        "images": count,
        "bytes": size,
        "prepared": prepared,
        "loaders": measure(loaders, count, rounds, "ImageFolder"),
    }


def augmentation(rounds: int) -> dict[str, Any]:
    """Images a second of augmentation alone, one thread, batches of 512 of 32 x 32 pixels."""
    images = torch.from_numpy(
        Stream(0).below(256, 512 * 3 * 32 * 32).astype(np.uint8).reshape(512, 3, 32, 32)
    )
    kinds = {
        "normalise": Augmentation(),
        "shift, mirror": Augmentation(crop=4, flip=True),
        "shift with reflection, mirror": Augmentation(crop=4, pad="reflect", flip=True),
        "shift, mirror, cut out": Augmentation(crop=4, flip=True, cutout=8),
        "random part, mirror": Augmentation(area=(0.3, 1.0), flip=True),
        "shift, mirror, scale to 16": Augmentation(crop=4, flip=True, size=16),
    }
    result = {}
    for name, steps in kinds.items():
        augment = Augmenter(steps, (0.5,) * 3, (0.25,) * 3, seed=0)
        seconds = []
        for epoch in range(4 * rounds + 1):
            started = time.perf_counter()
            augment(images, np.arange(512), epoch)
            seconds.append(time.perf_counter() - started)
        result[name] = round(512 / min(seconds[1:]))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, help="where the figures go as JSON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small-images", type=int, default=4000)
    parser.add_argument("--large-images", type=int, default=160)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["SYNO_CACHE"] = str(Path(temporary) / "cache")
        found = {
            "augmentation_images_per_s": augmentation(given.rounds),
            "small": small(Path(temporary), given.small_images, given.rounds),
            "large": large(Path(temporary), given.large_images, given.rounds),
        }
    libraries = {"torchvision": import_torchvision().__version__}
    here = dataclasses.asdict(capture_environment(threads=1, rules=""))
    here["libraries"] = {**here["libraries"], **libraries}
    found |= {"rounds": given.rounds, "cores": len(os.sched_getaffinity(0)), "environment": here}
    text = json.dumps(found, indent=2) + "\n"
    if given.out:
        given.out.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
