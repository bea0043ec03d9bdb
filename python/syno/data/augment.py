"""Augmentation of whole batches on the device of their tensors.

The random numbers of an image depend on (seed, epoch, number of the image) only, so its result
is the same in every batch, worker and device. Positions of pixels are integers; only the weights of
a resize and the normalization are rounded. This module needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from syno._util.errors import UserError
from syno.data.random import box_of, draws, scaled

PADS = ("mean", "zero", "reflect")
# The purpose of each random number of an image; blocks of four cost the same as one.
_FLIP, _DY, _DX, _CUT_Y, _CUT_X, _AREA, _RATIO, _BOX_Y, _BOX_X = range(9)


@dataclass(frozen=True)
class Augmentation:
    """The steps of the augmentation of an image, in this order. The defaults change nothing.

    crop: the largest random shift along each axis, in pixels. The border is filled by `pad`: the
        `mean` color, `zero` (black), or the mirrored pixels of the image (`reflect`).
    flip: mirror left to right with probability 1/2.
    area: the least and the largest share of the image that a random area covers. The ratio of its
        width to its height is within `ratio` (uniform in the logarithm). The area is scaled to
        `size`, or back to the size of the image, as in Inception (Szegedy et al., CVPR 2015).
    size: scale to this number of pixels by a triangle filter with antialiasing.
    cutout: a square with this side in pixels, around a random center, becomes the mean color
        (DeVries and Taylor, arXiv 1708.04552).
    """

    crop: int = 0
    pad: str = "mean"
    flip: bool = False
    area: tuple[float, float] | None = None
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    size: int | None = None
    cutout: int = 0

    def __post_init__(self) -> None:
        if self.pad not in PADS:
            raise UserError(
                f"cannot pad images with '{self.pad}'\n  expected: {', '.join(map(repr, PADS))}"
            )
        for name, value, least in (
            ("crop", self.crop, 0),
            ("cutout", self.cutout, 0),
            ("size", 1 if self.size is None else self.size, 1),
        ):
            if value < least:
                raise UserError(
                    f"cannot augment images with {name} {value}\n  expected: {least} or more pixels"
                )
        if self.area is not None and not 0.0 < self.area[0] <= self.area[1] <= 1.0:
            raise UserError(
                f"cannot take a part of area {self.area} of an image\n  expected: the least and "
                "the largest share, above 0 and at most 1"
            )
        if not 0.0 < self.ratio[0] <= self.ratio[1]:
            raise UserError(
                f"cannot take a part of ratio {self.ratio} of an image\n  expected: the least and "
                "the largest width divided by height, above 0"
            )


@dataclass(frozen=True, eq=False)
class AugmentationChoices:
    """The random choices for a batch, each int64 [n].

    top, left: the corner of the cropped window, in pixels of the padded image.
    mirrored: 0 or 1.
    box: top, left, height and width of the area to scale.
    cut_y, cut_x: the corner of the square of cutout, in pixels of the result.
    """

    top: np.ndarray
    left: np.ndarray
    mirrored: np.ndarray
    box: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    cut_y: np.ndarray
    cut_x: np.ndarray


class Augmenter:
    """Converts uint8 batches to augmented and normalized floating-point batches.

    mean, std: of each channel, in units of pixel value / 255, as in a DataSet.
    dtype: of the result.
    """

    def __init__(
        self,
        augmentation: Augmentation,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        seed: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.augmentation, self._seed, self._dtype = augmentation, seed, dtype
        mean_, std_ = torch.tensor(mean), torch.tensor(std)
        self._scale = (1 / (255 * std_)).view(1, -1, 1, 1)
        self._shift = (-mean_ / std_).view(1, -1, 1, 1)
        self._mean = np.round(np.array(mean) * 255).astype(np.uint8)

    def __call__(self, images: torch.Tensor, index: np.ndarray, epoch: int) -> torch.Tensor:
        """images: uint8 [n, C, H, W] on any device; index: int64 [n], the images' numbers in their
        split. Gives [n, C, S, S'] on the same device: `size` twice, or H and W."""
        steps = self.augmentation
        height, width = images.shape[2:]
        if steps.pad == "reflect" and steps.crop >= min(height, width):
            raise UserError(
                f"cannot mirror a border of {steps.crop} pixels of images of {width} x {height}\n"
                f"  expected: a crop below {min(height, width)}, or another pad"
            )
        choices = self.choose(index, epoch, height, width)
        moved = images
        if steps.crop or steps.flip:
            on_cpu = images.device.type == "cpu"
            moved = (self._moved_by_numpy if on_cpu else self._moved)(images, choices)
        values = moved.float()
        if steps.area or steps.size not in (None, height) or steps.size not in (None, width):
            values = self._resized(values, choices)
        scale, shift = self._scale.to(values.device), self._shift.to(values.device)
        values = values.mul_(scale).add_(shift)
        if steps.cutout:
            values = self._cut(values, choices)
        return values.to(self._dtype)

    def plain(self, images: torch.Tensor) -> torch.Tensor:
        """Scale a batch [n, C, H, W] to `size` and normalize it, without augmentation."""
        alone = Augmentation(size=self.augmentation.size)
        same = Augmenter(alone, (), (), self._seed, self._dtype)
        same._scale, same._shift = self._scale, self._shift
        return same(images, np.zeros(len(images), dtype=np.int64), 0)

    def choose(self, index: np.ndarray, epoch: int, height: int, width: int) -> AugmentationChoices:
        """What is drawn for the images of these numbers, of height x width pixels."""
        steps, count = self.augmentation, len(index)
        columns = 9 if steps.area else 5 if steps.cutout else 3
        drawn = draws(self._seed, epoch, index, columns)
        zero = np.zeros(count, dtype=np.int64)
        box = (zero, zero, zero + height, zero + width)
        if steps.area:
            box = self._box(drawn, height, width)
        final = (steps.size or height, steps.size or width)
        half = steps.cutout // 2
        return AugmentationChoices(
            top=scaled(drawn[:, _DY], 2 * steps.crop + 1),
            left=scaled(drawn[:, _DX], 2 * steps.crop + 1),
            mirrored=scaled(drawn[:, _FLIP], 2) if steps.flip else zero,
            box=box,
            cut_y=scaled(drawn[:, _CUT_Y], final[0]) - half if steps.cutout else zero,
            cut_x=scaled(drawn[:, _CUT_X], final[1]) - half if steps.cutout else zero,
        )

    def _box(
        self, drawn: np.ndarray, height: int, width: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        steps = self.augmentation
        assert steps.area is not None
        return box_of(
            drawn[:, [_AREA, _RATIO, _BOX_Y, _BOX_X]], steps.area, steps.ratio, height, width
        )

    def _moved_by_numpy(self, images: torch.Tensor, choices: AugmentationChoices) -> torch.Tensor:
        """`_moved` on the CPU, where numpy copies such windows several times as fast as torch."""
        crop, pixels = self.augmentation.crop, images.numpy()
        if crop:
            height, width = pixels.shape[2:]
            windows = np.lib.stride_tricks.sliding_window_view(
                self._padded(pixels), (height, width), (2, 3)
            )
            moved = windows[np.arange(len(pixels)), :, choices.top, choices.left]
        else:
            moved = pixels.copy()
        mirrored = np.flatnonzero(choices.mirrored)
        moved[mirrored] = moved[mirrored, :, :, ::-1]
        return torch.from_numpy(moved)

    def _padded(self, pixels: np.ndarray) -> np.ndarray:
        """uint8 [n, C, H + 2 crop, W + 2 crop]."""
        crop = self.augmentation.crop
        border = ((0, 0), (0, 0), (crop, crop), (crop, crop))
        if self.augmentation.pad == "reflect":
            return np.pad(pixels, border, "reflect")
        count, channels, height, width = pixels.shape
        padded = np.empty((count, channels, height + 2 * crop, width + 2 * crop), np.uint8)
        fill = self._fill().reshape(1, -1, 1, 1)
        padded[:, :, :crop] = fill
        padded[:, :, -crop:] = fill
        padded[:, :, crop:-crop, :crop] = fill
        padded[:, :, crop:-crop, -crop:] = fill
        padded[:, :, crop:-crop, crop:-crop] = pixels
        return padded

    def _fill(self) -> np.ndarray:
        """The color of a border, uint8 [C]."""
        return self._mean if self.augmentation.pad == "mean" else np.zeros_like(self._mean)

    def _moved(self, images: torch.Tensor, choices: AugmentationChoices) -> torch.Tensor:
        """Shifted and mirrored, uint8 [n, C, H, W]: each pixel is fetched from where it was."""
        device, crop = images.device, self.augmentation.crop
        height, width = images.shape[2:]
        top, left, mirrored = (
            torch.from_numpy(part).to(device)[:, None]
            for part in (choices.top, choices.left, choices.mirrored)
        )
        rows = torch.arange(height, device=device) + top - crop  # [n, H]
        columns = torch.arange(width, device=device)
        columns = torch.where(mirrored > 0, width - 1 - columns, columns) + left - crop  # [n, W]
        if self.augmentation.pad == "reflect":
            rows, columns = _mirrored(rows, height), _mirrored(columns, width)
        inside = ((rows >= 0) & (rows < height))[:, None, :, None]
        inside = inside & ((columns >= 0) & (columns < width))[:, None, None, :]
        number = torch.arange(len(images), device=device)[:, None, None]
        # Advanced indices around a slice put the channels last: [n, H, W, C].
        fetched = images[
            number,
            :,
            rows.clamp(0, height - 1)[:, :, None],
            columns.clamp(0, width - 1)[:, None, :],
        ].permute(0, 3, 1, 2)
        fill = torch.from_numpy(self._fill()).to(device).view(1, -1, 1, 1)
        return torch.where(inside, fetched, fill)

    def _resized(self, values: torch.Tensor, choices: AugmentationChoices) -> torch.Tensor:
        """float32 [n, C, H, W] to [n, C, S, S'], values within 0 and 255."""
        height, width = values.shape[2:]
        top, left, tall, wide = (torch.from_numpy(part).to(values.device) for part in choices.box)
        if self.augmentation.area is None:  # one filter for all
            top, left, tall, wide = top[:1], left[:1], tall[:1], wide[:1]
        size = self.augmentation.size
        down = filters(top, tall, height, size or height)[:, None]  # [n, 1, S, H]
        across = filters(left, wide, width, size or width)[:, None]  # [n, 1, S', W]
        return torch.matmul(torch.matmul(down, values), across.transpose(2, 3))

    def _cut(self, values: torch.Tensor, choices: AugmentationChoices) -> torch.Tensor:
        side, device = self.augmentation.cutout, values.device
        rows, columns = (
            torch.arange(extent, device=device) - torch.from_numpy(begin).to(device)[:, None]
            for begin, extent in (
                (choices.cut_y, values.shape[2]),
                (choices.cut_x, values.shape[3]),
            )
        )
        cut_rows, cut_columns = ((o >= 0) & (o < side) for o in (rows, columns))
        cut = cut_rows[:, None, :, None].float() * cut_columns[:, None, None, :].float()
        # The mean color is 0 after normalization; a product is faster than a masked store.
        return values.mul_(1 - cut)


def filters(begin: torch.Tensor, length: torch.Tensor, extent: int, size: int) -> torch.Tensor:
    """Weights that scale `length` pixels from `begin` on to `size`: float32 [n, size, extent].

    A triangle around the place of each result, as wide as the step from one to the next, and at
    least one pixel. In units of 1 / (2 size) pixel everything is a whole number until the
    weights are divided by their sum. begin, length: int64 [n].
    """
    # 32 bits hold every distance up to 16,384 pixels, and are computed twice as fast as 64.
    whole = torch.int32 if max(extent, size) <= 1 << 14 else torch.int64
    begin, length = begin.to(whole)[:, None, None], length.to(whole)[:, None, None]
    source = torch.arange(extent, device=begin.device, dtype=whole)  # [extent]
    target = torch.arange(size, device=begin.device, dtype=whole)[:, None]  # [size, 1]
    distance = (2 * source + 1) * size - (2 * begin * size + (2 * target + 1) * length)
    reach = 2 * torch.clamp(length, min=size)
    inside = (source >= begin) & (source < begin + length)
    weights = ((reach - distance.abs()).clamp_(min=0) * inside).float()
    return weights / weights.sum(2, keepdim=True)


def _mirrored(place: torch.Tensor, extent: int) -> torch.Tensor:
    """Places beyond the border as those inside that they mirror; no border pixel is doubled."""
    place = place.abs()
    return torch.where(place >= extent, 2 * (extent - 1) - place, place)
