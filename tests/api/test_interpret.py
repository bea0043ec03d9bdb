"""interpret and gradients on NumPy arrays."""

import numpy as np
import pytest
import torch

from syno import Operator, UserError, _core
from syno.operators import zoo

RANDOM = np.random.default_rng(0)


def integers(*shape):
    return RANDOM.integers(-4, 5, shape)


def conv_reference(x, w):
    return torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding=1).numpy()


def test_integers_are_exact_and_floats_are_float64():
    conv, sizes = zoo.load("conv2d"), zoo.binding("conv2d")
    x, w = integers(2, 4, 5, 7), integers(6, 4, 3, 3)
    y = conv.interpret(sizes, x, [w])
    assert y.dtype == np.int64
    assert (y == conv_reference(x.astype(float), w.astype(float))).all()
    floats = conv.interpret(sizes, x.astype(np.float32), [w])
    assert floats.dtype == np.float64
    assert (floats == y).all()


def test_large_integers_do_not_lose_digits():
    linear = zoo.load("linear")
    sizes = {"C_in": 2, "C_out": 1, "N": 1, "T": 1}
    x = np.array([[[2**61 + 1, 1]]])
    y = linear.interpret(sizes, x, [np.array([[1, 1]])])
    assert y[0, 0, 0] == 2**61 + 2
    with pytest.raises(UserError, match="overflow"):
        linear.interpret(sizes, x, [np.array([[8, 1]])])


def test_the_batch_size_comes_from_the_input():
    conv = zoo.load("conv2d")
    sizes = {k: v for k, v in zoo.binding("conv2d").items() if k != "N"}
    x, w = integers(3, 4, 5, 7), integers(6, 4, 3, 3)
    assert conv.interpret(sizes, x, [w]).shape == (3, 6, 5, 7)


def test_other_arrays_and_nested_lists_are_taken():
    linear = zoo.load("linear")
    sizes = {"C_in": 2, "C_out": 2}
    y = linear.interpret(sizes, [[[1, 2]]], [[[1, 0], [3, 1]]])
    assert y.tolist() == [[[1, 5]]]
    y = linear.interpret(sizes, torch.tensor([[[1.0, 2.0]]]), [torch.eye(2)])
    assert y.tolist() == [[[1.0, 2.0]]]


def test_any_layout_and_type_of_array_gives_the_same():
    conv, sizes = zoo.load("conv2d"), zoo.binding("conv2d")
    x, w = integers(2, 4, 5, 7), integers(6, 4, 3, 3)
    expected = conv.interpret(sizes, x, [w])
    read_only = x.copy()
    read_only.flags.writeable = False
    odd = np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.int64).reshape(x.shape)
    assert not odd.flags.aligned
    every_second = np.repeat(x, 2, 0)[::2]
    for given in (np.asfortranarray(x), read_only, odd, every_second, x.astype(">i2")):
        assert np.array_equal(conv.interpret(sizes, given, [np.asfortranarray(w)]), expected)
        assert np.array_equal(conv.interpret(sizes, given.astype(">f4"), [w]), expected)
        dx, (dw,) = conv.gradients(sizes, given, [w], np.asfortranarray(expected))
        assert (dx.shape, dw.shape) == (x.shape, w.shape)
    for wrong in (x[:0], x[0], np.zeros(0), np.array(1)):
        with pytest.raises(UserError, match=r"the input x has the wrong shape\n  expected: \["):
            conv.interpret(sizes, wrong, [w])
        with pytest.raises(UserError, match="weight 0 has the wrong shape"):
            conv.interpret_at(sizes, x, [wrong], [0])
        with pytest.raises(UserError, match="the gradient dy has the wrong shape"):
            conv.gradients(sizes, x, [w], wrong)
    # The private module converts nothing: it refuses what it would have to read differently.
    for wrong in (np.asfortranarray(x), x.astype(np.float32), x.tolist(), None):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _core.interpret(conv._core, sizes, wrong, [w])


def test_interpret_at_takes_some_outputs():
    conv, sizes = zoo.load("conv2d"), zoo.binding("conv2d")
    x, w = integers(2, 4, 5, 7), [integers(6, 4, 3, 3)]
    every = conv.interpret(sizes, x, w).reshape(-1)
    some = [0, 17, 419]
    assert (conv.interpret_at(sizes, x, w, some) == every[some]).all()


def test_gradients_are_those_of_autograd():
    operator, sizes = zoo.load("operator-1"), zoo.binding("operator-1")
    shapes = operator.shapes(sizes)
    x, dy = integers(*shapes.input), integers(*shapes.output)
    weights = [integers(*shape) for shape in shapes.weights]
    dx, dw = operator.gradients(sizes, x, weights, dy)
    kernel = operator.kernel_pack(sizes).kernel.double()
    with torch.no_grad():
        for parameter, weight in zip(kernel.parameters(), weights, strict=True):
            parameter.copy_(torch.from_numpy(weight))
    tensor = torch.from_numpy(x).double().requires_grad_()
    kernel(tensor).backward(torch.from_numpy(dy).double())
    assert (tensor.grad.numpy() == dx).all()
    for parameter, expected in zip(kernel.parameters(), dw, strict=True):
        assert (parameter.grad.numpy() == expected).all()


def test_weights_stand_in_the_order_of_the_json_form():
    operator, sizes = zoo.load("operator-1"), zoo.binding("operator-1")
    data = operator.to_json()
    contractions = [step for step in data["steps"] if step["op"] == "contract"]
    shapes = operator.weight_shapes(sizes)
    assert [len(step["dims"]) for step in contractions] == [len(shape) for shape in shapes]
    extents = {step["out"]: step["size"] for step in data["steps"] if step["op"] == "reduce"}
    extents |= {f"o{d}": dim["size"] for d, dim in enumerate(data["out"])}
    for step, shape in zip(contractions, shapes, strict=True):
        for (name, _), extent in zip(step["dims"], shape, strict=True):
            if extents.get(name) in sizes:
                assert sizes[extents[name]] == extent


def test_an_operator_without_weights():
    shuffle, sizes = zoo.load("pixel-shuffle"), zoo.binding("pixel-shuffle")
    x = integers(2, 12, 5, 7)
    expected = torch.nn.functional.pixel_shuffle(torch.from_numpy(x), 2).numpy()
    assert (shuffle.interpret(sizes, x, []) == expected).all()
    assert isinstance(Operator.from_text(shuffle.text), Operator)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32, np.int8, np.uint64, bool])
def test_the_extension_takes_its_own_types_alone(kind):
    """Elsewhere it would choose integers for float32, and give numbers that nobody asked for."""
    conv, sizes = zoo.load("conv2d"), conv_sizes()
    x, w = np.full((2, 4, 5, 7), 1.5), np.full((6, 4, 3, 3), 0.5)
    dy = np.ones((2, 6, 5, 7))
    for arrays in ((x.astype(kind), w, dy), (x, w.astype(kind), dy), (x, w, dy.astype(kind))):
        given_x, given_w, given_dy = arrays
        if given_dy is dy:
            with pytest.raises(TypeError, match="incompatible function arguments"):
                _core.interpret(conv._core, sizes, given_x, [given_w])
            with pytest.raises(TypeError, match="incompatible function arguments"):
                _core.interpret_at(conv._core, sizes, given_x, [given_w], [0])
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _core.gradients(conv._core, sizes, given_x, [given_w], given_dy)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.interpret(conv._core, sizes, x, [w.astype(np.int64)])
    assert _core.interpret(conv._core, sizes, x, [w])[0, 0, 2, 2] == 4 * 9 * 0.75
    # The public functions take any numbers.
    if kind not in (np.int32, np.int8, np.uint64, bool):
        assert conv.interpret(sizes, x.astype(kind), [w.astype(kind)])[0, 0, 2, 2] == 27


def conv_sizes():
    return {"N": 2, "C_in": 4, "C_out": 6, "H": 5, "W": 7, "k": 3}
