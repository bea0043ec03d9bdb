"""syno._core: values cross the border unchanged, errors keep their text, the lock is released."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from syno import _core

CONV = """syno operator 1
out [C_out: unordered, H]
in [C_in: unordered, H]
reduce C_in -> r0
reduce k -> r1
contract o0:drop r0:keep r1:keep
unfold o1 r1 -> c0
match r0 c0
"""
SMALL = {"C_in": 2, "C_out": 3, "H": 5, "k": 3}


def test_an_operator_crosses_as_text():
    operator = _core.Operator.parse(CONV)
    assert _core.Operator.parse(operator.text).text == operator.text
    assert operator == _core.Operator.parse(CONV)
    assert hash(operator) == hash(_core.Operator.parse(CONV))
    assert operator != "text"
    assert len(operator.structure) == 32
    assert operator.primitives == {"contract": 1, "reduce": 2, "unfold": 1}
    assert operator.depth == 4


def test_errors_are_the_two_exceptions_with_their_text():
    assert issubclass(_core.UserError, Exception)
    assert issubclass(_core.InternalError, Exception)
    assert not issubclass(_core.InternalError, _core.UserError)
    with pytest.raises(_core.UserError, match="unknown coordinate 'q'"):
        _core.Operator.parse(CONV.replace("match r0", "match q"))
    with pytest.raises(_core.InternalError, match="inputs are not counted"):
        _core.Graph(["H"], [("H", False, False)]).apply("split", [0])


def test_arrays_may_be_of_any_layout_and_read_only():
    operator = _core.Operator.parse(CONV)
    x = np.arange(10.0).reshape(5, 2).T
    x.setflags(write=False)
    w = np.ones(_core.operator_shapes(operator, SMALL).weights[0])
    y = _core.interpret(operator, SMALL, np.ascontiguousarray(x), [w])
    assert y.dtype == np.float64
    assert y.shape == (3, 5)


@pytest.mark.slow
def test_results_own_their_memory():
    operator = _core.Operator.parse(CONV)
    w = np.ones(_core.operator_shapes(operator, SMALL).weights[0], dtype=np.int64)
    y = _core.interpret(operator, SMALL, np.ones((2, 5), dtype=np.int64), [w])
    before = y.copy()
    del operator, w
    gc.collect()
    noise = [np.full_like(y, 7) for _ in range(100)]
    assert (y == before).all()
    assert len(noise) == 100
    y[0, 0] = 5  # writable: it is the caller's own
    reference = weakref.ref(y)
    del y
    gc.collect()
    assert reference() is None


def test_the_interpreter_lets_other_threads_run():
    operator = _core.Operator.parse(CONV)
    binding = {"C_in": 64, "C_out": 64, "H": 1200, "k": 3}
    w = np.ones(_core.operator_shapes(operator, binding).weights[0])
    x = np.ones((64, 1200))
    seen = []
    done = threading.Event()

    def compute():
        _core.interpret(operator, binding, x, [w])
        done.set()

    worker = threading.Thread(target=compute)
    worker.start()
    while not done.is_set():
        seen.append(time.perf_counter())
        time.sleep(0.005)
    worker.join()
    assert len(seen) >= 3, "the main thread stood still while the interpreter worked"


def test_option_descriptors_name_every_limit():
    descriptors = _core.option_descriptors()
    limits = _core.preset_source("paper/resnet18")["limits"]
    assert [d["name"] for d in descriptors] == list(limits)
    kinds = {"int": int, "float": float, "bool": bool}
    for descriptor in descriptors:
        assert isinstance(descriptor["default"], kinds[descriptor["type"]])
        assert descriptor["doc"]


def test_random_operators_are_the_same_every_time():
    for seed in range(20):
        first, binding = _core.random_operator(seed)
        second, again = _core.random_operator(seed)
        assert (first.text, binding) == (second.text, again)
    texts = {_core.random_operator(seed)[0].text for seed in range(20)}
    assert len(texts) > 15


def test_draws_are_a_permutation():
    draws = _core.UniformSamples(50, 3)
    order = [draws.at(n) for n in range(50)]
    assert sorted(order) == list(range(50))
    assert order != list(range(50))
    assert [_core.UniformSamples(50, 3).at(n) for n in range(50)] == order


def test_a_callback_can_end_an_enumeration_and_its_exception_comes_through():
    source = _core.preset_source("paper/readme")
    limits = {name: float(value) for name, value in source["limits"].items()} | {"max_depth": 9.0}
    spec = _core.Specification(
        source["input"],
        source["output"],
        source["primary"],
        source["coefficient"],
        [{"H": 8, "W": 8}],
        [],
        [],
        [],
        [],
        limits,
    )
    calls = []

    def stop(*progress):
        calls.append(progress)
        return False

    found = _core.enumerate(spec, _core.RuleSet(), 0, 100_000, progress=stop)
    assert len(calls) == 1
    assert not found.exhausted

    def fail(*progress):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        _core.enumerate(spec, _core.RuleSet(), 0, 100_000, progress=fail)
