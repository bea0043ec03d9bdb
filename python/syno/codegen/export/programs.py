"""Formats made from a traced module: torch.export, ONNX and AOTInductor.

The first dimension takes any size where it is a batch.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from syno._util.errors import UserError, first_line
from syno._util.silence import quiet
from syno.codegen.export import files
from syno.codegen.export.formats import Exported, ExportSubject, Format
from syno.codegen.export.isolated import IsolatedRun, run_program
from syno.codegen.native import no_compiler
from syno.runs.cache_folder import use_private_compiler_caches
from syno.runs.files import write_whole

if TYPE_CHECKING:
    import torch
    from onnxscript import ir
    from torch import nn
    from torch.export import ExportedProgram

# Batch sizes that a written program is run with.
BATCHES = (1, 3, 8)
_FIX = "make its operations independent of the size of the batch"
# Of float32.
TOLERANCE = 1e-4
# Of any number format: the root of the mean square of the difference, relative to that of results.
# Engines round few numbers to another code.
_MOST_CHANGE = 0.02

# Runs in a process without Syno: argv is the program, the inputs and outputs to compare.
_CHECK = """
import sys
import torch
from torch.utils._pytree import tree_leaves

@LOAD@

program, examples = load(sys.argv[1]), torch.load(sys.argv[2], weights_only=True)
worst, count = 0.0, 0
with torch.no_grad():
    for inputs, all_expected in examples:
        results = tree_leaves(program(*inputs))
        assert len(results) == len(all_expected), f"{len(results)} results"
        for y, expected in zip(results, all_expected):
            assert y.shape == expected.shape, f"{list(y.shape)} instead of {list(expected.shape)}"
            error = (y - expected).abs().max().item() / max(expected.abs().max().item(), 1e-30)
            assert error <= @TOLERANCE@, f"off by {error:.1e} of the largest output"
            worst, count = max(worst, error), count + y.numel()
sizes = ", ".join(str(len(inputs[0])) for inputs, _ in examples)
print(f"right: {count} outputs at batch sizes {sizes}, largest error {worst:.1e} of the largest")
"""


class _Program(Format):
    """What the three formats share."""

    name: str
    suffix: str
    networks = several_inputs = True
    folds = True
    emitter = "pytorch"
    # Python source of `load(path)`, which gives a function of tensors; it needs no Syno.
    loader: str

    def available(self) -> str | None:
        """torch alone is enough."""
        return None

    def write(self, subject: ExportSubject, path: Path) -> Exported:
        """Traces the module and writes it."""
        code = files.with_suffix(path, self.suffix)
        program = traced(subject)

        def save(temporary: Path) -> None:
            self.save(program, temporary)
            self.compare(program, temporary, self.tolerance(subject))

        with quietly():
            write_whole(code, save)
        return Exported(code)

    def compare(self, program: ExportedProgram, path: Path, tolerance: float) -> None:
        """UserError where a file computes something else than what it was written of."""

    def save(self, program: ExportedProgram, path: Path) -> None:
        """Writes a traced module."""
        raise NotImplementedError

    def tolerance(self, subject: ExportSubject) -> float:
        """The largest difference from the module, relative to its largest output."""
        return TOLERANCE

    def check(self, exported: Exported, subject: ExportSubject) -> IsolatedRun:
        """Compares with the module at several batch sizes."""
        import torch

        text = _CHECK.replace("@LOAD@", self.loader)
        text = text.replace("@TOLERANCE@", str(self.tolerance(subject)))
        with tempfile.TemporaryDirectory(prefix="syno-export-") as folder:
            path = Path(folder) / "examples.pt"
            torch.save(examples_of_all(subject), path)
            return run_program(text, [exported.code, path])


class TorchExport(_Program):
    """torch.export: a graph of torch's own operators, for torch.export.load."""

    name = "torch-export"
    suffix = ".pt2"
    loader = "def load(path):\n    return torch.export.load(path).module()"

    def save(self, program: ExportedProgram, path: Path) -> None:
        """Writes the graph and the weights."""
        import torch

        # torch ends the process if it cannot write a file to its end.
        content = io.BytesIO()
        torch.export.save(program, content)
        path.write_bytes(content.getbuffer())


class Onnx(_Program):
    """ONNX, standard operators only; einsums are matrix products there."""

    name = "onnx"
    suffix = ".onnx"
    loader = """
def load(path):
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def run(*inputs):
        given = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
        return [torch.from_numpy(y) for y in session.run(None, given)]

    return run
"""

    def available(self) -> str | None:
        """Not without the packages of the extra `onnx`."""
        needed = ("onnx", "onnxscript", "onnxruntime")
        missing = [name for name in needed if importlib.util.find_spec(name) is None]
        if not missing:
            return None
        return f"{', '.join(missing)} missing\n  what to do: pip install 'syno[onnx]'"

    def translations(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """Functions in ONNX Script for operators that torch has none for."""
        return {}

    def finish(self, model: ir.Model) -> None:
        """Changes a model before it is written."""

    def save(self, program: ExportedProgram, path: Path) -> None:
        """Writes the model with its weights inside."""
        import torch

        signature = program.graph_signature
        translations = self.translations()
        # Torch's own way to ONNX knows Einsum; taken apart first, it becomes MatMul.
        parts = torch.export.default_decompositions()
        for operator in translations:
            parts.pop(operator, None)
        made = torch.onnx.export(
            program.run_decompositions(parts),
            dynamo=True,
            verbose=False,
            input_names=tensor_names("x", len(signature.user_inputs)),
            output_names=tensor_names("y", len(signature.user_outputs)),
            custom_translation_table=translations,
        )
        if made is None:
            raise UserError("torch.onnx.export returned no model")
        self.finish(made.model)
        foreign = {node.domain for node in made.model_proto.graph.node} - {"", "ai.onnx"}
        if foreign:
            raise UserError(
                f"the model needs operators outside the ONNX standard: {sorted(foreign)}"
            )
        path.write_bytes(made.model_proto.SerializeToString())

    def compare(self, program: ExportedProgram, path: Path, tolerance: float) -> None:
        """Runs the file once: torch's translation ignores some arguments of operators."""
        import onnxruntime
        import torch

        from syno._util.trial_calls import difference, random_like, relative_square, tensors_of

        inputs = random_like(program.example_inputs[0])
        with torch.no_grad():
            wanted = tensors_of(program.module(check_guards=False)(*inputs))
        try:
            options = onnxruntime.SessionOptions()
            level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
            session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
            names = [each.name for each in session.get_inputs()]
            given = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
            found = [torch.from_numpy(y) for y in session.run(None, given)]
        except Exception as error:  # its errors have no class of their own
            raise UserError(f"ONNX Runtime cannot run the model: {first_line(error)}") from error
        if len(found) != len(wanted):
            raise UserError(f"the ONNX model has {len(found)} results instead of {len(wanted)}")
        worst = max(difference(y, expected) for y, expected in zip(found, wanted, strict=True))
        if not worst <= tolerance or relative_square(found, wanted) > _MOST_CHANGE**2:
            raise UserError(
                "the ONNX model that torch writes computes something else than the network: off by "
                f"{worst:.1e} of the largest output\n"
                "  what to do: export in another format, or write what torch.onnx does not know, "
                "such as AvgPool2d(divisor_override=...), by other operations"
            )


class Aoti(_Program):
    """AOTInductor: a package with compiled code for this machine. Needs a C++ compiler."""

    name = "aoti"
    suffix = ".pt2"
    loader = """
def load(path):
    import torch._inductor
    return torch._inductor.aoti_load_package(path)
"""

    def available(self) -> str | None:
        """Not without a C++ compiler; Inductor, too, takes that of CXX."""
        return no_compiler()

    def save(self, program: ExportedProgram, path: Path) -> None:
        """Compiles the graph and packs it."""
        use_private_compiler_caches()
        import torch._inductor

        torch._inductor.aoti_compile_and_package(program, package_path=str(path))


def tensor_names(name: str, count: int) -> list[str]:
    """Names of tensors; a single one has no number."""
    return [name] if count == 1 else [f"{name}{number}" for number in range(count)]


FORMATS: dict[str, _Program] = {f.name: f for f in (TorchExport(), Aoti())}


def traced(subject: ExportSubject) -> ExportedProgram:
    """The module as a graph; with what depends on weights alone computed, where that is asked for.

    UserError where torch cannot trace it.
    """
    import torch

    from syno._util.torch_code import exportable, shapes_by_parameter

    module = exportable(subject.module)
    sizes = {0: torch.export.Dim("batch")} if subject.batch else None
    inputs = subject.inputs
    shapes = shapes_by_parameter(module, [sizes] * len(inputs))
    with quietly():
        try:
            program = torch.export.export(module, inputs, dynamic_shapes=shapes)
            for_one = not subject.batch or _computes_one(program, module, inputs)
            if subject.fold_weights:
                # It has no branches, and other weights than the module.
                folded = _folded(program)
                shapes = shapes_by_parameter(folded, [sizes] * len(inputs))
                program = torch.export.export(folded, inputs, dynamic_shapes=shapes)
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            raise UserError(
                f"torch.export cannot trace the {type(subject.module).__name__}: {first}"
                + (f"\n  what to do: {_FIX}" if subject.batch else "")
            ) from error
    if not for_one:
        raise UserError(
            f"the {type(subject.module).__name__} computes a batch of one sample in another way "
            f"than others\n  expected: one way for all sizes of the batch\n  what to do: {_FIX}"
        )
    return program


def _computes_one(
    program: ExportedProgram, module: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> bool:
    """Whether the graph is that of one sample, too: torch takes any size to be at least two."""
    from syno._util.network_copy import copy_network
    from syno._util.trial_calls import random_like
    from syno._util.value_numbering import first_other_call

    graph, one = program.module(check_guards=False), random_like(tuple(x[:1] for x in inputs))
    return first_other_call(graph, copy_network(module), one) is None


def _folded(program: ExportedProgram) -> nn.Module:
    """The program with every value that depends on weights alone as a weight of its own."""
    import torch
    from torch.fx.experimental.const_fold import split_const_subgraphs

    graph = split_const_subgraphs(program.module(check_guards=False))
    graph.run_folding()
    # What the values were computed from; else it would be written, too.
    used = {str(node.target) for node in graph.graph.nodes if node.op == "get_attr"}
    graph.delete_all_unused_submodules()
    for name in [name for name, _ in graph.named_parameters()]:
        holder, _, last = name.rpartition(".")
        if not {name, holder} & used:  # several folded values are a list, used as a whole
            delattr(graph.get_submodule(holder), last)

    class Folded(torch.nn.Module):
        """Takes the result out of the tuple that a graph returns which was split."""

        def __init__(self) -> None:
            super().__init__()
            self.body = graph

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            result = self.body(*inputs)
            return result[0] if isinstance(result, tuple) else result

    return Folded()


def examples(
    subject: ExportSubject,
) -> list[tuple[tuple[torch.Tensor, ...], torch.Tensor]]:
    """Inputs of several batch sizes, and what the reference computes of each.

    UserError where that are several tensors.
    """
    found = examples_of_all(subject)
    if any(len(results) != 1 for _, results in found):
        raise UserError("the network gives several tensors\n  expected: one, for this format")
    return [(inputs, results[0]) for inputs, results in found]


def examples_of_all(
    subject: ExportSubject,
) -> list[tuple[tuple[torch.Tensor, ...], list[torch.Tensor]]]:
    """Inputs of several batch sizes, and the tensors that the reference computes of each."""
    import torch

    from syno._util.trial_calls import tensors_of

    random = torch.Generator().manual_seed(subject.seed)

    def drawn(example: torch.Tensor, batch: int) -> torch.Tensor:
        shape = [batch, *example.shape[1:]]
        if example.is_floating_point():
            return torch.randn(shape, generator=random)
        known = _token_ids(subject, example)
        return known[torch.randint(len(known), shape, generator=random)]

    found = []
    for batch in BATCHES if subject.batch else [len(subject.inputs[0])]:
        inputs = tuple(drawn(each, batch) for each in subject.inputs)
        with torch.no_grad():
            results = tensors_of(subject.reference(*inputs))
        found.append((inputs, [y.contiguous() for y in results]))
    return found


def _token_ids(subject: ExportSubject, example: torch.Tensor) -> torch.Tensor:
    """Token ids that every embedding knows.

    Those of the example where there is no embedding, or other inputs, of which one may be a mask.
    """
    import torch
    from torch import nn

    tables = [m.num_embeddings for m in subject.module.modules() if isinstance(m, nn.Embedding)]
    of_example = not tables or len(subject.inputs) > 1
    return example.flatten() if of_example else torch.arange(min(tables), dtype=example.dtype)


def array(x: torch.Tensor) -> np.ndarray:
    """Numbers as a library of C++ takes them: token ids of any type are int64."""
    found = x.detach() if x.is_floating_point() else x.detach().long()
    return np.ascontiguousarray(found.numpy())


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without what torch says and prints on the way: it concerns its own internals."""
    with quiet(), contextlib.redirect_stdout(io.StringIO()):
        yield
