"""Searches as the commands run them: watched, or described before they begin."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from syno.cli import output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.layers import LayerReport
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
    from syno.cli.probe import seconds_each
    from syno.data import TextData
    from syno.study.loading import load_for
    from syno.study.network import Network

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


def _print(
    arguments: dict[str, Any], layers: LayerReport, count: int, seconds: float | None
) -> None:
    screen = output.console()
    screen.print("[bold]Layers[/bold]")
    screen.print(output.indented(str(layers), 2), soft_wrap=True)
    screen.print(f"\n[bold]Fidelity[/bold]\n  {amounts(arguments['fidelity'])}", soft_wrap=True)
    cost = "unknown: the probe did not train"
    if seconds is not None:
        cost = (
            f"{count} trainings of about {fmt.duration(seconds)} each, by the original network: "
            f"{fmt.duration(count * seconds)}; operators that lower badly take longer"
        )
    screen.print(f"\n[bold]Cost[/bold]\n  {cost}\n", soft_wrap=True)
    screen.print(f"Nothing was written; the results would go to {arguments['store']}")


def amounts(fidelity: Fidelity) -> str:
    """The fidelity in a line: what it has, and by which recipe."""
    own = {name: value for name, value in fidelity.to_json().items() if name != "recipe"}
    parts = [f"{name} {value}" for name, value in own.items() if value is not None]
    recipe = fidelity.recipe
    return ", ".join([*parts, f"batch {recipe.batch}", f"recipe {recipe.name} {recipe.version}"])
