"""Emitted C++ of random operators under the sanitizers, in every format, within thread limits."""

from __future__ import annotations

import pytest

from . import sanitized

pytestmark = pytest.mark.skipif(not sanitized.available(), reason="no GCC with sanitizers")


# Each was wrong once: a table that ended before the last vectors, epilogues that codes and bfloat16
# went without.
ONCE_WRONG = (107, 1, 8)


def test_random_operators_touch_their_own_memory_alone():
    assert sanitized.findings((0,), 300) == []


@pytest.mark.slow
def test_a_thousand_random_operators_touch_their_own_memory_alone():
    assert sanitized.findings((*ONCE_WRONG, 2, *range(1000, 2000)), 4 * 3600) == []
