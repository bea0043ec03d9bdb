"""Searches as the commands run them: watched, or described before they begin."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from syno.cli import output
from syno.report import format as fmt
from syno.torch_threads import torch_threads

if TYPE_CHECKING:
    from syno.layers import LayerReport
    from syno.store import StudySummary
    from syno.train import Fidelity

# The probe of a dry run: enough images for a few dozen steps.
_PROBE_IMAGES = 640


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
    from syno.data import load
    from syno.study.network import Network

    fidelity = arguments["fidelity"]
    dataset = load(arguments["data"], arguments["data_dir"], size=fidelity.loaded_at)
    network = Network.named(
        arguments["net"],
        arguments["model_options"],
        dataset,
        arguments["seed"],
        size=fidelity.resolution,
    )
    layers = syno.layer_report(network.template)
    count = arguments["evaluations"] + 1
    seconds = _seconds_each(network, dataset, fidelity, arguments["threads"])
    if as_json:
        output.print_json(
            {
                "data": {"name": dataset.name, "train_images": len(dataset.train.labels)},
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


def _seconds_each(network: Any, dataset: Any, fidelity: Any, threads: int) -> float | None:
    """Seconds of one training, from the second of two short epochs: the first warms up."""
    from syno.train import train

    images = fidelity.images or len(dataset.train.labels)
    few = min(_PROBE_IMAGES, images)
    probe = dataclasses.replace(fidelity, name="probe", images=few, epochs=2)
    with torch_threads(threads):
        outcome = train(network.original(), dataset, probe, 0)
    if len(outcome.curve) < 2:
        return None
    first, second = outcome.curve
    return float((second.seconds - first.seconds) / few * images * fidelity.epochs)
