"""Searches as the commands run them: watched, or described before they begin."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from syno.cli import output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.network.layers import LayerReport
    from syno.store import StudySummary
    from syno.train import Fidelity


def search(arguments: dict[str, Any]) -> StudySummary:
    """`syno.search` with a bar; `arguments` are its own."""
    from syno.cli.watch import Watch
    from syno.study.search import search as run

    with Watch() as watch:
        return run(**arguments, observer=watch)


def resume(arguments: dict[str, Any]) -> StudySummary:
    """`syno.resume` with a bar; `arguments` are its own."""
    from syno.cli.watch import Watch
    from syno.study.search import resume as run

    with Watch() as watch:
        return run(**arguments, observer=watch)


def describe(arguments: dict[str, Any], *, as_json: bool) -> None:
    """Print what a search would do, its layers and its cost, from a short probe of training."""
    import syno
    from syno.data import TextData
    from syno.study.evaluate.loading import load_for
    from syno.study.evaluate.network import Network
    from syno.study.training.probe import seconds_each

    if arguments.get("ladder") is not None:
        _describe_ladder(arguments, as_json=as_json)
        return
    fidelity = arguments["fidelity"]
    dataset = load_for(arguments["data"], arguments["data_dir"], fidelity, arguments["tokenizer"])
    network = Network.named(
        arguments["net"],
        arguments["model_options"],
        dataset,
        arguments["seed"],
        size=fidelity.resolution,
        context=fidelity.context,
    )
    layers = syno.layer_report(network.template)
    count = arguments["evaluations"] + 1
    seconds = seconds_each(network, dataset, fidelity, threads=arguments["threads"])
    if as_json:
        amount = (
            {"train_tokens": len(dataset.train_tokens)}
            if isinstance(dataset, TextData)
            else {"train_images": len(dataset.train.labels)}
        )
        output.print_json(
            {
                "data": {"name": arguments["data"], **amount},
                "fidelity": fidelity.to_json(),
                "layers": [dataclasses.asdict(row) for row in layers.rows],
                "trainings": count,
                "seconds_each": seconds,
                "store": arguments["store"],
            }
        )
    else:
        _print(arguments, layers, count, seconds)


def _describe_ladder(arguments: dict[str, Any], *, as_json: bool) -> None:
    """The same for a ladder: what each rung has, for how many operators, and what it costs."""
    import syno
    from syno.study.evaluate.rungs import datasets, networks
    from syno.study.fidelity.ladder import chosen
    from syno.study.training.probe import seconds_each

    ladder = chosen(arguments["ladder"], arguments["eta"])
    data = datasets(ladder, arguments["data"], arguments["data_dir"])
    options, seed = arguments["model_options"], arguments["seed"]
    nets = networks(ladder, arguments["net"], options, data[-1], seed)
    rows = []
    count = arguments["evaluations"]
    for index, rung in enumerate(ladder.rungs):
        each = seconds_each(nets[index], data[index], rung.fidelity, threads=arguments["threads"])
        if each is not None and ladder.continues(index):
            below = ladder.rungs[index - 1].fidelity.epochs or 0
            each *= 1 - below / (rung.fidelity.epochs or 1)
        rows.append((rung, ladder.continues(index), count, each))
        count //= ladder.eta
    known = [each for *_, each in rows if each is not None]
    whole = len(known) == len(rows)
    # The original network comes to a rung with the first operator.
    costs = [(n + 1) * each for (*_, n, _), each in zip(rows, known, strict=False) if n]
    total = sum(costs) if whole else None
    layers = syno.layer_report(nets[-1].template)
    if as_json:
        output.print_json(
            {
                "data": {"name": data[-1].name, "train_images": len(data[-1].train.labels)},
                "ladder": ladder.to_json(),
                "layers": [dataclasses.asdict(row) for row in layers.rows],
                "rungs": [
                    {"name": r.name, "continues": goes_on, "operators": n, "seconds_each": each}
                    for r, goes_on, n, each in rows
                ],
                "seconds": total,
                "store": arguments["store"],
            }
        )
        return
    screen = output.console()
    screen.print(output.heading("Layers"))
    screen.print(output.indented(str(layers), 2), soft_wrap=True)
    screen.print()
    screen.print(
        output.heading("Rungs", f" of ladder {ladder.name}: the best 1/{ladder.eta} go on")
    )
    for rung, goes_on, n, each in rows:
        width = "" if rung.width == 1 else f", width {rung.width:g} of the network's"
        how = ", from the checkpoint of the rung below" if goes_on else ""
        screen.print(f"  {amounts(rung.fidelity)}{width}", soft_wrap=True)
        cost = "unknown: the probe did not train" if each is None else fmt.duration(each)
        screen.print(f"    about {n} operators and the original, {cost} each{how}", soft_wrap=True)
    cost = "unknown" if total is None else f"about {fmt.duration(total)}"
    screen.print()
    screen.print(output.heading("Cost", f"\n  {cost}; operators that lower badly take longer\n"))
    screen.print(f"Nothing was written; the results would go to {arguments['store']}")


def _print(
    arguments: dict[str, Any], layers: LayerReport, count: int, seconds: float | None
) -> None:
    screen = output.console()
    screen.print(output.heading("Layers"))
    screen.print(output.indented(str(layers), 2), soft_wrap=True)
    screen.print()
    screen.print(
        output.heading("Fidelity", f"\n  {amounts(arguments['fidelity'])}"), soft_wrap=True
    )
    cost = "unknown: the probe did not train"
    if seconds is not None:
        cost = (
            f"{count} trainings of about {fmt.duration(seconds)} each, by the original network: "
            f"{fmt.duration(count * seconds)}; operators that lower badly take longer"
        )
    screen.print()
    screen.print(output.heading("Cost", f"\n  {cost}\n"), soft_wrap=True)
    screen.print(f"Nothing was written; the results would go to {arguments['store']}")


def amounts(fidelity: Fidelity) -> str:
    """The fidelity in a line: what it has, and by which recipe."""
    own = {name: value for name, value in fidelity.to_json().items() if name != "recipe"}
    parts = [f"{name} {value}" for name, value in own.items() if value is not None]
    recipe = fidelity.recipe
    return ", ".join([*parts, f"batch {recipe.batch}", f"recipe {recipe.name} {recipe.version}"])
