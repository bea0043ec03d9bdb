"""Every emitted module equals the interpreter: random operators, convolutions, the zoo.

Small integers are compared exactly in float64, and random data in float32 within 1e-5 of the sum
of absolute terms; the value, and the gradients of the input and of every weight.
"""

from __future__ import annotations

import json
import random
import re

import pytest
import torch

from syno import _core
from syno.codegen.verify.convolutions import random_convolution

from .emitted import Case, check, differences, load, printed, random_case, zoo

pytestmark = pytest.mark.usefixtures("one_torch_thread")
ZOO = zoo()
CHUNK = 60


@pytest.mark.parametrize("start", range(0, 600, CHUNK))
def test_random_operators(start):
    for seed in range(start, start + CHUNK):
        case = random_case(seed)
        source = case.source()
        check(case, source)
        if seed % 3 == 0:  # the batch takes any size
            check(case.with_sizes(N=1), source)
            check(case.with_sizes(N=3), source)


def test_random_operators_use_every_kind_of_stage():
    sources = "".join(random_case(seed).source() for seed in range(600))
    for code in ("unfold(", "roll(", "[:, ::", "expand(", "einsum(", ".sum("):
        assert sources.count(code) > 5, code


@pytest.mark.parametrize("start", range(0, 180, CHUNK))
def test_random_convolutions(start):
    sources = []
    for seed in range(start, start + CHUNK):
        case = Case(*random_convolution(random.Random(seed)))
        source = case.source()
        check(case, source)
        check(case.with_sizes(N=4), source)
        sources.append(source)
    assert sum("F.conv" in source for source in sources) > CHUNK / 2
    assert sum("torch.stack" in source for source in sources) > 2


@pytest.mark.parametrize("start", range(0, 120, CHUNK))
def test_every_plan_of_random_operators(start):
    several = 0
    for seed in range(start, start + CHUNK):
        case = random_case(seed)
        sources = case.plan_sources(6)
        assert sources[0] == case.source()
        several += len(sources) > 1
        for source in sources:
            check(case, source)
            if seed % 3 == 0:
                check(case.with_sizes(N=3), source)
    assert several > CHUNK / 3


@pytest.mark.parametrize("start", range(0, 240, CHUNK))
def test_folded_weights_of_random_operators(start):
    folded = 0
    for seed in range(start, start + CHUNK):
        operator, binding = _core.random_operator(
            seed, batch=seed % 3 == 0, min_weights=2, max_terms=3000
        )
        case = Case(operator.text, binding)
        (source,) = case.plan_sources(1, fold_weights=True)
        check(case, source)
        folded += "Weights are combined first" in source
    assert folded > CHUNK / 10


@pytest.mark.parametrize("name", ZOO)
def test_every_plan_of_the_zoo(name):
    for fold_weights in (False, True):
        for source in ZOO[name].plan_sources(8, fold_weights=fold_weights):
            check(ZOO[name].with_sizes(N=3), source)


def test_the_zoo_has_everything_the_emitter_must_do():
    assert {
        "conv2d",
        "conv1x1",
        "linear",
        "grouped",
        "depthwise",
        "pooled-conv",
        "pixel-shuffle",
        "operator-1",
        "operator-2",
    } <= set(ZOO)


@pytest.mark.parametrize("name", ZOO)
def test_zoo(name):
    case = ZOO[name]
    source = case.source()
    for batch in (1, 3):
        check(case.with_sizes(N=batch), source)


@pytest.mark.parametrize(
    "name", [name for name, case in ZOO.items() if "unfold" in case.operator.primitives]
)
@pytest.mark.parametrize(("k", "size"), [(2, 6), (4, 6), (5, 2), (7, 4), (1, 2)])
def test_zoo_with_even_and_wide_windows(name, k, size):
    case = ZOO[name]
    check(case.with_sizes(**dict.fromkeys(("H", "W"), size), k=k))


# Found by `syno verify --random`: strides next to an extent of 1, with which torch's convolutions
# without oneDNN compute wrong gradients, or refuse to.
AMBIGUOUS = [
    Case(
        """syno operator 1
out [C, D]
in [C, D, k_0]
reduce k_2 -> r0
reduce k_0 -> r1
contract o0:keep r0:keep r1:keep
unfold o1 r0 -> c0
match o0 c0 r1
""",
        {"k_0": 2, "k_2": 3, "C": 2, "D": 1},
    ),
    Case(
        """syno operator 1
out [C, W, D]
in [W, D, C, k_0]
reduce k_2 -> r0
reduce k_1 -> r1
reduce k_0 -> r2
contract o0:keep r0:keep r1:keep r2:keep
unfold o1 r1 -> c0
unfold o2 r0 -> c1
match c0 c1 o0 r2
""",
        {"k_0": 2, "k_1": 1, "k_2": 1, "C": 2, "D": 2, "W": 1},
    ),
]


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_gradients_next_to_extents_of_one(case):
    check(case)
    # Without the copies they would be wrong: when torch mends this, the copies may go.
    copies = r"\n +(\w+) = \1\.clone\(memory_format=torch\.contiguous_format\)"
    plain, count = re.subn(copies, "", case.source())
    assert count > 0
    try:
        assert differences(case, plain)
    except RuntimeError as refused:
        assert "must be contiguous" in str(refused)


@pytest.mark.parametrize("sizes", [{"C_in": 64, "C_out": 64}, {"C_in": 96, "C_out": 128}])
def test_a_shear_is_a_convolution_of_one_tap_where_zeros_are_cheap(sizes):
    case = Case(ZOO["operator-1"].text, {"N": 2, "H": 6, "k": 3, "g": 32, "s": 2, **sizes})
    source = case.source()
    assert source.count("F.conv2d") == 2
    assert "diag_embed" in source
    check(case, source)


# What a wrong lowering would print: each must be caught.
MUTATIONS = [
    ("conv2d", r"padding=\(1, 1\)", "padding=(2, 0)"),
    ("conv2d", r"self\.w0, padding", "self.w0.transpose(2, 3), padding"),
    ("shift-conv", r"roll\(-1", "roll(1"),
    (
        "operator-1",
        r"F\.pad\(x, \(0, 0, 0, 0, 0, 0, 1, 1\)\)",
        "F.pad(x, (0, 0, 0, 0, 0, 0, 2, 0))",
    ),
    ("operator-1", r"narrow\(2, j, 5\)", "narrow(2, 2 - j, 5)"),
    ("operator-2", r"x = x\.roll\(-1, 3\)", "x = x.roll(-1, 4)"),
    ("grouped", r"permute\(3, 4, 0, 1, 2\)", "permute(3, 4, 0, 2, 1)"),
    ("dilated", r"pad\(x, \(4, 2, 4, 2\)\)", "pad(x, (3, 3, 3, 3))"),
    ("pooled-conv", r"x\.sum\(", "x.mean("),
    ("pixel-shuffle", r"unflatten\(1, \(3, 2\)\)", "unflatten(1, (2, 3)).transpose(1, 2)"),
]


@pytest.mark.parametrize(("name", "pattern", "bug"), MUTATIONS)
def test_a_wrong_source_is_noticed(name, pattern, bug):
    source = ZOO[name].source()
    mutant, count = re.subn(pattern, lambda _: bug, source)
    assert count >= 1, source
    try:
        wrong = differences(ZOO[name], mutant)
    except RuntimeError as refused:  # torch does not accept the shapes
        wrong = [str(refused)]
    assert wrong, mutant


def test_weights_start_so_that_the_result_varies_as_the_input_does():
    sizes = {"N": 1, "C_in": 64, "C_out": 64, "H": 16, "W": 16, "g": 8, "s": 2, "k": 3}
    torch.manual_seed(0)
    for name in ("conv2d", "grouped", "depthwise-separable", "operator-1", "operator-2"):
        case = Case(ZOO[name].text, sizes)
        y = load(case.source())(torch.randn(8, 64, 16, 16))
        # Borders see fewer terms; the inner part shows the rule.
        assert 0.6 < y[..., 3:-3, 3:-3].var() < 1.6, name


def test_the_state_is_the_weights_and_a_wrong_shape_is_refused():
    module = load(ZOO["operator-1"].source())
    assert list(module.state_dict()) == ["w0", "w1"]
    assert not list(module.buffers())
    with pytest.raises(ValueError, match=r"expected x of shape \[n, 8, 5, 5\], got \[1, 8, 5, 4\]"):
        module(torch.zeros(1, 8, 5, 4))
    with pytest.raises(ValueError, match=r"expected x of shape \[n, t, 4\], got \[5, 4, 1, 1\]"):
        load(ZOO["linear"].source())(torch.zeros(5, 4, 1, 1))


def test_a_formula_in_the_docstring_cannot_break_the_source():
    formula = 'y[o] = "sum" \\ of\n"""x[o]"""'
    module = load(ZOO["linear"].source(formula))
    assert formula.replace("\n", "\n    ") in type(module).__doc__


@pytest.mark.slow
def test_the_source_needs_torch_alone(tmp_path):
    path = tmp_path / "operator_1.py"
    path.write_text(ZOO["operator-1"].source())
    code = (
        "import sys, torch, operator_1\n"
        "y = operator_1.SynoOperator()(torch.zeros(2, 8, 5, 5))\n"
        "assert not any(name.split('.')[0] == 'syno' for name in sys.modules)\n"
        "print(list(y.shape))"
    )
    assert printed(code, tmp_path) == "[2, 12, 5, 5]\n"


def test_the_manifest_says_what_goes_in_and_out():
    case = ZOO["operator-1"]
    manifest = json.loads(_core.emit_pytorch(_core.Plan(case.operator, case.binding))[1])
    assert manifest["entry"] == "SynoOperator"
    assert [dim["free"] for dim in manifest["input"]] == [True, False, False, False]
    assert [dim["extent"] for dim in manifest["output"]] == [1, 12, 5, 5]
    assert [weight["shape"] for weight in manifest["weights"]] == _core.operator_shapes(
        case.operator, case.binding
    ).weights
    assert manifest["macs"] == _core.macs(case.operator, case.binding)
