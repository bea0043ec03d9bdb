"""Image-folder layout: from paths to classes and splits.

Accepted, under any number of single enclosing folders:

    train/<class>/<image>  test/<class>/<image>      (`val` serves as test where there is no `test`,
                                                      or one without classes, as of ImageNet)
    <class>/<image>                                  (a fifth of each class becomes the test split)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from syno._util.errors import UserError
from syno.data.dataset import apportion, stratified

SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")
)
TEST_SHARE = 0.2
SPLIT_SEED = 0
_SPLITS = ("train", "test", "val")
_EXPECTED = "  expected: train/<class>/<image> and test/<class>/<image>, or <class>/<image>"


@dataclass(frozen=True)
class Layout:
    """Paths of a split stand in sorted order; labels are positions in `classes` (sorted names)."""

    classes: tuple[str, ...]
    train: tuple[str, ...]
    train_labels: np.ndarray
    test: tuple[str, ...]
    test_labels: np.ndarray


# Words in a path that tell the part; a file's own name decides before its folders'.
_WORDS = {
    "train": ("train", "training"),
    "val": ("valid", "validation", "val", "dev"),
    "test": ("test", "heldout", "held"),
}


def part_of(path: str) -> str:
    """`train`, `val` or `test`, by the last word in a path that tells it; `train` without one."""
    for word in reversed(re.split(r"[._/-]", path.lower())):
        for part, words in _WORDS.items():
            if word in words:
                return part
    return "train"


def is_image(path: str) -> bool:
    """True for a file with an image suffix that is not hidden."""
    name = PurePosixPath(path)
    return name.suffix.lower() in SUFFIXES and not name.name.startswith(".")


def arrange(where: str, files: Iterable[str], folders: Iterable[str]) -> Layout:
    """Sorts `files` (posix paths relative to the root) into classes and splits.

    Files without an image suffix are passed over. `folders` finds classes that hold no image.
    Raises UserError, naming `where`, for another layout, an empty class, or unequal splits.
    """
    images = [PurePosixPath(path).parts for path in sorted(files) if is_image(path)]
    directories = {PurePosixPath(path).parts for path in folders}
    if not images:
        raise UserError(
            f"no image found in {where}\n{_EXPECTED}, image one of " + " ".join(sorted(SUFFIXES))
        )
    prefix = _enclosing(images)
    depth = len(prefix)
    tops = {parts[depth] for parts in images if len(parts) > depth + 1}
    divided = "train" in tops or ("train",) in {d[depth:] for d in directories}
    if divided and {"test", "val"} <= tops:
        tests = [parts for parts in images if parts[depth] == "test"]
        if all(len(parts) == depth + 2 for parts in tests):
            images = [parts for parts in images if parts[depth] != "test"]
            tops.remove("test")
    _check_depth(where, images, depth, divided)

    if divided and (strange := tops - set(_SPLITS)):
        raise UserError(
            f"unexpected folder '{min(strange)}' beside 'train' in {where}\n{_EXPECTED}"
        )
    root = (*prefix, "train") if divided else prefix
    names, paths, labels = _classes(where, images, directories, root)
    if len(names) < 2:
        got = f"only one class, '{names[0]}'," if names else "no image under 'train'"
        raise UserError(f"{got} in {where}\n  expected: at least two class folders with images")
    held = next((name for name in ("test", "val") if name in tops), None)
    if held is None or not divided:
        return own_split(where, names, paths, labels)
    test_names, test_paths, test_labels = _classes(where, images, directories, (*prefix, held))
    if names != test_names:
        odd = sorted(set(names) ^ set(test_names))
        raise UserError(
            f"'train' and '{held}' of {where} hold different classes\n"
            f"  only in one of them: {', '.join(odd[:5])}{' ...' if len(odd) > 5 else ''}\n"
            "  expected: a folder for each class in both"
        )
    return Layout(names, paths, labels, test_paths, test_labels)


def _enclosing(images: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The folders that hold everything and are neither a split nor a class."""
    prefix: tuple[str, ...] = ()
    while True:
        tops = {parts[len(prefix)] for parts in images}
        (top,) = tops if len(tops) == 1 else (None,)
        deepest = max(len(parts) for parts in images) - len(prefix)
        if top is None or top in _SPLITS or deepest <= 2:
            return prefix
        prefix = (*prefix, top)


def _check_depth(where: str, images: list[tuple[str, ...]], depth: int, divided: bool) -> None:
    expected = depth + (3 if divided else 2)
    for parts in images:
        if len(parts) != expected:
            raise UserError(f"wrong layout of {where}\n{_EXPECTED}      got: {'/'.join(parts)}")


def _classes(
    where: str,
    images: list[tuple[str, ...]],
    directories: set[tuple[str, ...]],
    root: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    depth = len(root)
    inside = [parts for parts in images if parts[:depth] == root]
    counts = Counter(parts[depth] for parts in inside)
    empty = {
        parts[depth]
        for parts in directories
        if len(parts) == depth + 1 and parts[:depth] == root and not parts[depth].startswith(".")
    } - set(counts)
    if empty:
        shown = "/".join((*root, min(empty)))
        raise UserError(
            f"class folder '{shown}' of {where} holds no image\n"
            "  add images to it or remove the folder"
        )
    names = tuple(sorted(counts))
    number = {name: label for label, name in enumerate(names)}
    labels = np.array([number[parts[depth]] for parts in inside], dtype=np.int64)
    return names, tuple("/".join(parts) for parts in inside), labels


def own_split(
    where: str, names: tuple[str, ...], paths: tuple[str, ...], labels: np.ndarray
) -> Layout:
    """No official test part: draws a fifth of each class, by a seed that never changes."""
    counts = np.bincount(labels)
    if counts.min() < 2:
        raise UserError(
            f"class '{names[int(counts.argmin())]}' of {where} has one image, too few for a "
            "training and a test part\n  expected: at least 2 images a class"
        )
    shares = np.clip(apportion(counts, round(TEST_SHARE * len(labels))), 1, counts - 1)
    test = stratified(labels, shares, SPLIT_SEED)
    train = np.setdiff1d(np.arange(len(labels)), test)
    return Layout(
        names,
        tuple(paths[i] for i in train),
        labels[train],
        tuple(paths[i] for i in test),
        labels[test],
    )
