"""substitute, replace and the report: what becomes of every layer."""

import copy
import pickle

import pytest
import torch
from torch import nn

import syno
from syno import UserError

from .networks import EXAMPLE, Block, conv_operator, conv_weights, network, specification


def statuses(net):
    return {row.name: (row.status, row.reason) for row in syno.layer_report(net).rows}


def test_layers_are_found_or_kept_with_a_reason():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=(1, 2)), EXAMPLE)
    assert statuses(net) == {
        "0": ("kept", "C_in=3 is below 4"),
        "1.first": ("slot", ""),
        "1.grouped": ("kept", "groups 2"),
        "1.shortcut": ("kept", "kernel 1"),
        "2.first": ("slot", ""),
        "2.grouped": ("kept", "groups 2"),
        "2.shortcut": ("kept", "kernel 1"),
        "5": ("kept", "not a conv2d layer"),
    }
    slots = syno.slots(net)
    assert slots["1.first"].binding == {"C_in": 8, "C_out": 8, "H": 8, "W": 8}
    assert slots["2.first"].binding == {"C_in": 8, "C_out": 16, "H": 4, "W": 4}
    rows = {row.name: row for row in syno.layer_report(net).rows}
    assert rows["1.first"].macs == 8 * 8 * 9 * 64
    assert rows["1.grouped"].macs == 8 * 4 * 9 * 64
    assert rows["2.first"].macs == 8 * 16 * 9 * 16
    assert sum(row.share for row in rows.values()) == pytest.approx(1)


def test_slots_compute_what_their_originals_did_until_they_are_replaced():
    original = network()
    net = syno.substitute(original, syno.conv2d(kernel=3, groups=1, stride=(1, 2)), EXAMPLE)
    assert torch.equal(net(EXAMPLE), original(EXAMPLE))
    assert not any(isinstance(m, syno.Placeholder) for m in original.modules())
    assert set(net.state_dict()) != set()
    for slot in syno.slots(net).values():
        assert isinstance(slot.original, nn.Conv2d)
        assert slot.kernel is None


def test_an_operator_that_is_the_convolution_gives_the_same_network():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    before = net(EXAMPLE)
    report = syno.replace(net, conv_operator())
    assert [row.name for row in report.replaced] == ["1.first"]
    slot = syno.slots(net)["1.first"]
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(conv_weights(slot.original))
    torch.testing.assert_close(net(EXAMPLE), before)  # the bias stays beside the operator
    slot.restore()
    assert torch.equal(net(EXAMPLE), before)


def test_a_stride_of_two_becomes_pooling_before_the_operator():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=2), EXAMPLE)
    syno.replace(net, conv_operator())
    slot = syno.slots(net)["2.first"]
    x = torch.randn(2, 8, 8, 8)
    expected = slot.kernel(nn.functional.avg_pool2d(x, 2)) + slot.bias.view(-1, 1, 1)
    torch.testing.assert_close(slot(x), expected)
    odd = torch.randn(2, 8, 7, 7)
    assert slot.original(odd).shape == slot(odd).shape


def test_replaced_layers_have_no_part_in_training():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    syno.replace(net, conv_operator())
    owned = {id(p) for p in net.parameters()}
    slot = syno.slots(net)["1.first"]
    assert id(slot.original.weight) not in owned
    assert id(slot.kernel.kernel.w0) in owned
    net(EXAMPLE).sum().backward()
    assert slot.original.weight.grad is None
    assert slot.bias.grad is not None


def test_slots_do_not_share_weights():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=(1, 2)), EXAMPLE)
    syno.replace(net, conv_operator())
    weights = [slot.kernel.kernel.w0 for slot in syno.slots(net).values()]
    assert len({w.data_ptr() for w in weights}) == 2


def test_a_slot_the_operator_does_not_fit_keeps_its_layer_and_says_why():
    spec = syno.Specification(
        "[N, C_in: unordered, H, H]",
        "[N, C_out: unordered, H, H]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
        ["g=16: 2"],
        passed_through=[(0, 0)],
    )
    groups = syno.Operator.from_text(
        """syno operator 1
        out [N, C_out: unordered, H, H]
        in [N, C_in: unordered, H, H]
        reduce C_in -> r0
        merge o1 g^-1*C_out -> c0 c1
        contract c0:drop c1:drop r0:keep
        match o0 r0 o2 o3
        """,
        spec,
    )
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1, stride=(1, 2)), EXAMPLE)
    report = syno.replace(net, groups)
    assert [row.name for row in report.replaced] == ["2.first"]
    (kept,) = (row for row in report.kept if row.name == "1.first")
    assert "g^-1*C_out" in kept.reason
    assert syno.slots(net)["1.first"].layer is syno.slots(net)["1.first"].original
    assert net(EXAMPLE).shape == (2, 10)
    assert "kept: " + kept.reason in str(report)
    assert 0 < report.replaced_share < 1


def test_a_map_that_is_not_square_does_not_fit_where_both_sides_are_h():
    wide = torch.randn(1, 3, 8, 12)
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), wide)
    with pytest.raises(
        UserError, match=r"fits no slot .*\n.*the feature map is 8 x 12, not square"
    ):
        syno.replace(net, conv_operator())


def test_sizes_are_learnt_from_the_first_run_without_an_example():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1))
    assert syno.slots(net)["1.first"].binding == {"C_in": 8, "C_out": 8}
    with pytest.raises(UserError, match="gives no value to H"):
        syno.Sampler.from_specification(specification(), net=net)
    net(EXAMPLE)
    sampler = syno.Sampler.from_specification(specification(), net=net, max_nodes=10)
    assert sampler.specification.bindings == [{"C_in": 8, "C_out": 8, "H": 8}]


def test_a_second_filter_adds_slots():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    both = syno.substitute(net, syno.conv2d(kernel=1, name="1.*"), EXAMPLE)
    assert set(syno.slots(both)) == {"1.first", "1.shortcut"}
    assert set(syno.slots(net)) == {"1.first"}
    assert torch.equal(both(EXAMPLE), network()(EXAMPLE))


def test_linear_layers_may_be_slots():
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8))
    x = torch.randn(2, 5, 8)
    slotted = syno.substitute(net, syno.linear(name="0"), x)
    assert syno.slots(slotted)["0"].binding == {"H_in": 8, "H_out": 12, "seq_len": 5}
    operator = syno.Operator.from_text(
        "syno operator 1\nout [N, seq_len, H_out]\nin [N, seq_len, H_in]\n"
        "reduce H_in -> r\ncontract o2:drop r:keep\nmatch o0 o1 r\n",
        syno.Specification(
            "[N, seq_len, H_in]",
            "[N, seq_len, H_out]",
            ["N: 0", "seq_len: 0", "H_in: 2", "H_out: 2"],
            passed_through=[(0, 0)],
        ),
    )
    syno.replace(slotted, operator)
    slot = syno.slots(slotted)["0"]
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(net[0].weight)
    torch.testing.assert_close(slotted(x), net(x))


def test_a_layer_used_twice_is_one_slot():
    shared = nn.Conv2d(8, 8, 3, padding=1)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    slotted = syno.substitute(net, example_input=torch.randn(1, 8, 8, 8))
    assert slotted[0] is slotted[2]
    assert isinstance(slotted[0], syno.Placeholder)
    assert len(syno.slots(slotted)) == 1


def test_a_layer_with_two_input_shapes_stays():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 3, padding=1)
            self.other = nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x):
            return self.other(self.conv(x)) + nn.functional.interpolate(
                self.conv(nn.functional.avg_pool2d(x, 2)), scale_factor=2
            )

    net = syno.substitute(Twice(), example_input=torch.randn(1, 8, 8, 8))
    assert statuses(net)["conv"] == ("kept", "it works on inputs of several shapes")
    assert statuses(net)["other"] == ("slot", "")


def test_the_mode_of_the_network_is_left_alone():
    net = network()
    net.train()
    net[1].eval()
    slotted = syno.substitute(net, syno.conv2d(kernel=3, groups=1), EXAMPLE)
    assert slotted.training
    assert not slotted[1].grouped.training


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_network_with_operators_can_be_copied(twin):
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    syno.replace(net, conv_operator())
    other = twin(net)
    assert torch.equal(net(EXAMPLE), other(EXAMPLE))
    with torch.no_grad():
        syno.slots(other)["1.first"].kernel.kernel.w0.zero_()
    assert not torch.equal(net(EXAMPLE), other(EXAMPLE))
    assert str(syno.layer_report(other)) == str(syno.layer_report(net))
    assert syno.slots(other)["1.first"].original is not syno.slots(net)["1.first"].original


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1)], ["1"]),
        ([nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 5, padding=2, groups=8)], ["0", "1"]),
        ([nn.Conv1d(8, 8, 9, padding=4), nn.Linear(8, 8)], ["0"]),
        ([nn.Conv3d(8, 8, 3, padding=1)], ["0"]),
        ([nn.Linear(8, 8), nn.Conv2d(8, 8, 2)], ["0"]),
    ],
)
def test_by_default_the_usual_layers_of_a_network_become_slots(layers, expected):
    net = syno.substitute(nn.Sequential(*layers))
    assert list(syno.slots(net)) == expected
    # The slots decide what operators are for; layers of another kind do not join them.
    with pytest.raises(UserError, match="has no slots"):
        syno.substitute(net)


def test_the_reasons_are_those_that_no_other_filter_would_lift():
    net = nn.Sequential(nn.Conv2d(8, 8, 5), nn.Conv2d(8, 8, 4, padding=2))
    with pytest.raises(UserError) as caught:
        syno.substitute(net)
    assert "does not keep the feature map's size" in str(caught.value)
    assert "kernel 5" not in str(caught.value)


def test_networks_without_slots_are_refused_with_reasons():
    with pytest.raises(
        UserError, match=r"Sequential has no slots(.|\n)*0 \(linear\): not a conv2d"
    ):
        syno.substitute(nn.Sequential(nn.Linear(3, 3)), syno.conv2d())
    with pytest.raises(
        UserError,
        match=r"0 \(linear\): H_in=3, H_out=3 is below 4(.|\n)*substitute\(net, where=\.\.\.",
    ):
        syno.substitute(nn.Sequential(nn.Linear(3, 3)))
    made = syno.substitute(nn.Sequential(nn.Conv2d(8, 8, 3, padding=1)))
    with pytest.raises(UserError, match="is a slot already"):
        syno.substitute(made)
    with pytest.raises(UserError, match="has no convolution and no linear layer"):
        syno.substitute(nn.ReLU())
    with pytest.raises(UserError, match="it is the network itself"):
        syno.substitute(nn.Conv2d(8, 8, 3, padding=1))
    with pytest.raises(UserError, match=r"has no slots(.|\n)*add placeholders"):
        syno.replace(network(), conv_operator())
    with pytest.raises(UserError, match="fails on the example input"):
        syno.substitute(Block(8, 8), example_input=torch.randn(1, 3, 8, 8))
    with pytest.raises(UserError, match=r"'where' is a filter"):
        syno.substitute(network(), "conv")
    with pytest.raises(UserError, match="stride must be 1, 2"):
        syno.conv2d(stride=3)


def test_the_report_of_a_replaced_network_has_the_costs_of_its_operators():
    net = syno.substitute(network(), syno.conv2d(kernel=3, groups=1), EXAMPLE)
    before = syno.layer_report(net)
    operator = syno.Operator.parse(
        "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * v[o,i]",
        input="[N, C_in: unordered, H, H]",
        output="[N, C_out: unordered, H, H]",
    )
    report = syno.replace(net, operator)
    (row,) = report.replaced
    assert (row.macs, row.params) == (8 * 8 * 9 * 64, 8 * 8 * 9)
    assert (row.new_macs, row.new_params) == (8 * 8 * 64, 8 * 8)
    assert report.macs == before.macs
    assert report.new_macs == before.macs - 8 * 8 * 8 * 64
    assert report.new_params == sum(p.numel() for p in net.parameters())
    lines = str(report).splitlines()
    assert "new MACs  new params" in lines[0]
    assert "4,096          64  replaced" in str(report)
    assert lines[-1].startswith(f"with operators: {report.new_macs:,} MACs a sample, ")
    assert "new MACs" not in str(before)


def test_a_layer_that_runs_twice_is_counted_twice_after_replacement_too():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 3, padding=1)

        def forward(self, x):
            return self.conv(self.conv(x))

    net = syno.substitute(Twice(), example_input=torch.zeros(1, 8, 8, 8))
    (row,) = syno.replace(net, conv_operator()).replaced
    assert row.new_macs == row.macs == 2 * 8 * 8 * 9 * 64


def test_the_report_of_a_plain_network_lists_its_layers_and_says_why_they_are_no_slots():
    report = syno.layer_report(network())
    assert [row.name for row in report.rows] == [
        *("0", "1.first", "1.grouped", "1.shortcut"),
        *("2.first", "2.grouped", "2.shortcut", "5"),
    ]
    assert {row.status for row in report.rows} == {"kept"}
    assert "kept: it is not a slot; syno.substitute creates slots" in str(report)
    assert report.params == sum(p.numel() for p in network().parameters())
