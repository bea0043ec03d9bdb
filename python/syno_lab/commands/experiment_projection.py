"""`syno experiment projection`: a projection of a language model against its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.options import Options, like, option, required
from syno.cli import framework, options, output
from syno.options import FidelityOptions, TimingOptions
from syno.study_options import TrainingsOptions

if TYPE_CHECKING:
    from syno_lab.experiments.projection import ProjectionComparison


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    op: str = option("", "gpt2-projection", names="OP")
    data: str = required("Text to train on: a name or a path.", metavar="NAME")
    data_dir: str | None = options.data_dir()
    model: str = option("Language model.", "gpt2-small", metavar="NAME")
    model_options: Mapping[str, int | str] = options.model_options()
    fidelity: str = option(
        "Fidelity of the training, with a number of steps.", "fast/text", metavar="NAME"
    )
    steps: int | None = like(FidelityOptions, "steps", section="Options")
    context: int | None = like(FidelityOptions, "context", section="Options")
    batch: int | None = like(FidelityOptions, "batch", section="Options")
    binding: str = option("Values of the operator's own variables.", "g=32,k=2", metavar="SIZES")
    seeds: int = like(TrainingsOptions, "seeds", default=2)
    seed: int = options.seed()
    threads: int = options.threads(1)
    device: str = like(TrainingsOptions, "device")
    rounds: int = option("Number of training steps of each network to time.", 30, minimum=2)
    out: Path = required(
        "File of the results (JSON); an existing file is continued.", names="--out/-o"
    )
    picture: Path | None = option("File for the plot (PNG).", None, unset="next to --out")
    as_json: bool = output.as_json()


@framework.command("experiment projection", _Arguments)
def command(given: _Arguments) -> int:
    """Compare a projection with that of the baseline at equal steps and at equal time.

    OP is an operator, given as for every command; without it, the command uses the operator of the
    paper. It times both networks alternately, trains both for the same number of steps, and trains
    the network with the operator once more for as many steps as take the time of the baseline. The
    exit code is 1 if a training failed.
    """
    from syno.operators.specification import checked_binding
    from syno.study.training.trainings import Trainings
    from syno.train import fidelity as named_fidelity
    from syno_lab.experiments.pictures import save_projection
    from syno_lab.experiments.projection import PausedError, compare_projection, prepared

    lengths = {"steps": given.steps, "context": given.context, "batch": given.batch}
    changes = {name: value for name, value in lengths.items() if value is not None}
    trainings = Trainings(
        TrainingsOptions(
            model_options=given.model_options,
            data_dir=given.data_dir,
            seeds=given.seeds,
            seed=given.seed,
            baseline=True,
            timing=TimingOptions(threads=given.threads),
            device=given.device,
        ),
        model=given.model,
        data=given.data,
        fidelity=named_fidelity(given.fidelity).changed(**changes),
        sizes=checked_binding(given.binding),
    )
    settings = prepared(trainings, given.op)
    try:
        with output.progress("training", 3 * given.seeds) as move:
            found = compare_projection(
                trainings.network,
                trainings.operators[0],
                trainings.text(),
                trainings.fidelity,
                seeds=trainings.seeds,
                path=given.out,
                settings=settings,
                threads=given.threads,
                device=given.device,
                rounds=given.rounds,
                progress=lambda done, total, remark: move(done, remark),
            )
    except PausedError:
        output.say(f"paused; the same command resumes from {given.out}")
        return framework.PAUSED
    picture = given.picture or given.out.with_suffix(".png")
    save_projection(found, picture)
    if given.as_json:
        output.print_json(found.as_json() | {"out": str(given.out), "picture": str(picture)})
    else:
        _print(found, given.out, picture)
    return framework.OK if all(run.status == "ok" for run in found.runs) else framework.NEGATIVE


def _print(found: ProjectionComparison, out: Path, picture: Path) -> None:
    from syno_lab.experiments.tables import projection_table, steps_table

    output.show(projection_table(found))
    timing = found.timing
    assert timing is not None
    output.show(steps_table(timing))
    output.say(
        f"a training step with the operator takes {timing.ratio:.3f} times as long as a step of "
        f"the baseline (median of {timing.rounds} rounds); results: {out}; plot: {picture}"
    )
