"""Networks of timm with initial weights."""

from __future__ import annotations

from types import ModuleType

from torch import nn

from syno._util.errors import UserError, nearest
from syno.network.models.extras import load_extra
from syno.network.models.info import Images


def images(name: str) -> Images:
    """What the model works on. UserError where timm has no such model, with names like it."""
    config = _config(name)
    shape = getattr(config, "input_size", None) or (3, 224, 224)
    classes = getattr(config, "num_classes", None) or 1000
    return Images(classes=classes, size=shape[1], channels=shape[0], least=1)


def build(name: str, classes: int, channels: int, size: int) -> nn.Module:
    """The model of that name; one for a fixed size of images is made for `size`."""
    config = _config(name)
    options: dict[str, int] = {"num_classes": classes, "in_chans": channels}
    if getattr(config, "fixed_input_size", False):
        options["img_size"] = size
    try:
        return _timm(name).create_model(name, pretrained=False, **options)
    except (TypeError, ValueError, AssertionError) as error:
        raise UserError(
            f"timm cannot build '{name}' for {classes} classes and images of {channels} channels, "
            f"{size} px: {error}"
        ) from error


def _config(name: str) -> object:
    timm = _timm(name)
    if name not in timm.list_models():
        raise UserError(
            f"timm {timm.__version__} has no model '{name}'\n"
            "  expected: one of timm.list_models()" + nearest(name, timm.list_models())
        )
    return timm.models.get_pretrained_cfg(name)


def _timm(name: str) -> ModuleType:
    return load_extra("timm", f"model 'timm/{name}'")
