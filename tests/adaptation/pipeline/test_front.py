"""The series of a front: which rows, which split, which order."""

from __future__ import annotations

import dataclasses
import json

import pytest
from torch import nn

from syno.adaptation.pipeline.adaptation import Adaptation
from syno.adaptation.pipeline.front import axis_of, series
from syno.adaptation.pipeline.page import render
from syno.adaptation.pipeline.results import AdaptedNetwork, NetworkRow
from syno.store.objective import ACCURACY


def row(name: str, speedup: float | None, *values: float, way: str = "") -> NetworkRow:
    ratio = None if speedup is None else 1.0 / speedup
    value = sum(values) / len(values) if values else None
    return NetworkRow(name, "", value, values, ratio=ratio, way=way)


def with_tests(each: NetworkRow, *tests: float) -> NetworkRow:
    return dataclasses.replace(each, test=sum(tests) / len(tests), tests=tests)


@pytest.fixture
def found() -> Adaptation:
    networks = [row("0.5x", 2.0, 0.91, 0.93), row("0.7x", 1.4, 0.94)]
    return Adaptation(
        study="one",
        objective=ACCURACY,
        original=row("original", 1.0, 0.95),
        networks=[AdaptedNetwork(each, (), nn.Identity()) for each in networks],
        rivals=[
            row("channel pruning 0.5x", 2.1, 0.88, way="channel pruning"),
            row("original, INT8", 1.5, 0.94, way="INT8"),
            row("original, trained on", None, 0.95, way="original, trained on"),
            row("channel pruning 0.7x", 1.3, 0.92, way="channel pruning"),
        ],
    )


def test_rivals_are_grouped_by_their_way_and_points_ordered_by_speedup(found: Adaptation) -> None:
    every = series(found)
    assert [(each.name, each.role) for each in every] == [
        ("channel pruning", "rival"),
        ("INT8", "rival"),
        ("adapted", "front"),
        ("original", "original"),
    ]
    assert [point.name for point in every[0].points] == [
        "channel pruning 0.7x",
        "channel pruning 0.5x",
    ]
    adapted = every[2].points
    assert [point.speedup for point in adapted] == pytest.approx([1.4, 2.0])
    assert adapted[0].spread is None
    assert adapted[1].spread == pytest.approx(0.01414, rel=1e-3)
    assert axis_of(found) == "accuracy on the validation split"


def test_the_test_split_is_shown_if_it_was_measured_for_all_networks(found: Adaptation) -> None:
    first, second = found.networks
    first.row = with_tests(first.row, 0.90, 0.92)
    assert axis_of(found) == "accuracy on the validation split"
    second.row = with_tests(second.row, 0.93)
    found.original = with_tests(found.original, 0.945)
    assert axis_of(found) == "accuracy on the test split"
    every = {each.name: each.points for each in series(found)}
    assert list(every) == ["adapted", "original"]  # rivals have no value there
    assert [point.value for point in every["adapted"]] == pytest.approx([0.93, 0.91])


def test_the_page_draws_each_series_with_bars(found: Adaptation) -> None:
    page = str(render(found))
    begin = page.index('{"front-speedup"')
    data, _ = json.JSONDecoder().raw_decode(page[begin:])
    traces = data["front-speedup"]["data"]
    assert [trace["name"] for trace in traces] == [each.name for each in series(found)]
    assert traces[0]["marker"]["symbol"] != traces[1]["marker"]["symbol"]
    assert traces[2]["error_y"]["array"] == pytest.approx([0.0, 0.01414], rel=1e-3)
    assert traces[2]["text"][1].startswith("0.5x: 92.0 % \N{PLUS-MINUS SIGN} 1.4 points")
