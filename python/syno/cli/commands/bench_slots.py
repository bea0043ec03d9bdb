"""`syno bench slots`: operators as compiled code in all layers of a network that they replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util.options import Options, option
from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.operands.options import study as study_option

if TYPE_CHECKING:
    from syno.measure.slots import SlotsRun


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="OP...")
    model: str = option("", "resnet-small", metavar="NAME")
    model_options: Mapping[str, int | str] = options.model_options()
    size: int | None = option("Side of the images in pixels.", None, minimum=1, unset="the model's")
    binding: str | None = options.own_sizes()
    store: str | None = option("Where to look for a key.", None, metavar="URL")
    study: str | None = study_option()
    batch: int = option("", 1, minimum=1)
    threads: int = option("", 1, minimum=1, maximum=MOST_THREADS)
    rounds: int = options.rounds()
    as_json: bool = output.as_json()


@framework.command("bench slots", _Arguments)
def command(given: _Arguments) -> int:
    """Time operators as compiled C++ in every slot of a network, and sum the times.

    An operator is what `syno train` takes. Slots that are alike are timed once, in turns with
    their original layer in eager PyTorch. A slot that an operator does not fit counts with that,
    and the pooling before a slot of stride 2 counts, too. Layers that no operator replaces, and
    what an eager network spends between its layers, do not.
    """
    from syno.experiments.slots import described, network_with_slots
    from syno.measure.slots import time_slots
    from syno.operands.layers import fit_to_network, layer_specification
    from syno.operands.named import named_operators
    from syno.operators.specification import checked_binding

    template, example = network_with_slots(
        given.model, dict(given.model_options), given.size, given.batch
    )
    sizes = {} if given.binding is None else checked_binding(given.binding)
    chosen = named_operators(
        given.ops, store=given.store, study=given.study, layers=layer_specification(template, sizes)
    )
    operators = {each.name: fit_to_network(each, template, sizes) for each in chosen}
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
        output.print_json(described(run, given.model, given.batch))
    else:
        _print(run, given.model, given.batch)
    return framework.OK


def _print(run: SlotsRun, model: str, batch: int) -> None:
    from syno.experiments.tables import slots_table

    count = sum(run.counts.values())
    noisy = "   (noisy: something else used the machine)" if run.kernels.noisy else ""
    title = f"{count} slots of {model}, {len(run.counts)} kinds, batch {batch}, "
    output.console().print(output.heading(f"{title}{run.kernels.threads} threads", noisy))
    output.show(slots_table(run))
