"""The activations of the slots of a network, within a limit of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, first, samples_in
from syno.adaptation.activations import Activations, bytes_of, record

_MIB = 1 << 20


class Recorder(Mapping[str, Activations]):
    """Activations by slot, recorded when they are asked for.

    Those of all slots are kept together if they need at most `most_bytes`. Otherwise they stream:
    the network runs once more for each slot that is asked for, and only the activations of this
    slot are kept, of as many samples as the limit allows. If the memory of the machine does not
    suffice either, the limit is halved.

    net: makes the network. inputs: makes batches of its inputs.
    """

    def __init__(
        self,
        net: Callable[[], nn.Module],
        inputs: Callable[[], list[Inputs]],
        most_bytes: int,
    ) -> None:
        self._net, self._inputs, self._most = net, inputs, most_bytes
        self._need: dict[str, int] | None = None
        self._count = 0
        self._kept: dict[str, Activations] = {}

    def __getitem__(self, slot: str) -> Activations:
        if slot not in self._kept:
            self._kept = {}
            self._kept = self._recorded(slot)
        return self._kept[slot]

    def __iter__(self) -> Iterator[str]:
        return iter(self._needs())

    def __len__(self) -> int:
        return len(self._needs())

    @property
    def streams(self) -> bool:
        """Whether one slot is kept at a time."""
        return sum(self._needs().values()) * self._count > self._most

    @property
    def samples(self) -> int:
        """The number of samples of which the activations of every slot can be kept; at least 1."""
        largest = max(self._needs().values())
        return max(min(self._count, self._most // largest), 1)

    def _needs(self) -> dict[str, int]:
        if self._need is None:
            batches = self._inputs()
            self._count = sum(samples_in(batch) for batch in batches)
            self._need = bytes_of(self._net(), first(batches[0], 1))
        return self._need

    def _recorded(self, slot: str) -> dict[str, Activations]:
        need = self._needs()[slot]
        while True:
            if need > self._most:
                raise UserError(
                    f"the activations of one sample in slot '{slot}' need {need / _MIB:.1f} MiB\n"
                    f"  expected: at most {self._most / _MIB:.1f} MiB\n"
                    "  what to do: raise the limit (--activation-mib), or use smaller inputs"
                )
            only = [slot] if self.streams else list(self._needs())
            try:
                found = record(self._net(), self._inputs(), most_bytes=self._most, only=only)
                break
            except (MemoryError, RuntimeError) as error:
                if not _out_of_memory(error):
                    raise
                if self._most // 2 < need:
                    raise UserError(
                        f"the memory does not suffice for the activations of slot '{slot}', of "
                        f"which one sample needs {need / _MIB:.1f} MiB\n"
                        "  what to do: a machine with more memory, or smaller inputs"
                    ) from error
                self._most //= 2
        for name, each in found.items():
            if not bool(each.x.isfinite().all() and each.y.isfinite().all()):
                raise UserError(
                    f"the activations of slot '{name}' are not finite numbers\n"
                    "  what to do: look for NaN or infinite values in the training data, and use "
                    "weights of\n              a training that did not diverge"
                )
        return found


def _out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed: torch raises a RuntimeError then."""
    text = str(error).lower()
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        "memory" in text and ("alloc" in text or "not enough" in text)
    )
