"""FX graph mode of torch, which is to leave torch (docs/inference.md says what comes after)."""

from __future__ import annotations

import importlib
from types import ModuleType

import torch

from syno._util.errors import UserError

_MODULES = ("torch.ao.quantization", "torch.ao.quantization.quantize_fx")


def fx_mode() -> tuple[ModuleType, ModuleType]:
    """The modules `torch.ao.quantization` and `quantize_fx` in it.

    UserError where this torch no longer has them.
    """
    try:
        settings, mode = map(importlib.import_module, _MODULES)
    except ImportError as error:
        raise UserError(
            f"torch {torch.__version__} cannot quantize in the way that Syno needs: {error}\n"
            "  expected: a torch with FX graph mode (torch.ao.quantization), such as 2.13, which "
            "warns that\n            it will be removed      got: one without it\n"
            "  what to do: pip install 'torch==2.13.*', or omit --quantize"
        ) from error
    return settings, mode
