"""What a kernel computes, under a key that is a digest of it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from syno._util import checks
from syno._util.arguments import checked, flag, instance
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.operators.specification import Binding
from syno.runs.cache_folder import private_cache, write_cached
from syno.runs.private_files import opened_folder, read_private

# Of the files in the cache, and a part of every key: another number, other kernels.
_FORMAT = 1
_DIGITS = 32


class Shapes(NamedTuple):
    """The extents of input, output and weights."""

    input: tuple[int, ...]
    output: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class KernelRecord:
    """An operator under a binding, as one kernel computes it.

    text: of the operator; binding: the value of every variable, the batch size as 1. channel: the
    dimension of the output that `channel` belongs to. input_order, output_order: the order in which
    the dimensions of x and y lie in memory, outermost first. plan, fold_weights: as in
    `Operator.numbered_plan`. tuning: choices of the schedule, as `emit_cpp` reads them; empty for
    those of the emitter's rules.
    """

    text: str
    binding: dict[str, int]
    channel: int
    input_order: tuple[int, ...]
    output_order: tuple[int, ...]
    plan: int
    fold_weights: bool
    tuning: str = ""

    @classmethod
    @checked(operator=instance(Operator), fold_weights=flag)
    def of(
        cls,
        operator: Operator,
        binding: Binding | str,
        *,
        channel: int = 1,
        input_order: Sequence[int] | None = None,
        output_order: Sequence[int] | None = None,
        plan: int = 1,
        fold_weights: bool = True,
        tuning: str = "",
    ) -> KernelRecord:
        """The record of these arguments, without those that the emitter checks."""
        values = operator.complete(binding)
        if operator.batch is not None:
            values[operator.batch] = 1
        operator.shapes(values)
        return cls(
            text=operator.text,
            binding=dict(sorted(values.items())),
            channel=checks.whole("'channel'", channel, 0, checks.MOST_INT),
            input_order=_order("input_order", input_order, len(operator.input)),
            output_order=_order("output_order", output_order, len(operator.output)),
            plan=checks.whole("'plan'", plan, least=1),
            fold_weights=bool(fold_weights),
            tuning=checks.text("'tuning'", tuning),
        )

    @functools.cached_property
    def key(self) -> str:
        """A digest of all fields, 32 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:_DIGITS]

    # Numbers alone are kept: a record lives as long as the process, which must not keep objects of
    # the extension until its very end.

    @property
    def operator(self) -> Operator:
        """The operator of `text`."""
        return Operator.from_text(self.text)

    @functools.cached_property
    def shapes(self) -> Shapes:
        """The extents of input, output and weights; dimension 0 is 1 where it is the batch."""
        shapes = self.operator.shapes(self.binding)
        weights = tuple(tuple(weight) for weight in shapes.weights)
        return Shapes(tuple(shapes.input), tuple(shapes.output), weights)

    @functools.cached_property
    def batched(self) -> bool:
        """Whether dimension 0 of x and y has any size."""
        return self.operator.batch is not None

    def to_json(self) -> str:
        """All fields, as `from_json` reads them."""
        fields = {"format": _FORMAT, **asdict(self)}
        if not self.tuning:  # keys of kernels without one are those of older versions
            del fields["tuning"]
        return json.dumps(fields, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> KernelRecord:
        """The record of such a text. ValueError, KeyError or TypeError for another one."""
        fields = json.loads(text)
        if not isinstance(fields, dict) or fields.pop("format") != _FORMAT:
            raise ValueError("it is not a record of this version of Syno")
        for order in ("input_order", "output_order"):
            fields[order] = tuple(fields[order])
        return cls(**fields)

    def store(self) -> None:
        """Keep the record in the cache under its key, for other processes."""
        path, text = _path(self.key), self.to_json()
        if _read(path) != text:
            write_cached(path, text, "what a kernel computes")

    @classmethod
    def stored(cls, key: str) -> KernelRecord:
        """The record of that key from the cache. UserError where there is none."""
        if len(key) == _DIGITS and set(key) <= set("0123456789abcdef"):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                record = cls.from_json(_read(_path(key)))
                if record.key == key:  # else it is damaged
                    return record
        raise UserError(
            f"the cache has no kernel of key {checks.shown(key)}\n"
            f"  in '{private_cache('kernels', 'kernels')}'\n"
            "  what to do: create it once with Kernel.of, with the same operator and options; or "
            "set SYNO_CACHE to the folder with which it was created"
        )


def _read(path: Path) -> str:
    """What is in the file; nothing where it is not there."""
    try:
        with opened_folder(path.parent) as folder:
            return read_private(path, folder).decode(errors="replace")
    except OSError:
        return ""


def _path(key: str) -> Path:
    return private_cache("kernels", "what kernels compute") / f"{key}.json"


def _order(name: str, order: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    if order is None:
        return tuple(range(rank))
    return tuple(
        checks.whole(f"a dimension of '{name}'", dim, 0, rank - 1)
        for dim in checks.listed(name, order, "dimensions")
    )
