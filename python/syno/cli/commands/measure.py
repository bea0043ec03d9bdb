"""`syno measure`: operators in a network on this machine, as a signed bundle for another store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from syno._util import numbers as fmt
from syno._util.options import Options, option, required
from syno.cli import framework, options, output
from syno.operands.options import study as study_option


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = required("", names="OP...")
    model: str = options.model("resnet-small")
    model_options: Mapping[str, int | str] = options.model_options()
    size: int | None = options.image_size()
    binding: str | None = options.operator_sizes()
    bundle: Path = required("File for the signed results.", metavar="FILE")
    secret: Path = required(
        "File with the secret that this machine and the one of the store share.", metavar="FILE"
    )
    device_name: str = option("Name of this machine.", "", metavar="NAME", unset="its processor")
    engine: str = option("Inference engine, as for `syno bench network`.", "syno", metavar="NAME")
    threads: int = options.threads(1)
    rounds: int = option("Number of timed runs.", 30, minimum=20)
    store: str | None = option(
        "Store in which keys of operators are looked for.", None, metavar="STORE"
    )
    study: str | None = study_option()
    as_json: bool = output.as_json()


@framework.command("measure", _Arguments)
def command(given: _Arguments) -> int:
    """Measure a network with operators on this machine, for the store of another one.

    OP is an operator, as for `syno train`. Each network is timed in turns with the original one,
    after its code was compared with the interpreter. The results become a signed file, which
    `syno import` stores beside the results of a study. The exit code is 1 if an operator could not
    be measured.
    """
    from syno.devices import read_secret
    from syno.operators.specification import checked_binding
    from syno.store import write_bundle
    from syno.study.device_bundles import measure_operators, rows_table

    secret = read_secret(given.secret)
    with output.progress("operators", None) as move:
        found, left = measure_operators(
            given.ops,
            model=given.model,
            options=given.model_options,
            size=given.size,
            binding=None if given.binding is None else checked_binding(given.binding),
            engine=given.engine,
            device_name=given.device_name,
            threads=given.threads,
            repeats=given.rounds,
            store=given.store,
            study=given.study,
            progress=lambda done, total, what: move(done, f"of {total}: {what}"),
        )
    write_bundle(found, given.bundle, secret)
    if given.as_json:
        content = {"bundle": str(given.bundle), "digest": found.digest, "left_out": left}
        output.print_json(content | {"device": found.environment.device, "rows": len(found.rows)})
    else:
        output.show(rows_table(found))
        output.echo(f"wrote {given.bundle}: {fmt.counted(len(found.rows), 'operator')}")
    for line in left:
        output.say(f"not measured: {line}")
    return framework.NEGATIVE if left else framework.OK
