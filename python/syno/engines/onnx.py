"""ONNX Runtime and OpenVINO, which read a network as an ONNX model.

The INT8 models are made by ONNX Runtime's static quantization (weights per channel, activations as
unsigned integers), and both engines run the same one. The ranges of the activations come from the
example, so that their speed says something and their accuracy does not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from syno._util.errors import UserError
from syno.codegen.export.formats import Subject
from syno.codegen.export.programs import FORMATS, quietly, traced
from syno.engines.engine import DEFAULT_PRECISION, FLOAT32, INT8, Engine, missing_packages

_ONNX = ("onnx", "onnxscript", "onnxruntime")


class OnnxRuntime:
    """ONNX Runtime on the CPU with all graph optimizations."""

    own = False

    def __init__(self, name: str, precision: str) -> None:
        self.name = name
        self.precision = precision

    def missing(self) -> str | None:
        """Return None, or which packages are missing."""
        return missing_packages("rivals", *_ONNX)

    def prepare(
        self, net: nn.Module, example: torch.Tensor, threads: int
    ) -> Callable[[], torch.Tensor]:
        """Return a session on the ONNX model of the network."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model = _model(net, example, self.precision)
        # Its errors have no class of their own. Some kernels check what they get when they run.
        try:
            session = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"]
            )
            inputs = {session.get_inputs()[0].name: example.numpy()}
            session.run(None, inputs)
        except Exception as error:
            raise UserError(f"ONNX Runtime cannot run the network: {error}") from error
        return lambda: torch.from_numpy(session.run(None, inputs)[0])


class OpenVino:
    """OpenVINO on the CPU, tuned for latency.

    hint: the precision that OpenVINO is told to compute in; None: its own choice, which is bfloat16
    where the processor supports it.
    """

    own = False

    def __init__(self, name: str, precision: str, hint: str | None) -> None:
        self.name = name
        self.precision = precision
        self._hint = hint

    def missing(self) -> str | None:
        """Return None, or which packages are missing."""
        return missing_packages("rivals", *_ONNX, "openvino")

    def prepare(
        self, net: nn.Module, example: torch.Tensor, threads: int
    ) -> Callable[[], torch.Tensor]:
        """Return an inference request of the compiled ONNX model of the network."""
        import openvino

        core = openvino.Core()
        settings: dict[str, Any] = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
        }
        if self._hint is not None:
            settings["INFERENCE_PRECISION_HINT"] = self._hint
        try:
            compiled = core.compile_model(
                core.read_model(_model(net, example, self.precision)), "CPU", settings
            )
        except RuntimeError as error:
            raise UserError(f"OpenVINO cannot compile the network: {error}") from error
        request, array = compiled.create_infer_request(), example.numpy()

        def run() -> torch.Tensor:
            # Without copies; what it returns is overwritten by the next call.
            results = request.infer([array], share_inputs=True, share_outputs=True)
            return torch.from_numpy(results[0])

        return run


def _model(net: nn.Module, example: torch.Tensor, precision: str) -> bytes:
    """The network as an ONNX model with the sizes of the example."""
    subject = Subject(net, example, batch=False, pack=None, seed=0, reference=net)
    with tempfile.TemporaryDirectory(prefix="syno-engine-") as folder:
        path = Path(folder) / "network.onnx"
        with quietly():
            FORMATS["onnx"].save(traced(subject), path)
            if precision == INT8:
                path = _quantized(path, example.numpy())
        return path.read_bytes()


def _quantized(path: Path, example: np.ndarray[Any, Any]) -> Path:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Example(CalibrationDataReader):  # type: ignore[misc]
        """The example, once."""

        def __init__(self) -> None:
            self._left = [{"x": example}]

        def get_next(self) -> dict[str, Any] | None:
            return self._left.pop() if self._left else None

    prepared, quantized = path.with_suffix(".prepared.onnx"), path.with_suffix(".int8.onnx")
    quant_pre_process(str(path), str(prepared))
    quantize_static(
        str(prepared),
        str(quantized),
        Example(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
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
