"""`syno bench slots`: operators as compiled code in all layers of a network that they replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.measure.slots import SlotsRun


@framework.command(
    name="slots",
    examples=[
        (
            "three operators in a small residual network",
            "syno bench slots conv2d operator-1 operator-2 --binding g=4",
        ),
        (
            "an operator of a search in a deeper network, for programs",
            "syno bench slots 3f2a --store runs.db --model resnet34-small --size 32 --json",
        ),
    ],
)
@click.argument("ops", metavar="OP...", nargs=-1, required=True)
@click.option("--model", default="resnet-small", show_default=True, metavar="NAME")
@options.model_option_option
@click.option(
    "--size", type=click.IntRange(min=1), help="Side of the images in pixels. [the model's]"
)
@options.own_sizes_option
@click.option("--store", metavar="URL", help="Where to look for a key.")
@options.study_option
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--threads", type=click.IntRange(1, MOST_THREADS), default=1, show_default=True)
@options.kernel_rounds_option
@output.json_option
def command(
    ops: tuple[str, ...],
    model: str,
    model_options: tuple[str, ...],
    size: int | None,
    binding: str | None,
    store: str | None,
    study: str | None,
    batch: int,
    threads: int,
    rounds: int,
    as_json: bool,
) -> int:
    """Time operators as compiled C++ in every slot of a network, and sum the times.

    An operator is what `syno train` takes. Slots that are alike are timed once, in turns with
    their original layer in eager PyTorch. A slot that an operator does not fit counts with that,
    and the pooling before a slot of stride 2 counts, too. Layers that no operator replaces, and
    what an eager network spends between its layers, do not.
    """
    from syno.cli.commands.search import numbers
    from syno.experiments.slots import described, network_with_slots
    from syno.measure.slots import time_slots
    from syno.operands.layers import fit_to_network, layer_specification
    from syno.operands.named import named_operators
    from syno.operators.specification import checked_binding

    template, example = network_with_slots(model, numbers(model_options), size, batch)
    sizes = {} if binding is None else checked_binding(binding)
    chosen = named_operators(
        ops, store=store, study=study, layers=layer_specification(template, sizes)
    )
    operators = {each.name: fit_to_network(each, template, sizes) for each in chosen}
    with output.progress("kernels", None, remaining=False) as move:
        run = time_slots(
            template,
            operators,
            example,
            threads=threads,
            rounds=rounds,
            progress=lambda done, total, what: move(done, f"of {total}: {what}"),
        )
    if as_json:
        output.print_json(described(run, model, batch))
    else:
        _print(run, model, batch)
    return framework.OK


def _print(run: SlotsRun, model: str, batch: int) -> None:
    screen = output.console()
    count = sum(run.counts.values())
    screen.print(
        output.heading(
            f"{count} slots of {model}, {len(run.counts)} kinds, batch {batch}, "
            f"{run.kernels.threads} threads",
            "   (noisy: something else used the machine)" if run.kernels.noisy else "",
        )
    )
    original = run.times[0]
    rows = [
        [
            time.name,
            str(time.replaced),
            f"{time.best_ms:.3f}",
            f"{time.median_ms:.3f}",
            f"{original.best_ms / time.best_ms:.2f}x",
            fmt.count(time.macs),
            fmt.count(time.params),
        ]
        for time in run.times
    ]
    columns = [("operator", "left"), ("replaced", "right"), ("best ms", "right")]
    columns += [("median ms", "right"), ("over the original", "right"), ("MACs", "right")]
    columns += [("params", "right")]
    screen.print(output.table(columns, rows))
