"""`syno bench layers`: every layer of a network with operators and other baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.options import Options, option
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno_lab.experiments.layers.results import LayerResults


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    model: str = options.model("resnet34")
    model_options: Mapping[str, int | str] = options.model_options()
    size: int | None = options.image_size()
    operators: str = option(
        "Operators in place of the layers, separated by commas, as for `syno train`; also "
        "nas-pte-1, nas-pte-2 and nas-pte-3.",
        "operator-1,operator-2,stacked-conv,nas-pte-1,nas-pte-2,nas-pte-3",
        metavar="NAMES",
    )
    binding: str | None = options.operator_sizes()
    engines: str = option(
        "Inference engines, separated by commas.",
        "",
        unset="eager, inductor, onnxruntime, openvino and syno-cpp, as far as they are installed",
        metavar="NAMES",
    )
    layers: str = option(
        "Layers by their label, separated by commas, such as 64x56,64x56-128x28.",
        "",
        unset="all",
        metavar="LABELS",
    )
    tvm: str = option(
        "Layers that are also tuned and measured in TVM, separated by commas.",
        "",
        unset="none",
        metavar="LABELS",
    )
    trials: int = option("Schedules of TVM that are measured for each operator.", 64, minimum=1)
    batch: int = options.batch()
    threads: int = options.threads(2)
    rounds: int = options.rounds(30)
    seed: int = options.seed()
    out: Path = option(
        "File of the results (JSON); an existing file is continued.",
        Path("layers.json"),
        names="--out/-o",
    )
    show: bool = option("Print the results in --out, and measure nothing.", False)
    as_json: bool = output.as_json()


@framework.command("bench layers", _Arguments)
def command(given: _Arguments) -> int:
    """Time every layer of a network: the original, operators, and the sequences of NAS-PTE.

    Equal layers are measured once. All pairs of a subject and an engine run in turns after their
    outputs have been compared with eager PyTorch, beside a fixed computation. Speed-ups are over
    the original layer in the fastest engine that is not part of Syno; above 1 is faster. A time
    below the roofline of the machine is an error. Each layer is stored when it is done, and the
    same command continues, also with more --layers or --tvm.
    """
    from syno.operators.specification import checked_binding
    from syno_lab.experiments.layers import results
    from syno_lab.experiments.layers.bench import LayerBench, bench_layers

    if given.show:
        found = results.read(given.out)
    else:
        asked = LayerBench(
            model=given.model,
            model_options=dict(given.model_options),
            size=given.size,
            operators=tuple(options.names(given.operators)),
            sizes={} if given.binding is None else checked_binding(given.binding),
            engines=tuple(options.names(given.engines)),
            layers=tuple(options.names(given.layers)),
            tvm_layers=tuple(options.names(given.tvm)),
            trials=given.trials,
            batch=given.batch,
            threads=given.threads,
            rounds=given.rounds,
            seed=given.seed,
        )
        framework.resumable(framework.this_command())
        with output.progress("layers", None) as move:
            found = bench_layers(
                asked,
                given.out,
                progress=lambda done, total, what: move(done, f"of {total}: {what}"),
            )
    if given.as_json:
        output.print_json(found.to_json())
    else:
        _print(found)
    return framework.OK if found.layers else framework.NEGATIVE


def _print(found: LayerResults) -> None:
    from syno.engines.engine import without
    from syno_lab.experiments.layers.tables import layers_table, means_table

    settings = found.settings
    title = f"{settings['model']}, batch {settings['batch']}, {settings['threads']} threads"
    controls = {run.layer: run.controls.text() for run in found.layers if run.controls}
    output.measured(title, noisy=found.noisy, controls=controls)
    if found.missing:
        output.echo(f"the fastest other engine is taken {without(found.missing)}")
    output.show(layers_table(found))
    output.show(means_table(found))
    for run in found.layers:
        for what, reason in run.failures.items():
            output.echo(f"{run.layer} {what}: not measured: {reason}")
