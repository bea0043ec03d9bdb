"""What is published, as data: it gives the means that the paper states."""

from __future__ import annotations

import pytest

from syno.operators import zoo
from syno_lab import published
from syno_lab.figures.style import geometric_mean


@pytest.mark.parametrize(
    ("column", "mean", "most"), [("ms_arm_cpu_tvm", 2.06, 3.41), ("ms_mobile_gpu_tvm", 1.72, 2.66)]
)
def test_the_fastest_operators_give_the_means_of_figure_5(column, mean, most):
    platform = next(each for each in published.PLATFORMS if each.column == column)
    speedups = [each.speedup for each in published.fastest(platform)]
    assert len(speedups) == 5
    assert geometric_mean(speedups) == pytest.approx(mean, abs=0.005)
    assert max(speedups) == pytest.approx(most, abs=0.005)


def test_times_of_tvm_are_not_comparable_and_those_of_inductor_are():
    assert {each.compiler: each.comparable for each in published.PLATFORMS} == {
        "TVM": False,
        "Inductor": True,
    }


def test_what_was_not_recorded_is_none_and_not_zero():
    unrecorded = [each for each in published.operators() if each.imagenet is None]
    assert unrecorded and all(each.cifar100 is not None for each in unrecorded)
    assert all(each.imagenet != 0 for each in published.operators())
    missing = [each for each in published.operators() if len(each.milliseconds) < 6]
    assert [(each.model, each.operator) for each in missing] == [("efficientnet_v2_s", "08064")]


def test_every_operator_has_its_original_network():
    assert {each.model for each in published.operators()} == {
        each.model for each in published.networks()
    }


def test_statements_have_a_source_and_alphanas_a_condition():
    for each in published.statements():
        assert each.source and each.value > 0
    ours = [each for each in published.statements() if each.subject.endswith("alphanas")]
    assert len(ours) == 4
    assert all("2 points" in each.condition for each in ours)
    assert published.statement("gpt2 baseline", "perplexity").value == 111
    with pytest.raises(KeyError, match="nothing"):
        published.statement("nothing", "perplexity")


def test_subjects_of_the_layers_are_in_the_zoo():
    named = {
        each.subject.removeprefix("layers ")
        for each in published.statements()
        if each.subject.startswith("layers operator")
    }
    assert named and named <= set(zoo.names())
