"""Emitted C++ of random operators under the sanitizers, in every format, within thread limits."""

from __future__ import annotations

import pytest

from . import sanitized

pytestmark = pytest.mark.skipif(not sanitized.available(), reason="no GCC with sanitizers")


def test_random_operators_touch_their_own_memory_alone():
    assert sanitized.findings((*range(8), 107), 300) == []


@pytest.mark.slow
def test_a_thousand_random_operators_touch_their_own_memory_alone():
    assert sanitized.findings(range(1000, 2000), 4 * 3600) == []
