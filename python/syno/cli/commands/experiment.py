"""`syno experiment`: the paper's experiments on synthesis, and experiments with trainings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno.cli import framework, options, output
from syno.cli.commands.experiment_projection import command as projection_command
from syno.cli.commands.experiment_ranking import command as ranking_command
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.experiments import Ablation, CanonicalRate, Guided


@framework.group(
    name="experiment",
    examples=[
        (
            "how few graphs are left by the rules, by size",
            "syno experiment canonical-rate --preset paper/resnet18 --samples 2000",
        ),
        (
            "what a distance is worth to random trials",
            "syno experiment distance-ablation --preset paper/resnet18 --trials 2000",
        ),
        (
            "for programs",
            "syno experiment canonical-rate --preset paper/resnet18 --samples 500 --json",
        ),
    ],
)
def command() -> None:
    """Repeat experiments of the paper, its figures beside ours, and others with trainings.

    Each prints a table and writes a picture.
    """


def _picture_option(default: str) -> Any:
    return click.option(
        "--picture",
        type=click.Path(dir_okay=False, path_type=Path),
        default=default,
        show_default=True,
        help="Where the picture goes (PNG).",
    )


_threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads; the result does not depend on it. [all cores]",
)


def _depth_option(default: int | None, shown: str) -> Any:
    return click.option(
        "--depth",
        type=click.IntRange(min=2),
        default=default,
        help=f"Primitives in an operator. [{shown}]",
    )


@framework.command(
    name="canonical-rate",
    examples=[
        (
            "as many samples as the paper drew",
            "syno experiment canonical-rate --preset paper/resnet18 --samples 6452",
        ),
        (
            "for programs, with the picture elsewhere",
            "syno experiment canonical-rate --preset paper/resnet18 --samples 500 \\\n"
            "      --picture build/canonical.png --json",
        ),
    ],
)
@options.specification_options
@options.bindings_option
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Complete graphs to draw.",
)
@options.seed_option
@_depth_option(10, "10")
@click.option(
    "--guide",
    type=click.Choice(["none", "distance", "distance-once", "bound"]),
    default="distance",
    show_default=True,
    help="What keeps a walk near the input.",
)
@_threads_option
@options.rule_option
@_picture_option("canonical-rate.png")
@output.json_option
@options.limit_options
def canonical_rate_command(
    samples: int,
    seed: int,
    depth: int,
    guide: str,
    threads: int | None,
    rules_off: list[str],
    picture: Path,
    as_json: bool,
    **named: Any,
) -> int:
    """Draw complete graphs without rules, and count those that the rules keep (Table 2).

    A sample is canonical when no rule refuses it: some order of its steps is allowed. The exit code
    is 1 when fewer samples were found than asked for.
    """
    from syno.experiments import canonical_rate
    from syno.experiments.pictures import save_canonical_rate

    specification = options.required_specification(**named)
    with output.progress("drawing", samples) as move:

        def watch(found: int) -> bool:
            move(min(found, samples), f"{found:,} samples")
            return True

        result = canonical_rate(
            specification,
            samples=samples,
            seed=seed,
            depth=depth,
            guide=guide,
            rules_off=rules_off,
            threads=threads or 0,
            progress=watch,
        )
    save_canonical_rate(result, _writable(picture))
    if as_json:
        output.print_json(result.as_json() | {"picture": str(picture)})
    else:
        _print_rate(result, picture)
    return framework.OK if result.samples >= samples else framework.NEGATIVE


@framework.command(
    name="distance-ablation",
    examples=[
        (
            "with and without",
            "syno experiment distance-ablation --preset paper/resnet18 --trials 5000",
        ),
        (
            "for programs, on shapes of one's own",
            "syno experiment distance-ablation --input '[C_in, H]' --output '[C_out, H]' \\\n"
            "      --primary 'C_in: 2' --primary 'C_out: 2' --primary 'H: 0' \\\n"
            "      --coefficient 'k=3: 1' --binding C_in=16,C_out=16,H=32 --trials 500 --json",
        ),
    ],
)
@options.specification_options
@options.bindings_option
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    help="Trials under each guide.",
)
@options.seed_option
@_depth_option(None, "max_depth of the specification")
@_threads_option
@options.rule_option
@_picture_option("distance-ablation.png")
@output.json_option
@options.limit_options
def distance_ablation_command(
    trials: int,
    seed: int,
    depth: int | None,
    threads: int | None,
    rules_off: list[str],
    picture: Path,
    as_json: bool,
    **named: Any,
) -> int:
    """Run random trials with and without a distance, and count the operators they find.

    A trial takes random steps that the specification and the rules allow, and never goes back.
    Every operator on its way that passes all conditions counts. The exit code is 1 when none was
    found under any guide.
    """
    from syno.experiments import distance_ablation
    from syno.experiments.ablation import GUIDES
    from syno.experiments.pictures import save_ablation

    specification = options.required_specification(**named)
    order = list(GUIDES)
    with output.progress("trials", trials * len(order)) as move:

        def watch(guide: str, done: int) -> bool:
            move(order.index(guide) * trials + done, f"guided by {GUIDES[guide]}")
            return True

        result = distance_ablation(
            specification,
            trials=trials,
            seed=seed,
            depth=depth or 0,
            rules_off=rules_off,
            threads=threads or 0,
            progress=watch,
        )
    save_ablation(result, _writable(picture))
    if as_json:
        output.print_json(result.as_json() | {"picture": str(picture)})
    else:
        _print_ablation(result, picture)
    return framework.OK if any(run.valid for run in result.guided) else framework.NEGATIVE


def _writable(picture: Path) -> Path:
    from syno._util.errors import UserError

    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
        with picture.open("ab"):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write the picture '{picture}': {error.strerror or error}\n"
            "  what to do: name another file with --picture"
        ) from error
    return picture


def _print_rate(result: CanonicalRate, picture: Path) -> None:
    rows = []
    for row in result.rows:
        low, high = row.interval
        rows.append(
            [
                row.label,
                f"{row.samples:,}",
                f"{row.canonical:,}",
                fmt.MISSING if row.rate is None else f"{row.rate:.4f}",
                f"{low:.4f} to {high:.4f}" if row.samples else fmt.MISSING,
                f"{row.paper:.4f}",
                f"{row.listed:,}",
                f"{row.structures:,}",
                f"{row.operators:,}",
            ]
        )
    rows.append(
        [
            "all",
            f"{result.samples:,}",
            f"{result.canonical:,}",
            f"{result.canonical / result.samples:.4f}" if result.samples else fmt.MISSING,
            "",
            f"{86 / 6452:.4f}",
            f"{sum(row.listed for row in result.rows):,}",
            "",
            "",
        ]
    )
    headings = [
        ("primitives", "left"),
        ("samples", "right"),
        ("canonical", "right"),
        ("rate", "right"),
        ("95 % interval", "right"),
        ("paper", "right"),
        ("listed", "right"),
        ("structures", "right"),
        ("operators", "right"),
    ]
    output.console().print(output.table(headings, rows))
    output.say(
        f"{result.shapes}; guided by {result.guide}; {result.trials:,} trials in "
        f"{fmt.duration(result.seconds)}; picture: {picture}"
    )


def _print_ablation(result: Ablation, picture: Path) -> None:
    from syno.experiments.ablation import PAPER

    rows = [_ablation_row("paper", run) for run in PAPER]
    rows += [_ablation_row("ours", run) for run in result.guided]
    headings = [
        ("", "left"),
        ("guide", "left"),
        ("trials", "right"),
        ("complete", "right"),
        ("valid", "right"),
        ("distinct", "right"),
        ("distinct in a million trials", "right"),
        ("seconds", "right"),
        ("cores", "right"),
        ("distinct a core second", "right"),
    ]
    output.console().print(output.table(headings, rows))
    output.say(f"{result.shapes}; seed {result.seed}; picture: {picture}")


def _ablation_row(who: str, run: Guided) -> list[str]:
    def shown(value: float | None, digits: str) -> str:
        return fmt.MISSING if value is None else format(value, digits)

    return [
        who,
        run.guide,
        f"{run.trials:,}",
        shown(run.complete, ","),
        shown(run.valid, ","),
        f"{run.distinct:,}",
        shown(run.per_million(run.distinct), ",.1f"),
        f"{run.seconds:.2f}",
        str(run.cores),
        shown(run.per_core_second(run.distinct), ".4f"),
    ]


command.add_command(canonical_rate_command)
command.add_command(distance_ablation_command)
command.add_command(projection_command)
command.add_command(ranking_command)
