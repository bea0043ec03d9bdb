"""torch.ops.syno.pool: maxima and averages of windows, as PyTorch computes them."""

import itertools

import pytest
import torch
from torch.nn import functional

from syno.codegen.torch_op import register


@pytest.fixture(autouse=True, scope="module")
def registered():
    register()


def pool(x, kernel, stride, padding=0, average=False):
    return torch.ops.syno.pool(x, kernel, kernel, stride, stride, padding, padding, average=average)


@torch.no_grad()
@pytest.mark.parametrize("size", [(7, 9), (12, 12), (1, 5), (33, 17)])
def test_it_equals_pytorch(size):
    for kernel, stride, batch in itertools.product((1, 2, 3, 5), (1, 2, 3), (1, 3)):
        x = torch.randn(batch, 5, *size)
        for padding in range(kernel // 2 + 1):
            if min(size) + 2 * padding < kernel:
                continue
            expected = functional.max_pool2d(x, kernel, stride, padding)
            for given in (x, x.to(memory_format=torch.channels_last), x.mT.contiguous().mT):
                assert torch.equal(pool(given, kernel, stride, padding), expected)
        if min(size) >= kernel:
            expected = functional.avg_pool2d(x, kernel, stride)
            torch.testing.assert_close(pool(x, kernel, stride, average=True), expected)


@torch.no_grad()
def test_windows_of_two_sizes():
    x = torch.randn(2, 3, 9, 8)
    found = torch.ops.syno.pool(x, 3, 2, 1, 2, 1, 0, average=False)
    assert torch.equal(found, functional.max_pool2d(x, (3, 2), (1, 2), (1, 0)))


@torch.no_grad()
def test_nan_stays():
    x = torch.randn(1, 2, 6, 6)
    x[0, 1, 3, 4] = float("nan")
    found = pool(x, 3, 2, 1)
    assert torch.equal(found.isnan(), functional.max_pool2d(x, 3, 2, 1).isnan())


@torch.no_grad()
def test_out_is_written_in_any_memory():
    x = torch.randn(2, 3, 8, 8)
    expected = functional.max_pool2d(x, 2)
    for out in (torch.zeros(2, 3, 4, 4), torch.zeros(2, 4, 4, 3).permute(0, 3, 1, 2)):
        torch.ops.syno.pool.out(x, 2, 2, 2, 2, 0, 0, average=False, out=out)
        assert torch.equal(out, expected)
    out = x[:, :, :4, :4]  # lies over the input
    torch.ops.syno.pool.out(x, 2, 2, 2, 2, 0, 0, average=False, out=out)
    assert torch.equal(out, expected)


def test_what_pytorch_asks_of_operators():
    x = torch.randn(2, 3, 8, 8)
    torch.library.opcheck(torch.ops.syno.pool.default, (x, 3, 3, 2, 2, 1, 1, False))


@torch.no_grad()
@pytest.mark.parametrize(
    ("x", "window", "average"),
    [
        (torch.zeros(1, 2, 4, 4, dtype=torch.float64), (2, 2, 2, 2, 0, 0), False),
        (torch.zeros(2, 4, 4), (2, 2, 2, 2, 0, 0), False),
        (torch.zeros(1, 2, 4, 4), (5, 2, 2, 2, 0, 0), False),
        (torch.zeros(1, 2, 4, 4), (2, 2, 0, 2, 0, 0), False),
        (torch.zeros(1, 2, 4, 4), (2, 2, 2, 2, 2, 0), False),
        (torch.zeros(1, 2, 4, 4), (2, 2, 2, 2, 1, 1), True),
    ],
)
def test_wrong_arguments_are_refused(x, window, average):
    with pytest.raises(RuntimeError, match="syno::"):
        torch.ops.syno.pool(x, *window, average)


def test_a_gradient_is_refused():
    with pytest.raises(RuntimeError, match="requires a gradient"):
        pool(torch.zeros(1, 2, 4, 4, requires_grad=True), 2, 2)
