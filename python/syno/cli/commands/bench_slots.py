"""`syno bench slots`: operators as compiled code in all slots of a network."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util import numbers as fmt
from syno._util.options import Options, option
from syno._util.tables import Table
from syno.cli import framework, options, output
from syno.cli.results import print_results
from syno.operands.options import study as study_option
from syno.store.environment import capture_environment

if TYPE_CHECKING:
    from syno.measure.slots import SlotsRun


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="OP...")
    model: str = options.model("resnet-small")
    model_options: Mapping[str, int | str] = options.model_options()
    size: int | None = options.image_size()
    binding: str | None = options.operator_sizes()
    store: str | None = option("Store in which a key is searched.", None, metavar="URL")
    study: str | None = study_option()
    batch: int = options.batch()
    threads: int = options.threads(1)
    rounds: int = options.rounds()
    as_json: bool = output.as_json()


@framework.command("bench slots", _Arguments)
def command(given: _Arguments) -> int:
    """Time operators as compiled C++ in every slot of a network, and sum the times.

    Operators are given as for `syno train`. Slots with equal sizes are timed once, alternately
    with their original layer in eager PyTorch. If an operator does not fit a slot, the time of the
    original layer counts. The pooling before a slot of stride 2 counts, too. Layers that no
    operator replaces, and the overhead of an eager network between its layers, do not count.
    """
    from syno.measure.slots import network_with_slots, time_slots
    from syno.operands.layers import fit_to_network, layer_specification
    from syno.operands.lookup import named_operators
    from syno.operators.specification import checked_binding

    template, example = network_with_slots(
        given.model, dict(given.model_options), given.size, given.batch
    )
    sizes = {} if given.binding is None else checked_binding(given.binding)
    named = named_operators(
        given.ops, store=given.store, study=given.study, layers=layer_specification(template, sizes)
    )
    operators = {each.name: fit_to_network(each, template, sizes) for each in named}
    with output.progress("kernels", None, remaining=False) as move:
        run = time_slots(
            template,
            operators,
            example,
            threads=given.threads,
            rounds=given.rounds,
            progress=lambda done, total, what: move(done, f"of {total}: {what}"),
        )
    if given.as_json:
        print_results(_described(run, given.model, given.batch))
    else:
        _print(run, given.model, given.batch)
    return framework.OK


def _print(run: SlotsRun, model: str, batch: int) -> None:
    count = sum(run.counts.values())
    title = (
        f"{count} slots of {model}, {len(run.counts)} kinds, batch {batch}, "
        f"{run.kernels.threads} threads"
    )
    controls = {name: each.text() for name, each in run.kernels.controls.items()}
    output.measured(title, noisy=run.kernels.noisy, controls=controls)
    output.show(_table(run))


def _described(run: SlotsRun, model: str, batch: int) -> dict[str, object]:
    """Everything that was measured, as plain values, on which machine."""
    kernels = run.kernels
    return {
        "model": model,
        "batch": batch,
        "slots": [dataclasses.asdict(time) for time in run.times],
        "kinds": run.counts,
        "kernels": [dataclasses.asdict(time) for time in kernels.times],
        "controls": {name: dataclasses.asdict(each) for name, each in kernels.controls.items()},
        "noisy": kernels.noisy,
        "rounds": kernels.rounds,
        "environment": dataclasses.asdict(capture_environment(threads=kernels.threads, rules="")),
    }


def _table(run: SlotsRun) -> Table:
    """A table of the times of all slots of a network, for each operator."""
    original = run.times[0]
    return Table.of(
        run.times,
        ("operator", lambda time: time.name),
        ("replaced>", lambda time: str(time.replaced)),
        ("best ms>", lambda time: f"{time.best_ms:.3f}"),
        ("median ms>", lambda time: f"{time.median_ms:.3f}"),
        ("over the baseline>", lambda time: f"{original.best_ms / time.best_ms:.2f}x"),
        ("MACs>", lambda time: fmt.count(time.macs)),
        ("params>", lambda time: fmt.count(time.params)),
    )
