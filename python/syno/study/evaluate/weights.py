"""The trained weights of a study: one file for each trial that is kept.

A file holds the tensors of the network with its operator (safetensors), and as metadata how the
network is built. Functions that write or read tensors need torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

from syno._util.declaration import restored
from syno._util.errors import UserError
from syno.options import WEIGHTS_LIMIT, TrainOptions
from syno.runs.cache_folder import private_cache
from syno.runs.files import replacing, target_name
from syno.store import Store, StudyRecord
from syno.store.records import BASELINE, digest

if TYPE_CHECKING:
    import torch
    from torch import nn

_ENDING = ".safetensors"
# The first 128 bits of a key in hexadecimal, which distinguish the operators of a study.
_DIGITS = 32
_FORMAT = "syno weights 1"


class InputForm(TypedDict):
    """One of several inputs: its shape with a batch of 1, its type, and where it is no real number,
    the values of an example: a network may fail on others, such as a mask without any element."""

    shape: list[int]
    type: str
    values: list[int] | None


class NetworkShape(TypedDict):
    """How a network is built: its input without the batch, its classes, and its tokens.

    inputs: of a network of several.
    """

    input_shape: list[int]
    classes: int | None
    vocabulary: int | None
    inputs: NotRequired[list[InputForm]]


class Weights:
    """A folder of trained weights, each file named by the operator and the seed."""

    def __init__(self, folder: Path, limit: int = WEIGHTS_LIMIT) -> None:
        self.folder, self._limit = folder, limit

    @classmethod
    def of(cls, store: Store, study: StudyRecord) -> Weights | None:
        """Return the weights of a study; None for a store in memory, and if none are kept.

        The folder is `FILE.weights/NUMBER` beside a SQLite file. For a database server, it is in
        the cache folder of each machine.
        """
        limit = restored(TrainOptions, study.settings.get("training", {})).weights_limit
        if store.in_memory or limit == 0:
            return None
        if store.path is not None:
            beside = store.path.with_name(store.path.name + ".weights")
            return cls(beside.absolute() / str(study.id), limit)
        cache = private_cache("weights", "weights")
        return cls(cache / digest(store.name) / str(study.id), limit)

    def path(self, key: str | None, seed: int) -> Path:
        """Return the file of a trial; key: None for the original network."""
        return self.folder / file_name(key, seed)

    def keep(self, wanted: Callable[[], Sequence[tuple[str | None, int]]]) -> None:
        """Delete all files but the wanted ones, and of these the last ones beyond the limit.

        Args:
            wanted: returns pairs (key, seed), the most important first. It is called after the
                folder was listed, as in `Checkpoints.keep`.

        Raises:
            UserError: if a file cannot be deleted.
        """
        if not self.folder.is_dir():
            return
        left, kept = self._limit, set()
        try:
            listed = list(self.folder.iterdir())
            for key, seed in wanted():
                path = self.path(key, seed)
                size = path.stat().st_size if path.is_file() else 0
                if size <= left:
                    kept.add(path.name)
                    left -= size
            for file in listed:
                # Another process may be writing one that is wanted.
                if target_name(file.name) not in kept and file.name.endswith(_ENDING):
                    file.unlink(missing_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot delete weights in '{self.folder}': {error.strerror}"
            ) from error


def form_of(x: torch.Tensor) -> InputForm:
    """Describe one of several inputs by an example with a batch of 1."""
    values = None if x.is_floating_point() else [int(each) for each in x.flatten().tolist()]
    return {
        "shape": list(x.shape),
        "type": str(x.dtype).removeprefix("torch."),
        "values": values,
    }


def input_of(form: InputForm) -> torch.Tensor:
    """Return an input of a form: zeros, or the values of the example."""
    import torch

    kind = getattr(torch, form["type"])
    values = form["values"]
    if values is None:
        return torch.zeros(form["shape"], dtype=kind)
    return torch.tensor(values).reshape(form["shape"]).to(kind)


def file_name(key: str | None, seed: int) -> str:
    """Return the name of the file of a trial."""
    return f"{BASELINE if key is None else key[:_DIGITS]}-{seed}{_ENDING}"


def write_weights(path: Path, net: nn.Module, shape: NetworkShape) -> None:
    """Write the tensors of a network; the file is complete or absent.

    Layers in slots have the names that they have without slots, so that the file of the original
    network is one for that network.

    Raises:
        OSError: if it cannot be written.
    """
    from safetensors.torch import save_file

    from syno.network.placeholder import tensors_without_slots

    path.parent.mkdir(parents=True, exist_ok=True)
    # A copy of each: parameters that are shared or are views cannot be stored as such.
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in tensors_without_slots(net).items()
    }
    with replacing(path) as to:
        save_file(tensors, to, metadata={"format": _FORMAT, "network": json.dumps(shape)})


def read_shape(path: Path) -> NetworkShape:
    """Return how the network of a file is built.

    Raises:
        UserError: if the file cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
        if metadata.get("format") != _FORMAT:
            raise UserError(f"'{path}' holds no weights of a study\n  expected: '{_FORMAT}'")
        found: NetworkShape = json.loads(metadata["network"])
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise UserError(f"cannot read the weights '{path}': {error}") from error
    return found


def load_weights(path: Path, net: nn.Module) -> None:
    """Put the tensors of a file into a network.

    Raises:
        UserError: if the file cannot be read, and if it is of another network.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        net.load_state_dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise UserError(f"cannot read the weights '{path}': {error}") from error
    except RuntimeError as error:
        lines = str(error).strip().splitlines()
        raise UserError(
            f"the weights '{path.name}' are not those of the network {type(net).__name__}\n"
            f"  {lines[min(1, len(lines) - 1)].strip()}\n"
            "  expected: the network that the study was started with"
        ) from error
