"""The JSON documents in columns of the store. Older versions of Syno wrote fewer fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from syno._util.json_types import Json


class Calibration(TypedDict):
    """The training images that a quantized network was calibrated on."""

    images: int
    seed: int


class RunRecipe(TypedDict, total=False):
    """What a result depends on, beside operator, seed and machine: see `RunKey`.

    fidelity: as `Fidelity.to_json`; data: the fingerprint of the data set; threads: of training and
    timing; latency: the engine of the timing, eager PyTorch if it is absent; width, of_epochs: of a
    rung; precision, engine, calibration: of a quantized network; kernels: `compiled`, where
    operators were trained as compiled code.
    """

    fidelity: Mapping[str, Json]
    data: str
    threads: int
    latency: str
    width: float
    of_epochs: int | None
    precision: str
    engine: str
    calibration: Calibration
    kernels: str


class EngineTime(TypedDict):
    """The latency of a network in an inference engine."""

    median_ms: float
    spread_ms: float


class PredictedLatency(TypedDict, total=False):
    """A latency that was predicted and not measured.

    median_ms: of its distribution; low_ms, high_ms: 90 % of it lie between; ratio: to the
    prediction for the original network; whole: whether the layers that stay are part of the
    milliseconds; device: that it is for; samples: what the predictor has learned from.
    """

    median_ms: float
    low_ms: float
    high_ms: float
    ratio: float
    whole: bool
    device: str
    samples: int


class Details(TypedDict, total=False):
    """What an evaluation found that has no column of its own.

    losses: of the training, one for each epoch; loss_sum, tail_loss: their sum over all steps and
        their mean over the last ones; training_s, step_s: seconds of the training and of a step;
        steps: optimizer steps; peak_bytes: peak memory of the process; device: that trained;
        resumed_at: the epoch of the checkpoint that the training of a rung started from.
    loss, perplexity, bits_a_byte, tokens_seen, tokens_per_s: of text.
    kept: by slot that kept its layer, the reason.
    not_compiled: why operators were trained in eager PyTorch although they were to be compiled.
    control, stream, noisy: how quiet the machine was while the network was timed, in its caches and
        its memory; latency_engine: what ran it, eager PyTorch if it is absent; rivals: the original
        network in other engines, by name.
    predicted_latency: of a trial without a measured one.
    latency_ratio: of the original network in INT8 to the one in float32.
    calibration_images, network_macs, int8_macs, float_parts: of a quantized network.
    holdout_accuracy, holdout_loss: of a finalist, whose own values are those of the test split.
    by_seed: of an operator that was trained with several seeds, the values by seed, of which the
        result has the mean.
    failure, traceback, output, printed_bytes, left: of an evaluation that ended without an answer.
    """

    losses: list[float | None]
    loss_sum: float | None
    tail_loss: float | None
    training_s: float
    step_s: float | None
    steps: int
    peak_bytes: int | None
    device: str
    resumed_at: int
    loss: float | None
    perplexity: float | None
    bits_a_byte: float | None
    tokens_seen: int
    tokens_per_s: float | None
    kept: dict[str, str]
    control: Json
    stream: Json
    noisy: bool
    not_compiled: str
    latency_engine: str
    rivals: dict[str, EngineTime]
    latency_ratio: float
    predicted_latency: PredictedLatency
    calibration_images: int
    network_macs: int
    int8_macs: int
    float_parts: Mapping[str, int]
    holdout_accuracy: float | None
    holdout_loss: float | None
    by_seed: dict[str, float]
    failure: str
    traceback: str
    output: str
    printed_bytes: int
    left: str


class RungDocument(TypedDict):
    """A rung of a ladder, as `Ladder.to_json`."""

    fidelity: Mapping[str, Json]
    width: float


class LadderDocument(TypedDict, total=False):
    """A ladder, as `Ladder.to_json`; fingerprints: of the data as each rung loads it."""

    name: str
    rungs: list[RungDocument]
    eta: int
    fingerprints: list[str]


class MetricDocument(TypedDict):
    """The metric of a study on custom data: its name, and whether it is maximized."""

    name: str
    maximize: bool


class SettingsDocument(TypedDict, total=False):
    """The settings of a study, as `StudySettings.to_json`: those that are read by their names here.

    training, space, latency: what is stored of the options of the study.
    """

    model: str | None
    model_options: Mapping[str, int | str]
    data: str | None
    data_dir: str | None
    tokenizer: str
    fingerprint: str
    fidelity: Mapping[str, Json]
    ladder: LadderDocument | None
    training: Mapping[str, Json]
    space: Mapping[str, Json]
    method: str
    method_options: Mapping[str, Json]
    latency: Mapping[str, Json]
    evaluations: int
    seed: int
    baseline: bool
    metric: MetricDocument
    objectives: Sequence[str]
    constraints: Sequence[str]
    needs: Sequence[str]


class EventData(TypedDict, total=False):
    """What an event of a study's log says beside its kind.

    proposal, ask: of `asked`, `leased`, `dropped`, `promoted` (with `rung`), `told` and `evaluated`
        (with `status`).
    operators, keys, digest, rules, rejections: of `space`; operators and digest of `imported`.
    reason, text: of `stopped`; reason alone of `dropped` and `failed`, with `failure`.
    key: of `released`, and with the text of the operator of `enqueued`.
    evaluations, seconds, training: of `resumed`.
    seen: of `asked`, how many events the proposal follows from.
    token, outcome: of `dropped`: what a late answer said.
    asks: of `distrusted`, which versions up to 9 wrote: the proposals whose answers were taken
        back.
    what, key, value: of `finding` and `change`, in an adaptation; name, seconds: of its `phase`.
    """

    proposal: int
    ask: int
    seen: int
    token: int | None
    outcome: Json
    asks: list[int]
    rung: int
    status: str
    operators: int
    keys: int
    digest: str
    rules: str
    rejections: dict[str, int]
    reason: str
    text: str
    failure: str
    key: str
    evaluations: int
    seconds: float
    training: Mapping[str, Json]
    what: str
    value: Json
    name: str
