"""Specifications that a search makes for its network, and what is said about them."""

from __future__ import annotations

import pytest

from syno import Specification, UserError
from syno.study.specifications import small_strided, small_text, small_vision, without_windows

STAGES = [{"N": 1, "C_in": 16, "C_out": 16, "H": 16}, {"N": 1, "C_in": 64, "C_out": 64, "H": 4}]


def bound(*stages: dict[str, int], **changes: object) -> Specification:
    full = [{**stage, "k": 3, "s": 2} for stage in stages or STAGES]
    return small_vision(bindings=full, **changes)


@pytest.mark.parametrize("ratio", [1.3, 4 / 3])
def test_nothing_is_said_if_every_layer_has_room_for_a_window(ratio: float) -> None:
    assert without_windows(bound(min_unfold_ratio=ratio)) is None


def test_the_layer_without_room_for_a_window_is_named_with_the_ratio_that_makes_room() -> None:
    note = without_windows(bound(min_unfold_ratio=2.3))
    assert note is not None
    assert "a window of 3 is not legal in a layer with 4 positions (min_unfold_ratio 2.3)" in note
    assert note.endswith("--min-unfold-ratio 1.3")


def test_the_advice_makes_room() -> None:
    note = without_windows(bound(min_unfold_ratio=2.3))
    assert note is not None
    assert without_windows(bound(min_unfold_ratio=float(note.split()[-1]))) is None


def test_one_small_layer_is_enough_to_exclude_windows() -> None:
    assert without_windows(bound(STAGES[0], min_unfold_ratio=2.3)) is None
    assert without_windows(bound(*STAGES, min_unfold_ratio=2.3)) is not None


def test_a_space_that_has_no_windows_anyway_needs_no_note() -> None:
    assert without_windows(bound(min_unfold_ratio=2.3, max_unfolds=0)) is None


def test_positions_of_text_are_windows_too() -> None:
    def projection(positions: int) -> Specification:
        sizes = {"N": 1, "seq_len": positions, "H_in": 64, "H_out": 64, "k": 3, "g": 8}
        return small_text(bindings=[sizes], min_unfold_ratio=2.3)

    assert without_windows(projection(128)) is None
    note = without_windows(projection(6))
    assert note is not None
    assert "6 positions" in note


def test_a_coefficient_of_the_specification_has_another_value_and_the_same_budget() -> None:
    preset = Specification.preset("paper/resnet18")
    before = dict(text.partition("=")[::2] for text in preset.coefficient)
    after = dict(text.partition("=")[::2] for text in preset.changed_coefficients(["g=4"]))
    assert after == {**before, "g": "4:" + before["g"].partition(":")[2]}
    with pytest.raises(UserError, match="no coefficient to change by 'q=4'"):
        preset.changed_coefficients(["q=4"])


def test_sizes_that_are_products_count_as_what_they_are() -> None:
    sizes = {"N": 1, "C_in": 16, "C_out": 16, "H": 3, "k": 3, "s": 2}
    assert without_windows(small_strided(bindings=[sizes], min_unfold_ratio=2.0)) is None
    note = without_windows(small_strided(bindings=[sizes], min_unfold_ratio=2.3))
    assert note is not None
    assert "6 positions" in note
