"""`syno export-network`: the trained network of a study as files that run without Syno."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.options import Options, option, required
from syno.cli import framework, options, output
from syno.operands.options import study as study_option

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    study: str | None = study_option()
    key: str = required("Start of the id or key of an operator, or `baseline`.", names="--key")
    out: Path = required("File to write; the suffix of the format is added.", names="-o/--out")
    format_: str = option(
        "Format: torch-network, cpp-network, torch-export, onnx, aoti or tvm-network.",
        "torch-network",
        names="--format",
        metavar="NAME",
    )
    net: str | None = option(
        "The module that the study was started with, as FILE.py:NAME of a module or of a function "
        "that makes it.",
        None,
        unset="the model of the study",
        metavar="FILE.py:NAME",
    )
    trained_seed: int | None = option(
        "Of several trainings of the operator, the one with this seed.",
        None,
        minimum=0,
        metavar="N",
        unset="the last one",
    )
    fold_weights: bool = option(
        "Multiply weights with each other beforehand if this saves MACs.", False
    )
    check: bool = option("Run the file in a process that cannot import Syno.", False)
    as_json: bool = output.as_json()


@framework.command("export-network", _Arguments)
def command(given: _Arguments) -> int:
    """Write a trained network of a study, so that it runs without Syno.

    A search keeps the trained weights of the baseline and of the operators on the Pareto front, and
    `syno train` those of every operator, up to --weights-limit. Nothing is trained again. The
    format torch-network is a .py file with PyTorch code and a .safetensors file with the weights;
    `python FILE.py` compares its results with stored outputs.
    """
    from syno.codegen.export import formats
    from syno.codegen.export.write import network_subject
    from syno.study.results import load_study
    from syno.study.trained_network import trained_network

    writer = formats.get(given.format_, networks=True, fold_weights=given.fold_weights)
    results = load_study(given.store, given.study)
    net = None if given.net is None else _module(given.net)
    trained, example = trained_network(results, given.key, net=net, seed=given.trained_seed)
    subject = network_subject(trained, example, fold_weights=given.fold_weights)
    written = writer.write(subject, given.out)
    run = writer.check(written, subject) if given.check else None
    files = [str(file) for file in written.files]
    trial = results.trial(given.key)
    if given.as_json:
        content = {"study": results.study.name, "key": trial.key, "format": writer.name}
        checked = {} if run is None else {"ran_without_syno": run.passed, "output": run.output}
        output.print_json(content | {"written": files} | checked)
    else:
        output.echo("\n".join(f"wrote {file}" for file in files))
        if run is not None:
            output.echo(f"run without Syno: {run.output}")
    return framework.OK if run is None or run.passed else framework.NEGATIVE


def _module(place: str) -> nn.Module:
    """Return the module that FILE.py:NAME names."""
    from torch import nn

    file, _, name = place.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise UserError(
            f"'{place}' names no module\n  expected: FILE.py:NAME, such as net.py:build"
        )
    if not Path(file).is_file():
        raise UserError(f"there is no file '{file}'")
    found = runpy.run_path(file).get(name)
    if callable(found) and not isinstance(found, nn.Module):
        found = found()
    if not isinstance(found, nn.Module):
        raise UserError(f"'{name}' in '{file}' is {type(found).__name__}, no torch.nn.Module")
    return found
