"""What entries share: their form, a folder, and valid values."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syno import Operator, Space, Specification
from syno.operators import zoo

SHAPES = ("[N, C_in: unordered, H]", "[N, C_out: unordered, H]")
PRIMARY, COEFFICIENT = ["C_in: 2", "C_out: 2", "H: 1", "N: 0"], ["k=3: 1", "s=2: 1"]
SIZES = {"C_in": 4, "C_out": 8, "H": 6}


@dataclass(frozen=True)
class Entry:
    """seeds: valid inputs; mutated: one of them changed; call: gives it to the entry; share: of so
    many inputs that others get, this entry gets one."""

    seeds: Callable[[], list[Any]]
    mutated: Callable[[Any, random.Random], Any]
    call: Callable[[Any], Any]
    share: int = 1


def folder() -> Path:
    """A folder of the worker's own."""
    own = Path(os.environ["SYNO_AUDIT_FOLDER"]) / f"{os.getpid()}"
    own.mkdir(exist_ok=True)
    return own


@functools.cache
def specification(**limits: Any) -> Specification:
    """A small one with a layer."""
    return Specification(
        *SHAPES, PRIMARY, COEFFICIENT, bindings=[SIZES], passed_through=[(0, 0)], **limits
    )


@functools.cache
def operators() -> tuple[Operator, ...]:
    """Those of the zoo, and some of a small space."""
    known = [zoo.load(name) for name in zoo.names()]
    space = Space.enumerate(specification(), depth=4, max_nodes=2000, threads=1)
    return (*known, *(space[i] for i in range(0, len(space), max(1, len(space) // 8))))
