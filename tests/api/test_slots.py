"""Slots of other layers than stride-1 convolutions: strides, projections, maps as sequences."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

import syno
from syno import UserError
from syno.network.surgery import slot_bindings

from .networks import EXAMPLE, conv_operator, network, specification


def rows(net):
    return {row.name: row for row in syno.layer_report(net).rows}


def projection(output="[N, seq_len, H_out]", primary=("H_in: 2", "H_out: 2"), coefficient=()):
    spec = syno.Specification(
        "[N, seq_len, H_in]",
        output,
        ["N: 0", "seq_len: 0", *primary],
        list(coefficient),
        passed_through=[(0, 0)],
    )
    return syno.Operator.parse("y[n,q,o] = sum(i:H_in) x[n,q,i] * w0[i,o]", spec)


QKV = projection("[N, seq_len, t*H_in]", ["H_in: 2"], ["t=3: 1"])
HALVING = syno.Specification(
    "[N, C_in: unordered, s*H, s*H]",
    "[N, C_out: unordered, H, H]",
    ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
    ["k=3: 2", "s=2: 2"],
    passed_through=[(0, 0)],
    max_strides=2,
)
STRIDED = syno.Operator.parse(
    "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,s*h+a-k/2,s*w+b-k/2] * w0[o,i,a,b]", HALVING
)


def test_a_stride_kept_inside_is_the_operators_to_compute():
    where = syno.conv2d(kernel=3, groups=1, stride=(1, 2), pool=False)
    net = syno.substitute(network(), where, EXAMPLE)
    before = net(EXAMPLE)
    assert rows(net)["2.first"].pool == 1
    report = syno.replace(net, STRIDED)
    assert [row.name for row in report.replaced] == ["2.first"]
    slot = syno.slots(net)["2.first"]
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(slot.original.weight)
    torch.testing.assert_close(net(EXAMPLE), before)  # exactly the convolution of stride 2
    assert rows(net)["1.first"].reason == (
        "its input is [N, 8, 8, 8], and [N, C_in, s*H, s*H] is [N, 8, 16, 16] there"
    )


def test_a_slot_takes_only_an_operator_of_its_shapes():
    where = syno.conv2d(kernel=3, groups=1, stride=(1, 2), pool=False)
    net = syno.substitute(network(), where, EXAMPLE)
    report = syno.replace(net, conv_operator())  # keeps the size of the map
    assert [row.name for row in report.replaced] == ["1.first"]
    assert rows(net)["2.first"].reason == (
        "its input is [N, 8, 8, 8], and [N, C_in, H, H] is [N, 8, 4, 4] there"
    )
    found = slot_bindings(net, HALVING)
    assert found["bindings"] == [{"C_in": 8, "C_out": 16, "H": 4, "s": 2}]
    found = slot_bindings(net, specification(bindings=[]))
    assert found["bindings"] == [{"C_in": 8, "C_out": 8, "H": 8}]


def test_an_odd_map_is_not_twice_the_size_of_its_half():
    odd = torch.randn(2, 3, 7, 7)
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=2, pool=False), odd)
    with pytest.raises(
        UserError, match=r"fits no slot(.|\n)*\[N, 8, 7, 7\], and .* \[N, 8, 8, 8\]"
    ):
        syno.replace(net, STRIDED)
    pooled = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=2), odd)
    assert syno.replace(pooled, conv_operator()).replaced
    assert pooled(odd).shape == (2, 10)


def test_shapes_are_learnt_from_the_first_run_where_there_was_no_example():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=2, pool=False))
    net(EXAMPLE)
    slot = syno.slots(net)["2.first"]
    assert slot.shapes == ((8, 8, 8), (16, 4, 4))
    assert slot.binding == {"C_in": 8, "C_out": 16, "H": 4, "W": 4, "s": 2}
    assert syno.replace(net, STRIDED).replaced


def test_the_transposed_weight_of_a_conv1d_is_found_and_replaced():
    torch.manual_seed(0)
    net = nn.Sequential(Conv1D(24, 8), nn.GELU(), Conv1D(8, 24))
    nn.init.normal_(net[0].bias)
    x = torch.randn(2, 5, 8)
    slotted = syno.substitute(net, syno.linear(), x)
    row = rows(slotted)["0"]
    assert (row.layer, row.macs, row.params) == ("linear, transposed", 8 * 24 * 5, 8 * 24)
    assert row.binding == {"H_in": 8, "H_out": 24, "seq_len": 5}
    before = net(x)
    assert torch.equal(slotted(x), before)
    report = syno.replace(slotted, QKV)
    assert [row.name for row in report.replaced] == ["0"]  # 8 is not three times 24
    assert "its output is [N, 5, 8], and [N, seq_len, t*H_in] is [N, 5, 72]" in str(report)
    slot = syno.slots(slotted)["0"]
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(_as_ours(net[0].weight, slot.kernel.kernel.w0))
    torch.testing.assert_close(slotted(x), before)  # the bias stays beside the operator


def _as_ours(weight, ours):
    return weight if weight.shape == ours.shape else weight.T


def test_a_map_with_channels_last_is_a_sequence_row_by_row():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 8))
    x = torch.randn(2, 4, 6, 8)
    slotted = syno.substitute(net, syno.linear(name="0"), x)
    slot = syno.slots(slotted)["0"]
    assert slot.binding == {"H_in": 8, "H_out": 12, "seq_len": 24}
    before = slotted(x)
    syno.replace(slotted, projection())
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(_as_ours(net[0].weight, slot.kernel.kernel.w0))
    torch.testing.assert_close(slotted(x), before)
    wide = torch.randn(3, 4, 6, 8)
    assert slotted(wide).shape == (3, 4, 6, 8)


def test_layers_that_attention_takes_the_weight_of_stay():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.head = nn.Linear(8, 8)

        def forward(self, x):
            return self.head(self.attention(x, x, x, need_weights=False)[0])

    x = torch.randn(2, 5, 8)
    for example in (x, None):
        net = syno.substitute(Net(), syno.linear(), example)
        kept = rows(net)["attention.out_proj"]
        assert kept.reason == "nn.MultiheadAttention uses its weight without calling it"
        assert net(x).shape == x.shape
    report = syno.layer_report(syno.substitute(Net(), syno.linear(), x))
    assert report.macs == 5 * (3 * 8 * 8 + 8 * 8 + 8 * 8) + 2 * 5 * 5 * 8


def test_several_filters_take_what_any_describes():
    both = [syno.conv2d(kernel=3, groups=1), syno.conv2d(kernel=1, name="1.*"), syno.linear()]
    net = syno.substitute(network(), both, EXAMPLE)
    assert list(syno.slots(net)) == ["1.first", "1.shortcut", "5"]
    assert rows(net)["2.first"].reason == "stride 2"
    assert rows(net)["2.shortcut"].reason == "kernel 1"  # of the first that is about its kind
    with pytest.raises(UserError, match="'where' is a filter"):
        syno.substitute(network(), [syno.linear(), "conv"])
    with pytest.raises(UserError, match="'where' is a filter"):
        syno.substitute(network(), [])


def test_other_convolutions_are_listed_and_counted():
    net = nn.Sequential(
        nn.Conv1d(4, 8, 3, padding=1),
        nn.ConvTranspose1d(8, 4, 2, 2),
        nn.Flatten(),
        nn.Linear(80, 5),
    )
    net = syno.substitute(net, syno.linear(), torch.zeros(2, 4, 10))
    found = rows(net)
    assert (found["0"].layer, found["0"].macs) == ("Conv1d 3", 8 * 4 * 3 * 10)
    assert (found["1"].layer, found["1"].macs) == ("ConvTranspose1d 2 /2", 8 * 4 * 2 * 10)
    assert found["0"].reason == "not a linear layer"
    report = syno.layer_report(net)
    assert report.macs == sum(row.macs for row in report.rows)
    assert report.params == sum(p.numel() for p in net.parameters())


def test_tracing_computes_nothing_and_leaves_the_network_alone():
    net = network()
    net.train()
    state = {key: value.clone() for key, value in net.state_dict().items()}
    slotted = syno.substitute(net, example_input=torch.full((2, 3, 8, 8), float("nan")))
    for key, value in net.state_dict().items():
        assert torch.equal(value, state[key])
    assert slotted.training
    assert not any(module._forward_hooks for module in slotted.modules())
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_network_that_looks_at_values_runs_for_real():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 3, padding=1)
            self.other = nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x):
            return self.conv(x) if x.sum() > 0 else self.other(x)

    net = syno.substitute(Net(), example_input=torch.ones(1, 8, 8, 8))
    assert list(syno.slots(net)) == ["conv"]
    assert rows(net)["other"].reason == "the example input does not reach it"


def test_costs_are_of_one_sample_for_any_example():
    reports = [
        syno.layer_report(syno.substitute(network(), example_input=torch.zeros(n, 3, 8, 8)))
        for n in (1, 5)
    ]
    assert reports[0] == reports[1]


def test_a_restored_original_is_where_the_operator_was():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    syno.replace(net, conv_operator())
    net.double().eval()
    for slot in syno.slots(net).values():
        slot.restore()
    assert net(EXAMPLE.double()).dtype == torch.float64
    assert not net[1].first.original.training


def test_a_layer_of_a_sequence_before_the_batch_stays():
    """An operator along the sequence would mix samples."""
    for first, kept in ((False, "its first dimension is not the batch"), (True, "")):
        net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=first)
        x = torch.randn(3, 5, 8) if first else torch.randn(5, 3, 8)
        example = x if first else (x,)
        if first:
            found = rows(syno.substitute(net, syno.linear(), example))
            assert found["linear1"].reason == kept
        else:
            wrapped = SequenceFirst(net)
            with pytest.raises(UserError, match=kept):
                syno.substitute(wrapped, syno.linear(), torch.randn(3, 5, 8))


class SequenceFirst(nn.Module):
    def __init__(self, inside):
        super().__init__()
        self.inside = inside

    def forward(self, x):
        """[N, T, C], with a network for [T, N, C] inside."""
        return self.inside(x.transpose(0, 1)).transpose(0, 1)


def test_a_layer_that_runs_on_windows_or_twice_costs_all_its_runs():
    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.Linear(8, 8)

        def forward(self, x):
            windows = x.unflatten(1, (3, 4)).flatten(0, 1)  # [3 * N, 4, 8]
            return self.inside(self.inside(windows)).unflatten(0, (-1, 3)).flatten(1, 2)

    net = syno.substitute(Windows(), syno.linear(), torch.zeros(2, 12, 8))
    report = syno.layer_report(net)
    (row,) = report.rows
    assert row.macs == report.macs == 2 * 12 * 8 * 8
    assert row.share == 1
    assert row.binding["seq_len"] == 4


def test_an_example_needs_a_sample_and_a_batch_dimension():
    with pytest.raises(UserError, match=r"'example_input' is empty(.|\n)*\(0, 3, 8, 8\)"):
        syno.substitute(network(), example_input=torch.zeros(0, 3, 8, 8))
    convolution = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))
    with pytest.raises(UserError, match="its input has no batch dimension"):
        syno.substitute(convolution, example_input=torch.zeros(8, 8, 8))
    with pytest.raises(UserError, match="its input has no batch dimension"):
        syno.substitute(nn.Sequential(nn.Linear(8, 8)), syno.linear(), torch.zeros(8))


def test_a_failing_example_is_told_with_the_networks_own_words():
    with pytest.raises(UserError, match="should be the same") as error:
        syno.substitute(network(), example_input=torch.zeros(1, 3, 8, 8, dtype=torch.long))
    assert "in example_input of shape (1, 3, 8, 8)" in str(error.value)


def test_a_specification_of_other_layers_is_told_what_these_have():
    net = syno.substitute(nn.Sequential(nn.Linear(8, 8)), syno.linear(), torch.zeros(1, 5, 8))
    with pytest.raises(
        UserError, match=r"no slot of (.|\n)*an input of \[N, seq_len, H_in\], with"
    ):
        slot_bindings(net, specification(bindings=[]))
