"""Malformed operator text, as Python sees it: the line is named."""

import pytest

from syno import Operator, UserError
from syno.operators import zoo

GOOD = zoo.load("conv2d").text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"the text is empty"),
        ("syno operator 2\n", r"from a newer Syno(.|\n)*line 1"),
        ("hello\n", r"not a Syno text(.|\n)*in line 1"),
        (GOOD.replace("match", "mach"), r"unknown step 'mach'(.|\n)*line 10"),
        (GOOD[: GOOD.index("match")], r"the line 'match' is missing: the text is cut off"),
        (GOOD.replace("unfold o2", "unfold q2"), r"unknown coordinate 'q2'(.|\n)*line 8"),
        (GOOD.replace("reduce k -> r1", "reduce k^0 -> r1"), r"power of 'k'(.|\n)*line 5"),
        (GOOD + GOOD, "nothing may follow the line 'match'"),
    ],
)
def test_malformed_text_is_a_user_error_that_names_the_line(text, message):
    with pytest.raises(UserError, match=message):
        Operator.from_text(text)


def test_other_types_are_refused():
    with pytest.raises(UserError, match="text is a string, got bytes"):
        Operator.from_text(GOOD.encode())


def test_arrays_of_wrong_shape_or_type_are_named():
    conv, sizes = zoo.load("conv2d"), zoo.binding("conv2d")
    shapes = conv.shapes(sizes)
    import numpy as np

    x, w = np.ones(shapes.input), np.ones(shapes.weights[0])
    cases = [
        ((x[:, :2], [w]), r"x.*\n?(.|\n)*\[2, 4, 5, 7\]"),
        ((x, [w.T]), r"weight"),
        ((x, []), r"weight"),
        ((x, [w, w]), r"weight"),
        ((x, w), r"'weights' is a list with one array for each weight"),
        ((x.astype(complex), [w]), r"x does not contain numbers(.|\n)*got: complex128"),
        ((x, [np.array(["a"])]), r"weight 0 does not contain numbers"),
        (([[1], [2, 3]], [w]), r"x is not an array"),
        ((np.full(x.shape, 2**63, dtype=np.uint64), [w.astype(int)]), r"x holds integers beyond"),
    ]
    for (data, weights), message in cases:
        with pytest.raises(UserError, match=message):
            conv.interpret(sizes, data, weights)
    with pytest.raises(UserError, match="positive integer"):
        conv.interpret(sizes | {"k": 0}, x, [w])
