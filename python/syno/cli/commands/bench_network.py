"""`syno bench network`: whole networks in several inference engines."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.cli.calibration import Images, ScoreOptions
from syno.cli.results import print_results
from syno.store.environment import capture_environment

if TYPE_CHECKING:
    import torch

    from syno.engines.compare import EngineComparison
    from syno.engines.engine import Engine


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    model: str = options.model("resnet18")
    model_options: Mapping[str, int | str] = options.model_options()
    size: int | None = options.image_size()
    operators: str = option(
        "Operators in the slots of the model, separated by commas, as for `syno train`; `none` is "
        "the original network.",
        "none,operator-1,operator-2",
        metavar="NAMES",
    )
    binding: str | None = options.operator_sizes()
    engines: str = option(
        "Inference engines, separated by commas; `all` means all that are installed.",
        "",
        unset="all float32 engines that are installed",
        metavar="NAMES",
    )
    weights: str | None = options.weights()
    score: ScoreOptions = group(ScoreOptions)
    schedules: Path | None = option(
        "Folder of results of `syno tune` with schedules of TVM, which the engine tvm uses.",
        None,
        metavar="DIRECTORY",
    )
    batch: int = options.batch()
    threads: int = options.threads(2)
    rounds: int = options.rounds(30)
    seed: int = options.seed()
    picture: Path | None = option("File for a plot (PNG or PDF).", None)
    as_json: bool = output.as_json()


@framework.command("bench network", _Arguments)
def command(given: _Arguments) -> int:
    """Time whole networks in several inference engines.

    Each network is measured in each engine with the same input, in turns, after its output has been
    compared with PyTorch in eager mode. Speed-ups are relative to the first network: in eager
    PyTorch, and in the fastest float32 engine that is not part of Syno. A speed-up above 1 is
    faster. The engines are eager, channels-last, inductor, onnxruntime, onnxruntime-int8, openvino,
    openvino-default (its own choice of precision, bfloat16 where the processor supports it),
    openvino-int8, tvm (with --schedules tuned by MetaSchedule, else with plain schedules), syno
    (`syno.compile`), syno-cpp (the network as one C++ library), syno-cpp-bf16 (the same with
    layers in bfloat16), syno-cpp-int8 (in INT8) and syno-cpp-auto (each layer in the format that is
    fastest). The extra `rivals` installs ONNX Runtime and OpenVINO, the extra `tvm` TVM.
    With --data, ranges of INT8 come from images of the training split, and the table has the
    accuracy on images of the validation split. Without it, they come from one random input, and
    the INT8 engines are for speed only.
    """
    from syno.engines.compare import compare_engines
    from syno.engines.picture import save_engines
    from syno.operands.layers import ORIGINAL
    from syno.operands.networks import networks_with_operators
    from syno.operators.specification import checked_binding

    engines = _engines(options.engine_names(given.engines), given.schedules)
    images = None if given.score.data is None else Images(given.score, given.score.data)
    sizes = {} if given.binding is None else checked_binding(given.binding)
    networks, example = networks_with_operators(
        given.model,
        options.with_weights(given.model_options, given.weights)
        | ({} if images is None else images.model_options),
        given.size,
        [name.strip() for name in given.operators.split(",")],
        sizes,
        batch=given.batch,
        seed=given.seed,
    )
    if images is not None:
        samples = [*images.samples(int(example.shape[-1]), given.seed)]
        engines = [_engine(each).calibrated(samples) for each in engines]
    with output.progress("networks", None, remaining=False) as move:
        found = compare_engines(
            networks,
            example,
            engines,
            threads=given.threads,
            rounds=given.rounds,
            progress=lambda done, total, what: move(done, f"of {total}: {what}"),
            score=None if images is None else images.score(example, given.score.images),
        )
    if given.as_json:
        print_results(_described(found, given.model, example))
    else:
        _print(found, given.model, given.batch)
    if given.picture is not None:
        save_engines(found, given.picture, {ORIGINAL: "original"})
    return framework.OK


def _engines(names: Sequence[str], schedules: Path | None) -> list[str | Engine]:
    """Return the engines, that of TVM with the schedules of a folder if there is one."""
    if schedules is None:
        return list(names)
    from syno.engines import engine
    from syno.engines.tvm import TvmEngine

    if TvmEngine.name not in names:
        raise UserError(
            "--schedules is for the engine tvm\n  expected: --engines with tvm among them"
        )
    engine.get(TvmEngine.name)
    return [TvmEngine(schedules) if name == TvmEngine.name else name for name in names]


def _engine(given: str | Engine) -> Engine:
    from syno.engines import engine

    return engine.get(given) if isinstance(given, str) else given


def _print(found: EngineComparison, model: str, batch: int) -> None:
    from syno.engines.engine import without
    from syno.engines.tables import engines_table

    title = f"{model}, batch {batch}, {found.threads} threads, {found.rounds} rounds"
    controls = {} if found.controls is None else {"": found.controls.text()}
    output.measured(title, noisy=found.noisy, controls=controls)
    output.show(engines_table(found))
    if found.missing:
        output.echo(f"{found.rival} is the fastest other engine {without(found.missing)}")
    for (network, engine), reason in found.failures.items():
        output.echo(f"{network} in {engine}: not measured: {reason}")


def _described(found: EngineComparison, model: str, example: torch.Tensor) -> dict[str, object]:
    """Everything that was measured, as plain values, with the machine."""
    return {
        "model": model,
        "input": list(example.shape),
        **found.to_json(),
        "packages": _packages(),
        "environment": dataclasses.asdict(capture_environment(threads=found.threads, rules="")),
    }


def _packages() -> dict[str, str]:
    """The versions of the packages that hold the engines."""
    from importlib import metadata

    versions = {}
    for name in ("torch", "onnxruntime", "openvino", "nncf", "apache-tvm"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
