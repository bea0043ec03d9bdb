"""Operators that read later positions: what the access map says is what outputs depend on."""

from __future__ import annotations

import re

import numpy as np
import pytest

from syno import Operator, Sampler, Specification, UserError, _core
from syno.operators import zoo

# A convolution over positions, [T, C] -> [T, C].
CENTRED = """syno operator 1
out [T, C]
in [T, C]
reduce C -> r0
reduce k -> r1
contract o1:drop r0:keep r1:keep
unfold o0 r1 -> c0
match c0 r0
"""
CAUSAL = CENTRED.replace("unfold o0 r1", "unfold o0 r1 causal")
# A projection of positions in another order.
VIEWED = """syno operator 1
out [T, C]
in [T, C]
reduce C -> r0
contract o1:drop r0:keep
{}
match {} r0
"""


def latest_leak(
    op: Operator, binding: dict[str, int], output_dim: int, input_dim: int
) -> tuple[int, int] | None:
    """(output position, input position after it) by the definition.

    All weights are 1 and the input is 1 at one position alone: terms cannot cancel, so an output
    differs from 0 exactly where some unmasked term reads that position.
    """
    shapes = op.shapes(binding)
    weights = [np.ones(shape, dtype=np.int64) for shape in shapes.weights]
    for place in range(shapes.input[input_dim] - 1, 0, -1):
        x = np.zeros(shapes.input, dtype=np.int64)
        np.moveaxis(x, input_dim, 0)[place] = 1
        y = op.interpret(binding, x, weights)
        rows = np.moveaxis(y, output_dim, 0).reshape(shapes.output[output_dim], -1)
        read = np.flatnonzero(rows.any(axis=1))
        if len(read) and read[0] < place:
            return int(read[0]), place
    return None


def check_all_dimensions(op: Operator, binding: dict[str, int]) -> tuple[int, int]:
    """(pairs of dimensions that leak, pairs) after comparing each with the definition."""
    leaks = pairs = 0
    for output_dim in range(len(op.output)):
        for input_dim in range(len(op.input)):
            said = op.reads_future(binding, output_dim, input_dim)
            found = latest_leak(op, binding, output_dim, input_dim)
            place = f"{op.text}{binding}, dimensions {output_dim} and {input_dim}: {said}, {found}"
            assert (said is None) == (found is None), place
            leaks += said is not None
            pairs += 1
    return leaks, pairs


@pytest.mark.parametrize("name", zoo.names())
def test_operators_of_the_zoo_read_what_the_definition_reads(name):
    check_all_dimensions(zoo.load(name), zoo.binding(name))


def test_random_operators_read_what_the_definition_reads():
    leaks = pairs = 0
    for seed in range(250):
        core, binding = _core.random_operator(
            seed,
            batch=seed % 2 == 0,
            unordered=0.3 if seed % 5 == 0 else 0.0,
            causal_windows=0.6 if seed % 3 == 0 else 0.0,
            max_terms=3000,
        )
        found = check_all_dimensions(Operator(core), binding)
        leaks, pairs = leaks + found[0], pairs + found[1]
    assert 0.2 * pairs < leaks < 0.95 * pairs  # both answers are met often


def test_operators_of_the_papers_space_read_what_the_definition_reads():
    # Windows of 3 and rotations on a few positions, and the setting's limits otherwise.
    specification = Specification.preset("paper/gpt2").with_changes(
        bindings=["seq_len=7, H_in=32"],
        multiplicities=[1],
        min_weight_params=16,
        max_shifts=1,
        min_unfold_ratio=1.3,
        coefficient=["k_1=3: 3", "t=3: 3", "g=4: 3"],
    )
    operators = Sampler.from_specification(specification, max_nodes=4000).operators
    random = np.random.default_rng(1)
    binding = {"N": 1, "seq_len": 7, "H_in": 32}
    leaks = 0
    chosen = random.permutation(len(operators))[:60]
    for number in chosen:
        op = operators[number]
        said = op.reads_future(binding)
        assert (said is None) == (latest_leak(op, binding, 1, 1) is None), (op.text, said)
        leaks += said is not None
    assert 0 < leaks < len(chosen)


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        (CENTRED, True),
        (CAUSAL, False),
        (VIEWED.format("shift o0 1 -> c0", "c0"), True),
        # The position before, but the first output reads the last input.
        (VIEWED.format("shift o0 -1 -> c0", "c0"), True),
        (VIEWED.format("merge o0 k -> c0 c1\nsplit c1 c0 -> c2", "c2"), True),
        (VIEWED.format("merge o0 k -> c0 c1\nsplit c0 c1 -> c2", "c2"), False),
    ],
)
def test_what_leaks_is_said_with_both_positions(text, leaks):
    op = Operator.from_text(text)
    binding = {"T": 12, "C": 2, "k": 3}
    said = op.reads_future(binding, 0, 0)
    assert (latest_leak(op, binding, 0, 0) is not None) == leaks
    if not leaks:
        assert said is None
        return
    assert said is not None
    positions = re.match(
        r"output position (\d+) of dimension 0 reads input position (\d+) of", said
    )
    assert positions is not None
    assert int(positions[1]) < int(positions[2]) < 12


def test_a_long_sequence_of_a_large_model_is_decided():
    projection = zoo.load("gpt2-projection")
    binding = {"N": 1, "T": 2048, "H": 768, "g": 32, "k": 2, "t": 3}
    assert projection.reads_future(binding) is None
    assert Operator.from_text(CAUSAL).reads_future({"T": 2048, "C": 768, "k": 5}, 0, 0) is None
    said = Operator.from_text(CENTRED).reads_future({"T": 2048, "C": 768, "k": 5}, 0, 0)
    assert said is not None
    assert "cannot decide" not in said


def test_dimensions_that_are_not_there_are_refused():
    op = zoo.load("linear")
    with pytest.raises(UserError, match="'output_dim' is an integer of at most 2, got 3"):
        op.reads_future(zoo.binding("linear"), 3, 1)
    with pytest.raises(UserError, match="'input_dim' is an integer of at least 0, got -1"):
        op.reads_future(zoo.binding("linear"), 1, -1)
    with pytest.raises(UserError, match="gives no value to"):
        op.reads_future({})
