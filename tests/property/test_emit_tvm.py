"""What only TVM's emitter has: a batch of any size, and arithmetic that TVM does not spoil."""

from __future__ import annotations

import json

import numpy as np
import pytest

from syno import Operator, _core
from syno.codegen import emitters
from syno.codegen.emitters import Case

from .emitted import printed
from .loop_emitters import batches, check, needs, zoo

pytestmark = needs("tvm")
ZOO = zoo()


def loaded(source: str) -> dict:
    namespace: dict = {}
    exec(compile(source, "<emitted>", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("name", ["conv2d", "operator-1", "pixel-shuffle"])
def test_one_build_takes_any_batch_with_a_variable(name):
    import tvm
    from tvm import te

    case = ZOO[name]
    built = loaded(emitters.get("tvm").source(case))["build"](batch=te.var("batch", "int32"))
    for binding, x, weights in batches(case):
        y = tvm.runtime.tensor(np.zeros(case.operator.shapes(binding).output, np.float32))
        built["main"](*(tvm.runtime.tensor(array) for array in (x, *weights)), y)
        assert np.array_equal(y.numpy(), case.operator.interpret(binding, x, weights))


def test_nested_rotations_of_joined_dimensions_keep_their_offsets():
    # Behind // and %, TVM 0.27 takes 9*c + h for one loop and drops the second rotation.
    texts = [
        "syno operator 1\nout [A, B]\nin [A*B]\nsplit o0 o1 -> c0\nshift c0 3 -> c1\n"
        "shift c1 1 -> c2\ncontract c2:keep\nmatch c2\n",
        "syno operator 1\nout [A, B]\nin [A*B]\nshift o1 3 -> c0\nsplit o0 c0 -> c1\n"
        "shift c1 1 -> c2\ncontract c2:keep\nmatch c2\n",
    ]
    check("tvm", [Case(Operator.from_text(text), {"A": 7, "B": 9}) for text in texts])


@pytest.mark.slow
def test_the_source_needs_tvm_alone(tmp_path):
    (tmp_path / "op.py").write_text(emitters.get("tvm").source(ZOO["operator-1"]))
    code = (
        "import sys, op\n"
        "print(op.build(batch=2)['main'] is not None)\n"
        "print(any(name.split('.')[0] == 'syno' for name in sys.modules))"
    )
    assert printed(code, tmp_path) == "True\nFalse\n"


def test_the_manifest_says_that_the_batch_alone_is_free():
    case = ZOO["linear"]
    plan = _core.Plan(_core.Operator.parse(case.operator.text), case.binding)
    manifest = json.loads(_core.emit_tvm(plan)[1])
    assert (manifest["emitter"], manifest["entry"]) == ("tvm", "prim_func")
    assert [dim["free"] for dim in manifest["input"]] == [True, False, False]


def test_a_formula_in_the_docstring_cannot_break_the_source():
    case = ZOO["linear"]
    plan = _core.Plan(_core.Operator.parse(case.operator.text), case.binding)
    formula = 'y[o] = "sum" \\ of\n"""x[o]"""'
    function = loaded(_core.emit_tvm(plan, formula)[0])["prim_func"]
    assert formula.replace("\n", "\n    ") in function.__doc__
