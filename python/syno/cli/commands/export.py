"""`syno export`: an operator as files that run without Syno."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from syno._util.errors import UserError
from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.cli.commands import export_network
from syno.cli.operand import command_line
from syno.operands import operand, sizes

# As a network: that of the study.
STUDY = "study"


class _Image(click.ParamType[tuple[int, int]]):
    """Channels and size of square images, as `3:32`."""

    name = "image"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        channels, colon, size = value.partition(":")
        if not (colon and channels.strip().isdecimal() and size.strip().isdecimal()):
            self.fail(
                f"'{value}' is no size of images\n  expected: CHANNELS:SIZE, such as 3:32",
                param,
                ctx,
            )
        return int(channels), int(size)


@framework.command(
    name="export",
    examples=[
        (
            "an operator of a search, for its first layer",
            "syno export 8e296a06 --store runs.db -o op.py",
        ),
        (
            "for other sizes, and see that it runs without Syno",
            "syno export op.txt --preset paper/resnet18 --binding C_in=64,C_out=64,H=28 \\\n"
            "      -o op.py --check",
        ),
        (
            "as C++, by the fastest of the four cheapest plans",
            "syno export op.txt --preset paper/resnet18 --binding C_in=64,C_out=64,H=28 \\\n"
            "      --format cpp --measure-plans 4 --fold-weights -o op.cpp --check",
        ),
        (
            "a whole network with the operator in it",
            "syno export op.txt --preset paper/resnet18 --network resnet-small \\\n"
            "      --format torch-export -o net.pt2",
        ),
    ],
)
@click.argument("op")
@options.operand_options
@click.option(
    "--format",
    "format_",
    metavar="NAME",
    help="torch, torch-export, onnx, aoti, cpp, ... Default: torch; torch-export of a network.",
)
@click.option("--binding", metavar="SIZES", help="Sizes of the layer, as C_in=64,H=28.")
@click.option(
    "--network",
    metavar="NAME",
    help="The whole model, as resnet-small, with the operator in its slots; `study`: that of the "
    "study in --store, trained again as there.",
)
@options.model_option_option
@click.option(
    "--image",
    type=_Image(),
    default=(3, 32),
    metavar="CHANNELS:SIZE",
    help="The model's images. Default: 3:32.",
)
@click.option("--classes", type=click.IntRange(min=2), default=10, show_default=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write; it gets the suffix of its format.",
)
@click.option(
    "--fold-weights",
    is_flag=True,
    help="Multiply weights with each other, once, where that saves multiply-adds.",
)
@click.option(
    "--measure-plans",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Write the fastest of the N cheapest plans, found by measurement.",
)
@click.option(
    "--threads", type=click.IntRange(1, MOST_THREADS), help="That --measure-plans uses. Default: 1."
)
@options.seed_option
@click.option("--check", is_flag=True, help="Run the file in a process that cannot import Syno.")
@output.json_option
def command(
    op: str,
    store: str | None,
    study: str | None,
    preset: str | None,
    format_: str | None,
    binding: str | None,
    network: str | None,
    out: Path,
    fold_weights: bool,
    measure_plans: int | None,
    threads: int | None,
    seed: int,
    check: bool,
    as_json: bool,
    **model: Any,
) -> int:
    """Write an operator, or a network with it inside, so that it runs without Syno.

    The format torch is a .py file with torch code and a .safetensors file with weights: `python
    FILE.py` compares them with stored outputs of the reference interpreter. torch-export, onnx and
    aoti (AOTInductor, compiled for this machine) take any batch size and also hold networks.
    Weights are fresh, drawn from --seed, but for `--network study`. Without --binding the sizes are
    those of the first layer of the search that found the operator.
    """
    from syno.codegen.export import formats
    from syno.measure.plan_choices import PlanChoices

    chosen = formats.get(
        format_ or ("torch" if network is None else "torch-export"),
        networks=network is not None,
        fold_weights=fold_weights,
    )
    if threads is not None and measure_plans is None:
        raise UserError("--threads is about --measure-plans: add it")
    plans = PlanChoices(chosen.name, chosen.emitter, measure_plans, threads or 1, fold_weights)
    wanted = operand.specification_of(op, preset=preset, store=store, study=study)
    operator = operand.load_operator(op, store=store, study=study, specification=wanted)
    if network is not None:
        if binding is not None:
            raise UserError("the network's layers have their own sizes: leave --binding out")
        place = (store, study) if network == STUDY else None
        subject = export_network.subject(
            operator,
            network,
            place,
            seed,
            plan_of=plans.of_pack,
            fold_weights=fold_weights,
            **model,
        )
    else:
        from syno.codegen.export.write import operator_subject

        line = command_line("export", op, "-o", str(out), preset=preset, store=store, study=study)
        if binding is None:
            found = sizes.own_sizes(operator, line)[0]
        else:
            found = sizes.checked_sizes(operator, binding, line)
        subject = operator_subject(operator, found, seed, plans.of(operator, found), fold_weights)
    written = chosen.write(subject, out)
    run = chosen.check(written, subject) if check else None
    files = [str(file) for file in written.files]
    if as_json:
        result = {"key": operator.key, "format": chosen.name, "written": files}
        checked = {} if run is None else {"ran_without_syno": run.passed, "output": run.output}
        measured = {"plans": plans.found} if measure_plans is not None else {}
        output.print_json(result | {"fold_weights": fold_weights} | measured | checked)
    else:
        for row in plans.found:
            sizes_shown = ", ".join(f"{name}={size}" for name, size in row["binding"].items())
            output.echo(
                f"plan {row['number']}, {row['speedup']:.2f}x as fast as the cheapest, for "
                f"{sizes_shown}"
            )
        output.echo("\n".join(f"wrote {file}" for file in files))
        if run is not None:
            output.echo(f"without Syno: {run.output}")
    return framework.OK if run is None or run.passed else framework.NEGATIVE
