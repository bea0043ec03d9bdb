"""Packages that only an extra installs, imported with a message that says how to get them."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from syno._util.errors import UserError
from syno.network.models.torchvision_shim import import_torchvision

# The extra that brings each package.
_EXTRAS = {"torchvision": "vision", "timm": "vision", "transformers": "language"}
PACKAGES = tuple(_EXTRAS)


def load_extra(package: str, what: str, *names: str) -> ModuleType:
    """The package, one of torchvision, timm and transformers, for `what`, such as "model 'vit'".

    names: of the package, which are imported now; transformers imports each at its first use.
    UserError with the line for pip where it, or what it needs, is not installed.
    """
    import torch

    try:
        with torch.device("cpu"):  # what modules make while they are imported, wherever we build
            # timm and, where it is there, transformers import torchvision as well.
            if package != "transformers" or importlib.util.find_spec("torchvision"):
                import_torchvision()
            module = importlib.import_module(package)
            for name in names:
                getattr(module, name)
        return module
    except ImportError as error:
        missing = error.name or package
        raise UserError(missing_package(package, what, missing)) from error


def missing_package(package: str, what: str, missing: str) -> str:
    """The message for a package that `what` needs, where `missing` cannot be imported."""
    return (
        f"{what} needs the package {package}, and {missing} cannot be imported\n"
        f"  what to do: pip install 'syno[{_EXTRAS[package]}]'"
    )
