"""Custom data and custom evaluations in a search: how they are checked and run. Needs torch."""

from __future__ import annotations

import math
import time
import traceback
from dataclasses import replace

import torch
from torch import nn

from syno._util import checks
from syno._util.arguments import flag
from syno._util.errors import UserError, first_line
from syno._util.inputs import Inputs, arguments, shown, tensors_in
from syno._util.tensors import dense, described
from syno.data.custom import (
    CustomData,
    CustomEvaluation,
    MetricFunction,
    Outputs,
    custom_data,
    custom_evaluation,
)
from syno.network.surgery import recorded_example
from syno.store import Outcome
from syno.store.documents import MetricDocument
from syno.store.records import OK, REJECTED
from syno.study.fidelity.ladder import Ladder
from syno.train import Fidelity, Recipe, TrainingOutcome, fidelity
from syno.train.custom import class_dimension, loss_of

# The name of the fidelity of a custom evaluation, which says itself how a network is trained.
_OWN = "evaluate"


def custom(
    data: object,
    *,
    net: nn.Module | str | None = None,
    validation: object = None,
    loss: object = None,
    metric: object = None,
    maximize: bool = True,
    evaluate: object = None,
    example_input: Inputs | None = None,
) -> CustomData | CustomEvaluation | None:
    """Make custom data, or a custom evaluation, of the arguments of `syno.search`.

    Returns:
        None if `data` is the name of a data set.

    Raises:
        UserError: if the arguments do not go together.
    """
    flag("'maximize'", maximize)
    if isinstance(metric, str):
        checks.text("'metric'", metric)
    given = {"validation": validation, "loss": loss, "metric": metric}
    if evaluate is not None:
        extra = [name for name in ("validation", "loss") if given[name] is not None]
        extra += ["data"] if data is not None else []
        if extra:
            raise UserError(
                f"'evaluate' trains and evaluates networks itself, and '{extra[0]}' is given, too\n"
                "  expected: data with a loss and a metric, or evaluate= alone"
            )
        name = metric if metric is None or isinstance(metric, str) else repr(metric)
        example = _given_example(net, example_input)
        return custom_evaluation(evaluate, metric=name, maximize=maximize, example=example)
    if data is None:
        raise UserError(
            "there is no data\n  expected: the name of a data set, a torch.utils.data.Dataset or "
            "DataLoader,\n            or a function evaluate="
        )
    if isinstance(data, str):
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise UserError(
                f"'{named[0]}' is for a torch.utils.data.Dataset, and the data is '{data}'\n"
                "  expected: no such argument; a data set by name has its own loss and metric"
            )
        return None
    share = validation if isinstance(validation, float) else None
    return custom_data(
        data,
        validation=None if share is not None else validation,
        loss=loss,  # type: ignore[arg-type]  # it is checked there
        metric=metric,  # type: ignore[arg-type]
        maximize=maximize,
        net=net,
    )


def metric_document(data: CustomData | CustomEvaluation | None) -> MetricDocument | None:
    """Return what a store keeps of the metric of custom data; None for a data set by name."""
    if data is None:
        return None
    return {"name": data.metric.name, "maximize": data.metric.maximize}


def _given_example(net: nn.Module | str | None, given: Inputs | None) -> Inputs:
    """Return the example input of a custom evaluation: the given one, or that of `substitute`.

    Raises:
        UserError: if there is none.
    """
    found = given
    if found is None and isinstance(net, nn.Module):
        found = recorded_example(net)
    if found is None:
        raise UserError(
            "'evaluate' needs an input of the network, with which its latency is measured\n"
            "  what to do: pass example_input=, such as torch.zeros(1, 3, 32, 32), or a tuple of "
            "several"
        )
    for each in arguments(found):
        dense("'example_input'", each)
    return found


def custom_fidelity(
    data: CustomData | CustomEvaluation, given: Fidelity | str | None, validation: object
) -> Fidelity:
    """Return the fidelity of a training on custom data.

    The batch size of a DataLoader and a share for validation replace those of a named fidelity.

    Raises:
        UserError: for a share that is not between 0 and 1, and a fidelity beside `evaluate`.
    """
    if isinstance(data, CustomEvaluation):
        if given is not None:
            raise UserError(
                "'evaluate' trains networks itself, so a fidelity has no effect\n"
                "  expected: no fidelity"
            )
        return Fidelity(_OWN, epochs=1, recipe=Recipe(_OWN, task="custom"))
    if isinstance(given, Fidelity):
        return _adjusted(given, None, validation)
    return _adjusted(fidelity(given or "custom"), data.batch, validation)


def _adjusted(found: Fidelity, batch: int | None, validation: object) -> Fidelity:
    changes: dict[str, float] = {} if batch is None else {"batch": batch}
    if isinstance(validation, float):
        changes |= {"holdout": validation}
    if not changes:
        return found
    return found.changed(name=found.name_with(changes), **changes)


def custom_ladder(
    data: CustomData | CustomEvaluation, ladder: Ladder, validation: object
) -> Ladder:
    """Return a ladder for custom data.

    The batch size of a DataLoader and a share for validation replace those of all rungs.

    Raises:
        UserError: for a ladder for images or for a part of a network's width, and for `evaluate`.
    """
    if isinstance(data, CustomEvaluation):
        raise UserError(
            "'evaluate' trains networks itself, so the rungs of a ladder have no effect\n"
            "  expected: no ladder"
        )
    if ladder.task != "custom":
        raise UserError(
            f"ladder '{ladder.name}' is for {ladder.task}, and '{data.name}' is custom data\n"
            "  expected: a ladder such as fast/custom, whose recipe is for custom data"
        )
    if any(rung.width != 1 for rung in ladder.rungs):
        raise UserError(
            f"ladder '{ladder.name}' has rungs with a part of the network's width, and a module "
            "has no width to change\n  expected: a ladder without `width`"
        )
    rungs = [
        replace(rung, fidelity=_adjusted(rung.fidelity, data.batch, validation))
        for rung in ladder.rungs
    ]
    return replace(ladder, rungs=tuple(rungs))


def checked_fit(net: nn.Module, data: CustomData) -> None:
    """Run a network on two samples, and compute their loss.

    Raises:
        UserError: if the samples do not fit the network, or its outputs not the targets. The text
            names both.
    """
    outputs = checked_run(net, data.example, f"'{data.name}'")
    with torch.no_grad():
        try:
            loss_of(data, outputs, data.targets, 0.0)
        except UserError:
            raise
        except Exception as error:  # whatever a function of the user raises
            raise _function_failed("the loss", error, outputs, data) from error
        if data.metric.function is not None:
            _check_metric(data.metric.function, data.metric.name, outputs, data)
    if data.classes is not None:
        classes = outputs.shape[class_dimension(outputs, data.targets)]
        if data.classes > classes:
            raise UserError(
                f"the network gives {classes} scores, and '{data.name}' has class "
                f"{data.classes - 1}\n  expected: a network with at least {data.classes} classes, "
                "numbered from 0"
            )


def _check_metric(function: MetricFunction, name: str, outputs: Outputs, data: CustomData) -> None:
    """Raise a UserError for a metric that fails on some samples, or gives no number."""
    what = f"the metric '{name}'"
    try:
        found = function(outputs, data.targets)
    except UserError:
        raise
    except Exception as error:  # whatever a function of the user raises
        raise _function_failed(what, error, outputs, data) from error
    try:
        if isinstance(found, (bool, str, bytes)):
            raise TypeError("no number")
        float(found)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(
            f"{what} gives no number\n"
            f"  expected: the mean over a batch      got: {described(found)}"
        ) from error


def _function_failed(what: str, error: Exception, outputs: Outputs, data: CustomData) -> UserError:
    return UserError(
        f"{what} fails on what the network gives: {_in_words(error)}\n"
        f"  outputs: {_described(outputs)}      targets of '{data.name}': "
        f"{_described(data.targets)}"
    )


def _in_words(error: Exception) -> str:
    """The first line of an error; with its kind where that says what happened."""
    plain = isinstance(error, (RuntimeError, ValueError, TypeError))
    return first_line(error) if plain else f"{type(error).__name__}: {first_line(error)}"


def checked_run(net: nn.Module, example: Inputs, source: str) -> Outputs:
    """Return what a network gives for an example in evaluation mode.

    Raises:
        UserError: if it fails, with the layer that fails and what that layer takes.
    """
    last: list[tuple[str, nn.Module, tuple[object, ...]]] = []
    hooks = [
        module.register_forward_pre_hook(
            lambda module, inputs, name=name: last.append((name, module, inputs))
        )
        for name, module in net.named_modules()
        if not any(module.children())
    ]
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        with torch.no_grad():
            return net(*arguments(example))
    except UserError:
        raise
    except Exception as error:  # whatever a network of the user raises
        where = ""
        if last:
            name, module, inputs = last[-1]
            kind = str(module).partition("\n")[0]
            where = f"\n  layer '{name}', {kind}, gets {', '.join(map(_described, inputs))}"
        raise UserError(
            f"the network {type(net).__name__} does not take the samples of {source}\n"
            f"  a batch of samples: {_described(example)}{where}\n  {_in_words(error)}"
            + _advice(example)
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
        for module, training in modes.items():
            module.training = training


def _advice(example: Inputs) -> str:
    """What to do about samples of another type than that of weights."""
    if any(x.is_floating_point() and x.dtype != torch.float32 for x in arguments(example)):
        return (
            "\n  what to do: give samples of float32, as in TensorDataset(inputs.float(), targets)"
        )
    return ""


def evaluated(evaluation: CustomEvaluation, net: nn.Module, seed: int) -> TrainingOutcome:
    """Train and evaluate a network with the function of the user.

    The random numbers of torch start from `seed`, and their state is restored afterwards. What the
    function raises is raised.

    Raises:
        UserError: if it returns neither a number nor a `syno.Outcome`.
    """
    began = time.perf_counter()
    net.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = evaluation.function(net)
    net.eval()
    metric = evaluation.metric
    if isinstance(found, torch.Tensor) and found.numel() == 1:
        found = float(found)
    if isinstance(found, bool) or not isinstance(found, (int, float, Outcome)):
        raise UserError(
            f"'{evaluation.name}' returned {type(found).__name__}\n"
            f"  expected: the {metric.name} as a number, or a syno.Outcome"
        )
    if isinstance(found, Outcome):
        status, reason = found.status, found.reason
        value = found.accuracy if metric.maximize else found.details.get("loss")
    else:
        status, reason, value = OK, "", float(found)
    if status == OK and value is None:
        field = "accuracy" if metric.maximize else "details['loss']"
        raise UserError(f"the outcome of '{evaluation.name}' is ok and has no {field}")
    if value is not None and not math.isfinite(value):
        status, reason, value = REJECTED, f"the {metric.name} is {value}", None
    return TrainingOutcome(
        status=status,  # type: ignore[arg-type]  # that of an Outcome
        reason=reason,
        detail="",
        accuracy=value if metric.maximize else None,
        loss=None if metric.maximize else value,
        curve=(),
        loss_sum=0.0,
        seconds=time.perf_counter() - began,
        epochs_done=0,
        images_seen=0,
        threads=torch.get_num_threads(),
        seed=seed,
        fidelity=_OWN,
    )


def baseline_failed(data: CustomData | CustomEvaluation, error: Exception) -> UserError:
    """Make the error for functions of the user that fail on the original network."""
    trace = "".join(traceback.format_exception(error, limit=-3)).rstrip().splitlines()
    on = f"'{data.name}'" if isinstance(data, CustomEvaluation) else f"training on '{data.name}'"
    return UserError(
        f"{on} failed on the original network: {type(error).__name__}: {first_line(error)}\n  "
        + "\n  ".join(trace)
    )


def check_baseline(data: object, training: TrainingOutcome) -> None:
    """Raise a UserError where what the user measures is not finite on the original network."""
    if not isinstance(data, (CustomData, CustomEvaluation)) or training.status != REJECTED:
        return
    if isinstance(data, CustomData) and data.metric.function is None:
        return  # its loss: the study stops and says so
    name, found = data.metric.name, training.detail or training.reason
    if found.startswith(f"the {name} "):
        raise UserError(
            f"the original network has no finite {name}, so that no operator can be judged\n"
            f"  {found}\n"
            "  expected: a finite number for a trained network      what to do: correct the "
            "function, or the data that it gets"
        )


def _described(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return shown(value)
    kind = type(value).__name__
    return f"{kind} of {shown(value)}" if tensors_in(value) else kind
