"""Checkpoints: the whole state of a training in one file, written at once or not at all.

8 bytes   "SYNOCKP1"
32 bytes  BLAKE2b of what follows
content   torch.save of tensors, numbers, texts, lists and dicts (read with weights_only)
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.json_types import Json, flattened
from syno.runs.files import PRIVATE, replacing

_MAGIC = b"SYNOCKP1"
_DIGEST = 32


class DamagedCheckpointError(UserError):
    """A file that is no checkpoint, or not all of one."""


class ForeignCheckpointError(UserError):
    """A checkpoint of another training."""


class Signature(TypedDict):
    """What a training is of."""

    network: str
    fidelity: Mapping[str, Json]
    groups: list[list[float]]
    seed: int
    data: str
    processes: int


class TrainingState(TypedDict):
    """What a checkpoint holds.

    place: the epoch and the step that come next; average: of weights, how many steps and the
    weights; counts: right, seen and drawn samples, and the greatest memory; seconds: since the
    start, and of them in training.
    """

    signature: Signature
    place: list[int]
    net: dict[str, torch.Tensor]
    optimizer: dict[str, object]
    scaler: dict[str, object]
    average: list[Any] | None
    random: dict[str, torch.Tensor]
    losses: list[float]
    curve: list[dict[str, Any]]
    counts: list[int]
    times: list[float]
    seconds: list[float]


def write_checkpoint(path: Path, content: TrainingState) -> None:
    """Writes `content` beside `path` and moves it there. UserError where that cannot be written."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    data = buffer.getbuffer()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, mode=PRIVATE) as to, to.open("wb") as file:
            file.write(_MAGIC)
            file.write(_digest(data))
            file.write(data)
    except OSError as error:
        raise UserError(f"cannot write the checkpoint '{path}': {error.strerror}") from error


def read_checkpoint(path: Path) -> TrainingState | None:
    """What was written; None where there is no file.

    DamagedCheckpointError for a file that is damaged, cut off or no checkpoint.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read the checkpoint '{path}': {error.strerror}") from error
    start = len(_MAGIC) + _DIGEST
    content = memoryview(data)[start:]
    if data[: len(_MAGIC)] != _MAGIC:
        raise DamagedCheckpointError(f"'{path}' is not a checkpoint of a training")
    if _digest(content) != data[len(_MAGIC) : start]:
        raise DamagedCheckpointError(f"the checkpoint '{path}' is damaged or cut off")
    try:
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        raise DamagedCheckpointError(f"cannot read the checkpoint '{path}': {error}") from error
    assert isinstance(loaded, dict)
    return cast(TrainingState, loaded)  # its digest says that `write_checkpoint` wrote it


def signature(
    net: nn.Module,
    fidelity: Mapping[str, Json],
    groups: list[list[float]],
    seed: int,
    fingerprint: str,
    world: int,
) -> Signature:
    """What a training is of: one checkpoint goes on only with the same. The network is known by
    its structure, the code of its operators and its initial weights.

    groups: of parameters that are updated alike: how many, their decay and scale of the rate.
    """
    digest = hashlib.blake2b(repr(net).encode(), digest_size=16)
    for module in net.modules():
        digest.update(str(getattr(module, "source_hash", "")).encode())
    for key, value in net.state_dict().items():
        digest.update(f"{key} {value.dtype} {list(value.shape)}".encode())
        digest.update(tensor_bytes(value))
    return {
        "network": digest.hexdigest(),
        "fidelity": fidelity,
        "groups": groups,
        "seed": seed,
        "data": fingerprint,
        "processes": world,
    }


def tensor_bytes(value: torch.Tensor) -> memoryview:
    """The bytes of a tensor's elements, for a digest."""
    flat = value.detach().cpu().contiguous().flatten()
    return flat.view(torch.uint8).numpy().data if flat.numel() else memoryview(b"")


def check_signature(path: Path, found: Signature, wanted: Signature) -> None:
    """ForeignCheckpointError that names what differs."""
    held: dict[str, object] = {**found}
    asked: dict[str, object] = {**wanted}
    differing = [key for key in asked if held.get(key) != asked[key]]
    if not differing:
        return
    said = {
        "network": "another network, or one with other initial weights",
        "groups": "other learning rates or weight decays of parameters",
    }
    parts = []
    for key in differing:
        text = said.get(key, f"another {key}")
        if key == "fidelity" and isinstance(held.get(key), dict):
            text += _changes(found["fidelity"], wanted["fidelity"])
        elif key not in said:
            text += f" ({held.get(key)}, now {asked[key]})"
        parts.append(text)
    raise ForeignCheckpointError(
        f"the checkpoint '{path}' belongs to another training\n"
        f"  it has {'; '.join(parts)}\n"
        "  what to do: give this training a checkpoint of its own, or remove that one"
    )


def _changes(found: Mapping[str, Json], wanted: Mapping[str, Json]) -> str:
    """` (epochs 3, now 4; recipe.batch 8, now 16)`."""
    flat = [flattened(content) for content in (found, wanted)]
    parts = [
        f"{key} {flat[0].get(key)}, now {flat[1].get(key)}"
        for key in dict.fromkeys([*flat[0], *flat[1]])
        if flat[0].get(key) != flat[1].get(key)
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _digest(data: memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
