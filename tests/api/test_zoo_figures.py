"""Multiply-adds and parameters of ResNet-18 with operators of the zoo beside the published figures.

The preset's 19 layers are what an operator replaces; the first convolution, the classifier, the
batch norms and the poolings stay. Parameters agree to the last published digit. Published
multiply-adds count operations of the layers that stay, too, the same for every operator. The paper
does not say which. Four for each output of a batch norm ((x - mean) / deviation * scale + shift)
and one for each element of a pooling window, without ReLUs and sums of branches, agree with all
twelve rows of the artifact's table to the last published digit.
"""

import pytest

from syno import Specification
from syno.operators import zoo
from syno_lab import published

SPECIFICATION = Specification.preset("paper/resnet18")
# What stays, at 224 px: a 7x7 convolution with stride 2 to 64 channels, and 512 x 1000.
STEM_MACS, STEM_PARAMS = 64 * 3 * 7 * 7 * 112 * 112, 64 * 3 * 7 * 7
CLASSIFIER_MACS, CLASSIFIER_PARAMS = 512 * 1000, 512 * 1000 + 1000
# Weight and bias of a batch norm behind each of the 20 convolutions.
NORM_PARAMS = 2 * (64 + 4 * 64 + 5 * 128 + 5 * 256 + 5 * 512)
# Operator: published row, 10^9 multiply-adds, 10^6 parameters. The text of the paper has the third
# digits of operators 1 and 2.
PUBLISHED = {
    "operator-1": ("07889", 1.238, 8.41),
    "operator-2": ("07754", 0.506, 3.20),
    "operator-07720": ("07720", 1.36, 8.89),
    "operator-07795": ("07795", 0.75, 4.72),
    "operator-07821": ("07821", 1.36, 8.89),
    **{
        f"operator-{each.operator}": (each.operator, each.gmacs, each.mparams)
        for each in published.operators()
        if each.model == "resnet18"
    },
}
# Outputs of the 20 batch norms: behind the first convolution, four convolutions of the first stage
# and five of each other stage, whose shortcut has one.
NORM_OUTPUTS = 64 * 112**2 + 4 * 64 * 56**2 + 5 * (128 * 28**2 + 256 * 14**2 + 512 * 7**2)
# Windows of 3x3 to 56 px behind the first convolution, and one of 7x7 before the classifier.
POOLED = 64 * 56**2 * 3**2 + 512 * 7**2
# Operations of what stays beyond multiply-adds, in 10^9.
OTHER_OPERATIONS = (4 * NORM_OUTPUTS + POOLED) / 1e9


def cost(name):
    """10^9 multiply-adds and 10^6 parameters of the whole network."""
    operator = zoo.load(name)
    macs, params = STEM_MACS + CLASSIFIER_MACS, STEM_PARAMS + CLASSIFIER_PARAMS + NORM_PARAMS
    for binding, times in zip(
        SPECIFICATION.full_bindings, SPECIFICATION.multiplicities, strict=True
    ):
        sizes = binding | {"W": binding["H"], "k": binding["k_1"]}
        macs += times * operator.macs(sizes)
        params += times * operator.params(sizes)
    return macs / 1e9, params / 1e6


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_figures_are_the_published_ones(name):
    _, macs, params = PUBLISHED[name]
    own_macs, own_params = cost(name)
    digits = 3 if macs in (1.238, 0.506) else 2
    assert own_macs + OTHER_OPERATIONS == pytest.approx(macs, abs=0.5 * 10**-digits)
    assert own_params == pytest.approx(params, abs=0.006)


def test_operator_1_by_formula():
    assert cost("operator-1")[0] == pytest.approx(1.226, abs=0.0005)


def test_the_published_extra_does_not_depend_on_the_weights():
    first, second = (PUBLISHED[name][1] - cost(name)[0] for name in ("operator-1", "operator-2"))
    assert first == pytest.approx(second, abs=0.0005)


def test_a_convolution_in_every_slot_is_resnet_18_with_wider_shortcuts():
    # Three slots are 1x1 convolutions in the original: 64 to 128 channels at 28 px and so on.
    wider = 8 * (64 * 128 * 28**2 + 128 * 256 * 14**2 + 256 * 512 * 7**2) / 1e9
    assert cost("conv2d")[0] - wider == pytest.approx(1.814, abs=0.001)


def ratio(name, c_in, c_out, size, *, to="conv2d"):
    sizes = {"N": 1, "C_in": c_in, "C_out": c_out, "H": size, "W": size, "k": 3, "g": 32, "s": 2}
    return zoo.load(name).macs(sizes) / zoo.load(to).macs(sizes)


@pytest.mark.parametrize(("channels", "size"), [(64, 56), (128, 28), (256, 14), (512, 7)])
def test_shares_of_a_convolution(channels, size):
    assert ratio("operator-1", channels, channels, size) == pytest.approx(0.505, abs=0.0006)
    assert ratio("operator-2", channels, channels, size) == pytest.approx(0.172, abs=0.0006)


def test_operator_1_costs_more_where_channels_double():
    assert ratio("operator-1", 64, 128, 28) == pytest.approx(1.005, abs=0.0006)
    assert ratio("operator-1", 64, 128, 28, to="conv1x1") == pytest.approx(9.05, abs=0.006)
