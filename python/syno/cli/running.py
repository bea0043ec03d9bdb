"""Searches as the commands run them: watched, or described before they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from syno.cli import output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.store import StudySummary
    from syno.study.training.forecast import Forecast, LadderForecast
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
    from syno.study.training import forecast

    found: Forecast | LadderForecast
    if arguments.get("ladder") is not None:
        found = forecast.ladder_forecast(arguments)
    else:
        found = forecast.forecast(arguments)
    if as_json:
        output.print_json(found.as_json() | {"store": arguments["store"]})
        return
    screen = output.console()
    screen.print(output.heading("Layers"))
    screen.print(output.indented(str(found.layers), 2), soft_wrap=True)
    screen.print()
    if isinstance(found, forecast.LadderForecast):
        _print_rungs(found)
    else:
        _print_fidelity(found)
    screen.print(f"Nothing was written; the results would go to {arguments['store']}")


def _print_rungs(found: LadderForecast) -> None:
    screen = output.console()
    ladder = found.ladder
    screen.print(
        output.heading("Rungs", f" of ladder {ladder.name}: the best 1/{ladder.eta} go on")
    )
    for each in found.rungs:
        rung, seconds = each.rung, each.seconds_each
        width = "" if rung.width == 1 else f", width {rung.width:g} of the network's"
        how = ", from the checkpoint of the rung below" if each.continues else ""
        screen.print(f"  {amounts(rung.fidelity)}{width}", soft_wrap=True)
        cost = "unknown: the probe did not train" if seconds is None else fmt.duration(seconds)
        screen.print(
            f"    about {each.operators} operators and the original, {cost} each{how}",
            soft_wrap=True,
        )
    cost = "unknown" if found.seconds is None else f"about {fmt.duration(found.seconds)}"
    screen.print()
    screen.print(output.heading("Cost", f"\n  {cost}; operators that lower badly take longer\n"))


def _print_fidelity(found: Forecast) -> None:
    screen = output.console()
    screen.print(output.heading("Fidelity", f"\n  {amounts(found.fidelity)}"), soft_wrap=True)
    cost, count, seconds = "unknown: the probe did not train", found.trainings, found.seconds_each
    if seconds is not None:
        cost = (
            f"{count} trainings of about {fmt.duration(seconds)} each, by the original network: "
            f"{fmt.duration(count * seconds)}; operators that lower badly take longer"
        )
    screen.print()
    screen.print(output.heading("Cost", f"\n  {cost}\n"), soft_wrap=True)


def amounts(fidelity: Fidelity) -> str:
    """The fidelity in a line: what it has, and by which recipe."""
    own = {name: value for name, value in fidelity.to_json().items() if name != "recipe"}
    parts = [f"{name} {value}" for name, value in own.items() if value is not None]
    recipe = fidelity.recipe
    return ", ".join([*parts, f"batch {recipe.batch}", f"recipe {recipe.name} {recipe.version}"])
