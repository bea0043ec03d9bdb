"""`syno export`: an operator as files that run without Syno."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, group, option, pair, required
from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.cli.calibration import CalibrationOptions, quantized
from syno.operands import sizes
from syno.operands.layers import ORIGINAL
from syno.operands.options import Operand

if TYPE_CHECKING:
    from syno.codegen.export.formats import ExportSubject
    from syno.measure.plan_choices import PlanChoices

Image = tuple[int, int]  # channels and size

# As a network: that of the study.
STUDY = "study"


_IMAGE = pair("not a size of images", "CHANNELS:SIZE, such as 3:32")


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    op: str = required("", names="OP")
    operand: Operand = group(Operand)
    format_: str | None = option(
        "Format: torch, torch-export, onnx, aoti, cpp, ...",
        None,
        unset="torch; for a network torch-export",
        names="--format",
        metavar="NAME",
    )
    binding: str | None = option(
        "Sizes of the layer, such as C_in=64,H=28; for a network, values of variables that its "
        "layers do not have, such as g=4.",
        None,
        metavar="SIZES",
    )
    network: str | None = option(
        "Export this model, such as resnet-small, with the operator in its slots, or as it is if "
        "OP is `none`; `study` uses the network of the study in --store and trains it as there.",
        None,
        metavar="NAME",
    )
    model_options: Mapping[str, int | str] = options.model_options()
    image: Image | None = option(
        "Channels and size of the images of the model.",
        None,
        parse=_IMAGE,
        metavar="CHANNELS:SIZE",
        unset="those of the model",
    )
    classes: int | None = option(
        "Number of classes of the model.", None, minimum=2, unset="that of the model"
    )
    out: Path = required("File to write; the suffix of the format is added.", names="-o/--out")
    fold_weights: bool = option(
        "Multiply weights with each other beforehand if this saves MACs.", False
    )
    precision: str = option(
        "Number format that layers multiply in the format cpp-network: float32, bfloat16, int8 "
        "with ranges from --data, or auto, which measures and chooses one for each layer. The "
        "format onnx has int8, too.",
        "float32",
        metavar="NAME",
    )
    tuned: bool = option(
        "Use schedules that `syno tune` found on this machine, in the formats cpp and cpp-network.",
        False,
    )
    target: str | None = option(
        "Also compile the formats cpp and cpp-network for another processor, such as "
        "aarch64-linux-gnu or 'aarch64-linux-gnu -mcpu=cortex-a76'; for tvm-network, a target of "
        "TVM, such as 'llvm -mtriple=aarch64-linux-gnu'.",
        None,
        metavar="TRIPLE",
    )
    batch: int | None = option(
        "Size of the batch in the format tvm-network.",
        None,
        minimum=1,
        metavar="N",
        unset="any size",
    )
    schedules: Path | None = option(
        "Folder of results of `syno tune` with schedules for tvm-network; needs --batch.",
        None,
        metavar="DIRECTORY",
    )
    measure_plans: int | None = option(
        "Measure the N cheapest plans, and write the fastest.",
        None,
        minimum=1,
        maximum=1000,
        metavar="N",
        unset="off",
    )
    threads: int | None = option(
        "Number of threads for --measure-plans.", None, minimum=1, maximum=MOST_THREADS, unset="1"
    )
    weights: str | None = options.weights()
    calibration: CalibrationOptions = group(CalibrationOptions)
    seed: int = options.seed()
    check: bool = option("Run the file in a process that cannot import Syno.", False)
    as_json: bool = output.as_json()


@framework.command("export", _Arguments)
def command(given: _Arguments) -> int:
    """Write an operator, or a network with or without it, as files that run without Syno.

    The format torch is a .py file with PyTorch code and a .safetensors file with weights;
    `python FILE.py` compares its results with stored outputs of the reference interpreter. The
    formats torch-export, onnx and aoti (AOTInductor, compiled for this machine) accept any batch
    size and also export networks. The weights are initialized with --seed, except for
    `--network study`. Without --binding, the sizes are those of the first layer of the search that
    found the operator.
    """
    from syno.codegen.export import cross, formats
    from syno.codegen.export.write import operator_subject
    from syno.inference.precision import AUTO, INT8, TOLERANCES
    from syno.measure.plan_choices import PlanChoices

    of_samples = given.precision in (INT8, AUTO)
    precision = INT8 if of_samples else given.precision
    writer = formats.get(
        given.format_ or ("torch" if given.network is None else "torch-export"),
        networks=given.network is not None,
        fold_weights=given.fold_weights,
        precision=precision,
    )
    if given.tuned and writer.emitter != "cpp":
        raise UserError(
            f"the format '{writer.name}' has no schedules of compiled C++\n"
            "  expected: cpp or cpp-network with --tuned"
        )
    if given.precision == AUTO and given.target is not None:
        raise UserError(
            "--precision auto chooses formats by their times on this machine\n"
            "  expected: no --target, or --precision int8 with it"
        )
    of_relax = writer.name == "tvm-network"
    if not of_relax and (given.batch is not None or given.schedules is not None):
        raise UserError(
            f"the format '{writer.name}' has no schedules of TVM and no fixed batch\n"
            "  expected: tvm-network with --batch and --schedules"
        )
    if given.target is not None and not of_relax:
        if writer.emitter != "cpp":
            raise UserError(
                f"the format '{writer.name}' is not compiled for other processors\n"
                "  expected: cpp, cpp-network or tvm-network with --target"
            )
        cross.cross_compiler(given.target)
    if not of_samples and (given.calibration.data is not None or given.calibration.keep):
        raise UserError("--data and --keep require --precision int8 or auto")
    if given.precision != AUTO and given.calibration.most_error is not None:
        raise UserError("--most-error requires --precision auto")
    if given.weights is not None and given.network in (None, STUDY):
        raise UserError("--weights requires --network with the name of a model")
    if given.threads is not None and given.measure_plans is None:
        raise UserError("--threads requires --measure-plans")
    plans = PlanChoices(
        writer.name, writer.emitter, given.measure_plans, given.threads or 1, given.fold_weights
    )
    if given.network is not None:
        subject = replace(_network(given, given.network, plans), precision=precision)
    elif given.op == ORIGINAL:
        raise UserError(
            "'none' is no operator\n  what to do: name the network without one: --network NAME"
        )
    else:
        operator = given.operand.load(given.op)
        line = given.operand.line("export", given.op, "-o", str(given.out))
        if given.binding is None:
            found = sizes.own_sizes(operator, line)[0]
        else:
            found = sizes.checked_sizes(operator, given.binding, line)
        plan = plans.of(operator, found)
        subject = operator_subject(operator, found, given.seed, plan, given.fold_weights)
    subject = replace(subject, tuned=given.tuned)
    made = None
    if of_samples:
        subject, made = quantized(subject, given.calibration, given.precision, given.seed)
    if of_relax:
        subject = replace(subject, target=given.target, schedules=given.schedules)
        subject = subject if given.batch is None else subject.with_batch(given.batch)
    written = writer.write(subject, given.out)
    files = [str(file) for file in written.files]
    run = None
    if given.target is not None and not of_relax:
        files.append(str(cross.build(written, given.target)))
        if given.check:
            tolerance = TOLERANCES[precision]
            run = cross.check(written, subject, given.target, tolerance=tolerance)
    elif given.check:
        run = writer.check(written, subject)
    if given.as_json:
        result = {"key": _key(subject), "format": writer.name, "written": files}
        checked = {} if run is None else {"ran_without_syno": run.passed, "output": run.output}
        measured = {"plans": plans.found} if given.measure_plans is not None else {}
        layers: dict[str, object] = {}
        if made is not None:
            layers = {"layers": [asdict(row) for row in made.rows], "error": made.error}
        more = {"fold_weights": given.fold_weights} | measured | checked | layers
        output.print_json(result | more)
    else:
        for row in plans.found:
            sizes_shown = ", ".join(f"{name}={size}" for name, size in row["binding"].items())
            output.echo(
                f"plan {row['number']}, {row['speedup']:.2f}x as fast as plan 1, for {sizes_shown}"
            )
        if made is not None:
            output.echo(str(made.report()))
            output.echo(f"the results of the network change by {made.error:.2%}")
        output.echo("\n".join(f"wrote {file}" for file in files))
        if run is not None:
            output.echo(f"run without Syno: {run.output}")
    return framework.OK if run is None or run.passed else framework.NEGATIVE


def _key(subject: ExportSubject) -> str | None:
    """Return the key of the operator that is exported; None for a network without one."""
    from syno.operators.layer import Layer

    layers = [each for each in subject.module.modules() if isinstance(each, Layer)]
    layers += [] if subject.layer is None else [subject.layer]
    return layers[0].operator.key if layers else None


def _network(given: _Arguments, name: str, plans: PlanChoices) -> ExportSubject:
    """Return a model with initial weights, or the network of a study, trained as there."""
    from syno.codegen.export.write import network_subject
    from syno.operators.specification import checked_binding
    from syno.study.training import networks

    if name == STUDY:
        if given.binding is not None or given.op == ORIGINAL:
            raise UserError(
                "the network of a study is exported with an operator of its search\n"
                "  expected: OP of the study, without --binding"
            )
        operator = given.operand.load(given.op)
        net, x = networks.trained(operator, given.operand.store, given.operand.study, output.say)
    else:
        channels, size = given.image or (None, None)
        net, x = networks.fresh(
            given.op,
            name,
            given.seed,
            model_options=options.with_weights(given.model_options, given.weights),
            images={"classes": given.classes, "channels": channels, "size": size},
            sizes={} if given.binding is None else checked_binding(given.binding),
            operand=given.operand,
            say=output.say,
        )
    fold = given.fold_weights
    return network_subject(net, x, given.seed, plan_of=plans.of_layer, fold_weights=fold)
