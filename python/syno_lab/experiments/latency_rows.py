"""Latencies of many operators in many layers, in a file that is continued where it was stopped.

A line of the file is a JSON object: first the device and the settings, then for each kernel a line
before and a line after it was measured.
"""

from __future__ import annotations

import errno
import fcntl
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BufferedReader, FileIO
from pathlib import Path

import numpy as np
import torch

from syno._util import checks
from syno._util.errors import UserError
from syno._util.torch_threads import torch_threads
from syno.codegen.native import find_compiler
from syno.measure.kernels import bindings_of, compiled_runner, control_runner
from syno.measure.timing import NOISE, WARM_UP, Timing, interleaved
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.prediction import Device, LatencySample, Workload
from syno.space.space import Space
from syno_lab.experiments.kernels import zoo_operators

FORMAT = "syno latencies 1"
# Channels and size of the maps of 3x3 convolutions, by network.
NETWORKS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "resnet18": ((64, 56), (128, 28), (256, 14), (512, 7)),
    "resnet18@160": ((64, 40), (128, 20), (256, 10), (512, 5)),
    "resnet20": ((16, 32), (32, 16), (64, 8)),
    "wide-resnet28": ((64, 32), (128, 16), (256, 8)),
}
_PRESET, _DEPTH = "paper/resnet18", 8
# Kernels that the roofline allows no less than this are left out.
_LONGEST_S = 0.02
# Rounds of a kernel: at least, at most, and in about so many seconds.
_ROUNDS, _TIME_S = (7, 30), 0.25
# A kernel that ended the process so often is not measured again.
_ATTEMPTS = 2


@dataclass(frozen=True)
class KernelRow:
    """A kernel with its latency, or with the reason why it has none.

    family: the number of its primitives by name. network, layer: whose layer it is in. best_ms,
    median_ms: over the rounds. noisy: whether other processes used the machine.
    """

    operator: str
    text: str
    family: str
    network: str
    layer: str
    binding: dict[str, int]
    best_ms: float | None = None
    median_ms: float | None = None
    noisy: bool = False
    reason: str = ""

    @property
    def name(self) -> tuple[str, str, str]:
        """What it is called in the file."""
        return self.operator, self.network, self.layer

    def sample(self, device: Device) -> LatencySample:
        """Return its best time as a sample."""
        assert self.best_ms is not None
        kernel = Workload(Operator.from_text(self.text), self.binding)
        return LatencySample((kernel,), self.best_ms / 1e3, device, family=self.family)


@dataclass(frozen=True)
class KernelRows:
    """What a file holds. kernels: how many rows it will have when all is measured."""

    device: Device
    operators: int
    layers: int
    seed: int
    kernels: int
    rows: tuple[KernelRow, ...]

    @property
    def measured(self) -> list[KernelRow]:
        """The rows with a latency."""
        return [row for row in self.rows if row.best_ms is not None]

    @property
    def missing(self) -> list[KernelRow]:
        """The rows with a reason instead."""
        return [row for row in self.rows if row.best_ms is None]

    @property
    def pending(self) -> int:
        """The number of kernels that wait for their measurement."""
        return self.kernels - len(self.rows)


def family_of(operator: Operator) -> str:
    """Return the numbers of an operator's primitives: operators with the same are a family."""
    return " ".join(f"{name}={count}" for name, count in sorted(operator.primitives().items()))


def subjects(operators: int, layers: int, seed: int) -> list[KernelRow]:
    """Sample operators and layers: the zoo first, then operators of the paper's space.

    Args:
        operators: the number of operators.
        layers: the number of layers that each is measured in, of several networks in turn.
        seed: of the samples.
    """
    named = dict(list(zoo_operators("zoo").items())[:operators])
    if operators > len(named):
        space = Space.enumerate(Specification.preset(_PRESET), depth=_DEPTH)
        more = space.sample(operators - len(named), seed, stratify="primitives")
        named |= {f"sampled-{operator.key[:8]}": operator for operator in more}
    places = [(network, *layer) for network, each in NETWORKS.items() for layer in each]
    fitting = {
        (network, channels, size): bindings_of(named, channels, size, 1)
        for network, channels, size in places
    }
    found = []
    random = np.random.default_rng(seed)
    for name, operator in named.items():
        own = [place for place in places if name in fitting[place]]
        # One of each network before a second one of any.
        order = [own[n] for n in random.permutation(len(own))]
        seen: Counter[str] = Counter()
        turn = {}
        for place in order:
            turn[place] = seen[place[0]]
            seen[place[0]] += 1
        for place in sorted(order, key=lambda place: turn[place])[:layers]:
            network, channels, size = place
            binding = fitting[place][name]
            layer = f"{channels}@{size}"
            text, family = operator.text, family_of(operator)
            found.append(KernelRow(name, text, family, network, layer, binding))
    return found


def measure_rows(
    path: Path,
    *,
    operators: int,
    layers: int = 2,
    threads: int = 1,
    seed: int = 0,
    seconds: float | None = None,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> KernelRows:
    """Measure operators in layers, and add what is measured to a file.

    Args:
        path: the file; measurements that it has are not repeated.
        operators, layers, seed: as in `subjects`.
        threads: number of threads.
        seconds: after which no further kernel is begun; None for no limit.
        progress: called with (completed kernels, all kernels, description).

    Raises:
        UserError: the file is of other settings or of another device, another process writes it,
            or there is no compiler.
    """
    checks.whole("'operators'", operators, 1)
    checks.whole("'layers'", layers, 1)
    wanted = subjects(operators, layers, seed)
    began = time.monotonic()
    with _locked(path) as file:
        known = _read(path, file)
        if known is None:
            device = Device.here(threads)
            head = {"format": FORMAT, "device": device.to_json(), "operators": operators}
            _add(file, {**head, "layers": layers, "seed": seed, "kernels": len(wanted)})
        else:
            device = known.device
            _check_same(path, known, operators, layers, threads, seed)
        started, done = _progress(path)
        find_compiler().precompile()
        with torch_threads(threads), torch.inference_mode():
            for row in wanted:
                if row.name in done:
                    continue
                if seconds is not None and time.monotonic() - began > seconds:
                    break
                if started[row.name] >= _ATTEMPTS:
                    found = KernelRow(**asdict(row) | {"reason": "it ended the process"})
                else:
                    _add(file, {"started": list(row.name)})
                    found = _measured(row, device)
                _add(file, asdict(found))
                done.add(row.name)
                shown = f"{found.best_ms:.3f} ms" if found.best_ms is not None else found.reason
                progress(len(done), len(wanted), f"{row.operator} in {row.layer}: {shown}")
    return read_rows(path)


def read_rows(path: Path) -> KernelRows:
    """Read a file of `measure_rows`.

    Raises:
        UserError: it is no such file.
    """
    with checks.from_file("cannot read the latencies", path), path.open("rb") as file:
        found = _read(path, file)
    if found is None:
        raise UserError(f"'{path}' holds no latencies")
    return found


def _measured(row: KernelRow, device: Device) -> KernelRow:
    operator = Operator.from_text(row.text)
    given = asdict(row)
    try:
        plan = operator.numbered_plan(row.binding, 1)
        floor = device.roofline.floor(plan.macs, 0)
        if floor > _LONGEST_S:
            return KernelRow(**given | {"reason": f"it takes more than {floor * 1e3:.0f} ms"})
        runner = compiled_runner(row.operator, operator, row.binding, device.threads)
    except UserError as error:  # such as wrong code, which is not timed
        return KernelRow(**given | {"reason": str(error).partition("\n")[0]})
    calls = [runner.call, control_runner().call]
    for call in calls:
        for _ in range(WARM_UP):
            call()
    (own, control) = interleaved(calls, _ROUNDS[0])
    more = int(_TIME_S / (2 * (min(own) + min(control)))) - _ROUNDS[0]
    if more > 0:
        others = interleaved(calls, min(more, _ROUNDS[1] - _ROUNDS[0]))
        own, control = own + others[0], control + others[1]
    timing = {
        "best_ms": round(min(own) * 1e3, 6),
        "median_ms": round(Timing.of(own).median_ms, 6),
        "noisy": Timing.of(control).spread > NOISE,
    }
    return KernelRow(**given | timing)


@contextmanager
def _locked(path: Path) -> Iterator[FileIO]:
    """Open a file that one process at a time writes; a line without an end is cut off."""
    with checks.from_file("cannot write the latencies", path):
        file = path.open("a+b", buffering=0)  # a full disk is met where it is written
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another process writes '{path}'\n"
                "  what to do: wait for it, or write another file with --out"
            ) from None
        file.seek(0)
        content = file.read()
        if not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)
        yield file


def _add(file: FileIO, line: Mapping[str, object]) -> None:
    with checks.from_file("cannot write the latencies", file.name):
        content = json.dumps(line).encode() + b"\n"
        if file.write(content) != len(content):
            raise OSError(errno.ENOSPC, "the disk is full")


def _lines(path: Path, file: FileIO | BufferedReader) -> list[dict[str, object]]:
    file.seek(0)
    content = file.read()
    found = []
    for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
        try:
            each = checks.parsed_json(line.decode())
            if not isinstance(each, dict):
                raise ValueError("it is no object")
        except ValueError as error:
            raise UserError(f"'{path}' is damaged in line {number}: {error}") from None
        found.append(each)
    return found


def _read(path: Path, file: FileIO | BufferedReader) -> KernelRows | None:
    """Return what a file holds; None if it is empty."""
    lines = _lines(path, file)
    if not lines:
        return None
    head = lines[0]
    if head.get("format") != FORMAT:
        raise UserError(
            f"'{path}' is no file of latencies\n"
            f'  expected: a first line with "format": "{FORMAT}"'
        )
    try:
        rows = tuple(_row(line) for line in lines[1:] if "started" not in line)
        device = Device.from_json(head["device"])
        counts = {
            name: checks.whole(f"'{name}'", head[name], 0)
            for name in ("operators", "layers", "seed", "kernels")
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"'{path}' is damaged: {error}") from None
    return KernelRows(device, rows=rows, **counts)


def _row(line: Mapping[str, object]) -> KernelRow:
    row = KernelRow(**line)  # type: ignore[arg-type]  # checked below
    Operator.from_text(row.text)
    if row.best_ms is not None and not (checks.is_number(row.best_ms) and row.best_ms > 0):
        raise ValueError(f"the time of {row.operator} is {checks.shown(row.best_ms)}")
    return row


def _progress(path: Path) -> tuple[Counter[tuple[str, ...]], set[tuple[str, ...]]]:
    """Return how often each kernel was begun, and which are done."""
    started: Counter[tuple[str, ...]] = Counter()
    done: set[tuple[str, ...]] = set()
    with path.open("rb") as file:
        for line in _lines(path, file)[1:]:
            names = line.get("started")
            if isinstance(names, list):
                started[tuple(map(str, names))] += 1
            else:
                done.add((str(line["operator"]), str(line["network"]), str(line["layer"])))
    return started, done


def _check_same(
    path: Path, known: KernelRows, operators: int, layers: int, threads: int, seed: int
) -> None:
    """UserError where a file cannot be continued with these settings on this machine."""
    here = Device.name_here()
    pairs = {
        "operators": (known.operators, operators),
        "layers": (known.layers, layers),
        "seed": (known.seed, seed),
        "threads": (known.device.threads, threads),
        "device": (known.device.name, here),
    }
    for name, (there, given) in pairs.items():
        if there != given:
            raise UserError(
                f"'{path}' was begun with other settings\n"
                f"  expected: {name} {there}      got: {given}\n"
                "  what to do: give the same settings, or another file"
            )
