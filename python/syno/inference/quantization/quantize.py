"""`syno.quantize`: a trained network in INT8, or in a format for each layer."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

from torch import nn

from syno._util.arguments import checked, real, text, texts
from syno._util.checks import shown
from syno._util.errors import UserError
from syno._util.inputs import Inputs
from syno._util.tensors import check_network
from syno.inference.precision import AUTO, INT8
from syno.inference.quantization.formats import MOST_ERROR, with_formats
from syno.inference.quantization.network import QuantizedNetwork, quantized
from syno.network.calibration import checked_inputs


@checked(keep=texts, formats=text, most_error=real)
def quantize(
    net: nn.Module,
    calibration: Iterable[Inputs],
    *,
    keep: Sequence[str] = (),
    formats: str = INT8,
    most_error: float = MOST_ERROR,
) -> QuantizedNetwork:
    """Return a trained network in INT8, by post-training quantization; `net` stays as it is.

    Operators in slots, convolutions and linear layers multiply integers of 8 bits: weights with a
    scale for each output channel, and data as codes with a scale and a zero for each tensor, which
    are those of least square error on the samples. Values between layers are stored as codes.
    `syno.export.export_network` writes the result in the formats cpp-network and onnx.

    With `formats="auto"`, each layer multiplies float32, bfloat16 or integers: the formats whose
    measured latencies on this machine have the least sum, conversions between neighbours included,
    such that the network's results change by at most `most_error`. The code is compiled several
    times, and measured with PyTorch's number of threads.

    Args:
        net: in evaluation mode on the CPU.
        calibration: batches [n, ...] as the network sees them, tuples of tensors where `forward`
            requires several; about 300 samples are enough.
        keep: names of modules whose layers stay in float32.
        formats: "int8", or "auto".
        most_error: the root of the mean square of what "auto" may change in the results for the
            samples, as a share of that of the results.

    Raises:
        UserError: calibration data that is no batches of finite numbers, a network that cannot be
            traced for a single sample, one without a layer to quantize, an unknown name in `keep`.
    """
    if isinstance(net, QuantizedNetwork):
        raise UserError(
            "the network is quantized already\n  expected: the network that it was made from"
        )
    if formats not in (INT8, AUTO):
        raise UserError(
            f"unknown value of 'formats': {shown(formats)}\n  expected: {INT8} or {AUTO}"
        )
    if not most_error >= 0:
        raise UserError(f"most_error is no share\n  expected: 0 or more      got: {most_error:g}")
    check_network(net)
    if net.training:
        raise UserError(
            f"the network {type(net).__name__} is in training mode\n"
            "  expected: evaluation mode      what to do: call net.eval() first"
        )
    batches = checked_inputs(calibration, _inputs(net))
    if formats == AUTO:
        return with_formats(net, list(batches), keep=keep, most_error=most_error)
    made, _ = quantized(net, batches, keep=keep)
    if not any(row.format == INT8 for row in made.rows):
        raise UserError(
            f"the network {type(net).__name__} has no layer to quantize\n"
            "  expected: a convolution, a linear layer or an operator that has a kernel"
        )
    return made


def _inputs(net: nn.Module) -> int:
    """How many inputs the network requires; one where its signature does not say it."""
    try:
        parameters = inspect.signature(net.forward).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [each for each in parameters if each.kind in kinds and each.default is each.empty]
    return max(len(required), 1)
