"""`syno bench coverage`: which networks of torchvision and timm are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syno._util.options import Options, option
from syno.cli import framework, options, output


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    families: str = option(
        "Families by name, or by the beginning of it, separated by commas, such as timm/resnet.",
        "",
        unset="all",
        metavar="NAMES",
    )
    compile: bool = option("Also compile the libraries, and compare them with PyTorch.", False)
    gigabytes: float = option("Memory of each process.", 8.0, minimum=0, above=True)
    seconds: float = option("Time limit of each process.", 900.0, minimum=0, above=True)
    out: Path = option(
        "File of the results (JSON); an existing file is continued.",
        Path("coverage.json"),
        names="--out/-o",
    )
    show: bool = option("Print the results in --out, and examine nothing.", False)
    as_json: bool = output.as_json()


@framework.command("bench coverage", _Arguments)
def command(given: _Arguments) -> int:
    """Say which networks of torchvision and timm are compiled, and why others are not.

    Of each family, which is a file of the package, the network with the fewest parameters is built
    with initial weights, traced and lowered, in a process of its own. For each, the table says
    whether the network library covers it, or the first operator without code, how many layers
    syno.compile makes kernels of, and which operators it has besides. Each result is stored as soon
    as it is there, and the same command continues.
    """
    from syno_lab.experiments.child import ProcessLimits
    from syno_lab.experiments.coverage import sweep
    from syno_lab.experiments.coverage.tables import missing_table, networks_table

    if given.show:
        found = sweep.read(given.out)
    else:
        asked = sweep.CoverageSweep(
            only=tuple(options.names(given.families)),
            compiled=given.compile,
            limits=ProcessLimits(int(given.gigabytes * 2**30), given.seconds),
        )
        framework.resumable(framework.this_command())
        with output.progress("families", None) as move:
            found = sweep.cover(
                given.out,
                asked,
                progress=lambda done, total, what: move(done, f"of {total}: {what}"),
            )
    if given.as_json:
        output.print_json(found.to_json())
    else:
        output.show(networks_table(found))
        output.show(missing_table(found))
        output.echo(f"the library covers {found.whole} of {len(found.networks)} networks")
    return framework.OK if found.networks else framework.NEGATIVE
