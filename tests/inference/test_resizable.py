"""Compiled networks for several sizes of their inputs."""

import copy
import pickle
import threading

import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.inference import ResizableNetwork

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class Maps(nn.Module):
    """A network of any height and width, which uses them as numbers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.second = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        """A map of the size of x."""
        y = torch.relu(self.first(x)) / x.shape[-1]
        return nn.functional.interpolate(self.second(y), x.shape[2:])


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Maps().eval()


@pytest.fixture
def compiled(net):
    return syno.compile(net, torch.randn(2, 3, 12, 10), sizes=3)


@torch.no_grad()
def right(compiled, net, *shape):
    x = torch.randn(*shape)
    return torch.allclose(compiled(x), net(x), atol=1e-5)


def test_other_sizes_are_compiled_when_they_are_called(compiled, net):
    assert isinstance(compiled, ResizableNetwork)
    assert compiled.sizes == [((3, 12, 10),)]
    for shape in (
        (2, 3, 12, 10),
        (1, 3, 9, 16),
        (4, 3, 9, 16),
        (0, 3, 1, 1),
        (3, 3, 1, 1),
        (2, 3, 12, 10),
    ):
        assert right(compiled, net, *shape), shape
    assert compiled.sizes == [((3, 9, 16),), ((3, 1, 1),), ((3, 12, 10),)]
    assert right(compiled, net, 1, 3, 5, 5)
    assert compiled.sizes == [((3, 1, 1),), ((3, 12, 10),), ((3, 5, 5),)]
    assert right(compiled, net, 1, 3, 9, 16)
    assert "kernel" in str(compiled.report())


def test_a_size_is_compiled_once(compiled, monkeypatch):
    made = []
    compile_for = compiled._compile_for
    compiled._compile_for = lambda inputs: made.append(inputs) or compile_for(inputs)
    x = torch.randn(2, 3, 7, 7)
    found, calls = [], [threading.Thread(target=lambda: found.append(compiled(x))) for _ in "abcd"]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert len(found) == 4 and len(made) == 1


def test_later_changes_of_the_network_change_nothing(net):
    changed = copy.deepcopy(net)
    compiled = syno.compile(changed, torch.randn(1, 3, 6, 6), sizes=2)
    with torch.no_grad():
        changed.second.weight.zero_()
    assert right(compiled, net, 1, 3, 6, 6)
    assert right(compiled, net, 1, 3, 8, 8)


def test_calls_in_inference_mode_serve_others(compiled, net):
    with torch.inference_mode():
        assert right(compiled, net, 1, 3, 8, 6)
    assert right(compiled, net, 1, 3, 8, 6)
    with torch.inference_mode():
        assert compiled.layer_seconds(torch.randn(1, 3, 8, 6)) > 0


def test_it_is_copied_and_pickled(compiled, net):
    assert right(compiled, net, 1, 3, 4, 4)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other.sizes == compiled.sizes
        assert right(other, net, 1, 3, 4, 4)
        assert right(other, net, 1, 3, 4, 6)


def test_a_network_for_one_batch_takes_other_batches():
    class Whole(nn.Module):
        """Where samples meet, and the batch is a number."""

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            """Centred."""
            y = self.layer(x)
            return y - y.mean(0) if len(x) > 2 else y

    net = Whole().eval()
    compiled = syno.compile(net, torch.randn(2, 4), sizes=3)
    assert right(compiled, net, 2, 4)
    assert right(compiled, net, 5, 4)


@torch.no_grad()
def test_several_inputs_have_sizes_of_their_own():
    class Two(nn.Module):
        """Signals of two lengths."""

        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv1d(2, 3, 3), nn.Conv1d(4, 3, 1)

        def forward(self, x, y):
            """Sums."""
            return self.first(x).mean(-1) + self.second(y).sum(-1)

    net = Two().eval()
    compiled = syno.compile(net, (torch.randn(2, 2, 9), torch.randn(2, 4, 5)), sizes=4)
    for first, second in ((9, 5), (9, 6), (11, 5), (11, 6)):
        x, y = torch.randn(3, 2, first), torch.randn(3, 4, second)
        assert torch.allclose(compiled(x, y), net(x, y), atol=1e-5)
    assert len(compiled.sizes) == 4


def test_what_it_does_not_take_is_an_error(compiled, net):
    for wrong, words in (
        ((torch.randn(1, 5, 12, 10),), r"for inputs of the sizes \[1, 5, 12, 10\]"),
        ((torch.randn(3, 12, 10),), "another shape of its input"),
        ((torch.randn(1, 3, 12, 10).double(),), "of another kind"),
        (("x",), "not a tensor"),
        ((), "the network has 1 argument"),
    ):
        with pytest.raises(UserError, match=words):
            compiled(*wrong)
    assert right(compiled, net, 1, 3, 12, 10)  # and goes on
    with pytest.raises(UserError, match="cannot be trained"):
        compiled.train()


def test_it_is_not_traced(compiled):
    with pytest.raises(UserError, match="cannot be traced"):
        torch.export.export(compiled, (torch.randn(1, 3, 12, 10),))


def test_the_number_of_sizes_is_checked(net):
    x = torch.randn(1, 3, 8, 8)
    for wrong in (0, 1.5, "many", 10**6):
        with pytest.raises(UserError, match="'sizes' is"):
            syno.compile(net, x, sizes=wrong)
    quantized = syno.quantize(net, [torch.randn(2, 3, 8, 8)])
    with pytest.raises(UserError, match="takes inputs of one size"):
        syno.compile(quantized, x, sizes=2)
