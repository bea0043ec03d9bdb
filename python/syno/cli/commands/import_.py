"""`syno import`: the measurements of another machine into a store."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from syno._util import numbers as fmt
from syno._util.options import Options, required
from syno.cli import framework, options, output
from syno.operands.options import study as study_option


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    bundle: str = required("", names="FILE")
    store: str = options.store()
    study: str | None = study_option()
    secret: Path = required("File with the secret that signed the bundle.", metavar="FILE")
    as_json: bool = output.as_json()


@framework.command("import", _Arguments)
def command(given: _Arguments) -> int:
    """Store the measurements of another machine beside the results of a study.

    FILE is a bundle of `syno measure`. Its signature, its content and the code that it is about are
    checked first; a bundle that fails a check changes nothing. The exit code is 1 if an operator of
    the bundle was not evaluated by the study.
    """
    from syno.devices import read_secret
    from syno.store import Store, read_bundle
    from syno.study.device_bundles import measurements_table

    bundle = read_bundle(Path(given.bundle), read_secret(given.secret))
    with Store.open(given.store, create=False) as store:
        output.say_latest(store, given.study)
        study = store.study(given.study)
        done = store.measurements.add(study, bundle)
        every = store.measurements.of(study)
    if given.as_json:
        output.print_json(
            {
                **dataclasses.asdict(done),
                "measurements": [dataclasses.asdict(each) for each in every],
            }
        )
        return framework.NEGATIVE if done.missing else framework.OK
    if done.known:
        output.echo(f"the bundle of {done.device} was stored before")
    else:
        stored = fmt.counted(done.stored, "measurement")
        output.echo(f"stored {stored} of {done.device} in study {study.name}")
    if done.missing:
        keys = ", ".join(key[:8] for key in done.missing)
        output.say(f"not in the study: {keys}")
    output.show(measurements_table(every))
    return framework.NEGATIVE if done.missing else framework.OK
