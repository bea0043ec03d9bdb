"""Valid inputs made invalid: a mutation is a function of its random stream."""

from __future__ import annotations

import copy
import math
import random
import re
from collections.abc import Callable
from typing import Any

_HUGE = ("0", "-1", "1", str(2**31), str(2**63), str(2**64), "1" + "0" * 400, "9" * 5000, "1e400")
_NUMBERS = (*_HUGE, "nan", "NaN", "inf", "-Infinity", "1e-400", "0x10", "1_000", "٣", "--1", "1/2")
_TOKENS = (
    *("\ud800", "\udfff", "\0", "\x1b[31m", "\x07", "\u202e", "\u2028", "\ufeff", "é", "𝒳", "ß"),
    *("self", "cls", "__init__", "__class__", "name", "None", "true", "[", "]", "{", "}", "(", ")"),
    *(",", ":", ";", "=", "==", '"', "'", "\\", "/", "..", "../", "%s", "%(x)s", "{0}", "$HOME"),
    *("\n", "\r\n", "\t", " ", "-", "--", "*", "^", "^-1", "^64", "*k^-1", "#", "[/]", "[red]"),
    *("<img src=x onerror=alert(1)>", "'; DROP TABLE study; --", "file:///etc/passwd", "|", "&"),
)
_LONG = (
    "x" * 300,
    "x" * 100_000,
    "[" * 20_000,
    '{"a":' * 20_000,
    "(" * 5000,
    "-" * 5000,
    "1*" * 999,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NAME = re.compile(r"[A-Za-z_]\w*")

_VALUES: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, 2**63, 2**64, 10**400, 10**5000, -(10**400)),
    *(0.0, -0.5, 1e308, math.nan, math.inf, -math.inf, 1e-320),
    *("", "\ud800", "\0", "self", "x" * 300, "1", "NaN", "\x1b[31m", b"bytes", b"\xff"),
    *(None, True, False, [], {}, (), [[]], {"self": 1}, {"": 0}, {1: 2}, [None], object, 1j),
)


def _deep(depth: int = 3000) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def mutated_text(text: str, rng: random.Random) -> str:
    """`text` with one to three changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice(_TEXT_CHANGES)(text, rng)
    return text


def _insert(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(_TOKENS) + text[at:]


def _insert_long(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(_LONG) + text[at:]


def _flip(text: str, rng: random.Random) -> str:
    if not text:
        return text
    at = rng.randrange(len(text))
    return text[:at] + chr(ord(text[at]) ^ (1 << rng.randrange(7))) + text[at + 1 :]


def _cut(text: str, rng: random.Random) -> str:
    a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:a] + text[b:] if rng.random() < 0.5 else text[: max(b, 1)]


def _other_number(text: str, rng: random.Random) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return _insert(text, rng)
    at = rng.choice(found)
    return text[: at.start()] + rng.choice(_NUMBERS) + text[at.end() :]


def _other_name(text: str, rng: random.Random) -> str:
    found = list(_NAME.finditer(text))
    if not found:
        return _insert(text, rng)
    at, other = rng.choice(found), rng.choice(found)
    new = other[0] if rng.random() < 0.6 else rng.choice(_TOKENS)
    return text[: at.start()] + new + text[at.end() :]


def _lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[a]
        case 1:
            lines.insert(b, lines[a])
        case 2:
            lines[a], lines[b] = lines[b], lines[a]
        case _:
            lines[a:a] = [lines[b]] * rng.choice((2, 50))
    return "\n".join(lines)


_TEXT_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    *(_insert, _insert, _flip, _flip, _cut, _other_number, _other_number, _other_number),
    *(_other_name, _other_name, _lines, _lines, _insert_long),
)


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to three changes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(found) + 1)
        match rng.randrange(6):
            case 0 | 1 if found:
                found[min(at, len(found) - 1)] ^= 1 << rng.randrange(8)
            case 2:
                del found[at : at + rng.choice((1, 4, 1000))]
            case 3:
                found[at:at] = rng.randbytes(rng.choice((1, 4, 64)))
            case 4:
                word = rng.choice((b"\0" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0\0\0\x80"))
                found[at : at + len(word)] = word
            case _:
                text = found.decode("latin-1")
                changed = rng.choice(_TEXT_CHANGES)(text, rng)
                found = bytearray(changed.encode("latin-1", "replace"))
    return bytes(found)


def mutated_data(value: Any, rng: random.Random) -> Any:
    """JSON-like data with one to three changes somewhere in it."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _changed_somewhere(value, rng)
    if rng.random() < 0.01:
        name = rng.choice([*value]) if isinstance(value, dict) and value else None
        value = _deep() if name is None else value | {name: _deep()}
    return value


def _changed_somewhere(value: Any, rng: random.Random) -> Any:
    inside = isinstance(value, (dict, list)) and len(value) > 0
    if not inside or rng.random() < 0.15:
        return _other_value(value, rng)
    if isinstance(value, dict):
        name = rng.choice(list(value))
        match rng.randrange(6):
            case 0:
                del value[name]
            case 1:
                value[rng.choice(("self", "cls", "\ud800", "", "name", 1, None, "x" * 300))] = (
                    value[name]
                )
            case 2:
                value[mutated_text(str(name), rng)] = value.pop(name)
            case _:
                value[name] = _changed_somewhere(value[name], rng)
        return value
    at = rng.randrange(len(value))
    match rng.randrange(7):
        case 0:
            del value[at]
        case 1:
            value.insert(at, copy.deepcopy(rng.choice(value)))
        case 2:
            other = rng.randrange(len(value))
            value[at], value[other] = value[other], value[at]
        case _:
            value[at] = _changed_somewhere(value[at], rng)
    return value


def _other_value(value: Any, rng: random.Random) -> Any:
    if isinstance(value, str) and rng.random() < 0.6:
        return mutated_text(value, rng)
    return rng.choice(_VALUES)


def smaller(value: Any, depth: int = 8) -> list[Any]:
    """Values with a part of `value` left out, the largest parts first: what a shrinker tries."""
    if depth == 0:
        return []
    if isinstance(value, (str, bytes)):
        found = []
        size = len(value) // 2
        while size:
            found += [value[:i] + value[i + size :] for i in range(0, len(value), size)][:60]
            size //= 2
        return found
    if isinstance(value, dict):
        fewer = [{k: v for k, v in value.items() if k is not name} for name in value]
        return fewer + [
            value | {name: part} for name in value for part in smaller(value[name], depth - 1)
        ]
    if isinstance(value, (list, tuple)):
        kind = type(value)
        fewer = [value[:i] + value[i + 1 :] for i in range(len(value))]
        return fewer + [
            value[:i] + kind([part]) + value[i + 1 :]
            for i in range(len(value))
            for part in smaller(value[i], depth - 1)
        ]
    return []
