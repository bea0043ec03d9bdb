"""Values that an argument of a public function may be given by mistake, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from syno import UserError


def _raises(*_: object, **__: object) -> object:
    raise UserError("a function of the user")


def _x() -> torch.Tensor:
    return torch.ones(2, 3, 8, 8)


def _quantized() -> torch.Tensor:
    return torch.quantize_per_tensor(_x(), 0.1, 0, torch.qint8)


PLAIN: dict[str, Callable[[], Any]] = {
    **{
        str(value): lambda value=value: value
        for value in (
            *(None, True, 0, -1, 1, 2, 2**31, 2**63, 2**64),
            *(0.0, -0.5, 0.5, 1e308, math.nan, math.inf, -math.inf, 1j),
            *("2", "0.5x", "self", "a,b", "-", "..", "/proc/nowhere/a.b"),
        )
    },
    "400 digits": lambda: 10**400,
    "minus 400 digits": lambda: -(10**400),
    "400 digits in ms": lambda: "1" * 400 + "ms",
    "empty text": str,
    "space": lambda: " ",
    "NUL": lambda: "a\0b",
    "surrogate": lambda: "a\ud800",
    "escape": lambda: "\x1b[31m",
    "line ends": lambda: "a\nb",
    "long text": lambda: "x" * 5000,
    "huge digits": lambda: "9" * 5000,
    "bytes": lambda: b"a\xff",
    "path": lambda: Path("a\0b"),
    "folder": lambda: Path("."),
    "empty list": list,
    "empty dict": dict,
    "empty tuple": tuple,
    "list of None": lambda: [None],
    "list of lists": lambda: [[]],
    "list of texts": lambda: ["a", "\ud800"],
    "list of numbers": lambda: [1, -1, 2**70],
    "dict of numbers": lambda: {1: 2, "a": None},
    "dict of NUL": lambda: {"a\0": 1},
    "generator": lambda: iter([1]),
    "set": lambda: {1},
    "class": lambda: object,
    "object": object,
    "function": lambda: _raises,
}
TENSORS: dict[str, Callable[[], Any]] = {
    "tensor": _x,
    "scalar": lambda: torch.tensor(1.0),
    "no samples": lambda: _x()[:0],
    "doubles": lambda: _x().double(),
    "bfloat16": lambda: _x().bfloat16(),
    "half": lambda: _x().half(),
    "integers": lambda: _x().int(),
    "truth": lambda: _x() > 0,
    "complex": lambda: _x() + 1j,
    "conjugate": lambda: (_x() + 1j).conj(),
    "meta": lambda: _x().to("meta"),
    "sparse": lambda: _x().to_sparse(),
    "quantized": _quantized,
    "NaN tensor": lambda: _x() * math.nan,
    "gradient": lambda: _x().requires_grad_(),
    "array": lambda: _x().numpy(),
    "complex array": lambda: _x().numpy() + 1j,
    "array of objects": lambda: np.array([None, "a"]),
    "masked array": lambda: np.ma.masked_array(_x().numpy(), mask=True),
    "list of tensors": lambda: [_x()],
    "pair of tensors": lambda: (_x(), torch.zeros(2)),
    "dict of tensors": lambda: {"x": _x()},
    "dict of integer keys": lambda: {0: _x(), "a": _x()},
    "module": lambda: nn.ReLU(),
    "module without values": lambda: nn.Conv2d(3, 4, 3, device="meta"),
    "module in half": lambda: nn.Conv2d(3, 4, 3).half(),
    "module of sizes to come": lambda: nn.LazyConv2d(4, 3),
    "complex module": lambda: nn.Linear(4, 4, dtype=torch.complex64),
    "class of modules": lambda: nn.Conv2d,
}
HOSTILE = PLAIN | TENSORS
