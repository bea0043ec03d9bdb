"""Augmentation: what is drawn, where pixels go; order, workers and device change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from syno import UserError
from syno.data import Split, Stream
from syno.data.augment import PADS, Augmentation, Augmenter, filters
from syno.data.batches import ImageBatches
from syno.data.random import _philox, draws, scaled

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


def pixels(count: int, height: int = 12, width: int = 10, channels: int = 3) -> np.ndarray:
    """Random images, uint8 [n, C, H, W]."""
    shape = (count, channels, height, width)
    return Stream(1).below(256, int(np.prod(shape))).astype(np.uint8).reshape(shape)


def augmented(steps: Augmentation, images: np.ndarray, **options: Any) -> torch.Tensor:
    """The batch of images numbered from 0, in epoch 1, in pixel values."""
    made = Augmenter(steps, MEAN, STD, seed=3)(
        torch.from_numpy(images), np.arange(len(images)), options.get("epoch", 1)
    )
    std, mean = (torch.tensor(v).view(1, 3, 1, 1) for v in (STD, MEAN))
    return (made * std + mean) * 255


class TestDraws:
    def test_are_those_of_the_published_vectors(self) -> None:
        # Known answers of Random123 for philox4x32 with 10 rounds.
        for counter, key, expected in (
            ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
            ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
            (
                [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
                [0xA4093822, 0x299F31D0],
                "d16cfe09 94fdcceb 5001e420 24126ea1",
            ),
        ):
            words = _philox([np.array([w], dtype=np.uint64) for w in counter], key)
            assert " ".join(f"{int(word[0]):08x}" for word in words) == expected

    @given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(1, 11))
    def test_depend_on_seed_stream_and_number_alone(
        self, seed: int, stream: int, count: int
    ) -> None:
        index = Stream(seed).permutation(20)
        together = draws(seed, stream, index, count)
        assert together.shape == (20, count)
        for row, number in zip(together, index, strict=True):
            assert np.array_equal(draws(seed, stream, np.array([number]), 11)[0, :count], row)

    def test_are_even_and_differ_between_epochs_and_seeds(self) -> None:
        index = np.arange(50_000)
        for seed, stream in ((0, 0), (0, 1), (1, 0)):
            counts = np.bincount(scaled(draws(seed, stream, index, 1)[:, 0], 9), minlength=9)
            assert abs(counts - 50_000 / 9).max() < 5 * (50_000 / 9) ** 0.5
        rows = {draws(s, e, np.array([7]), 4).tobytes() for s in range(20) for e in range(20)}
        assert len(rows) == 400


class TestMoves:
    def test_nothing_asked_is_normalisation_alone(self) -> None:
        images = pixels(5)
        assert torch.allclose(
            augmented(Augmentation(), images), torch.from_numpy(images).float(), atol=1e-3
        )

    @pytest.mark.parametrize("pad", PADS)
    @pytest.mark.parametrize(("crop", "flip"), [(3, False), (0, True), (4, True)])
    def test_a_shift_and_a_mirror_are_those_that_were_drawn(
        self, pad: str, crop: int, flip: bool
    ) -> None:
        images, steps = pixels(40), Augmentation(crop=crop, pad=pad, flip=flip)
        found = augmented(steps, images).round().to(torch.uint8).numpy()
        drawn = Augmenter(steps, MEAN, STD, seed=3).choose(np.arange(40), 1, 12, 10)
        mean = np.round(np.array(MEAN) * 255)
        for i, image in enumerate(images):
            padded = np.stack(
                [
                    np.pad(plane, crop, "reflect")
                    if pad == "reflect"
                    else np.pad(plane, crop, constant_values=int(mean[c]) if pad == "mean" else 0)
                    for c, plane in enumerate(image)
                ]
            )
            top, left = drawn.top[i], drawn.left[i]
            expected = padded[:, top : top + 12, left : left + 10]
            expected = expected[:, :, ::-1] if drawn.mirrored[i] else expected
            assert np.array_equal(found[i], expected)
        if crop:
            assert {0, 2 * crop} <= set(drawn.top.tolist()) <= set(range(2 * crop + 1))
        assert set(drawn.mirrored.tolist()) == ({0, 1} if flip else {0})

    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(0, 5),
        st.sampled_from(PADS),
        st.booleans(),
        st.integers(6, 9),
        st.integers(6, 9),
    )
    def test_torch_indices_and_numpy_windows_fetch_the_same_pixels(
        self, crop: int, pad: str, flip: bool, height: int, width: int
    ) -> None:
        steps = Augmentation(crop=crop, pad=pad, flip=flip)
        augment = Augmenter(steps, MEAN, STD, seed=5)
        images = torch.from_numpy(pixels(9, height, width))
        choices = augment.choose(np.arange(9), 2, height, width)
        assert torch.equal(
            augment._moved(images, choices), augment._moved_by_numpy(images, choices)
        )

    def test_images_are_left_as_they_were(self) -> None:
        images = pixels(6)
        before = images.copy()
        augmented(Augmentation(flip=True, cutout=4), images)
        assert np.array_equal(images, before)


class TestResize:
    @pytest.mark.parametrize("size", [5, 10, 12, 17, 40])
    def test_agrees_with_pillow(self, size: int) -> None:
        images = pixels(4, 24, 16)
        found = augmented(Augmentation(size=size), images).numpy()
        for image, scaled_ in zip(images, found, strict=True):
            picture = Image.fromarray(np.moveaxis(image, 0, 2))
            expected = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR))
            # Pillow rounds to whole values between its two passes and at the end.
            assert np.abs(np.moveaxis(scaled_, 0, 2) - expected).max() <= 1.1

    def test_a_random_part_is_the_one_that_was_drawn(self) -> None:
        images = pixels(30, 24, 24)
        steps = Augmentation(area=(0.2, 0.8), size=12)
        found = augmented(steps, images).numpy()
        top, left, tall, wide = Augmenter(steps, MEAN, STD, 3).choose(np.arange(30), 1, 24, 24).box
        for i, image in enumerate(images):
            box = (left[i], top[i], left[i] + wide[i], top[i] + tall[i])
            picture = Image.fromarray(np.moveaxis(image, 0, 2))
            expected = np.asarray(picture.crop(box).resize((12, 12), Image.Resampling.BILINEAR))
            assert np.abs(np.moveaxis(found[i], 0, 2) - expected).max() <= 1.1

    @given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 2**32))
    def test_a_random_part_lies_within_the_image(self, height: int, width: int, seed: int) -> None:
        steps = Augmentation(area=(0.05, 1.0), ratio=(0.2, 5.0))
        top, left, tall, wide = (
            Augmenter(steps, MEAN, STD, seed).choose(np.arange(50), 0, height, width).box
        )
        assert (tall >= 1).all() and (wide >= 1).all()
        assert (top >= 0).all() and (top + tall <= height).all()
        assert (left >= 0).all() and (left + wide <= width).all()

    def test_parts_have_the_areas_and_ratios_that_were_asked(self) -> None:
        steps = Augmentation(area=(0.25, 0.5))
        _, _, tall, wide = Augmenter(steps, MEAN, STD, 0).choose(np.arange(4000), 0, 400, 400).box
        share, ratio = tall * wide / 160_000, wide / tall
        assert share.min() > 0.245 and share.max() < 0.505
        assert abs(share.mean() - 0.375) < 0.005
        assert ratio.min() > 0.74 and ratio.max() < 1.35
        assert abs(np.log(ratio).mean()) < 0.02

    @given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 5))
    def test_weights_of_a_filter_sum_to_one(self, length: int, size: int, begin: int) -> None:
        weights = filters(torch.tensor([begin]), torch.tensor([length]), 40, size)
        assert torch.allclose(weights.sum(2), torch.ones(1, size))
        assert (weights[:, :, :begin] == 0).all() and (weights[:, :, begin + length :] == 0).all()


def test_a_square_becomes_the_mean_colour() -> None:
    images, steps = pixels(200), Augmentation(cutout=5)
    found = augmented(steps, images).numpy()
    plain = augmented(Augmentation(), images).numpy()
    drawn = Augmenter(steps, MEAN, STD, seed=3).choose(np.arange(200), 1, 12, 10)
    for i in range(200):
        y, x = drawn.cut_y[i], drawn.cut_x[i]
        expected = plain[i].copy()
        expected[:, max(y, 0) : y + 5, max(x, 0) : x + 5] = 255 * np.array(MEAN).reshape(3, 1, 1)
        assert np.allclose(found[i], expected, atol=1e-3)
    assert drawn.cut_y.min() == -2 and drawn.cut_y.max() == 9


EVERYTHING = Augmentation(crop=2, flip=True, area=(0.3, 1.0), size=9, cutout=3)


@pytest.mark.parametrize("steps", [EVERYTHING, Augmentation(crop=3, flip=True)])
def test_an_image_is_augmented_alike_in_any_batch(steps: Augmentation) -> None:
    images = torch.from_numpy(pixels(20))
    augment = Augmenter(steps, MEAN, STD, seed=11)
    together = augment(images, np.arange(20), 4)
    order = Stream(2).permutation(20)
    for part in np.array_split(order, 3):
        assert torch.allclose(augment(images[part], part, 4), together[part], atol=1e-5)
    assert not torch.equal(augment(images, np.arange(20), 5), together)
    assert not torch.equal(Augmenter(steps, MEAN, STD, 12)(images, np.arange(20), 4), together)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("pad", PADS)
def test_a_gpu_gives_the_same(pad: str) -> None:
    images = torch.from_numpy(pixels(64, 32, 32))
    steps = Augmentation(crop=4, pad=pad, flip=True, area=(0.3, 1.0), size=24, cutout=6)
    for chosen in (steps, Augmentation(crop=4, pad=pad, flip=True, cutout=6)):
        augment = Augmenter(chosen, MEAN, STD, seed=1)
        expected = augment(images, np.arange(64), 0)
        found = augment(images.cuda(), np.arange(64), 0).cpu()
        assert torch.allclose(found, expected, atol=1e-4)


class TestBatches:
    SPLIT = Split(pixels(53), np.arange(53) % 7)

    def batches(self, **options: Any) -> ImageBatches:
        augment = Augmenter(EVERYTHING, MEAN, STD, seed=1)
        return ImageBatches(self.SPLIT, augment, **{"batch": 8, "seed": 6, **options})

    def test_any_number_of_workers_gives_the_same(self) -> None:
        expected = list(self.batches().epoch(2))
        assert len(expected) == self.batches().steps == 7
        assert sorted(len(labels) for _, labels in expected) == [7, 7, 7, 8, 8, 8, 8]
        for workers in (1, 2, 5):
            found = list(self.batches(workers=workers).epoch(2))
            for (images, labels), (other, numbers) in zip(found, expected, strict=True):
                assert torch.equal(images, other)
                assert torch.equal(labels, numbers)

    def test_an_epoch_shows_every_image_once_and_goes_on_from_a_step(self) -> None:
        augment = Augmenter(Augmentation(), (0.0,) * 3, (1 / 255,) * 3, seed=1)
        batches = ImageBatches(self.SPLIT, augment, batch=8, seed=6, workers=2)
        shown = torch.cat([images for images, _ in batches.epoch(0)]).round().to(torch.uint8)
        assert sorted(image.numpy().tobytes() for image in shown) == sorted(
            image.tobytes() for image in self.SPLIT.images
        )
        rest = [labels for _, labels in batches.epoch(0, step=4)]
        every = [labels for _, labels in batches.epoch(0)]
        assert all(map(torch.equal, rest, every[4:]))
        assert [len(labels) for labels in rest] == [len(labels) for labels in every[4:]]

    def test_an_epoch_that_is_left_early_leaves_no_worker(self) -> None:
        epoch = self.batches(workers=3).epoch(0)
        next(epoch)
        epoch.close()

    def test_a_reader_that_fails_says_so(self) -> None:
        class Broken(Split):
            def fetch(self, index: np.ndarray, seed: int, epoch: int) -> np.ndarray:
                raise UserError("record 3 is damaged")

        broken = Broken(self.SPLIT.images, self.SPLIT.labels)
        augment = Augmenter(EVERYTHING, MEAN, STD, seed=1)
        with pytest.raises(UserError, match="record 3"):
            list(ImageBatches(broken, augment, batch=8, seed=0, workers=2).epoch(0))

    @pytest.mark.parametrize("batch", [0, 54])
    def test_a_batch_larger_than_the_data_is_refused(self, batch: int) -> None:
        text = rf"cannot make batches of {batch} of 53 images\n  expected: a batch of 1 to 53"
        with pytest.raises(UserError, match=text):
            self.batches(batch=batch)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"pad": "edge"}, "cannot pad images with 'edge'\n  expected: 'mean'"),
        ({"crop": -1}, "with crop -1"),
        ({"size": 0}, "with size 0\n  expected: 1 or more"),
        ({"area": (0.5, 1.2)}, "part of area"),
        ({"ratio": (0.0, 1.0)}, "part of ratio"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=text):
        Augmentation(**options)


def test_a_mirrored_border_wider_than_the_image_is_refused() -> None:
    with pytest.raises(UserError, match="cannot mirror a border of 10 pixels of images of 10 x 12"):
        augmented(Augmentation(crop=10, pad="reflect"), pixels(2))
