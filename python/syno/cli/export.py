"""`syno export`: an operator as files that run without Syno."""

from __future__ import annotations

from pathlib import Path

import click

from syno.cli import framework, operand, options, output


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
    ],
)
@click.argument("op")
@options.operand_options
@click.option("--format", "format_", default="torch", show_default=True, metavar="NAME")
@click.option("--binding", metavar="SIZES", help="Sizes of the layer, as C_in=64,H=28.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The .py file to write; the weights go beside it.",
)
@options.seed_option
@click.option("--check", is_flag=True, help="Run the file in a process that cannot import Syno.")
@output.json_option
def command(
    op: str,
    store: str | None,
    study: str | None,
    preset: str | None,
    format_: str,
    binding: str | None,
    out: Path,
    seed: int,
    check: bool,
    as_json: bool,
) -> int:
    """Write an operator as a .py file with torch code and a .safetensors file with weights.

    Weights are fresh, drawn from --seed. `python FILE.py` compares the code with outputs of the
    reference interpreter that are stored beside the weights. Without --binding the sizes are those
    of the first layer of the search that found the operator.
    """
    from syno.cli.isolated import run_without_syno
    from syno.export import export

    wanted = operand.chosen_specification(op, preset=preset, store=store, study=study)
    operator = operand.load_operator(op, store=store, study=study, specification=wanted)
    line = operand.command_line(f"export {op} -o {out}", preset=preset, store=store, study=study)
    if binding is None:
        sizes = operand.own_sizes(operator, line)[0]
    else:
        sizes = operand.checked_sizes(operator, binding, line)
    written = export(operator, out, binding=sizes, format=format_, seed=seed)
    run = run_without_syno([written.code]) if check else None
    files = [str(written.code), str(written.weights)]
    if as_json:
        result = {"key": operator.key, "written": files}
        checked = {} if run is None else {"ran_without_syno": run.passed, "output": run.output}
        output.print_json(result | checked)
    else:
        click.echo("\n".join(f"wrote {file}" for file in files))
        if run is not None:
            click.echo(f"without Syno: {run.output}")
    return framework.OK if run is None or run.passed else framework.NEGATIVE
