"""Grids: which operators are tuned in which layers, on which devices and in which back ends.

A grid is read from a file, in the form of the paper's artifact (`targets` and `kernels_dirs`) or in
a shorter one (`targets`, `operators`, `models`, `layers`). `grid.schema.json` describes both.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno._util.threads import check_threads, usable_cores
from syno.tune.schema import check

EAGER, INDUCTOR, CPP, TRITON, TVM = "eager", "inductor", "cpp", "triton", "tvm"
BACK_ENDS = (EAGER, INDUCTOR, CPP, TRITON, TVM)
CPU = "cpu"
_BASELINE = "baseline"
_LAYER = re.compile(r"(\d{1,6})[x@](\d{1,6})")
# Fields of a grid's file: the operators, and what they are tuned in.
_PLACES = ("operators", "models", "layers", "networks")
_CORES = re.compile(r"-num-cores=(\d+)")


@dataclass(frozen=True)
class Target:
    """A device.

    name: in tables; device: "cpu" or "cuda"; threads: number of threads of CPU code; rpc_key: the
    key at a tracker; tracker: its address, None for work on this machine; secret: the file with
    its secret; target, target_host: as TVM writes them, None for the processor of the device;
    prefix: the folder of the results; baseline_dir: the folder of those of original layers below
    it.
    """

    name: str
    prefix: Path
    device: str = CPU
    threads: int = 1
    rpc_key: str | None = None
    target: str | None = None
    target_host: str | None = None
    baseline_dir: str = _BASELINE
    tracker: str | None = None
    secret: Path | None = None


@dataclass(frozen=True)
class TuningPlace:
    """Where operators are tuned: in the slots of a model, or in one layer of a size.

    operators: as they are named in the grid; from_folders: whether these are folders below the
    prefix of a target. whole: whether the network of the model is tuned and timed as a whole, not
    its slots one by one.
    """

    name: str
    operators: tuple[str, ...]
    model: str | None = None
    layer: tuple[int, int] | None = None
    from_folders: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Grid:
    """All that decides which tasks there are; see `grid.schema.json` for the fields of a file.

    root: the folder in which all results must lie; None for any place.
    """

    targets: tuple[Target, ...]
    places: tuple[TuningPlace, ...]
    back_ends: tuple[str, ...] = BACK_ENDS
    baseline: bool = True
    binding: Mapping[str, int] = field(default_factory=dict)
    batch: int = 1
    size: int | None = None
    trials: int = 64
    plans: int = 4
    rounds: int = 60
    root: Path | None = None


def schema() -> dict[str, Json]:
    """The JSON schema of a grid's file."""
    text = resources.files(__package__).joinpath("grid.schema.json").read_text(encoding="utf-8")
    found: dict[str, Json] = json.loads(text)
    return found


def read_grid(
    path: Path,
    *,
    tracker: str | None = None,
    secret: Path | None = None,
    outside: bool = False,
) -> Grid:
    """Read a grid from a JSON file.

    Args:
        path: the file. Folders in it are relative to its folder.
        tracker: the address of a tracker, for targets with an `rpc_key` that name none.
        secret: the file with the secret of that tracker.
        outside: whether results may lie outside of the folder of the file.

    Raises:
        UserError: the file cannot be read, or has a field or a value that is not known.
    """
    try:
        content = parsed_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read the grid '{path}'\n  expected: a JSON file      got: {error}"
        ) from error
    try:
        check(content, schema(), "the grid")
        found = _grid(content, path, tracker, secret)
        return dataclasses.replace(found, root=None if outside else path.parent)
    except UserError as error:
        raise UserError(f"{error}\n  in {path}") from error


def single_grid(
    operators: Sequence[str],
    *,
    models: Sequence[str] = (),
    layers: Sequence[str] = (),
    networks: Sequence[str] = (),
    out: Path,
    device: str = CPU,
    threads: int = 1,
    rpc_key: str | None = None,
    target: str | None = None,
    tracker: str | None = None,
    secret: Path | None = None,
    **options: object,
) -> Grid:
    """A grid of one target: this machine, or a device of a tracker.

    Args:
        operators: operators, as for `syno train`.
        models: models whose slots are tuned.
        layers: single layers as CHANNELSxSIZE.
        networks: models that are tuned as whole networks.
        out: the folder of the results.
        device: "cpu" or "cuda".
        threads: number of threads of CPU code.
        rpc_key, target, tracker, secret: as in `Target`.
        options: other fields of `Grid`.
    """
    check_threads(threads)
    if (rpc_key is None) != (tracker is None):
        raise UserError(
            "a device is named by its key and its tracker\n"
            "  expected: both --rpc-key KEY and --tracker HOST:PORT, or neither of them"
        )
    found = Target(rpc_key or "here", out, device, threads, rpc_key, target)
    found = dataclasses.replace(found, tracker=tracker, secret=secret)
    places = _places(operators, models, layers, networks)
    return Grid((found,), places, **options)  # type: ignore[arg-type]


def _grid(
    content: Mapping[str, object], path: Path, tracker: str | None, secret: Path | None
) -> Grid:
    given: dict[str, object] = dict(content)
    targets = _targets(given.pop("targets"), path, tracker, secret)  # type: ignore[arg-type]
    folders: Mapping[str, list[str]] = given.pop("kernels_dirs", {})  # type: ignore[assignment]
    lists: list[list[str]] = [given.pop(name, []) for name in _PLACES]  # type: ignore[misc]
    places = _places(*lists)
    places += tuple(
        TuningPlace(model, tuple(operators), model=model_name(model), from_folders=True)
        for model, operators in folders.items()
    )
    if not places:
        raise UserError(
            "the grid has no task\n  expected: kernels_dirs, or operators with models or layers"
        )
    if "back_ends" in given:
        given["back_ends"] = tuple(dict.fromkeys(given["back_ends"]))  # type: ignore[call-overload]
    return Grid(targets, places, **given)  # type: ignore[arg-type]


def _places(
    operators: Sequence[str],
    models: Sequence[str],
    layers: Sequence[str],
    networks: Sequence[str] = (),
) -> tuple[TuningPlace, ...]:
    if operators and not (models or layers or networks):
        raise UserError(
            "operators without a place to tune them in\n  expected: models or networks, such as "
            "resnet18, or layers, such as 64x56"
        )
    found = [TuningPlace(name, tuple(operators), model=model_name(name)) for name in models]
    for text in layers:
        size = layer_size(text)
        found.append(TuningPlace(f"{size[0]}x{size[1]}", tuple(operators), layer=size))
    found += [
        TuningPlace(f"{name}-network", tuple(operators), model=model_name(name), whole=True)
        for name in networks
    ]
    return tuple(found)


def layer_size(text: str) -> tuple[int, int]:
    """The channels and the size of a layer, such as 64x56."""
    found = _LAYER.fullmatch(text.strip())
    if found is None or 0 in (int(found[1]), int(found[2])):
        raise UserError(
            f"'{text}' is no layer\n  expected: channels and size, such as 64x56      got: {text}"
        )
    return int(found[1]), int(found[2])


def model_name(name: str) -> str:
    """The model that a grid means: the artifact writes resnet_18 and torchvision/resnet18."""
    from syno.network.models.catalogue import MODELS

    wanted = _plain(name)
    return next((each.name for each in MODELS if _plain(each.name) == wanted), name)


def _plain(name: str) -> str:
    return re.sub(r"[-_]", "", name.removeprefix("torchvision/"))


def _targets(
    given: Sequence[Mapping[str, object]], path: Path, tracker: str | None, secret: Path | None
) -> tuple[Target, ...]:
    found: list[Target] = []
    for number, each in enumerate(given):
        fields = dict(each)
        device = str(fields.get("device", CPU))
        name = fields.pop("name", None) or f"{fields.get('rpc_key', 'here')}-{device}"
        if name in {target.name for target in found}:
            raise UserError(
                f"two targets have the name '{name}'\n"
                f"  expected: another 'name' of targets[{number}]"
            )
        prefix = fields.pop("prefix", None) or f"{path.stem}-tuned/{name}"
        own = fields.pop("secret", None)
        if "rpc_key" in fields and tracker is not None and "tracker" not in fields:
            fields["tracker"] = tracker
        remote = "tracker" in fields
        if remote and "rpc_key" not in fields:
            raise UserError(
                f"the target '{name}' has a tracker and no 'rpc_key'\n"
                "  expected: the key of a device, as `syno device list` prints it"
            )
        threads = fields.pop("threads", None) or _cores(str(fields.get("target", "")), remote)
        check_threads(threads)
        found.append(
            Target(
                name=str(name),
                prefix=path.parent / str(prefix),
                threads=threads,  # type: ignore[arg-type]
                secret=secret if own is None else path.parent / str(own),
                **fields,  # type: ignore[arg-type]
            )
        )
    return tuple(found)


def _cores(target: str, remote: bool) -> int:
    """The number of cores of a CPU target, by default 1 on another machine; here at most those of
    this machine, which are the default."""
    found = _CORES.search(target)
    if remote:
        return 1 if found is None else max(1, int(found[1]))
    here = usable_cores()
    return here if found is None else max(1, min(int(found[1]), here))
