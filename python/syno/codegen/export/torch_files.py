"""A standalone .py with the module's source, and a .safetensors with weights and an example."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from syno._util.errors import InternalError
from syno.codegen.export import files
from syno.codegen.export.formats import Exported, ExportSubject, Format
from syno.codegen.export.isolated import IsolatedRun, run_without_syno
from syno.runs.files import write_text, write_whole

if TYPE_CHECKING:
    import torch

    from syno.operators.layer import Layer

# Outputs of the stored example, and about how many terms the interpreter computes for them.
_EXAMPLE_OUTPUTS = 1000
_EXAMPLE_TERMS = 2_000_000


class PythonFiles(Format):
    """A .py for torch and safetensors, which compares itself with examples, and their tensors."""

    suffix = ".py"
    emitter = "pytorch"

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Runs the file, which compares itself with the examples beside it."""
        return run_without_syno([exported.code])

    def write_both(self, code: Path, text: str, held: dict[str, torch.Tensor]) -> Exported:
        """Writes the code, and beside it the tensors."""
        weights = code.with_suffix(".safetensors")
        write_whole(weights, lambda temporary: save_tensors(held, temporary))
        write_text(code, text)
        return Exported(code, weights)


class TorchFiles(PythonFiles):
    """A .py with the emitted class, and the weights beside it."""

    name = "torch"

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Writes both files; the example is of the reference interpreter."""
        layer = subject.layer
        if layer is None:
            raise InternalError("the format 'torch' supports only operators")
        code = files.with_suffix(path, self.suffix)
        source = layer.operator.source(layer.binding, plan=layer.plan)
        text = filled("standalone.py.txt", layer, source)
        return self.write_both(code, text, tensors(layer, subject.seed))


FORMATS = {"torch": TorchFiles()}


def tensors(layer: Layer, seed: int) -> dict[str, torch.Tensor]:
    """Weights, and an example: input, positions of outputs, their values and absolute terms."""
    import torch

    operator, binding = layer.operator.canonical, layer.binding
    random = np.random.default_rng(seed)
    shapes = operator.shapes(binding)
    weights = {
        name: parameter.detach().to("cpu", torch.float32).contiguous()
        for name, parameter in layer.kernel.named_parameters()
    }
    x = random.standard_normal(shapes.input).astype(np.float32)
    arrays = [weight.numpy() for weight in weights.values()]
    outputs = int(np.prod(shapes.output, dtype=np.int64))
    terms = max(1, operator.term_count(binding) // max(1, outputs))
    count = min(outputs, max(1, min(_EXAMPLE_OUTPUTS, _EXAMPLE_TERMS // terms)))
    positions = np.sort(random.choice(outputs, count, replace=False))
    y = operator.interpret_at(binding, x, arrays, positions.tolist())
    scale = operator.interpret_at(
        binding, np.abs(x), [np.abs(a) for a in arrays], positions.tolist()
    )
    return weights | {
        "example.x": torch.from_numpy(x),
        "example.positions": torch.from_numpy(positions.astype(np.int64)),
        "example.y": torch.from_numpy(y.astype(np.float32)),
        "example.scale": torch.from_numpy(scale.astype(np.float32)),
    }


def filled(template: str, layer: Layer, source: str) -> str:
    """A template of this folder around emitted source."""
    text = (resources.files(__package__) / template).read_text(encoding="utf-8")
    sizes = ", ".join(f"{name}={value}" for name, value in sorted(layer.binding.items()))
    return (
        text.replace("@FORMULA@", layer.operator.formula())
        .replace("@KEY@", layer.operator.structure)
        .replace("@SIZES@", sizes)
        .replace("@SOURCE@", source.strip())
    )


def save_tensors(held: dict[str, torch.Tensor], path: Path) -> None:
    """Writes a .safetensors file."""
    from safetensors.torch import save_file

    save_file(held, path)
