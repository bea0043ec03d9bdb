"""`syno adapt`: operators for the layers of a trained network, chosen and fine-tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util.errors import UserError
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.cli.results import print_results
from syno.operands.options import study as study_option
from syno.options import FidelityOptions
from syno.study_options import AdaptationOptions

if TYPE_CHECKING:
    from syno.adaptation.pipeline.adaptation import Adaptation
    from syno.adaptation.pipeline.arguments import AdaptationArguments
    from syno.adaptation.pipeline.progress import AdaptationObserver
    from syno.study.results import StudyResults
    from syno.train import Fidelity


@dataclass(frozen=True, kw_only=True)
class _FineTuning(FidelityOptions):
    """A fidelity of the fine-tuning, which has other defaults than one of a training."""

    fidelity: str | None = option(
        "How much networks are fine-tuned: a name, or a .toml file with a recipe.",
        None,
        metavar="NAME",
        unset="fast/adapt; fast/adapt-text for text",
    )
    precision: str | None = option(
        "Precision of the forward and backward pass: float32, bfloat16 or float16.",
        None,
        metavar="NAME",
        unset="that in which the network of --study was trained; otherwise float32",
    )


@dataclass(frozen=True, kw_only=True)
class NetworkArguments(Options):
    """A trained network with its data, further candidates, and how they are chosen."""

    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[OP]...")
    model: str | None = options.model(None, "that of --study")
    weights: str | None = options.weights()
    data: str | None = options.optional_data("that of --study")
    study: str | None = study_option()
    fidelity: FidelityOptions = group(_FineTuning)
    adaptation: AdaptationOptions = group(AdaptationOptions)

    @property
    def store(self) -> str:
        """The address of the store."""
        return str(self.adaptation.store)

    def network(self) -> str | StudyResults:
        """Return the name of a model, or the results of a study."""
        from syno.study.results import load_study

        if self.model is not None:
            if self.study is not None:
                raise UserError("--model and --study both name the network to adapt")
            return self.model
        if self.weights is not None:
            raise UserError("--weights is given without --model")
        return load_study(self.store, self.study or _latest(self.store))

    def arguments(self) -> AdaptationArguments:
        """Return the arguments of `syno.adapt`."""
        from syno.adaptation.pipeline.arguments import AdaptationArguments

        model_options = options.with_weights(self.adaptation.model_options, self.weights)
        return AdaptationArguments(
            self.network(),
            self.data,
            operators=self.ops,
            fidelity=self.chosen_fidelity(),
            **{**self.adaptation, "model_options": model_options},
        )

    def chosen_fidelity(self) -> Fidelity | Mapping[str, int | str] | None:
        """Return the fidelity of the fine-tuning, or changes of the default one."""
        from syno.study.evaluate.loading import chosen_fidelity

        if self.fidelity.fidelity is None:
            return self.fidelity.changes or None
        return chosen_fidelity(self.fidelity, self.data or "", self.adaptation.data_dir)


@dataclass(frozen=True, kw_only=True)
class _Arguments(NetworkArguments):
    engines: str | None = option(
        "Inference engines as in `syno bench network`, separated by commas, in which the original "
        "and the networks are timed at the end, in turns; `all` means all that are installed.",
        None,
        metavar="NAMES",
        unset="none",
    )
    report: Path | None = option("File for the report, an HTML page.", None)
    picture: Path | None = option("File for a plot (PNG or PDF).", None)
    out: Path | None = option(
        "Folder for the networks as code that runs without Syno.", None, metavar="DIRECTORY"
    )
    format_: str | None = option(
        "Format of the networks in --out, as in `syno export-network`.",
        None,
        names="--format",
        metavar="NAME",
        unset="cpp-network where the latencies are of such libraries, else torch-network",
    )
    out_precision: str | None = option(
        "Number format of layers in --out with --format cpp-network: float32, bfloat16, int8, or "
        "auto, which measures and chooses one for each layer.",
        None,
        metavar="NAME",
        unset="what was measured",
    )
    ship: Path | None = option(
        "Folder for the best network as libraries for several processors, with a loader in Python, "
        "an example in C and a model card.",
        None,
        metavar="DIRECTORY",
    )
    as_json: bool = output.as_json()


@framework.command("adapt", _Arguments)
def command(given: _Arguments) -> int:
    """Make a trained network faster: choose an operator for each layer, and fine-tune once.

    The network is a model with trained weights (--model, --weights), or the baseline network of a
    study (--study), which `syno train --baseline` trains. Operators of the zoo, of the store and of
    the default space, and every OP, are fitted to its layers. An integer program chooses one for
    each slot under each goal, by the latency of compiled code. The networks are trained for a few
    epochs with distillation from the original. With --name, the command continues an adaptation
    that was stopped. The exit code is 1 if no network loses at most --max-drop.
    """
    from syno.adaptation.pipeline.adapt import adapt
    from syno.codegen.export import formats
    from syno.inference.precision import AUTO, FLOAT32, INT8

    precision = given.out_precision or FLOAT32
    precision = INT8 if precision == AUTO else precision
    if given.format_ is not None or given.out_precision is not None:
        chosen = given.format_ or "cpp-network"
        formats.get(chosen, networks=True, fold_weights=False, precision=precision)
    engines = [] if given.engines is None else options.engine_names(given.engines)
    with output.progress("adapting", None, remaining=False) as move:
        found = adapt(**{**given.arguments(), "progress": watch(move)})
        if engines:
            found.compare(
                engines,
                threads=given.adaptation.options.threads,
                rounds=given.adaptation.options.rounds,
                progress=lambda done, total, what: move(done, f"engines, {done} of {total} {what}"),
            )
    if given.report is not None:
        found.report(given.report)
    if given.picture is not None:
        found.picture(given.picture)
    if given.out is not None:
        _export(found, given.out, given.format_, given.out_precision)
    if given.ship is not None and found.best is not None:
        output.say(f"wrote {found.ship(given.ship).card}")
    elif given.ship is not None:
        output.say(f"nothing was written to '{given.ship}', because no network is the best one")
    if given.as_json:
        print_results(found.to_json() | {"store": given.store})
    else:
        _print(found, given)
    return framework.OK if found.best is not None else framework.NEGATIVE


def watch(move: output.Move) -> AdaptationObserver:
    """An observer that moves a progress bar, and states the command that resumes the study."""

    from syno.adaptation.pipeline.progress import SENTENCES

    def watch(phase: str, done: int, total: int, remark: str) -> None:
        if phase == "study":
            framework.resumable(framework.this_command(name=remark))
        elif phase in SENTENCES:
            output.say(remark)
        else:
            move(done, f"{phase}, {done} of {total} {remark}".strip())

    return watch


def _latest(url: str) -> str | None:
    """The latest study that trained networks; None leaves the error to others."""
    from syno.store import Store
    from syno.store.records import ADAPTATION

    with Store.open(url, create=False, read_only=True) as store:
        found = [s.name for s in store.studies() if s.settings.get("method") != ADAPTATION]
    return found[-1] if found else None


def _export(found: Adaptation, folder: Path, format_: str | None, precision: str | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    best = [] if found.best is None or found.best in found.networks else [found.best]
    for each in (*found.networks, *best):
        place = folder / each.name.replace(",", "").replace(" ", "-").replace(".", "_")
        for file in found.export(place, each.name, format=format_, precision=precision).files:
            output.say(f"wrote {file}")


def _print(found: Adaptation, given: _Arguments) -> None:
    output.sections(found.sections())
    best = found.best
    if best is None:
        output.say("no network loses as little as is allowed; --max-drop allows more")
    elif given.out is None:
        line = framework.this_command(name=found.study, out="networks")
        output.say(f"the best network is {best.name}; `{line}` writes it")
