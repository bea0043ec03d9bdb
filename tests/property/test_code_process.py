"""Processes that hold code: how they end, and that no function is taken for another one."""

from __future__ import annotations

import numpy as np
import pytest

from syno.codegen.emitters import WrongCodeError, code_process
from syno.codegen.emitters.code_process import CodeProcess

from . import ending_code

X = np.ones(3, np.float32)


@pytest.fixture
def code(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNO_TEST_NOTES", str(tmp_path))
    return CodeProcess("Endings", ending_code.__name__)


def test_functions_are_loaded_run_and_forgotten(code):
    double, triple = code.load(["2 * x", "3 * x"])
    assert double(X, []).tolist() == [2, 2, 2]
    assert triple(X, []).tolist() == [3, 3, 3]
    process, number = double._process, double._number
    del double
    with pytest.raises(WrongCodeError, match="KeyError"):
        code.run(process, number, X, [])


def test_what_fails_is_said_in_its_words_and_the_process_goes_on(code):
    with pytest.raises(WrongCodeError, match=r"^ZeroDivisionError: division by zero$"):
        code.load(["1 / 0 * x"])[0](X, [])
    with pytest.raises(WrongCodeError, match=r"^refused$"):
        code.load(["refuse()"])[0](X, [])
    assert code.load(["x"])[0](X, []).tolist() == [1, 1, 1]


def test_code_that_ends_its_process_is_wrong_and_no_other_function_takes_its_place(code):
    lost, ending = code.load(["2 * x", "end(11)"])
    with pytest.raises(WrongCodeError, match="the process that runs Endings ended with code -11"):
        ending(X, [])
    (other,) = code.load(["5 * x"])
    with pytest.raises(WrongCodeError, match="ran this code with Endings has ended"):
        lost(X, [])
    del lost, ending
    assert other(X, []).tolist() == [5, 5, 5]


def test_a_compiler_that_ends_once_is_asked_again(code):
    (function,) = code.load(["once: 2 * x"])
    assert function(X, []).tolist() == [2, 2, 2]
    with pytest.raises(WrongCodeError, match="ended with code -6"):
        code.load(["always: x"])


def test_code_that_hangs_is_killed(code, monkeypatch):
    (function, slow) = code.load(["2 * x", "sleep(60)"])
    assert function(X, []).tolist() == [2, 2, 2]
    monkeypatch.setattr(code_process, "_MOST_S", 0.5)
    with pytest.raises(WrongCodeError, match=r"Endings did not answer in 0\.5 s"):
        slow(X, [])
