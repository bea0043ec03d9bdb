"""Custom data: a `torch.utils.data.Dataset` or `DataLoader`, or a function to evaluate a network.

Imported on its own, since it needs torch.
"""

from __future__ import annotations

import hashlib
import inspect
import io
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate
from torch.utils.data.sampler import RandomSampler, SequentialSampler

from syno._util.errors import UserError, first_line
from syno._util.inputs import (
    Inputs,
    Targets,
    arguments,
    one_or_several,
    shown,
    tensors_in,
)
from syno._util.tensors import dense
from syno.data.random import Stream

# A loss: (outputs of the network, targets) -> a scalar tensor. A metric: the same, or a number.
# Outputs are what the network of a user returns, which may be no tensor.
Outputs: TypeAlias = Any
Loss = Callable[[Outputs, Targets], torch.Tensor]
MetricFunction = Callable[[Outputs, Targets], "torch.Tensor | float"]
Collate = Callable[[list[object]], Any]

# Samples by their numbers, each as a batch of its own that was made twice.
Seen: TypeAlias = "dict[int, tuple[tuple[Inputs, Targets], tuple[Inputs, Targets]]]"

# So many samples are compared to recognize a data set, and are looked at for its classes.
_LOOKED_AT = 16


@dataclass(frozen=True)
class Metric:
    """A measure of a network on the validation split.

    name: of the measure: `accuracy`, `loss`, or that of a function.
    maximize: whether greater values are better.
    function: (outputs, targets) -> the mean over a batch; None for the accuracy and for the loss.
    """

    name: str
    maximize: bool
    function: MetricFunction | None = None


@dataclass(frozen=True)
class Batching:
    """Makes a batch of samples: inputs as the network takes them, and targets as the loss does.

    collate: the function of a DataLoader. names: where it gives a dictionary of inputs, its keys in
    the order of the network's arguments.
    """

    collate: Collate = default_collate
    names: tuple[str, ...] = ()

    def __call__(self, samples: list[object]) -> tuple[Inputs, Targets]:
        """The batch of these samples."""
        inputs, targets = self.collate(samples)
        if isinstance(inputs, Mapping):
            inputs = [inputs[name] for name in self.names]
        return inputs if isinstance(inputs, torch.Tensor) else one_or_several(inputs), targets


@dataclass(frozen=True, eq=False)
class CustomData:
    """Pairs (input, target), with a loss and a metric.

    An input is a tensor, or a tuple or dictionary of the network's arguments. A target is what the
    loss takes.

    name: the class of the data set.
    train: the samples to train on, and unless `validation` is given also those to validate with.
    validation: the samples to validate with; None for a share of `train`, as the fidelity says.
    batching: makes a batch of a list of samples.
    loss: None for the cross-entropy of classes.
    batch: the batch size of a DataLoader; None for that of the recipe.
    example: inputs [2, ...] of the first samples, a tuple for a network of several; targets: those
        that belong to them.
    classes: one more than the largest class that was seen; None if the targets are no classes.
    fingerprint: 32 hexadecimal digits that identify content, loss and metric.
    """

    name: str
    train: Dataset[object]
    validation: Dataset[object] | None
    batching: Batching
    loss: Loss | None
    metric: Metric
    batch: int | None
    example: Inputs = field(repr=False)
    targets: Targets = field(repr=False)
    classes: int | None
    fingerprint: str

    def split(self, share: float, seed: int) -> tuple[Samples, Samples]:
        """Return the training and the validation samples.

        Args:
            share: the share of `train` that is for validation, unless there is `validation`.
            seed: the same seed selects the same samples.
        """
        count = _length(self.train)
        if self.validation is not None:
            every = np.arange(_length(self.validation))
            held = Samples(self.validation, every, self.batching)
            return Samples(self.train, np.arange(count), self.batching), held
        order = Stream(seed, 0).permutation(count)
        kept = min(max(round(share * count), 1), count - 1)
        return (
            Samples(self.train, np.sort(order[kept:]), self.batching),
            Samples(self.train, np.sort(order[:kept]), self.batching),
        )


@dataclass(frozen=True, eq=False)
class Samples:
    """Some samples of a data set, by their numbers there."""

    whole: Dataset[object]
    index: np.ndarray
    batching: Batching

    def __len__(self) -> int:
        return len(self.index)

    def batch(self, places: np.ndarray) -> tuple[Inputs, Targets]:
        """Return the inputs and targets of the samples at these places."""
        if isinstance(self.whole, TensorDataset) and self.batching.collate is default_collate:
            chosen = torch.from_numpy(self.index[places])
            first, second = self.whole.tensors  # without a call for each sample
            return first[chosen], second[chosen]
        return self.batching([self.whole[int(self.index[place])] for place in places])

    def first(self, count: int, seed: int) -> Samples:
        """Return a random part with so many samples."""
        places = Stream(seed, 1).permutation(len(self))[:count]
        return Samples(self.whole, np.sort(self.index[places]), self.batching)


@dataclass(frozen=True, eq=False)
class CustomEvaluation:
    """A function that trains and evaluates a network, in place of a data set.

    function: takes the network, which it may change, and returns the value of the metric or a
        `syno.Outcome`.
    example: an input of the network, batch first, with which its latency is measured; a tuple for a
        network of several.
    """

    name: str
    function: Callable[[torch.nn.Module], object]
    metric: Metric
    example: Inputs = field(repr=False)
    fingerprint: str


def custom_data(
    data: object,
    *,
    validation: object = None,
    loss: Loss | None = None,
    metric: MetricFunction | str | None = None,
    maximize: bool = True,
    net: object = None,
) -> CustomData:
    """Make custom data of what a user has.

    Args:
        data: a Dataset of pairs (input, target), or a DataLoader, of which the data set, the batch
            size and `collate_fn` are taken; batches are sampled anew, the same for every operator.
            An input is a tensor, a tuple of the network's arguments, or a dictionary of them.
        validation: another one to validate with; None takes a share of `data`.
        loss: (outputs, targets) -> mean loss; None for the cross-entropy of class numbers.
        metric: (outputs, targets) -> mean over the batch, `accuracy` or `loss`. Default: the
            accuracy for class numbers without a custom loss, otherwise the loss.
        maximize: whether greater values of a metric function are better.
        net: the network, whose arguments put the keys of a dictionary in order.

    Raises:
        UserError: for a data set without a length or indices, samples that are no pairs or have
            different sizes, and targets that need a loss.
    """
    train, batch, collate = _taken(data, "data")
    held = None
    if validation is not None:
        held, _, _ = _taken(validation, "validation")
    name = type(train).__name__
    count = _length(train)
    if count < 4:
        raise UserError(
            f"'{name}' has {count} samples\n  expected: at least 4, to train and to validate with"
        )
    names = _names(net)
    batching, example, targets = _batch(name, [train[0], train[1]], collate, names)
    seen = _seen(train, batching)
    _check_sizes(name, seen, example)
    held_seen = {} if held is None else _seen_alike(name, example, held, batching)
    for what, function in (("loss", loss), ("metric", metric)):
        if function is not None and not callable(function) and not isinstance(function, str):
            raise UserError(f"'{what}' is a function of outputs and targets, got {function!r}")
    is_class = (
        isinstance(targets, torch.Tensor)
        and not targets.is_floating_point()
        and targets.dtype is not torch.bool
    )
    if loss is None and not is_class:
        raise UserError(
            f"the targets of '{name}' are {_described(targets)} for two samples, no class numbers\n"
            "  expected: a loss for them, such as loss=torch.nn.MSELoss()"
        )
    chosen = _metric(metric, maximize, has_classes=is_class and loss is None)
    classes = _classes(train, seen) if is_class and loss is None else None
    marks = [_content(train, seen), "" if held is None else _content(held, held_seen)]
    marks += [_source(loss), chosen.name, str(chosen.maximize), _source(chosen.function)]
    fingerprint = hashlib.sha256("\n".join(marks).encode()).hexdigest()[:32]
    return CustomData(
        name, train, held, batching, loss, chosen, batch, example, targets, classes, fingerprint
    )


def custom_evaluation(
    function: object, *, metric: str | None, maximize: bool, example: Inputs
) -> CustomEvaluation:
    """Make a custom evaluation of a function.

    Args:
        function: (network) -> the value of the metric, or a `syno.Outcome`.
        metric: the name of the value; None for `accuracy`, or `loss` if it is minimized.
        maximize: whether greater values are better.
        example: an input of the network, batch first; a tuple for a network of several.

    Raises:
        UserError: if the function cannot be called.
    """
    if not callable(function):
        raise UserError(f"'evaluate' is a function of a network, got {function!r}")
    if metric is not None and not isinstance(metric, str):
        raise UserError(
            f"'metric' is the name of what 'evaluate' returns, such as \"accuracy\", got {metric!r}"
        )
    found = Metric(metric or ("accuracy" if maximize else "loss"), maximize)
    name = getattr(function, "__name__", type(function).__name__)
    text = "\n".join([_source(function), found.name, str(maximize)])
    return CustomEvaluation(
        name, function, found, example, hashlib.sha256(text.encode()).hexdigest()[:32]
    )


def _taken(data: object, what: str) -> tuple[Dataset[object], int | None, Collate]:
    """Return the data set, the batch size and the collate function."""
    batch: int | None = None
    collate: Collate = default_collate
    if isinstance(data, DataLoader):
        plain = type(data.sampler) in (RandomSampler, SequentialSampler)
        if data.batch_size is None or not plain:
            raise UserError(
                f"'{what}' is a DataLoader with a sampler of its own, "
                f"{type(data.batch_sampler or data.sampler).__name__}\n"
                "  expected: a DataLoader with a batch size, or the data set itself: operators\n"
                "            are trained on the same random batches. evaluate= takes any training"
            )
        batch, collate = data.batch_size, cast(Collate, data.collate_fn)
        data = data.dataset
    if isinstance(data, IterableDataset) or not hasattr(data, "__getitem__"):
        raise UserError(
            f"'{what}' is the name of a data set, or a torch.utils.data.Dataset with indices\n"
            f"  got: {type(data).__name__}\n"
            "  what to do: implement __len__ and __getitem__, or pass evaluate=, which takes any "
            "training"
        )
    return cast("Dataset[object]", data), batch, collate


def _length(data: Dataset[object]) -> int:
    try:
        return len(cast(Sized, data))
    except (TypeError, NotImplementedError) as error:
        raise UserError(
            f"the data set {type(data).__name__} has no length\n"
            "  what to do: implement __len__, or pass evaluate=, which takes any training"
        ) from error


def _names(net: object) -> tuple[str, ...]:
    """The names of a network's arguments; none if they are unknown."""
    forward = getattr(net, "forward", None)
    if forward is None:
        return ()
    try:
        return tuple(inspect.signature(forward).parameters)
    except (TypeError, ValueError):  # of code that is not of Python
        return ()


def _batch(
    name: str, items: list[object], collate: Collate, names: Sequence[str]
) -> tuple[Batching, Inputs, Targets]:
    """Return how batches are made, and one of these samples.

    Raises:
        UserError: if samples are something else than inputs and targets.
    """
    try:
        batch: object = collate(items)
    except (TypeError, RuntimeError, ValueError) as error:
        raise UserError(
            f"samples of '{name}' cannot be joined to a batch: {first_line(error)}\n"
            "  expected: pairs (input, target) of tensors of one shape, or a DataLoader with a "
            "collate_fn"
        ) from error
    pair = batch if isinstance(batch, (tuple, list)) and len(batch) == 2 else None
    if pair is None or not _are_inputs(pair[0]) or not tensors_in(pair[1]):
        kinds = (
            ", ".join(type(part).__name__ for part in batch)
            if isinstance(batch, (tuple, list))
            else type(batch).__name__
        )
        raise UserError(
            f"a batch of '{name}' is not a pair of tensors\n"
            f"  expected: (inputs, targets)      got: {kinds}\n"
            "  what to do: a collate_fn of a DataLoader makes the pair, in which inputs are a "
            "tensor, a tuple or\n              a dictionary of them; evaluate= takes any training"
        )
    batching = Batching(collate, _in_order(name, pair[0], names))
    inputs, targets = batching(items)
    for each in arguments(inputs):
        dense(f"the input tensor of a batch of '{name}'", each)
    for each in tensors_in(targets):
        if not each.is_complex():
            dense(f"the target tensor of a batch of '{name}'", each)
    whole = isinstance(targets, torch.Tensor)  # others are as the loss takes them
    if not all(each.dim() for each in arguments(inputs)) or (whole and not targets.dim()):
        raise UserError(
            f"a batch of '{name}' has no dimension of samples\n"
            f"  inputs: {shown(inputs)}      targets: {_described(targets)}"
        )
    counts = {len(each) for each in arguments(inputs)}
    if counts != {len(items)} or (whole and len(targets) != len(items)):
        given = " and ".join(map(str, sorted(counts)))
        wanted = f" and {len(targets)} targets" if whole else ""
        raise UserError(
            f"a batch of {len(items)} samples of '{name}' has {given} inputs{wanted}\n"
            "  expected: the batch as the first dimension of both"
        )
    return batching, inputs, targets


def _are_inputs(given: object) -> bool:
    """Whether these are a tensor, or some in a tuple, a list or a dictionary."""
    if isinstance(given, torch.Tensor):
        return True
    if not isinstance(given, (tuple, list, Mapping)):
        return False
    several = list(given.values() if isinstance(given, Mapping) else given)
    return bool(several) and all(isinstance(each, torch.Tensor) for each in several)


def _in_order(name: str, given: object, names: Sequence[str]) -> tuple[str, ...]:
    """The keys of a dictionary of inputs as the network takes them; none for other inputs.

    Raises:
        UserError: if they are not the first arguments of the network.
    """
    if not isinstance(given, Mapping):
        return ()
    taken = tuple(names[: len(given)])
    if set(taken) != set(given):
        raise UserError(
            f"the inputs of '{name}' are not the first arguments of the network\n"
            f"  expected: {', '.join(names) or 'a network with named arguments'}      "
            f"got: {', '.join(map(str, given))}\n"
            "  what to do: a collate_fn of a DataLoader chooses and names them, or a module around "
            "the network\n              takes them in this order"
        )
    return taken


def _seen(data: Dataset[object], batching: Batching) -> Seen:
    """Some samples of a data set, each a batch of its own, twice: what is random in it differs.

    None of a TensorDataset, which shows all of its samples.
    """
    if isinstance(data, TensorDataset):
        return {}
    count, seen = _length(data), {}
    for place in sorted({round(i * (count - 1) / (_LOOKED_AT - 1)) for i in range(_LOOKED_AT)}):
        twice = []
        for seed in (0, 1):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                twice.append(batching([data[place]]))
        seen[place] = twice[0], twice[1]
    return seen


def _check_sizes(name: str, seen: Seen, example: Inputs) -> None:
    """Raise a UserError for samples of several sizes: operators are made for one of them."""
    wanted = [each.shape[1:] for each in arguments(example)]
    for place, ((found, _), _) in seen.items():
        if [each.shape[1:] for each in arguments(found)] != wanted:
            raise UserError(
                f"samples of '{name}' have different sizes\n"
                f"  sample 0: {_sample(example)}      sample {place}: {_sample(found)}\n"
                "  expected: one size, for which operators are made\n"
                "  what to do: pad them to one size in a collate_fn of a DataLoader; a mask may be "
                "a second input,\n              as in ((words, mask), targets)"
            )


def _seen_alike(name: str, example: Inputs, held: Dataset[object], batching: Batching) -> Seen:
    """Samples for validation, which have the sizes of those for training."""
    if _length(held) < 1:
        raise UserError("'validation' has no samples")
    other = type(held).__name__
    found = _batch(other, [held[0]], batching.collate, batching.names)[1]
    if _sample(found) != _sample(example):
        raise UserError(
            "the samples for validation differ from those for training\n"
            f"  '{name}': {_sample(example)}      validation, '{other}': {_sample(found)}"
        )
    seen = _seen(held, batching)
    _check_sizes(other, seen, example)
    return seen


def _metric(given: MetricFunction | str | None, maximize: bool, *, has_classes: bool) -> Metric:
    if given is None:
        return Metric("accuracy", True) if has_classes else Metric("loss", False)
    if given == "loss":
        return Metric("loss", False)
    if given == "accuracy":
        if not has_classes:
            raise UserError(
                "the accuracy is known for class numbers with the usual cross-entropy\n"
                "  what to do: pass a function metric=: (outputs, targets) -> mean over the batch"
            )
        return Metric("accuracy", True)
    if isinstance(given, str):
        raise UserError(f"'metric' is `accuracy`, `loss` or a function, got {given!r}")
    name = getattr(given, "__name__", type(given).__name__)
    # The two names say how values are shown, so a function of that name does not count as one.
    return Metric(f"{name} (custom)" if name in ("accuracy", "loss") else name, maximize, given)


def _classes(data: Dataset[object], seen: Seen) -> int:
    """Return the number of classes: of all samples if the targets are known, or else of some."""
    if isinstance(data, TensorDataset):
        return int(data.tensors[1].max()) + 1
    known = getattr(data, "targets", None)  # as the data sets of torchvision have it
    if isinstance(known, (list, torch.Tensor, np.ndarray)) and len(known) == _length(data):
        return int(torch.as_tensor(known).max()) + 1
    return max(int(cast(torch.Tensor, targets).max()) for (_, targets), _ in seen.values()) + 1


def _content(data: Dataset[object], seen: Seen) -> str:
    """Return a digest of a data set: of all tensors of a TensorDataset, or else of some samples.

    Of samples that change from call to call, as with augmentation, only the shapes count.
    """
    digest = hashlib.sha256(f"{type(data).__qualname__} {_length(data)}".encode())
    if isinstance(data, TensorDataset):
        for tensor in data.tensors:
            digest.update(_bytes(tensor))
    for twice in seen.values():
        for first, second in zip(*map(tensors_in, twice), strict=True):
            digest.update(_bytes(first) if torch.equal(first, second) else _sample(first).encode())
    return digest.hexdigest()


def _bytes(tensor: torch.Tensor) -> bytes:
    buffer = io.BytesIO()
    held = tensor.detach().cpu().contiguous()
    if held.dtype is torch.bfloat16:  # which numpy does not have
        buffer.write(b"bfloat16")
        held = held.view(torch.int16)
    np.save(buffer, held.numpy(), allow_pickle=False)
    return buffer.getvalue()


def _source(function: object) -> str:
    """Return what identifies a function: its name, and its source if that is known."""
    if function is None:
        return ""
    name = getattr(function, "__qualname__", None) or repr(function)
    try:
        return f"{name}\n{inspect.getsource(cast(Callable[..., object], function))}"
    except (OSError, TypeError):
        return name


def _sample(batch: object) -> str:
    """Shapes and types of one sample of a batch."""
    return shown([each.new_empty(each.shape[1:], device="meta") for each in tensors_in(batch)])


def _described(targets: Targets) -> str:
    if isinstance(targets, torch.Tensor):
        return shown(targets)
    return f"a {type(targets).__name__} of {shown(targets)}"
