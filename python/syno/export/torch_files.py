"""A standalone .py with the module's source, and a .safetensors with weights and an example."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from syno._errors import UserError
from syno.operator import Operator
from syno.spec import Binding

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno.kernel import KernelPack

FORMATS = ("torch",)
# Outputs of the stored example, and about how many terms the interpreter computes for them.
_EXAMPLE_OUTPUTS = 1000
_EXAMPLE_TERMS = 2_000_000


@dataclass(frozen=True)
class Exported:
    """What was written: `code` needs torch and safetensors alone, and `weights` beside it."""

    code: Path
    weights: Path


def export(
    operator: Operator | KernelPack,
    path: str | os.PathLike[str],
    *,
    binding: Binding | str | None = None,
    format: str = "torch",
    seed: int = 0,
) -> Exported:
    """Writes an operator as a PyTorch module that runs without Syno.

    operator: an Operator, which needs a binding and gets fresh weights drawn from `seed`; or a
        kernel pack out of a network (`syno.slots(net)[name].kernel`), which brings its own.
    path: of the .py file; the .safetensors file has the same name.

    `python FILE.py` checks the module against an example whose outputs the reference interpreter
    computed. UserError for an unknown format, an unusable path or a missing binding.
    """
    if format not in FORMATS:
        raise UserError(f"unknown format '{format}'\n  expected: one of {', '.join(FORMATS)}")
    code = Path(path)
    if code.suffix != ".py":
        code = code.with_name(code.name + ".py")
    if code.stem in sys.stdlib_module_names:
        raise UserError(
            f"'{code.name}' would hide Python's own module '{code.stem}' from programs in that "
            f"folder\n  what to do: choose another name, such as {code.stem}_kernel.py"
        )
    if not code.parent.is_dir():
        raise UserError(f"there is no folder '{code.parent}' to write '{code.name}' into")
    pack = _pack(operator, binding, seed)
    weights = code.with_suffix(".safetensors")
    tensors = _tensors(pack, seed)
    text = _code(pack)
    _write(weights, lambda temporary: _save(tensors, temporary))
    _write(code, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return Exported(code, weights)


def export_slots(
    net: nn.Module, folder: str | os.PathLike[str], *, seed: int = 0
) -> list[Exported]:
    """Writes every operator in a network with the weights it has there, a file each.

    Files are named by the slots, dots as underscores. What a slot adds to its operator, the pooling
    before and the bias after, is not in them. UserError when the network holds no operator.
    """
    from syno.kernel import KernelPack

    packs = {
        name.removesuffix(".layer"): module
        for name, module in net.named_modules()
        if isinstance(module, KernelPack)
    }
    if not packs:
        raise UserError(
            f"the network {type(net).__name__} holds no operator to export\n"
            "  hint: syno.replace(net, operator) puts one into its slots"
        )
    return [
        export(pack, Path(folder) / f"{name.replace('.', '_') or 'network'}.py", seed=seed)
        for name, pack in packs.items()
    ]


def _pack(operator: Operator | KernelPack, binding: Binding | str | None, seed: int) -> KernelPack:
    import torch

    from syno.kernel import KernelPack

    if isinstance(operator, KernelPack):
        if binding is not None:
            raise UserError("a kernel pack has its own binding: leave `binding` out")
        return operator
    if not isinstance(operator, Operator):
        raise UserError(f"expected an Operator or a kernel pack, got {type(operator).__name__}")
    if binding is None:
        raise UserError(
            "an operator is exported under a binding\n"
            "  expected: a size for each of "
            f"{', '.join(operator.variables)}      got: no binding"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return operator.kernel_pack(binding)


def _tensors(pack: KernelPack, seed: int) -> dict[str, torch.Tensor]:
    """Weights, and an example: input, positions of outputs, their values and absolute terms."""
    import torch

    operator, binding = pack.operator, pack.binding
    random = np.random.default_rng(seed)
    shapes = operator.shapes(binding)
    weights = {
        name: parameter.detach().to("cpu", torch.float32).contiguous()
        for name, parameter in pack.kernel.named_parameters()
    }
    x = random.standard_normal(shapes.input).astype(np.float32)
    arrays = [weight.numpy() for weight in weights.values()]
    outputs = int(np.prod(shapes.output, dtype=np.int64))
    terms = max(1, operator.term_count(binding) // max(1, outputs))
    count = min(outputs, max(1, min(_EXAMPLE_OUTPUTS, _EXAMPLE_TERMS // terms)))
    positions = np.sort(random.choice(outputs, count, replace=False))
    y = operator.interpret_at(binding, x, arrays, positions)
    scale = operator.interpret_at(binding, np.abs(x), [np.abs(a) for a in arrays], positions)
    return weights | {
        "example.x": torch.from_numpy(x),
        "example.positions": torch.from_numpy(positions.astype(np.int64)),
        "example.y": torch.from_numpy(y.astype(np.float32)),
        "example.scale": torch.from_numpy(scale.astype(np.float32)),
    }


def _code(pack: KernelPack) -> str:
    """The emitted class between the docstring and the loading and checking of the template."""
    template = (files(__package__) / "standalone.py.txt").read_text(encoding="utf-8")
    sizes = ", ".join(f"{name}={value}" for name, value in sorted(pack.binding.items()))
    return (
        template.replace("@FORMULA@", pack.operator.formula())
        .replace("@KEY@", pack.operator.structure)
        .replace("@SIZES@", sizes)
        .replace("@SOURCE@", pack.operator.source(pack.binding).strip())
    )


def _save(tensors: dict[str, torch.Tensor], path: Path) -> None:
    from safetensors.torch import save_file

    save_file(tensors, path)


def _write(path: Path, write: Callable[[Path], Any]) -> None:
    """Writes a file in one step: whoever reads sees the old one or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
