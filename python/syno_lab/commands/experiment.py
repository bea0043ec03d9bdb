"""`syno experiment`: the experiments of the paper on synthesis."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.cli.results import print_results
from syno.space.options import rules_off, threads
from syno.space.specification_options import NamedSpecification
from syno_lab.experiments.options import SAMPLE_DEPTH, SAMPLES, TRIALS

if TYPE_CHECKING:
    from syno_lab.experiments import Ablation, CanonicalRate


@framework.group("experiment", "experiment_projection", "experiment_ranking")
def command() -> None:
    """Repeat experiments of the paper, and run experiments with trainings.

    Each experiment prints a table with the paper's figures, if there are any, and writes a plot.
    """


@dataclass(frozen=True, kw_only=True)
class _CanonicalRateArguments(Options):
    named: NamedSpecification = group(NamedSpecification)
    samples: int = option("Number of complete graphs to sample.", SAMPLES, minimum=1)
    seed: int = options.seed()
    depth: int = option("Maximum number of primitives in an operator.", SAMPLE_DEPTH, minimum=2)
    guide: str = option(
        "How a random walk is guided towards the input.",
        "distance",
        choices=("none", "distance", "distance-once", "bound"),
    )
    threads: int | None = threads()
    rules_off: tuple[str, ...] = rules_off()
    picture: Path = option("File for the plot (PNG).", Path("canonical-rate.png"))
    as_json: bool = output.as_json()


@framework.command("experiment canonical-rate", _CanonicalRateArguments)
def canonical_rate_command(given: _CanonicalRateArguments) -> int:
    """Sample complete graphs without rules, and count the canonical ones (Table 2).

    A sample is canonical if the rules allow some order of its steps. The exit code is 1 if fewer
    samples were found than requested.
    """
    from syno_lab.experiments import canonical_rate
    from syno_lab.experiments.pictures import save_canonical_rate

    specification = given.named.required()
    with output.progress("sampling", given.samples) as move:

        def watch(found: int) -> bool:
            move(min(found, given.samples), f"{found:,} samples")
            return True

        result = canonical_rate(
            specification,
            samples=given.samples,
            seed=given.seed,
            depth=given.depth,
            guide=given.guide,
            rules_off=given.rules_off,
            threads=given.threads or 0,
            progress=watch,
        )
    save_canonical_rate(result, given.picture)
    if given.as_json:
        print_results(result.as_json() | {"picture": str(given.picture)}, threads=given.threads)
    else:
        _print_rate(result, given.picture)
    return framework.OK if result.samples >= given.samples else framework.NEGATIVE


@dataclass(frozen=True, kw_only=True)
class _DistanceAblationArguments(Options):
    named: NamedSpecification = group(NamedSpecification)
    trials: int = option("Number of trials with each guide.", TRIALS, minimum=1)
    seed: int = options.seed()
    depth: int | None = option(
        "Maximum number of primitives in an operator.",
        None,
        minimum=2,
        unset="max_depth of the specification",
    )
    threads: int | None = threads()
    rules_off: tuple[str, ...] = rules_off()
    picture: Path = option("File for the plot (PNG).", Path("distance-ablation.png"))
    as_json: bool = output.as_json()


@framework.command("experiment distance-ablation", _DistanceAblationArguments)
def distance_ablation_command(given: _DistanceAblationArguments) -> int:
    """Run random trials with and without a distance, and count the operators that they find.

    A trial takes random steps that the specification and the rules allow, without backtracking.
    Each operator on its path that passes all conditions counts. The exit code is 1 if no guide
    found an operator.
    """
    from syno_lab.experiments import distance_ablation
    from syno_lab.experiments.ablation import GUIDES
    from syno_lab.experiments.pictures import save_ablation

    specification = given.named.required()
    order = list(GUIDES)
    with output.progress("trials", given.trials * len(order)) as move:

        def watch(guide: str, done: int) -> bool:
            move(order.index(guide) * given.trials + done, f"guided by {GUIDES[guide]}")
            return True

        result = distance_ablation(
            specification,
            trials=given.trials,
            seed=given.seed,
            depth=given.depth or 0,
            rules_off=given.rules_off,
            threads=given.threads or 0,
            progress=watch,
        )
    save_ablation(result, given.picture)
    if given.as_json:
        print_results(result.as_json() | {"picture": str(given.picture)}, threads=given.threads)
    else:
        _print_ablation(result, given.picture)
    return framework.OK if any(run.valid for run in result.guided) else framework.NEGATIVE


def _print_rate(result: CanonicalRate, picture: Path) -> None:
    from syno_lab.experiments.tables import rate_table

    output.show(rate_table(result))
    output.say(
        f"{result.shapes}; guided by {result.guide}; {result.trials:,} trials in "
        f"{fmt.duration(result.seconds)}; plot: {picture}"
    )


def _print_ablation(result: Ablation, picture: Path) -> None:
    from syno_lab.experiments.tables import ablation_table

    output.show(ablation_table(result))
    output.say(f"{result.shapes}; seed {result.seed}; plot: {picture}")
