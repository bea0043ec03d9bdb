"""Arguments of compiled networks, libraries, functions and kernels that they do not take."""

import numpy as np
import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.codegen import native
from syno.codegen.export import export_network
from syno.codegen.torch_op import Kernel
from syno.inference import load
from syno.operators import zoo

X = torch.ones(2, 4, 6, 6)
# What is given -> the texts of a refusal by a compiled network, and by what takes arrays.
VALUES = {
    "nothing": (None, "not a tensor\n.*got: None", "does not contain numbers"),
    "a list": ([X], r"give the tensors themselves, as in network\(\*tensors\)", "wrong shape"),
    "a text": ("x", "not a tensor\n.*got: 'x'", "does not contain numbers"),
    "an array": (X.numpy(), r"use torch\.as_tensor", None),
    "a dict": ({}, "not a tensor\n.*got: a dict", "does not contain numbers"),
    "a scalar": (torch.tensor(1.0), "another shape", "wrong shape"),
    "doubles": (X.double(), r"use x\.float\(\)", None),
    "bfloat16": (X.bfloat16(), r"use x\.float\(\)", "is not an array: .*BFloat16"),
    "integers": (X.int(), r"use x\.float\(\)", None),
    "complex numbers": (X + 1j, "complex numbers", "got: complex64"),
    "no values": (X.to("meta"), "device meta, and has no values", "is not an array: .*meta"),
    "a sparse tensor": (X.to_sparse(), r"use \.to_dense\(\)", "is not an array: .*Sparse"),
    "a quantized tensor": (
        torch.quantize_per_tensor(X, 0.1, 0, torch.qint8),
        r"use \.dequantize\(\)",
        "is not an array: .*QInt8",
    ),
    "a masked array": (np.ma.masked_array(X.numpy(), mask=True), "not a tensor", "masked array"),
}


class Words(nn.Module):
    """A network of token ids."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(10, 8), nn.Linear(8, 4)

    def forward(self, ids):
        """Scores of each token."""
        return self.head(self.table(ids))


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU()).eval()


@pytest.fixture(scope="module")
def compiled(net):
    return syno.compile(net, X)


@pytest.fixture(scope="module")
def takers(net, tmp_path_factory):
    """What takes arrays, by name."""
    operator, sizes = zoo.load("conv1x1"), {"N": 2, "C_in": 4, "C_out": 4, "H": 6, "W": 6}
    function = native.compile_operator(operator, sizes)
    function.pack([np.ones((4, 4))])
    path = tmp_path_factory.mktemp("library") / "net"
    library = load(export_network(net, path, X[:1], format="cpp-network").code)
    return {"function": function, "library": library, "operator": _interpreter(operator, sizes)}


def _interpreter(operator, sizes):
    return lambda x: operator.interpret(sizes, x, [np.ones((4, 4))])


@pytest.mark.parametrize("name", VALUES)
def test_a_compiled_network_says_what_it_takes(compiled, name):
    value, text, _ = VALUES[name]
    with torch.no_grad(), pytest.raises(UserError, match=text):
        compiled(value)


@pytest.mark.parametrize("name", VALUES)
def test_what_takes_arrays_says_what_it_takes(takers, name):
    value, _, text = VALUES[name]
    for take in takers.values():
        if text is None:
            assert take(value).shape == X.shape
        else:
            with pytest.raises(UserError, match=text):
                take(value)


def test_a_compiled_network_counts_its_arguments(compiled):
    with pytest.raises(UserError, match=r"has 1 argument\n.*got: 0 arguments"):
        compiled()
    with pytest.raises(UserError, match=r"has 1 argument\n.*got: 2 arguments"):
        compiled(X, X)
    with pytest.raises(UserError, match=r"expected: a float32 tensor \[n, 4, 6, 6\]"):
        compiled.layer_seconds()


def test_token_ids_are_integers():
    compiled = syno.compile(Words().eval(), torch.zeros(2, 5, dtype=torch.long))
    with pytest.raises(UserError, match=r"expected: an integer tensor \[n, 5\].*\n.*x\.long\(\)"):
        compiled(torch.zeros(2, 5))
    ids = torch.ones(3, 5, dtype=torch.int32)
    assert torch.equal(compiled(ids), compiled(ids.long()))


@pytest.mark.parametrize(
    "name", sorted(set(VALUES) - {"a scalar", "doubles", "bfloat16", "integers"})
)
def test_a_kernel_takes_tensors_with_real_numbers_in_memory(name):
    value = VALUES[name][0]
    kernel = Kernel.of(zoo.load("conv1x1"), "N=2, C_in=4, C_out=4, H=6, W=6")
    packed = kernel.pack([torch.ones(4, 4)])
    for call in (
        lambda: kernel(value, packed),
        lambda: kernel(X, packed, residual=value if value is not None else 1),
        lambda: kernel.pack([value]),
    ):
        with pytest.raises(UserError, match=r"not a tensor|real numbers in dense memory"):
            call()


def test_weights_by_name_have_the_names_of_the_operator():
    operator, sizes = zoo.load("conv1x1"), "N=2, C_in=4, C_out=4, H=6, W=6"
    for pack in (Kernel.of(operator, sizes).pack, native.compile_operator(operator, sizes).pack):
        for keys in ((0,), (1, "a"), (None, "w0")):
            with pytest.raises(UserError, match="by name are not those of the operator"):
                pack(dict.fromkeys(keys, torch.ones(4, 4)))
