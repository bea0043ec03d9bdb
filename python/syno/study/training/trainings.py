"""Trainings of given operators: their networks, their order and their run key."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from syno._util.declaration import document
from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.data.custom import CustomData, CustomEvaluation
from syno.network.substitute import layer_report
from syno.network.surgery import slot_bindings
from syno.operands.layers import fit_to_network, layer_specification
from syno.study.evaluate.custom import metric_document
from syno.study.evaluate.engines import decide
from syno.study.evaluate.loading import Data, load_for
from syno.study.evaluate.network import Network
from syno.study.evaluate.quantization import Quantization
from syno.study.evaluate.run_key import EAGER, RunKey
from syno.study.predictions import check_measured
from syno.study.settings import GIVEN, StudySettings
from syno.study.training.probe import seconds_each
from syno.study_options import TrainingsOptions

if TYPE_CHECKING:
    from torch import nn

    from syno.data import TextData
    from syno.operands.lookup import NamedOperator
    from syno.operators.operator import Operator
    from syno.operators.specification import Specification
    from syno.train import Fidelity


# Options that only apply to the trainings of a search.
_OF_SEARCHES = ("ladder", "eta", "max_slowdown", "max_attempts")


@dataclass(frozen=True)
class Job:
    """One training: an operator (None: the original network) under its name, and a seed."""

    operator: Operator | None
    name: str
    seed: int


class Costs(TypedDict):
    """The MACs and parameters of all layers that operators replace."""

    macs: int | None
    params: int | None


class OperatorCosts(Costs):
    """Those of an operator."""

    name: str
    id: str | None
    key: str | None


class ForecastDocument(TypedDict):
    """What trainings would cost, before any of them."""

    model: str
    data: str
    fidelity: JsonObject
    layers: list[dict[str, object]]
    baseline: Costs
    operators: list[OperatorCosts]
    trainings: int
    seconds_each: float | None


@dataclass
class Trainings:
    """Trainings of some operators, and optionally of the baseline, with one model and data set.

    Call `prepare` first, and then `adopt`.

    options: how they are trained, timed and stored.
    model: the name of the model; None with `net`, a module.
    data: the name of a data set, or that of `own`, custom data.
    sizes: values of coefficients.
    latency: whether networks are timed.
    quantization: how trained networks are quantized; None if they are not.
    """

    options: TrainingsOptions
    model: str | None
    data: str
    fidelity: Fidelity
    sizes: Mapping[str, int] = field(default_factory=dict)
    latency: bool = True
    quantization: Quantization | None = None
    net: nn.Module | None = None
    own: CustomData | CustomEvaluation | None = None
    dataset: Data = field(init=False)
    note: str | None = field(init=False)  # for the user, about how networks are trained and timed
    chosen: list[NamedOperator] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    _networks: dict[int, Network] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.options
        given.train.refuse("given operators are trained completely", *_OF_SEARCHES)
        given.isolation.refuse("a training that failed is a row with its reason", *_OF_SEARCHES)
        if self.latency:
            check_measured(given.timing.latency)
        train, timing, self.note = decide(given.train, given.timing, given.device)
        folder = None if given.data_dir is None else str(given.data_dir)
        options = dict(given.model_options or {})
        self.options = dataclasses.replace(
            given, train=train, timing=timing, data_dir=folder, model_options=options
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the trainings of each operator."""
        return tuple(range(self.options.seed, self.options.seed + self.options.seeds))

    def prepare(self) -> None:
        """Load the data and build the network.

        Raises:
            UserError: if the arguments do not fit together.
        """
        from syno.train import check

        if self.own is not None:
            self.dataset = self.own
        else:
            self.dataset = load_for(
                self.data, self.options.data_dir, self.fidelity, self.options.train.tokenizer
            )
        if not isinstance(self.dataset, CustomEvaluation):
            check(self.dataset, self.fidelity, device=self.options.device)
        network = self.network(self.seeds[0])
        if self.quantization is not None:
            self._check_quantization(network, self.quantization)

    def _check_quantization(self, network: Network, how: Quantization) -> None:
        """Raise a UserError if the original network cannot be quantized to INT8."""
        from syno.data import DataSet, Records, TextData
        from syno.engines.engine import get
        from syno.inference import quantize
        from syno.train import training_images

        if not isinstance(self.dataset, (DataSet, Records)):
            kind = "text" if isinstance(self.dataset, TextData) else "custom data"
            raise UserError(
                f"'{self.data}' is {kind}, and only networks for images can be quantized to INT8\n"
                "  what to do: omit --quantize"
            )
        images = training_images(self.dataset, self.fidelity, 2, how.seed)
        get(how.engine)  # it may not be there
        quantize(network.original().eval(), images)

    def text(self) -> TextData:
        """Return the text.

        Raises:
            UserError: if the data set is images.
        """
        from syno.data import TextData

        if not isinstance(self.dataset, TextData):
            raise UserError(f"data set '{self.data}' is images\n  expected: a text")
        return self.dataset

    def adopt(self, chosen: Sequence[NamedOperator]) -> None:
        """Add operators to the trainings.

        Raises:
            UserError: for an operator that fits no layer of the network.
        """
        network = self.network(self.seeds[0])
        for each in chosen:
            try:
                operator = fit_to_network(each, network.template, self.sizes)
                network.with_operator(operator)
            except UserError as error:
                where = f"operator '{each.name}' in model '{self.title}'"
                raise UserError(f"{error}\n  {where}") from error
            self.chosen.append(each)
            self.operators.append(operator)

    def network(self, seed: int) -> Network:
        """Return the network with the initial weights of a seed, the same for every operator."""
        if seed not in self._networks:
            self._networks = {seed: self._network(seed)}
        return self._networks[seed]

    def _network(self, seed: int) -> Network:
        if self.own is not None:
            return Network.custom(self.net or self.title, self.own, seed)
        assert not isinstance(self.dataset, (CustomData, CustomEvaluation))
        size, context = self.fidelity.resolution, self.fidelity.context
        options = self.options.model_options
        if self.net is not None:
            return Network.given(self.net, self.dataset, seed, size=size, context=context)
        return Network.named(self.title, options, self.dataset, seed, size=size, context=context)

    @property
    def title(self) -> str:
        """The name of the model, or the class of the module."""
        return self.model or type(self.net).__name__

    def specification(self) -> Specification:
        """Return the specification of the layers, with the coefficients of all operators.

        Raises:
            UserError: if two operators have different values for one coefficient.
        """
        values: dict[str, int] = {}
        template = self.network(self.seeds[0]).template
        for each, operator in zip(self.chosen, self.operators, strict=True):
            assert operator.specification is not None
            for name, value in operator.specification.defaults.items():
                if name != operator.batch and values.setdefault(name, value) != value:
                    raise UserError(
                        f"operator '{each.name}' has {name}={value}, one before it has "
                        f"{name}={values[name]}\n"
                        "  what to do: train them separately, or set one size for both with "
                        "--binding "
                        f"{name}=..."
                    )
        found = layer_specification(template, values)
        return found.with_changes(**slot_bindings(template, found))

    def settings(self) -> StudySettings:
        """Return the settings of the study in the store."""
        kept = document(self.options.train) | document(self.options.isolation)
        return StudySettings(
            model=self.model,
            model_options=self.options.model_options,
            data=self.data,
            data_dir=self.options.data_dir,
            tokenizer=self.options.train.tokenizer,
            fingerprint=self.dataset.fingerprint,
            fidelity=self.fidelity.to_json(),
            training={name: value for name, value in kept.items() if name not in _OF_SEARCHES},
            method=GIVEN,
            latency=document(self.options.timing),
            evaluations=max(len(self.operators) * len(self.seeds), 1),
            seed=self.seeds[0],
            baseline=self.options.baseline,
            metric=metric_document(self.own),
        )

    @property
    def measures(self) -> tuple[str, ...]:
        """The fields of results that the trainings have, the accuracy or the loss."""
        if self.own is not None:
            return ("accuracy",) if self.own.metric.maximize else ("loss",)
        return ("accuracy", "loss") if self.fidelity.task == "text" else ("accuracy",)

    def run_key(self) -> RunKey:
        """Return the run key: what a result depends on beside operator, seed and machine."""
        return RunKey(
            self.fidelity.to_json(),
            self.dataset.fingerprint,
            self.options.timing.threads,
            latency=self.options.timing.latency or EAGER,
            kernels=self.options.train.kernels or EAGER,
        )

    def run_keys(self) -> list[RunKey]:
        """Return the run key, and that of the quantized networks if requested."""
        own = self.run_key()
        return [own] if self.quantization is None else [own, own.quantized(self.quantization)]

    def jobs(self) -> list[Job]:
        """List the trainings by seed, so that an early stop leaves complete comparisons."""
        named: list[tuple[Operator | None, str]] = (
            [(None, "baseline")] if self.options.baseline else []
        )
        named += [(o, c.name) for c, o in zip(self.chosen, self.operators, strict=True)]
        return [Job(operator, name, seed) for seed in self.seeds for operator, name in named]

    def seconds_each(self) -> float | None:
        """Estimate the seconds of one training from a few steps of the original network.

        Returns:
            The seconds; None if the steps failed.
        """
        seed = self.seeds[0]
        return seconds_each(
            self.network(seed),
            self.dataset,
            self.fidelity,
            seed=seed,
            threads=self.options.timing.threads,
            device=self.options.device,
        )

    def forecast(self) -> ForecastDocument:
        """Forecast the trainings.

        Returns:
            Plain values: the layers, the costs of each operator, the number of trainings and the
            seconds of each.
        """
        network, seconds = self.network(self.seeds[0]), self.seconds_each()
        layers = layer_report(network.template)
        costs: list[OperatorCosts] = []
        for chosen, operator in zip(self.chosen, self.operators, strict=True):
            _, report = network.with_operator(operator)
            macs, params = network.cost(operator, report)
            costs.append(
                {
                    "name": chosen.name,
                    "id": operator.structure,
                    "key": operator.key,
                    "macs": macs,
                    "params": params,
                }
            )
        return {
            "model": self.title,
            "data": self.data,
            "fidelity": self.fidelity.to_json(),
            "layers": [dataclasses.asdict(row) for row in layers.rows],
            "baseline": {"macs": network.macs, "params": network.params},
            "operators": costs,
            "trainings": len(self.jobs()),
            "seconds_each": seconds,
        }
