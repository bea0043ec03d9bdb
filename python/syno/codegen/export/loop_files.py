"""A standalone .py with code for TVM or Triton, and its weights with an example beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from syno import _core
from syno._util.errors import InternalError
from syno.codegen.export import files
from syno.codegen.export.formats import Exported, ExportSubject, Format
from syno.codegen.export.isolated import IsolatedRun, run_without_syno
from syno.codegen.export.torch_files import filled, save_tensors, tensors
from syno.runs.files import write_text, write_whole

if TYPE_CHECKING:
    import torch

    from syno.operators.layer import Layer


class _LoopFiles(Format):
    """What the two formats share."""

    name: str
    emitter: str
    suffix = ".py"
    weights_suffix: str

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Writes both files; the second one also holds an example for `python FILE.py`."""
        layer = subject.layer
        if layer is None:
            raise InternalError(f"the format '{self.name}' is for operators")
        code = files.with_suffix(path, self.suffix)
        weights = code.with_suffix(self.weights_suffix)
        text = filled(f"standalone_{self.name}.py.txt", layer, self.source(layer))
        shapes = layer.operator.shapes(layer.binding)
        text = text.replace("@COUNT@", str(len(shapes.weights)))
        text = text.replace("@OUTPUT@", str(tuple(shapes.output)))
        held = tensors(layer, subject.seed)
        write_whole(weights, lambda temporary: self.save(held, temporary))
        write_text(code, text)
        return Exported(code, weights)

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Runs the file, which compares itself with outputs of the reference interpreter."""
        if importlib.util.find_spec(self.name) is None:
            return IsolatedRun(
                False,
                f"the package {self.name} is not installed\n"
                f"  what to do: pip install 'syno[{self.name}]'",
            )
        return run_without_syno([exported.code])

    def source(self, layer: Layer) -> str:
        """The emitted file."""
        raise NotImplementedError

    def save(self, held: dict[str, torch.Tensor], path: Path) -> None:
        """Writes weights and example."""
        raise NotImplementedError


class TritonFiles(_LoopFiles):
    """Kernels and `syno_operator`, for torch, triton and safetensors."""

    name = emitter = "triton"
    weights_suffix = ".safetensors"

    def source(self, layer: Layer) -> str:
        """Without the formula, which stands at the head."""
        return _core.emit_triton(layer.operator.numbered_plan(layer.binding, layer.plan))[0]

    def save(self, held: dict[str, torch.Tensor], path: Path) -> None:
        """As safetensors."""
        save_tensors(held, path)


class TvmFiles(_LoopFiles):
    """`prim_func` and `build`, for tvm alone."""

    name = emitter = "tvm"
    weights_suffix = ".npz"

    def source(self, layer: Layer) -> str:
        """Without the formula, which stands at the head."""
        return _core.emit_tvm(layer.operator.numbered_plan(layer.binding, layer.plan))[0]

    def save(self, held: dict[str, torch.Tensor], path: Path) -> None:
        """As numpy arrays, which need no torch."""
        with path.open("wb") as file:
            files.save_arrays(file, {name: tensor.numpy() for name, tensor in held.items()})


FORMATS: dict[str, _LoopFiles] = {f.name: f for f in (TritonFiles(), TvmFiles())}
