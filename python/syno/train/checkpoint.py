"""Checkpoints: the whole state of a training in one file, written at once or not at all.

8 bytes   "SYNOCKP1"
32 bytes  BLAKE2b of what follows
content   torch.save of tensors, numbers, texts, lists and dicts (read with weights_only)
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from syno._util.errors import UserError

_MAGIC = b"SYNOCKP1"
_DIGEST = 32


class DamagedCheckpointError(UserError):
    """A file that is no checkpoint, or not all of one."""


class ForeignCheckpointError(UserError):
    """A checkpoint of another training."""


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Writes `content` beside `path` and moves it there. UserError where that cannot be written."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    data = buffer.getbuffer()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC)
                file.write(_digest(data))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise UserError(f"cannot write the checkpoint '{path}': {error.strerror}") from error


def read_checkpoint(path: Path) -> dict[str, Any] | None:
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
        raise DamagedCheckpointError(f"'{path}' is no checkpoint of a training")
    if _digest(content) != data[len(_MAGIC) : start]:
        raise DamagedCheckpointError(f"the checkpoint '{path}' is damaged or cut off")
    try:
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        raise DamagedCheckpointError(f"cannot read the checkpoint '{path}': {error}") from error
    assert isinstance(loaded, dict)
    return loaded


def signature(
    net: nn.Module,
    fidelity: dict[str, Any],
    groups: list[list[float]],
    seed: int,
    fingerprint: str,
    world: int,
) -> dict[str, Any]:
    """What a training is of: one checkpoint goes on only with the same. The network is known by
    its structure, the code of its operators and its initial weights.

    groups: of parameters that are updated alike: how many, their decay and scale of the rate.
    """
    digest = hashlib.blake2b(repr(net).encode(), digest_size=16)
    for module in net.modules():
        digest.update(str(getattr(module, "source_hash", "")).encode())
    for key, value in net.state_dict().items():
        digest.update(f"{key} {value.dtype} {list(value.shape)}".encode())
        flat = value.detach().cpu().contiguous().flatten()
        if flat.numel():
            digest.update(flat.view(torch.uint8).numpy().data)
    return {
        "network": digest.hexdigest(),
        "fidelity": fidelity,
        "groups": groups,
        "seed": seed,
        "data": fingerprint,
        "processes": world,
    }


def check_signature(path: Path, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """ForeignCheckpointError that names what differs."""
    differing = [key for key in wanted if found.get(key) != wanted[key]]
    if not differing:
        return
    said = {
        "network": "another network, or one with other initial weights",
        "groups": "other rates or decays of parameters",
    }
    parts = []
    for key in differing:
        text = said.get(key, f"another {key}")
        if key == "fidelity" and isinstance(found.get(key), dict):
            text += _changes(found[key], wanted[key])
        elif key not in said:
            text += f" ({found.get(key)}, now {wanted[key]})"
        parts.append(text)
    raise ForeignCheckpointError(
        f"the checkpoint '{path}' is of another training\n"
        f"  it has {'; '.join(parts)}\n"
        "  what to do: give this training a checkpoint of its own, or remove that one"
    )


def _changes(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """` (epochs 3, now 4; recipe.batch 8, now 16)`."""
    flat = [_flat(content) for content in (found, wanted)]
    parts = [
        f"{key} {flat[0].get(key)}, now {flat[1].get(key)}"
        for key in dict.fromkeys([*flat[0], *flat[1]])
        if flat[0].get(key) != flat[1].get(key)
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _flat(content: dict[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[before + key] = value
    return flat


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
