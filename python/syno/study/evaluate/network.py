"""The network of a study, with the same initial weights for every operator. Needs torch."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from syno._util import numbers
from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments
from syno._util.network_copy import copy_network
from syno._util.tensors import check_network
from syno.data import DataSet, Records, TextData
from syno.data.custom import CustomData, CustomEvaluation
from syno.network import models
from syno.network.layers import (
    LayerFilter,
    LayerReport,
    LayerRow,
    is_small_map,
)
from syno.network.placeholder import Placeholder, checked_slots, slots
from syno.network.substitute import layer_report, replace, substitute
from syno.network.surgery import count_macs, sample_shape, weight_params
from syno.operators.layer import Layer
from syno.operators.operator import Operator
from syno.study.evaluate.custom import checked_fit, checked_run
from syno.study.evaluate.weights import NetworkShape, form_of

Where = LayerFilter | Sequence[LayerFilter] | None
# The variable of positions in the slots of language models.
_SEQUENCE = "seq_len"
# Layers with less than this share of the MACs are not worth a remark.
_LEAST_SHARE = 0.01
# So many layers are named in a sentence.
_MOST_NAMES = 4


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the random numbers of torch in a `with` block, and restore their state after it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def with_slots(net: nn.Module, example: Inputs, where: Where = None) -> nn.Module:
    """Return a copy of a network whose slots know the sizes of their feature maps, and its MACs.

    where: the layers that become slots; None for those of `syno.substitute`, if there are no slots.
    """
    template = copy_network(net).eval()
    if where is not None or not slots(template):
        return substitute(template, where, example)
    with torch.no_grad():
        template(*arguments(example))
    if layer_report(template).macs is None:
        count_macs(template, example)
    return template


class Network:
    """A template with slots. Copies of the template are trained; the template is not.

    All copies have the same initial weights, so that results differ because of the operators only.
    The weights of an operator are initialized with `seed`.

    input_shape: of one sample; of the first input where there are several.
    vocabulary: the number of tokens of a network that reads tokens; None for other inputs.
    samples: some samples of a network of several inputs.
    shape: what a model by name is built with.
    causal: whether operators must not read later positions.
    macs, params: the MACs for one sample and the parameters of all layers that operators replace.
    all_macs: the MACs of all layers for one sample.

    MACs are None if the shapes of the layers are unknown.
    """

    def __init__(
        self,
        template: nn.Module,
        input_shape: tuple[int, ...],
        seed: int,
        *,
        vocabulary: int | None = None,
        causal: bool | None = None,
        classes: int | None = None,
        samples: tuple[torch.Tensor, ...] | None = None,
    ) -> None:
        found = checked_slots(template)
        bare = [name for name, slot in found.items() if slot.original is None]
        if bare:
            raise UserError(
                f"slot '{bare[0]}' of the network has no original layer to compare operators with\n"
                "  what to do: create the slots with syno.substitute, or pass each Placeholder the "
                "layer that it replaces: Placeholder(binding, original=layer)"
            )
        self.template = template
        self.input_shape = input_shape
        self.vocabulary = vocabulary
        self.shape: NetworkShape = {
            "input_shape": list(input_shape),
            "classes": classes,
            "vocabulary": vocabulary,
        }
        if samples is not None:
            self.shape["inputs"] = [form_of(each[:1]) for each in samples]
        self._samples = samples
        self.causal = vocabulary is not None if causal is None else causal
        self._seed = seed
        self._names = set(found)
        self._weights = {
            name: weight_params(slot.original)
            for name, slot in found.items()
            if slot.original is not None
        }
        report = layer_report(template)
        self.macs = _macs([row for row in report.rows if row.name in found])
        self.all_macs = report.macs
        self.params = sum(self._weights.values())

    @classmethod
    def named(
        cls,
        name: str,
        options: Mapping[str, int | str],
        dataset: DataSet | Records | TextData,
        seed: int,
        *,
        size: int | None = None,
        context: int | None = None,
    ) -> Network:
        """Build a model of the catalogue for a data set.

        Args:
            name: the name of the model.
            options: options of the model, by name.
            dataset: images or text.
            seed: of the initial weights.
            size: height and width of the input in pixels (default: that of the images); records
                need it.
            context: tokens of the longest sequence (default: that of the model).
        """
        images = models.describe(name).images is not None
        if isinstance(dataset, TextData) is images:
            kinds = ("text", "images") if images else ("images", "text")
            other = "gpt2-small" if images else "resnet-small"
            raise UserError(
                f"model '{name}' is for {kinds[1]}, and '{_name_of(dataset)}' is {kinds[0]}\n"
                f"  expected: {kinds[1]}, or a model for {kinds[0]}, such as {other} (`syno "
                "models` lists them)"
            )
        if isinstance(dataset, TextData):
            given: dict[str, int] = {"vocabulary": dataset.vocabulary, **options}  # type: ignore[dict-item]
            given |= {} if context is None or "context" in options else {"context": context}
            _check_tokens(name, dataset, given["vocabulary"], given.get("context"), context)
            with seeded(seed):
                net = models.build(name, **given)  # type: ignore[arg-type]  # `weights` is a path
            shape = models.built(net).input_shape if context is None else (context,)
            example = torch.zeros(1, *shape, dtype=torch.long)
            template = models.slots(net, example=example)
            return cls(template, shape, seed, vocabulary=given["vocabulary"])
        shape = _image(dataset, size)
        classes = len(dataset.classes)
        with seeded(seed):
            net = models.build(
                name,
                classes=classes,
                channels=shape[0],
                size=shape[1],
                **options,  # type: ignore[arg-type]  # `weights` is a path, all others are numbers
            )
        return cls(models.slots(net), shape, seed, classes=classes)

    @classmethod
    def given(
        cls,
        net: nn.Module,
        dataset: DataSet | Records | TextData,
        seed: int,
        *,
        size: int | None = None,
        context: int | None = None,
        where: Where = None,
    ) -> Network:
        """Wrap a network of the user. If it has no slots, it gets those of `syno.substitute`.

        where: the layers that become slots.

        Raises:
            UserError: if the network is not a module, and for a network for text without slots or
                without `context`.
        """
        if not isinstance(net, nn.Module):
            raise UserError(
                f"the network must be a torch.nn.Module or the name of a model, got {net!r}\n"
                f"  expected: one of {', '.join(models.list_models())}, or a module"
            )
        shape, vocabulary = _input_of(dataset, size, context)
        example = torch.zeros(1, *shape, dtype=torch.float32 if vocabulary is None else torch.long)
        if where is not None or not slots(net):
            if vocabulary is not None and where is None:
                raise UserError(
                    f"the network {type(net).__name__} for text has no slots\n"
                    "  what to do: syno.substitute(net, where=syno.linear(name=...), "
                    "example_input=...) replaces its projections with slots"
                )
            template = with_slots(net, example, where)
            return cls(template, shape, seed, vocabulary=vocabulary)
        sample = sample_shape(net)
        if vocabulary is None and sample is not None and sample[1:] != shape[1:]:
            here, there = ("x".join(map(str, each[1:])) for each in (shape, sample))
            raise UserError(
                f"the slots of the network were created for images of {there} pixels, and the "
                f"training uses {here}\n"
                "  what to do: leave out the fidelity, whose resolution is then that of the slots; "
                f"change it with fidelity.changed(resolution={sample[-1]}); or create the slots "
                f"with an example_input of {here} pixels"
            )
        return cls(with_slots(net, example), shape, seed, vocabulary=vocabulary)

    @classmethod
    def custom(
        cls,
        net: nn.Module | str,
        data: CustomData | CustomEvaluation,
        seed: int,
        where: Where = None,
    ) -> Network:
        """Wrap a network of the user for custom data, whose samples it must take.

        A network without slots gets those of `syno.substitute`; where: the layers that become
        slots. It is causal if it gives something
        for each token, and what it gives does not depend on later tokens.

        Raises:
            UserError: if the network is not a module, and if it does not fit the data.
        """
        if not isinstance(net, nn.Module):
            raise UserError(
                f"the model '{net}' is for data sets by name\n"
                "  expected: a torch.nn.Module for custom data, such as "
                f"syno.models.build('{net}', ...)"
                if isinstance(net, str)
                else f"the network must be a torch.nn.Module, got {net!r}"
            )
        check_network(net, any_device=True, complex_numbers=True)
        example = data.example
        if isinstance(data, CustomData):
            checked_fit(net, data)
        else:
            checked_run(net, example, "example_input")
        template = with_slots(net, example, where)
        first = arguments(example)[0]
        causal = not first.is_floating_point() and _is_causal(template, arguments(example))
        shape = tuple(first.shape[1:])
        if isinstance(example, tuple):
            return cls(template, shape, seed, causal=causal, samples=example)
        tokens = None if first.is_floating_point() else int(first.max()) + 1
        return cls(template, shape, seed, vocabulary=tokens, causal=causal)

    def inputs(self, batch: int) -> Inputs:
        """Return fixed inputs of shape [batch, ...].

        One input is random: values of variance 1, or token ids. Several are those of samples, since
        the network may not take any masks or numbers.
        """
        if self._samples is not None:
            places = torch.arange(batch) % len(self._samples[0])
            return tuple(each[places] for each in self._samples)
        random = torch.Generator().manual_seed(0)
        shape = (batch, *self.input_shape)
        if self.vocabulary is None:
            return torch.randn(shape, generator=random)
        return torch.randint(self.vocabulary, shape, generator=random)

    def original(self) -> nn.Module:
        """Return a copy in which every slot holds its original layer."""
        return copy_network(self.template)

    def with_operator(
        self, operator: Operator, *, scaled: bool = True
    ) -> tuple[nn.Module, LayerReport]:
        """Return a copy with the operator in its slots, and a report on each slot.

        Args:
            operator: the operator.
            scaled: as in `syno.replace`.

        Raises:
            UserError: if the operator fits no slot.
        """
        net = copy_network(self.template)
        with seeded(self._seed):
            report = replace(net, operator, scaled=scaled)
        return net, report

    def reseeded(self, seed: int) -> Network:
        """Return the same network whose operators start from the weights of another seed."""
        found = copy.copy(self)
        found._seed = seed
        return found

    def future_read(self, net: nn.Module, operator: Operator) -> str | None:
        """Check that the output of every slot depends on earlier positions only.

        Args:
            net: the network with the operator in its slots.
            operator: the operator.

        Returns:
            Where an output reads a later position, in words. None if no output does, and for
            images.
        """
        if not self.causal:
            return None
        for slot in slots(net).values():
            if isinstance(slot.kernel, Layer):
                found = future_read(slot, operator, slot.kernel.binding)
                if found is not None:
                    return found
        return None

    def in_words(self) -> str:
        """Describe the layers that operators replace, for the start of a search."""
        report = layer_report(self.template)
        rows = [row for row in report.rows if row.name in self._names]
        shares = [row.share for row in rows if row.share is not None]
        share = f" with {sum(shares):.0%} of the MACs" if len(shares) == len(rows) else ""
        names = ", ".join(row.name for row in rows[:_MOST_NAMES])
        more = f" and {len(rows) - _MOST_NAMES} more" if len(rows) > _MOST_NAMES else ""
        layers = numbers.counted(len(report.rows), "layer")
        return f"operators replace {len(rows)} of {layers}{share}: {names}{more}"

    def too_small(self) -> str | None:
        """Describe the layers that are kept only because their feature maps are too small.

        Returns:
            The layers with their share of the MACs, in words; None if there are none.
        """
        rows = [row for row in layer_report(self.template).kept if is_small_map(row)]
        share = sum(row.share or 0.0 for row in rows)
        if share < _LEAST_SHARE:
            return None
        names = ", ".join(row.name for row in rows[:2])
        names += f" and {len(rows) - 2} more" if len(rows) > 2 else ""
        size = "x".join(map(str, self.input_shape[1:]))
        return (
            f"no operator can replace {names}, which have {share:.0%} of the MACs: at {size} "
            f"pixels, their feature maps are too small ({rows[0].reason}); a larger "
            "resolution (--resolution, or a larger example input) makes them replaceable"
        )

    def kept(self, report: LayerReport) -> list[LayerRow]:
        """List the slots that keep their original layer."""
        return [row for row in report.kept if row.name in self._names]

    def cost(self, operator: Operator, report: LayerReport) -> tuple[int | None, int]:
        """Return MACs and parameters of all slots, including those that keep their layer."""
        kept = self.kept(report)
        rest = _macs(kept)
        params = operator.params() + sum(self._weights[row.name] for row in kept)
        return (None if rest is None else operator.macs() + rest), params


def future_read(slot: Placeholder, operator: Operator, binding: Mapping[str, int]) -> str | None:
    """Where an operator reads a later position in a slot of a causal network, in words.

    None if it does not, and for slots without positions.
    """
    if _SEQUENCE not in slot.input_names:
        return None
    place = slot.input_names.index(_SEQUENCE)
    found = operator.reads_future(binding, place, place)
    return None if found is None else f"not causal along {_SEQUENCE}: {found}"


def _is_causal(net: nn.Module, inputs: tuple[torch.Tensor, ...]) -> bool:
    """Whether no output of a position depends on a later token; False if there are none.

    inputs: token ids first.
    """
    tokens, *rest = inputs
    if tokens.dim() != 2 or tokens.shape[1] < 2:
        return False
    net = copy_network(net).eval()
    other = tokens.clone()
    other[:, -1] = (other[:, -1] + 1) % max(int(tokens.max()) + 1, 2)
    with torch.no_grad():
        first, second = net(tokens, *rest), net(other, *rest)
    if not isinstance(first, torch.Tensor) or first.shape[:2] != tokens.shape:
        return False
    return bool(torch.allclose(first[:, :-1], second[:, :-1], rtol=1e-4, atol=1e-5))


def _check_tokens(
    name: str, data: TextData, vocabulary: int, positions: int | None, context: int | None
) -> None:
    if context is not None and positions is not None and context > positions:
        raise UserError(
            f"model '{name}' has context={positions} positions, and sequences of {context} tokens "
            f"are requested\n  expected: a context of at most {positions} (--context {positions}), "
            f"or a model with a longer context (--model-option context={context})"
        )
    if vocabulary < data.vocabulary:
        raise UserError(
            f"model '{name}' has vocabulary={vocabulary}, and '{data.name}' has "
            f"{data.vocabulary} tokens\n  expected: at least {data.vocabulary}; without "
            "--model-option vocabulary, the model has that of the text"
        )


def _input_of(
    dataset: DataSet | Records | TextData, size: int | None, context: int | None
) -> tuple[tuple[int, ...], int | None]:
    """Return the shape of one sample without the batch, and the vocabulary of a text."""
    if isinstance(dataset, TextData):
        if context is None:
            raise UserError(f"sequences of '{dataset.name}' need a length: pass context=")
        return (context,), dataset.vocabulary
    return _image(dataset, size), None


def _image(dataset: DataSet | Records, size: int | None) -> tuple[int, int, int]:
    size = size or (dataset.size if isinstance(dataset, DataSet) else None)
    if size is None:
        raise UserError(f"'{_name_of(dataset)}' has images of several sizes: pass size=")
    return dataset.channels, size, size


def _name_of(dataset: DataSet | Records | TextData) -> str:
    return dataset.folder.name if isinstance(dataset, Records) else dataset.name


def _macs(rows: list[LayerRow]) -> int | None:
    counts = [row.macs for row in rows]
    return None if None in counts else sum(count or 0 for count in counts)
