"""`syno search`: from a network to operators that were trained, checked and timed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from syno._util.checks import MOST_COUNTED
from syno._util.errors import UserError
from syno.cli import framework, options, output

_MOST_DIGITS = 18  # of an option of a model

if TYPE_CHECKING:
    from syno.store import StudySummary
    from syno.train import Fidelity


@framework.command(
    name="search",
    examples=[
        (
            "twenty operators on CIFAR-10, the fast way",
            "syno search --data cifar10 --data-dir ~/data",
        ),
        (
            "a setting of the paper with its model, for small images",
            "syno search --data cifar10 --data-dir ~/data --preset paper/resnet18 \\\n"
            "      --model-option cifar_stem=1 --fidelity small --store r18.db",
        ),
        (
            "each a little, the best of them longer (three rungs)",
            "syno search --data cifar10 --data-dir ~/data --ladder fast/cifar --evaluations 64",
        ),
        (
            "projections of a small language model, by the held-out loss",
            "syno search --data ~/text --steps 200 --store text.db",
        ),
        (
            "longer training, and see first what it costs",
            "syno search --data cifar10 --data-dir ~/data --fidelity small --epochs 10 --dry-run",
        ),
    ],
)
@click.option(
    "--model",
    metavar="NAME",
    help="`syno models` lists them. [that of --preset paper/..., otherwise resnet-small, or "
    "gpt2-small for a text]",
)
@options.model_option_option
@click.option(
    "--data", required=True, metavar="NAME", help="digits, cifar10, an image folder, or a text."
)
@options.data_dir_option
@options.tokenizer_option
@click.option(
    "--evaluations",
    type=click.IntRange(1, MOST_COUNTED),
    default=20,
    show_default=True,
    help="Operators to train; those rejected before training come on top.",
)
@click.option("--seconds", type=float, help="Time limit; the evaluation that runs is finished.")
@options.store_option
@click.option("--name", metavar="NAME", help="Name of the study. Default: model, data, a number.")
@options.fidelity_options
@options.ladder_options
@options.seed_option
@click.option(
    "--method",
    default="uniform",
    show_default=True,
    metavar="NAME",
    help="How operators are chosen: uniform, or diverse.",
)
@click.option(
    "--max-nodes",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="How many partial graphs the enumeration visits.",
)
@options.deadline_option
@click.option(
    "--max-slowdown",
    type=float,
    default=4.0,
    show_default=True,
    help="Reject operators whose training step takes longer than so many of the original's.",
)
@options.isolation_options
@options.max_attempts_option
@options.timing_options
@options.rule_option
@options.specification_options
@output.dry_run_option
@output.json_option
@options.limit_options
def command(
    model: str | None,
    model_options: tuple[str, ...],
    data: str,
    data_dir: str | None,
    evaluations: int,
    store: str,
    fidelity: str | None,
    fidelity_changes: dict[str, int],
    ladder: str | None,
    eta: int | None,
    dry_run: bool,
    as_json: bool,
    max_attempts: int | None,
    **given: Any,
) -> int:
    """Find operators for a network: compose them, train the network with each, time it, store it.

    Everything is in the store as soon as it is known: a search that is stopped in any way goes on
    with `syno resume`. Bindings come from the layers of the network. Without --preset or shapes,
    the operators are sought in a setting for small images.
    """
    from syno.cli import running

    named = {name: given.pop(name) for name in options.SPECIFICATION_NAMES}
    arguments: dict[str, Any] = given | {
        "net": model or _model_of(named["preset"], data, data_dir),
        "data": data,
        "data_dir": data_dir,
        "model_options": numbers(model_options),
        "fidelity": _fidelity(fidelity, fidelity_changes, data, data_dir, ladder),
        "ladder": ladder,
        "eta": eta,
        "evaluations": evaluations,
        "store": store,
    }
    if max_attempts is not None:
        arguments["max_attempts"] = max_attempts
    arguments["limits"] = named.pop("limits")
    specification = options.named_specification(bindings=(), limits={}, **named)
    arguments["specification"] = named["preset"] or specification
    if ladder is not None:
        _check_evaluations(ladder, eta, evaluations)
    if dry_run:
        running.describe(arguments, as_json=as_json)
        return framework.OK
    return finished(running.search(arguments), store, as_json=as_json)


def _check_evaluations(name: str, eta: int | None, evaluations: int) -> None:
    """Say when no operator can come to the top."""
    from syno.study.fidelity.ladder import chosen

    ladder = chosen(name, eta)
    least = ladder.eta ** (len(ladder.rungs) - 1)
    if evaluations < least:
        output.say(
            f"of {evaluations} operators none may reach the top of ladder '{ladder.name}': with "
            f"{len(ladder.rungs)} rungs and eta {ladder.eta}, that takes {least}"
        )


def finished(summary: StudySummary, store: str, *, as_json: bool) -> int:
    """Print what a search found and what can be done with it; 1 when it trained nothing."""
    from syno.cli.commands import status
    from syno.store.overview import study_json

    if as_json:
        output.print_json(study_json(summary, operators=True))
    else:
        status.print_studies([summary])
        status.print_rungs(summary)
        status.print_operators(summary, limit=10)
        status.print_quarantine(summary)
        output.say(f"next: {report_line(store, summary.study.name)}")
    return framework.OK if summary.trained else framework.NEGATIVE


def report_line(store: str, study: str) -> str:
    """The command that writes the report of a study."""
    return shlex.join(["syno", "report", store, "--study", study, "-o", "report.html"])


def numbers(pairs: Sequence[str]) -> dict[str, Any]:
    """The options of a model, given as NAME=NUMBER, or weights=PATH. UserError for another form."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if name == "weights" and value:
            found[name] = value
        elif equals and value.isdecimal() and len(value) <= _MOST_DIGITS:
            found[name] = int(value)
        else:
            raise UserError(
                f"cannot read the model option '{pair}'\n  expected: as width=16, or weights=PATH"
            )
    return found


def _model_of(preset: str | None, data: str, data_dir: str | None) -> str:
    """The model whose layers a preset of the paper is about; a small one for any other."""
    from syno.data import is_text_data
    from syno.network.models.catalogue import MODELS

    found = [model.name for model in MODELS if preset is not None and model.preset == preset]
    if found:
        return found[0]
    return "gpt2-small" if is_text_data(data, data_dir) else "resnet-small"


def _fidelity(
    name: str | None,
    changes: dict[str, Any],
    data: str,
    data_dir: str | None,
    ladder: str | None,
) -> Fidelity | None:
    """The fidelity; None where a ladder says how networks are trained."""
    if ladder is None:
        from syno.study.evaluate.loading import fidelity_for

        return fidelity_for(name, changes, data, data_dir)
    given = [f"--{key}" for key in changes] + (["--fidelity"] if name else [])
    if given:
        raise UserError(
            f"{given[0]} cannot change a ladder: its rungs have fidelities of their own\n"
            "  what to do: a ladder of your own is a .toml file: --ladder mine.toml"
        )
    return None
