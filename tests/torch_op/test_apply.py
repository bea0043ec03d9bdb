"""torch.ops.syno.apply: threads, memory, what PyTorch asks of operators, errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import syno
from syno.codegen.native import QUICK_FLAGS
from syno.codegen.torch_op import Kernel, ResizableLayer
from syno.codegen.torch_op.epilogue import Epilogue
from syno.codegen.torch_op.kernel import load_together
from syno.codegen.torch_op.record import KernelRecord
from syno.operators import zoo

SIZES = {"N": 1, "C_in": 32, "C_out": 48, "H": 17, "W": 11, "g": 4, "s": 2, "k": 3, "C": 32}
NHWC = (0, 2, 3, 1)
SMALL = "N=1, C_in=4, C_out=6, H=5, W=7, k=3"


def _integers(shape, seed=0):
    drawn = np.random.default_rng(seed).integers(-3, 4, tuple(shape))
    return torch.from_numpy(drawn).float()


def _small(**options):
    kernel = Kernel.of(zoo.load("conv2d"), SMALL, **options)
    weight = _integers((6, 4, 3, 3), 1)
    return kernel, weight, kernel.pack([weight])


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["conv2d", "operator-1", "operator-2", "depthwise"])
def test_equals_the_interpreter_for_any_batch_on_any_number_of_threads(name, threads):
    operator = zoo.load(name)
    sizes = {name: SIZES.get(name, 2) for name in operator.variables}
    (kernel,) = load_together([(KernelRecord.of(operator, sizes), Epilogue(""))], QUICK_FLAGS)
    weights = [_integers(shape, 1 + t) for t, shape in enumerate(kernel.weight_shapes)]
    packed = kernel.pack(weights)
    most = _integers((7, *kernel.record.shapes.input[1:]))
    expected = operator.interpret(
        sizes | {operator.batch: 2}, most[:2].numpy(), [weight.numpy() for weight in weights]
    )
    threads(1)
    with torch.inference_mode():
        alone = kernel(most, packed)
        assert np.array_equal(alone[:2].numpy(), expected)
        for count in (2, 3, 5):
            threads(count)
            for batch in (0, 1, 2, 3, 4, 7):
                assert torch.equal(kernel(most[:batch], packed), alone[:batch]), (count, batch)


def test_python_threads_call_the_same_kernel_at_the_same_time(threads):
    threads(2)
    kernel = Kernel.of(zoo.load("conv2d"), "N=1, C_in=32, C_out=32, H=28, W=28, k=3")
    packed = kernel.pack([_integers((32, 32, 3, 3))])
    inputs = [_integers((3, 32, 28, 28), seed) for seed in range(4)]
    expected = [kernel(x, packed) for x in inputs]
    wrong = []

    def call(number):
        for _ in range(20):
            if not torch.equal(kernel(inputs[number], packed), expected[number]):
                wrong.append(number)

    running = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not wrong


def test_an_operator_without_a_batch_takes_its_own_shape_alone():
    operator = syno.Operator.parse("y[o] = sum(i:I) x[i] * w0[o,i]", input="[I]", output="[O]")
    kernel = Kernel.of(operator, "I=5, O=3")
    weight, x = _integers((3, 5)), _integers((5,), 1)
    if kernel.record.batched:
        pytest.fail("the output's dimension is no batch")
    assert torch.equal(kernel(x, kernel.pack([weight])), weight @ x)
    with pytest.raises(RuntimeError, match=r"expected: \[5\]      got: \[4\]"):
        kernel(x[:4], kernel.pack([weight]))


def _copies(call):
    """How often PyTorch copies a tensor in a call."""
    with torch.profiler.profile() as profile:
        call()
    return sum(event.count for event in profile.key_averages() if event.key == "aten::copy_")


def test_a_channels_last_kernel_takes_and_returns_channels_last_without_a_copy():
    kernel, weight, packed = _small(epilogue="residual", input_order=NHWC, output_order=NHWC)
    x, residual = _integers((2, 4, 5, 7)), _integers((2, 6, 5, 7))
    last = x.to(memory_format=torch.channels_last), residual.to(memory_format=torch.channels_last)
    with torch.inference_mode():
        y = kernel(last[0], packed, None, last[1])
        assert y.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(y, F.conv2d(x, weight, padding=1) + residual)
        assert torch.equal(kernel(x, packed, None, residual), y)
        assert _copies(lambda: kernel(last[0], packed, None, last[1])) == 0
        assert _copies(lambda: kernel(x, packed, None, residual)) == 2


def test_writes_into_out_whatever_its_memory_and_also_into_the_input():
    kernel = Kernel.of(zoo.load("conv2d"), "N=1, C_in=4, C_out=4, H=5, W=7, k=3")
    weight, x = _integers((4, 4, 3, 3), 1), _integers((2, 4, 5, 7))
    packed, expected = kernel.pack([weight]), F.conv2d(x, weight, padding=1)
    apply = torch.ops.syno.apply.out
    for out in (
        torch.zeros(2, 4, 5, 7),
        torch.zeros(2, 7, 5, 4).permute(0, 3, 2, 1),
        torch.zeros(2, 8, 5, 7)[:, ::2],
        x,
    ):
        apply(x, packed, None, None, kernel.key, "", out=out)
        assert torch.equal(out, expected)
    adding = Kernel.of(
        zoo.load("conv2d"), "N=1, C_in=4, C_out=4, H=5, W=7, k=3", epilogue="residual"
    )
    x, room = _integers((2, 4, 5, 7)), _integers((3, 4, 5, 7), 2)
    for residual, out in ((room[1:], room[1:]), (room[1:], room[:2])):
        before = residual.clone()
        apply(x, adding.pack([weight]), None, residual, adding.key, "residual", out=out)
        assert torch.equal(out, F.conv2d(x, weight, padding=1) + before)


@pytest.mark.parametrize("order", [None, NHWC])
@pytest.mark.parametrize("memory", ["contiguous", "channels-last", "transposed", "strided"])
def test_opcheck_finds_nothing(order, memory):
    kernel, _, packed = _small(
        epilogue="scale+residual+relu", input_order=order, output_order=order
    )
    x = {
        "contiguous": _integers((2, 4, 5, 7)),
        "channels-last": _integers((2, 5, 7, 4)).permute(0, 3, 1, 2),
        "transposed": _integers((2, 4, 7, 5)).transpose(2, 3),
        "strided": _integers((2, 8, 5, 14))[:, ::2, :, ::2],
    }[memory]
    residual = _integers((2, 6, 7, 5)).transpose(2, 3)
    arguments = (x, packed, _integers((12,)), residual, kernel.key, kernel.epilogue)
    torch.library.opcheck(torch.ops.syno.apply.default, arguments)
    torch.library.opcheck(torch.ops.syno.apply.out, arguments, {"out": torch.zeros_like(residual)})


@torch.no_grad()
def test_a_compiled_graph_takes_any_batch_without_being_traced_again():
    kernel, weight, packed = _small()
    traced = 0

    def count(graph, _):
        nonlocal traced
        traced += 1
        return graph.forward

    compiled = torch.compile(lambda x: F.relu(kernel(x, packed)), backend=count, fullgraph=True)
    whole = torch.compile(lambda x: kernel(x, packed), fullgraph=True, dynamic=True)
    for batch in (2, 3, 4, 9):
        x = _integers((batch, 4, 5, 7), batch)
        expected = F.conv2d(x, weight, padding=1)
        assert torch.equal(compiled(x), F.relu(expected))
        assert torch.equal(whole(x), expected)
    assert traced == 2  # the first batch size, then any


def test_weights_of_other_numbers_shapes_and_code_are_refused():
    kernel, weight, packed = _small()
    with pytest.raises(RuntimeError, match="channel is given, which the epilogue '' does not name"):
        kernel(X, packed, CHANNEL)
    other = Kernel.of(zoo.load("conv2d"), SMALL, epilogue="relu")
    x = _integers((2, 4, 5, 7))
    for wrong, said in {
        (): "weights of the wrong shapes",
        (weight[:5],): r"expected: \[\(6, 4, 3, 3\)\]      got: \[\(5, 4, 3, 3\)\]",
    }.items():
        with pytest.raises(syno.UserError, match=said):
            kernel.pack(wrong)
    for damaged in (other.pack([weight]), torch.zeros_like(packed), packed.half().float() + 1):
        with pytest.raises(RuntimeError, match="packed holds weights for another kernel"):
            kernel(x, damaged)


X = torch.zeros(2, 4, 5, 7)
CHANNEL = torch.zeros(6)
RESIDUAL = torch.zeros(2, 6, 5, 7)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"x": X.double()}, "x of the wrong dtype\n  expected: float32"),
        (
            {"x": X[:, :3]},
            r"x of the wrong shape\n  expected: \[n, 4, 5, 7\]      got: \[2, 3, 5, 7\]",
        ),
        ({"x": X[0]}, r"expected: \[n, 4, 5, 7\]      got: \[4, 5, 7\]"),
        ({"x": torch.tensor(1.0)}, r"expected: \[n, 4, 5, 7\]      got: \[\]"),
        ({"packed": CHANNEL}, r"packed of the wrong size\n  expected: \[\d+\]      got: \[6\]"),
        ({"packed": CHANNEL.double()}, "packed of the wrong dtype"),
        ({"channel": None}, r"channel is missing, which the epilogue 'bias\+residual' names"),
        ({"channel": CHANNEL[:5]}, r"channel of the wrong size\n  expected: \[6\]      got: \[5\]"),
        ({"channel": CHANNEL[None]}, r"expected: \[6\]      got: \[1, 6\]"),
        ({"residual": None}, "residual is missing"),
        ({"residual": RESIDUAL[:1]}, r"expected: \[2, 6, 5, 7\]      got: \[1, 6, 5, 7\]"),
        ({"residual": RESIDUAL.half()}, "residual of the wrong dtype"),
        ({"epilogue": "bias+rlu"}, "has no kernel .*with epilogue 'bias\\+rlu'"),
        ({"epilogue": "relu"}, "packed holds weights for another kernel"),
        ({"key": "0" * 32}, "the cache has no kernel of key '0+'"),
        ({"key": "../../etc/passwd"}, "the cache has no kernel of key"),
        ({"key": ""}, "the cache has no kernel of key"),
        ({"x": X.requires_grad_(False).clone().requires_grad_()}, "x requires a gradient"),
        ({"channel": CHANNEL.clone().requires_grad_()}, "channel requires a gradient"),
    ],
)
def test_a_wrong_argument_is_named(changes, said):
    kernel, _, packed = _small(epilogue="bias+residual")
    arguments = {
        "x": X,
        "packed": packed,
        "channel": CHANNEL,
        "residual": RESIDUAL,
        "key": kernel.key,
        "epilogue": kernel.epilogue,
    }
    with pytest.raises(RuntimeError, match=said):
        torch.ops.syno.apply(**arguments | changes)
    assert torch.ops.syno.apply(**arguments).shape == (2, 6, 5, 7)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epilogue": "relu+bias"}, "relu\\+bias"),
        ({"epilogue": "bias", "channel": 4}, "channel"),
        ({"channel": -1}, "'channel' is an integer of at least 0"),
        ({"input_order": (0, 1, 2)}, "input_order"),
        ({"output_order": (1, 0, 2, 3)}, "output_order"),
        ({"output_order": (0, 1, 2, 4)}, "a dimension of 'output_order' is an integer"),
        ({"plan": 0}, "'plan' is an integer of at least 1"),
        ({"plan": 1000}, "plan"),
        ({"missing": "ignore"}, "expected: one of compile, pytorch"),
    ],
)
def test_a_wrong_option_of_a_kernel_is_named(options, said):
    with pytest.raises(syno.UserError, match=said):
        Kernel.of(zoo.load("conv2d"), SMALL, **options)


@pytest.mark.parametrize("name", ["x", "packed", "channel", "residual", "out"])
def test_arguments_on_several_devices_are_refused(name):
    kernel, _, packed = _small(epilogue="bias+residual")
    arguments = {"x": X, "packed": packed, "channel": CHANNEL, "residual": RESIDUAL}
    arguments |= {"out": torch.empty(2, 6, 5, 7)} if name == "out" else {}
    apply = torch.ops.syno.apply.out if name == "out" else torch.ops.syno.apply.default
    names = {"key": kernel.key, "epilogue": kernel.epilogue}
    with pytest.raises(RuntimeError, match=r"arguments on several devices\n.*got: cpu, meta"):
        apply(**arguments | {name: arguments[name].to("meta")}, **names)
    if name != "out":
        everywhere = {n: tensor.to("meta") for n, tensor in arguments.items()}
        assert apply(**everywhere, **names).device.type == "meta"


def test_training_is_refused_and_no_grad_is_not():
    kernel, _, packed = _small()
    x = X.clone().requires_grad_()
    for call in (kernel, torch.compile(kernel.__call__, backend="aot_eager", fullgraph=True)):
        with pytest.raises(RuntimeError, match="they are for inference"):
            call(x, packed)
        with torch.no_grad():
            assert not call(x, packed).requires_grad


def test_a_layer_makes_a_kernel_for_each_size():
    weight, bias = _integers((6, 4, 3, 3)), _integers((6,), 1)
    layer = ResizableLayer(
        zoo.load("conv2d"), SMALL, [weight], epilogue="bias+relu", channel_values=bias
    )
    compiled = torch.compile(layer, fullgraph=True)
    for size in ((5, 7), (8, 3), (5, 7), (6, 6)):
        x = _integers((2, 4, *size))
        expected = F.relu(F.conv2d(x, weight, bias, padding=1))
        assert torch.equal(layer(x), expected)
        assert torch.equal(compiled(x), expected)
    with pytest.raises(syno.UserError, match="cannot take with these weights"):
        layer(_integers((2, 5, 5, 7)))
    with pytest.raises(syno.UserError, match=r"before torch\.export"):
        torch.export.export(layer, (_integers((2, 4, 9, 9)),))
    layer(_integers((2, 4, 9, 9)))
    assert "syno.apply" in torch.export.export(layer, (_integers((2, 4, 9, 9)),)).graph_module.code
