"""The modules that kernels live in: shared while they are used, and gone afterwards."""

from __future__ import annotations

import gc
import inspect
import linecache
import pickle
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from syno import InternalError
from syno.operators import emitted, zoo
from syno.operators.emitted import load_module

BINDING = {"N": 1, "C_in": 4, "C_out": 4, "H": 6, "W": 6, "k": 3}
SOURCE = zoo.load("conv2d").source(BINDING)
MANY = 3 * emitted._MOST_UNUSED


def source(number):
    """A kernel of its own for each number."""
    return f"{SOURCE}\n\nNUMBER = {number}\n"


def modules():
    gc.collect()
    return {name for name in sys.modules if name.startswith("syno_kernel_")}


def lines():
    return {name for name in linecache.cache if name.startswith("<syno_kernel_")}


def test_modules_and_lines_of_kernels_are_bounded():
    before = modules()  # tests that ran earlier in this process may use some for ever
    for number in range(MANY):
        load_module(source(number))()
    assert len(modules() - before) <= emitted._MOST_UNUSED
    assert lines() == {f"<{name}>" for name in modules()}


@pytest.mark.slow
def test_loading_kernels_for_ever_takes_no_memory():
    def load(first):
        for number in range(first, first + MANY):
            load_module(source(number), keep=number % 2 == 0)()
        gc.collect()
        return sys.getallocatedblocks()

    load(10_000)
    before = load(20_000)
    grown = load(30_000) - before
    assert grown < MANY / 2, f"{grown / MANY:.1f} objects a kernel"


def test_equal_sources_share_one_class_while_it_is_used():
    used = load_module(source("'used'"))
    for number in range(MANY):
        load_module(source(number))
    gc.collect()
    assert load_module(source("'used'")) is used
    assert used.__module__ in modules()
    assert load_module(source("'used'"), keep=False) is not used


def test_a_class_goes_when_nobody_uses_it_and_comes_back():
    name = load_module(source("'gone'")).__module__
    for number in range(MANY):
        load_module(source(number))
    assert name not in modules()
    assert f"<{name}>" not in lines()
    assert load_module(source("'gone'")).__module__ == name
    assert name in modules()
    assert f"<{name}>" in lines()


@pytest.fixture
def old():
    """A kernel in use, when many others have been loaded since."""
    made = load_module(source("'old'"))()
    for number in range(MANY):
        load_module(source(number))
    gc.collect()
    return made


def test_tracebacks_show_the_lines_of_a_kernel_in_use(old):
    with pytest.raises(ValueError, match="expected x of shape") as caught:
        old(torch.ones(1))
    shown = "".join(traceback.format_exception(caught.value))
    assert 'raise ValueError(f"expected x of shape [n, 4, 6, 6]' in shown


def test_tools_find_the_source_of_a_kernel_in_use(old):
    assert inspect.getsource(type(old).forward) in SOURCE
    assert inspect.getmodule(type(old)) is sys.modules[type(old).__module__]
    assert inspect.getmodule(type(old)).F is nn.functional
    with pytest.raises(AttributeError, match=r"syno_kernel_\w+' has no attribute 'no_such'"):
        _ = inspect.getmodule(type(old)).no_such


def test_a_kernel_in_use_pickles_by_name(old):
    again = pickle.loads(pickle.dumps(old))
    assert type(again) is type(old)
    assert torch.equal(again.w0, old.w0)


@pytest.mark.parametrize("pack", [False, True])
def test_torch_compiles_networks_with_kernels_in_use(old, pack):
    inner = zoo.load("conv2d").kernel_pack(BINDING) if pack else old
    net = nn.Sequential(nn.ReLU(), inner)
    x = torch.randn(2, 4, 6, 6)
    compiled = torch.compile(net, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x), net(x))
    for number in range(MANY):
        load_module(source(number))
    gc.collect()
    assert torch.equal(compiled(x[:1]), net(x[:1]))  # other sizes: it is compiled again


def test_threads_share_one_class():
    together = threading.Barrier(8)

    def load(_):
        found = []
        for number in range(20):
            together.wait()
            found.append(load_module(source(f"'thread {number}'")))
        return found

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(load, range(8))
    assert all(found == first for found in others)


def test_source_without_the_class_is_a_bug():
    with pytest.raises(InternalError, match=r"defines no nn.Module named SynoOperator:\nx = 1"):
        load_module("x = 1")
