"""ONNX Runtime and OpenVINO, which read a network as an ONNX model.

Each makes its own model in INT8: ONNX Runtime by static quantization (weights per channel,
activations as unsigned integers), OpenVINO by the post-training quantization of NNCF. The ranges of
the activations come from samples of the data; without any, from the example, so that the speed says
something and the accuracy does not.
"""

from __future__ import annotations

import copy
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments, one_or_several, samples_in
from syno._util.signal_stack import kept_signal_stack
from syno._util.silence import quiet
from syno.codegen.export.formats import ExportSubject
from syno.codegen.export.programs import Onnx, quietly, tensor_names, traced
from syno.engines.engine import (
    DEFAULT_PRECISION,
    FLOAT32,
    INT8,
    Engine,
    Outputs,
    Prepared,
    missing_packages,
)

_ONNX = ("onnx", "onnxscript", "onnxruntime")
Array = np.ndarray
Arrays = tuple[Array, ...]  # one for each argument
Run = Callable[[Arrays], list[Array]]


class _OnnxEngine(Engine):
    """An engine that runs the ONNX model of a network.

    samples: batches that the ranges of INT8 come from; without any, the example.
    """

    samples: Sequence[Inputs] = ()

    def calibrated(self, samples: Sequence[Inputs]) -> Engine:
        """Return the engine with ranges of INT8 from samples."""
        made = copy.copy(self)
        made.samples = samples
        return made

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], Outputs]:
        """Return a call of the model of the network."""
        samples = _of_size(self.samples or [example], samples_in(example))
        given = arguments(example)
        model = self.model(net, example, samples)
        began = time.perf_counter()
        run = self.load(model, _arrays(given), threads)
        load_s = time.perf_counter() - began

        def on(*inputs: torch.Tensor) -> Outputs:
            return one_or_several([torch.from_numpy(each) for each in run(_arrays(inputs))])

        return Prepared(lambda: on(*given), load_s=load_s, size=model.size, on=on)

    def model(self, net: nn.Module, example: Inputs, samples: Sequence[Arrays]) -> _Model:
        """Return the model of the network in the engine's precision."""
        raise NotImplementedError

    def load(self, model: _Model, example: Arrays, threads: int) -> Run:
        """Return a function that runs a model. UserError if it does not run."""
        raise NotImplementedError


def _arrays(inputs: tuple[torch.Tensor, ...]) -> Arrays:
    return tuple(each.numpy() for each in inputs)


def _of_size(batches: Sequence[Inputs], size: int) -> list[Arrays]:
    """The samples of batches in batches of one size, which a model is for; none is left over."""
    joined = [torch.cat(each) for each in zip(*map(arguments, batches), strict=True)]
    whole = max(len(joined[0]) // size * size, 1)
    places = torch.arange(max(whole, size)) % whole
    return [_arrays(each) for each in zip(*(x[places].split(size) for x in joined), strict=True)]


@dataclass(frozen=True)
class _Model:
    """A model as ONNX, or what an engine made of it; size: in bytes."""

    held: Any
    size: int


class OnnxRuntime(_OnnxEngine):
    """ONNX Runtime on the CPU with all graph optimizations."""

    def __init__(self, name: str, precision: str) -> None:
        self.name = name
        self.precision = precision

    def missing(self) -> str | None:
        """Return None, or which packages are missing."""
        return missing_packages("rivals", *_ONNX)

    def model(self, net: nn.Module, example: Inputs, samples: Sequence[Arrays]) -> _Model:
        """Return the ONNX model."""
        found = _onnx(net, example, samples if self.precision == INT8 else None)
        return _Model(found, len(found))

    def load(self, model: _Model, example: Arrays, threads: int) -> Run:
        """Return a function that runs an ONNX model. UserError if it does not run."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Its errors have no class of their own. Some kernels check what they get when they run.
        try:
            session = onnxruntime.InferenceSession(
                model.held, options, providers=["CPUExecutionProvider"]
            )
            names = [each.name for each in session.get_inputs()]
            session.run(None, dict(zip(names, example, strict=True)))
        except Exception as error:
            raise UserError(f"ONNX Runtime cannot run the network: {error}") from error

        def run(arrays: Arrays) -> list[Array]:
            return session.run(None, dict(zip(names, arrays, strict=True)))  # type: ignore[no-any-return]

        return run


class OpenVino(_OnnxEngine):
    """OpenVINO on the CPU, tuned for latency.

    hint: the precision that OpenVINO is told to compute in; None: its own choice, which is bfloat16
    where the processor supports it.
    """

    def __init__(self, name: str, precision: str, hint: str | None) -> None:
        self.name = name
        self.precision = precision
        self._hint = hint

    def missing(self) -> str | None:
        """Return None, or which packages are missing."""
        more = ("nncf",) if self.precision == INT8 else ()
        return missing_packages("rivals", *_ONNX, "openvino", *more)

    def model(self, net: nn.Module, example: Inputs, samples: Sequence[Arrays]) -> _Model:
        """Return OpenVINO's model."""
        import openvino

        onnx = _onnx(net, example, None)
        try:
            found = openvino.Core().read_model(onnx)
        except RuntimeError as error:
            raise UserError(f"OpenVINO cannot read the network: {error}") from error
        return _Model(_by_nncf(found, samples) if self.precision == INT8 else found, len(onnx))

    def load(self, model: _Model, example: Arrays, threads: int) -> Run:
        """Return a function that runs a model; the next call overwrites its results."""
        import openvino

        core = openvino.Core()
        settings: dict[str, str | int] = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
        }
        if self._hint is not None:
            settings["INFERENCE_PRECISION_HINT"] = self._hint
        try:
            with kept_signal_stack():
                compiled = core.compile_model(model.held, "CPU", settings)
        except RuntimeError as error:
            raise UserError(f"OpenVINO cannot compile the network: {error}") from error
        if len(compiled.inputs) != len(example):
            raise UserError(
                "OpenVINO leaves out an input of the network that nothing depends on\n"
                f"  expected: {len(example)} inputs      got: {len(compiled.inputs)}"
            )
        request = compiled.create_infer_request()
        outputs = range(len(compiled.outputs))

        def run(arrays: Arrays) -> list[Array]:
            # Without copies.
            results = request.infer(list(arrays), share_inputs=True, share_outputs=True)
            return [results[number] for number in outputs]

        return run


def _onnx(net: nn.Module, example: Inputs, samples: Sequence[Arrays] | None) -> bytes:
    """The network as an ONNX model with the sizes of the example.

    The model computes in the network's own precision, also where the caller computes in another one
    (`torch.autocast`): the engine's precision is its own.

    samples: give the ranges of INT8; None for float32.
    """
    subject = ExportSubject(net, arguments(example), batch=False, layer=None, seed=0, reference=net)
    with tempfile.TemporaryDirectory(prefix="syno-engine-") as folder:
        path = Path(folder) / "network.onnx"
        with quietly(), torch.autocast("cpu", enabled=False):
            Onnx().save(traced(subject), path)
            if samples is not None:
                path = _quantized(path, samples)
        return path.read_bytes()


def _by_nncf(model: Any, samples: Sequence[Arrays]) -> Any:
    """A model of OpenVINO in INT8."""
    import nncf

    nncf.set_log_level(logging.ERROR)
    try:
        with quietly(), quiet(), kept_signal_stack():
            return nncf.quantize(
                model, nncf.Dataset([list(each) for each in samples]), subset_size=len(samples)
            )
    except Exception as error:  # its errors have no class of their own
        raise UserError(f"NNCF cannot quantize the network: {error}") from error


def _quantized(path: Path, samples: Sequence[Arrays]) -> Path:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(CalibrationDataReader):  # type: ignore[misc]
        """Each sample once."""

        def __init__(self) -> None:
            self._left = iter(samples)

        def get_next(self) -> dict[str, Array] | None:
            sample = next(self._left, None)
            return None if sample is None else dict(zip(names, sample, strict=True))

    names = tensor_names("x", len(samples[0]))
    prepared, quantized = path.with_suffix(".prepared.onnx"), path.with_suffix(".int8.onnx")
    try:
        quant_pre_process(str(path), str(prepared))
        quantize_static(
            str(prepared),
            str(quantized),
            Samples(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    except Exception as error:  # its errors have no class of their own
        raise UserError(f"ONNX Runtime cannot quantize the network: {error}") from error
    return quantized


ENGINES: dict[str, Engine] = {
    each.name: each
    for each in (
        OnnxRuntime("onnxruntime", FLOAT32),
        OnnxRuntime("onnxruntime-int8", INT8),
        OpenVino("openvino", FLOAT32, "f32"),
        OpenVino("openvino-default", DEFAULT_PRECISION, None),
        OpenVino("openvino-int8", INT8, None),
    )
}
