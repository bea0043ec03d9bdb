"""Slots of layers that a network reaches or uses in many ways.

Each network of the family is checked in the same way: nothing of the given network changes; the
copy with slots computes the same; and with operators that are the layers, it still does. What a
slot cannot stand for is a layer that the report keeps with its reason.
"""

import collections
import dataclasses
import functools
import itertools
import random
import types

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune, spectral_norm, weight_norm

import syno
from syno import UserError

X = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
LINEAR = syno.Operator.parse(
    "y[n,o] = sum(i:H_in) x[n,i] * W[o,i]", input="[N, H_in]", output="[N, H_out]"
)

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Kept:
    first: nn.Module
    second: nn.Module


class Bare:
    def __init__(self, first, second):
        self.first, self.second = first, second


class Slotted:
    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first, self.second = first, second


def _closures(first, second):
    return (lambda x: first(x)), (lambda x: second(x))


def _over_a_list(first, second):
    both = [first, {"second": second}]
    return (lambda x: both[0](x)), (lambda x: both[1]["second"](x))


def _called_by(layer):
    def inner(x):
        return layer(x)

    def outer(x):
        return inner(x)

    return functools.partial(outer)


# What a network holds its layers in, and how it gets both of them again.
PLACES = {
    "a module list": (lambda a, b: nn.ModuleList([a, b]), tuple),
    "a module dict": (lambda a, b: nn.ModuleDict({"a": a, "b": b}), lambda held: held.values()),
    "a list": (lambda a, b: [a, b], tuple),
    "a tuple": (lambda a, b: (a, b), tuple),
    "a nested list": (lambda a, b: [[a], {"b": (b,)}], lambda held: (held[0][0], held[1]["b"][0])),
    "a dict": (lambda a, b: {"a": a, "b": b}, lambda held: held.values()),
    "the keys of a dict": (lambda a, b: {a: 1, b: 2}, tuple),
    "a named tuple": (Pair, tuple),
    "a data class": (Kept, lambda held: (held.first, held.second)),
    "an object": (Bare, lambda held: (held.first, held.second)),
    "an object with slots": (Slotted, lambda held: (held.first, held.second)),
    "a deque": (lambda a, b: collections.deque([a, b]), tuple),
    "partial functions": (
        lambda a, b: [functools.partial(nn.Module.__call__, each) for each in (a, b)],
        tuple,
    ),
    "methods": (lambda a, b: [a.__call__, b.__call__], tuple),
    "forward methods": (lambda a, b: [a.forward, b.forward], tuple),
    "closures": (_closures, tuple),
    "closures over a list": (_over_a_list, tuple),
    "default arguments": (
        lambda a, b: [lambda x, held=a: held(x), lambda x, held=(b,): held[0](x)],
        tuple,
    ),
    "functions of functions": (lambda a, b: [_called_by(each) for each in (a, b)], tuple),
    "a namespace": (lambda a, b: types.SimpleNamespace(a=a, b=b), lambda held: (held.a, held.b)),
}
# Of these, a slot has no such method.
KEPT_PLACES = {"forward methods"}

# What a forward may do with a layer, and whether an operator may take its place.
USES = {
    "calls it": (lambda m, x: m(x), True),
    "calls it twice": (lambda m, x: m(torch.relu(m(x))), True),
    "reads sizes": (lambda m, x: m(x.view(-1, m.in_features))[:, : m.out_features], True),
    "reads the shape of the weight": (lambda m, x: m(x)[:, : m.weight.shape[0]], True),
    "counts the dimensions": (lambda m, x: m(x) * m.weight.dim() / m.weight.size(1), True),
    "casts to the type": (lambda m, x: m(x.to(m.weight.dtype).to(m.weight.device)), True),
    "casts if it has to": (
        lambda m, x: m(x.to(m.weight.dtype) if isinstance(m.weight, torch.Tensor) else x * 3),
        True,
    ),
    "asks for the bias": (lambda m, x: m(x) if m.bias is not None else x, True),
    "adds the bias again": (lambda m, x: m(x) + m.bias, True),
    "reads its mode": (lambda m, x: m(x) * (1 if m.training else 2), True),
    "asks for what it has not": (lambda m, x: x if hasattr(m, "lora") else m(x), True),
    "scores by the weight": (lambda m, x: F.linear(torch.relu(m(x)), m.weight.t()), False),
    "multiplies by the weight": (lambda m, x: m(x) @ m.weight, False),
    "reads the data of the weight": (lambda m, x: m(x) * m.weight.data.abs().mean(), False),
    "uses the functional form": (lambda m, x: F.linear(x, m.weight, m.bias), False),
    "calls forward": (lambda m, x: m.forward(x), False),
    "calls it by name": (lambda m, x: m(input=x), False),
    "asks for its type": (lambda m, x: m(x) if isinstance(m, nn.Linear) else x, False),
    "asks for its class": (lambda m, x: m(x) if type(m).__name__ == "Linear" else x, False),
    "counts modules": (lambda m, x: m(x) if len([*m.modules()]) == 1 else x, False),
    "reads its state": (lambda m, x: m(x) + m.state_dict()["weight"].sum(), False),
    "probes an attribute": (lambda m, x: m(x) if hasattr(m, "reset_parameters") else x, False),
    "sets a weight": (lambda m, x: (setattr(m, "weight", nn.Parameter(+m.weight)), m(x))[1], False),
}

# What is done to a layer beforehand.
FORMS = {
    "plain": lambda m: m,
    "weight norm": weight_norm,
    "spectral norm": spectral_norm,
    "parametrized weight norm": parametrizations.weight_norm,
    "parametrized spectral norm": parametrizations.spectral_norm,
    "a parametrized bias": lambda m: parametrize.register_parametrization(m, "bias", Halved()),
    "pruned": lambda m: prune.l1_unstructured(m, "weight", 0.5),
    "a hook that doubles": lambda m: _hooked(m, m.register_forward_hook, lambda _, x, y: y * 2),
    "a hook before": lambda m: _hooked(m, m.register_forward_pre_hook, lambda _, x: (x[0] + 1,)),
    "a hook that reads sizes": lambda m: _hooked(
        m, m.register_forward_hook, lambda m, x, y: y / m.in_features
    ),
    "a frozen weight": lambda m: (m.weight.requires_grad_(False), m)[1],
    "a class that computes its weight": lambda m: _of_class(m, Standardized),
}
# Those that an operator cannot stand for, and why.
OTHER_FORMS = {
    "an activation inside": (lambda m: _of_class(m, Activated), "class Activated computes more"),
    "a scale inside": (lambda m: _of_class(m, Scaled), "class Scaled computes more"),
    "an attribute of slots": (lambda m: _of_class(m, Pooled), "another attribute 'pool'"),
    "a forward set": (lambda m: _with_forward(m, lambda x: torch.relu(x)), "computes more"),
}


class Halved(nn.Module):
    def forward(self, x):
        return x / 2


class Standardized(nn.Linear):
    def forward(self, input):
        return F.linear(input, self.weight - self.weight.mean(), self.bias)


class Activated(nn.Linear):
    def forward(self, input):
        return torch.relu(super().forward(input))


class Scaled(nn.Linear):
    def forward(self, input):
        return super().forward(input) * 3


class Pooled(nn.Linear):
    pool = None


def _hooked(module, register, hook):
    register(hook)
    return module


def _of_class(module, kind):
    module.__class__ = kind
    return module


def _with_forward(module, function):
    module.forward = function
    return module


class Net(nn.Module):
    def __init__(self, place="a list", use="calls it", form="plain"):
        super().__init__()
        torch.manual_seed(0)
        formed = FORMS[form] if form in FORMS else OTHER_FORMS[form][0]
        self.a, self.b = (formed(nn.Linear(8, 8)) for _ in range(2))
        hold, self.get = PLACES[place]
        self.held = hold(self.a, self.b)
        self.use = USES[use][0]
        self.last = nn.Linear(8, 4)

    def forward(self, x):
        for layer in self.get(self.held):
            x = torch.tanh(self.use(layer, x))
        return self.last(x)


def state_of(net):
    """All that must stay: each object, and the values of tensors."""
    objects = {name: (id(m), type(m), set(vars(m))) for name, m in net.named_modules()}
    tensors = itertools.chain(
        net.named_parameters(remove_duplicate=False), net.named_buffers(remove_duplicate=False)
    )
    return objects, {name: (id(t), type(t), t.detach().clone()) for name, t in tensors}


def check_untouched(net, before):
    objects, tensors = state_of(net)
    assert objects == before[0]
    assert {n: t[:2] for n, t in tensors.items()} == {n: t[:2] for n, t in before[1].items()}
    assert all(torch.equal(tensors[name][2], before[1][name][2]) for name in tensors)


def shared(net):
    """Which names of parameters are those of one tensor."""
    found = {}
    for name, tensor in net.named_parameters(remove_duplicate=False):
        found.setdefault(id(tensor), []).append(name.replace(".layer.", "."))
    return sorted(found.values())


def check(net, x=X, where=None):
    """The report on the copy of a network with operators in its slots."""
    net.eval()
    expected = net(x)
    before = state_of(net)
    where = where or syno.linear(name="[ab]*")
    try:
        made = syno.substitute(net, where, example_input=x)
    except UserError as error:
        check_untouched(net, before)
        return str(error)
    check_untouched(net, before)
    assert all(type(p) is nn.Parameter and type(p.data) is torch.Tensor for p in made.parameters())
    assert shared(made) == shared(net)
    torch.testing.assert_close(made(x), expected)
    report = syno.replace(made, LINEAR)
    for name, slot in syno.slots(made).items():
        if slot.kernel is not None:
            slot.kernel.kernel.w0.data.copy_(_weight(net.get_submodule(name)))
    torch.testing.assert_close(made(x), expected, rtol=1e-4, atol=1e-5)
    for slot in syno.slots(made).values():
        if slot.kernel is not None:
            slot.kernel.kernel.w0.data.zero_()
    assert bool(report.replaced) != torch.allclose(made(x), expected)
    check_untouched(net, before)
    return str(report)


def _weight(layer):
    """The weight of a layer, as it computes with it."""
    bias = 0 if layer.bias is None else layer.bias
    hooks, layer._forward_hooks = layer._forward_hooks, {}
    before, layer._forward_pre_hooks = layer._forward_pre_hooks, {}
    try:
        return (layer(torch.eye(8)) - bias).t()
    finally:
        layer._forward_hooks, layer._forward_pre_hooks = hooks, before


@pytest.mark.parametrize("place", PLACES)
def test_a_layer_is_a_slot_wherever_it_stands(place):
    report = check(Net(place))
    assert report.count("replaced") == (0 if place in KEPT_PLACES else 3)
    if place in KEPT_PLACES:
        assert "the example input does not reach it" in report


@pytest.mark.parametrize("use", USES)
def test_a_slot_stands_for_its_layer_or_the_layer_stays(use):
    report = check(Net(use=use))
    if USES[use][1]:
        assert report.count("replaced") == 3
    else:
        assert "has no slots" in report


@pytest.mark.parametrize("form", FORMS)
def test_layers_of_many_forms_are_slots(form):
    assert "replaced" in check(Net(form=form))


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_layers_that_compute_something_else_stay(form):
    report = check(Net(form=form))
    assert "has no slots" in report
    assert OTHER_FORMS[form][1] in report


def test_where_values_of_a_weight_are_used_the_other_layers_are_slots():
    class Tied(Net):
        def forward(self, x):
            return F.linear(self.b(torch.tanh(self.a(x))), self.b.weight.t())

    report = check(Tied())
    assert report.count("1 replaced") == 1
    assert "the network computes with the values of its weight" in report


def test_hooks_and_closures_of_a_network_see_no_trace_of_it():
    seen, calls = [], 0

    def count(*_):
        nonlocal calls
        calls += 1

    net = Net()
    net.a.register_forward_hook(lambda _, x, y: seen.append(y))
    net.register_forward_hook(count)
    made = syno.substitute(net.eval(), syno.linear(), X)
    assert not seen
    assert not calls
    net(X)
    assert len(seen) == calls == 1
    made(X)
    assert len(seen) == calls == 1


def test_a_network_that_changes_itself_as_it_runs_stays_as_it_is():
    class Changing(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.steps, self.kept = nn.Linear(8, 8), 0, []
            self.register_buffer("mean", torch.zeros(8))

        def forward(self, x):
            if not hasattr(self, "second"):
                self.second = nn.Linear(8, 8)
            y = self.first(x)
            self.mean += y.detach().mean(0)
            self.steps += 1
            self.kept.append(y)
            x.mul_(2)
            return self.second(y)

    net, x = Changing().eval(), X.clone()
    before = state_of(net)
    made = syno.substitute(net, syno.linear(), x)
    check_untouched(net, before)
    assert torch.equal(x, X)
    for each in (net, made):
        assert not hasattr(each, "second")
        assert each.steps == len(each.kept) == 0
        assert torch.equal(each.mean, torch.zeros(8))
    assert made(x).shape == (3, 8)


def test_layers_without_sizes_are_not_for_slots_yet():
    net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 8))
    with pytest.raises(UserError, match=r"'0.weight' of the network Sequential has no size yet"):
        syno.substitute(net, example_input=X)
    net(X)
    assert list(syno.slots(syno.substitute(net, example_input=X))) == ["0", "2"]


def test_without_an_example_what_an_operator_has_not_is_an_error():
    net = syno.substitute(Net(use="scores by the weight").eval(), syno.linear(name="[ab]"))
    expected = net(X)
    syno.replace(net, LINEAR)
    with pytest.raises(UserError, match=r"computes with the values of its weight, in aten\.t"):
        net(X)
    for slot in syno.slots(net).values():
        slot.restore()
    torch.testing.assert_close(net(X), expected)
    slot = syno.slots(net)["a"]
    slot.weight = nn.Parameter(torch.ones(8, 8))
    assert slot.original.weight is slot.weight
    syno.replace(net, LINEAR)
    assert (slot.weight.shape, slot.weight.dtype) == ((8, 8), torch.float32)
    assert (slot.in_features, slot.bias.shape) == (8, (8,))
    assert not hasattr(slot, "reset_parameters")
    with pytest.raises(UserError, match="sets the attribute 'weight'"):
        slot.weight = nn.Parameter(torch.zeros(8, 8))


def test_without_an_example_a_slot_that_no_call_reached_is_not_called_replaced():
    net = Net("forward methods").eval()
    made = syno.substitute(net, syno.linear())
    made(X)
    report = syno.replace(made, LINEAR)
    assert [row.name for row in report.replaced] == ["last"]
    assert "no call of the network reached its slot" in str(report)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_networks_with_recurrent_layers_keep_their_weights(kind):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.last = kind(8, 8, batch_first=True), nn.Linear(8, 8)

        def forward(self, x):
            return self.last(self.rnn(x)[0][:, -1])

    net, x = Recurrent().eval(), torch.randn(2, 5, 8)
    before = state_of(net)
    made = syno.substitute(net, syno.linear(), x)
    check_untouched(net, before)
    torch.testing.assert_close(made(x), net(x))


def _random_net(rng):
    return Net(rng.choice([*PLACES]), rng.choice([*USES]), rng.choice([*FORMS, *OTHER_FORMS]))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_networks_of_the_family(seed):
    rng = random.Random(seed)
    replaced = 0
    for _ in range(300 if seed else 25):
        net = _random_net(rng)
        try:
            net.eval()(X)
        except (AttributeError, TypeError, KeyError, IndexError):
            continue  # such as a method, which has no attributes of a layer
        replaced += "replaced (" in check(net)
    assert replaced > 0


CONVOLUTION = syno.Operator.parse(
    "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * W[o,i]",
    input="[N, C_in, H, W]",
    output="[N, C_out, H, W]",
)


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"groups": 4}, {"bias": False}])
@pytest.mark.parametrize("use", ["stride", "dilation", "padding", "kernel_size", "bias"])
def test_convolutions_have_their_attributes_in_a_slot(options, use):
    class Reading(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 1, **options)
            self.read = []

        def forward(self, x):
            self.read = [getattr(self.conv, use), self.conv.weight.shape, self.conv.weight.dtype]
            return self.conv(x.to(self.conv.weight.dtype))

    net, x = Reading().eval(), torch.randn(2, 8, 8, 8)
    made = syno.substitute(net, syno.conv2d(stride=(1, 2)), x)
    torch.testing.assert_close(made(x), net(x))
    assert str(made.read) == str(net.read)
    assert syno.replace(made, CONVOLUTION).replaced
    assert made(x).shape == net(x).shape
    assert str(made.read) == str(net.read)
