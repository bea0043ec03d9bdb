"""Models by name: what there is, and building one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno.network.models.catalogue import MODELS, TIMM, timm_info
from syno.network.models.info import Built, Images, ModelInfo, ModelOption

if TYPE_CHECKING:
    import torch
    from torch import nn

BUILT = "syno_model"
# With a stem that keeps the size of an image, these networks halve it three times or four.
SMALLEST_FOR_SMALL_STEM = 8
_MOST = 2**31 - 1  # classes, channels or pixels


def list_models() -> tuple[str, ...]:
    """The names that `build` knows, apart from those of timm."""
    return tuple(model.name for model in MODELS)


def describe(name: str) -> ModelInfo:
    """The catalogue's entry, also of `timm/NAME`. UserError that names what is like it."""
    for model in MODELS:
        if isinstance(name, str) and model.name == name:
            return model
    if isinstance(name, str) and name.startswith(TIMM):
        return timm_info(name)
    found = checks.short(name) if isinstance(name, str) else checks.shown(name)
    raise UserError(
        f"unknown model '{found}'\n"
        f"  expected: one of {', '.join(list_models())}, or {TIMM}NAME"
        + nearest(found, list_models())
    )


def build(
    name: str,
    *,
    classes: int | None = None,
    channels: int | None = None,
    size: int | None = None,
    weights: str | None = None,
    **options: int,
) -> nn.Module:
    """Builds a network by name.

    For images it maps [N, channels, size, size] to scores [N, classes]; what is not given is what
    `describe(name).images` says. For language it maps token ids [N, T] with T up to `context` to
    scores [N, T, vocabulary].

    weights: a file with a state dict, of torch.save or .safetensors. Without one the weights are
        initial and come from torch's global generator: seed it for a reproducible start. Nothing
        is ever downloaded.
    options: whole numbers, those of `describe(name).options`.

    Raises UserError for an unknown model or option, a value out of range, a package that is not
    installed, and weights that are not the model's, saying what is accepted.
    """
    model = describe(name)
    values = _checked(model, options)
    shape = {"classes": classes, "channels": channels, "size": size}
    if model.images is not None:
        given = _checked_images(model, model.images, values, shape)
        net = model.builder(**given, **values)
        input_shape: tuple[int, ...] = (given["channels"], given["size"], given["size"])
    else:
        _refuse_images(name, shape)
        net = model.builder(**values)
        input_shape = (values["context"],)
    if weights is not None:
        _load_weights(net, name, weights)
    setattr(net, BUILT, Built(name, values, input_shape))
    return net


def built(net: nn.Module) -> Built:
    """What `build` made of the network. UserError for another network."""
    found = getattr(net, BUILT, None)
    if not isinstance(found, Built):
        raise UserError(
            f"slots() is for networks made by syno.models.build, got {type(net).__name__}\n"
            "  use syno.substitute(net, where=syno.conv2d(kernel=3, groups=1), example_input=...)"
        )
    return found


def _checked(model: ModelInfo, options: Mapping[str, int]) -> dict[str, int]:
    """All options with their values. UserError for an unknown one or a value out of range."""
    for option, value in options.items():
        if option not in model.options:
            known = "\n".join(_line(name, o) for name, o in model.options.items())
            raise UserError(
                f"unknown option '{option}' of model '{model.name}'\n"
                + (
                    f"  expected: one of\n{known}"
                    if known
                    else "  expected: none, it has no options"
                )
                + nearest(option, model.options)
            )
        bounds = model.options[option]
        if not checks.is_whole(value, bounds.least, bounds.most):
            raise UserError(
                f"option '{option}' of model '{model.name}' cannot be {checks.shown(value)}\n"
                f"  expected: a whole number from {bounds.least} to {bounds.most}"
            )
    values = {option: o.default for option, o in model.options.items()} | dict(options)
    if "heads" in values and values["width"] % values["heads"]:
        raise UserError(
            f"model '{model.name}' cannot split width = {values['width']} into heads = "
            f"{values['heads']}\n  expected: heads that divide the width"
        )
    return values


def _line(name: str, option: ModelOption) -> str:
    return f"  {name} = {option.default} ({option.least} to {option.most}): {option.doc}"


def _checked_images(
    model: ModelInfo, images: Images, values: Mapping[str, int], shape: Mapping[str, int | None]
) -> dict[str, int]:
    """classes, channels and size with their defaults. UserError for one out of range."""
    multiple = values.get("patch", images.multiple)
    smallest = SMALLEST_FOR_SMALL_STEM if values.get("cifar_stem") else images.least
    least = {"classes": 2, "channels": 1, "size": max(smallest, multiple)}
    found = {}
    for quantity, bound in least.items():
        value = shape[quantity]
        value = getattr(images, quantity) if value is None else value
        if not checks.is_whole(value, bound, _MOST):
            raise UserError(
                f"model '{model.name}' cannot have {quantity} = {checks.shown(value)}\n"
                f"  expected: a whole number of at least {bound} and at most {_MOST}"
            )
        found[quantity] = value
    if found["size"] % multiple:
        raise UserError(
            f"model '{model.name}' cannot have size = {found['size']}\n"
            f"  expected: a multiple of its patches of {multiple} px"
        )
    return found


def _refuse_images(name: str, shape: Mapping[str, int | None]) -> None:
    given = [quantity for quantity, value in shape.items() if value is not None]
    if given:
        raise UserError(
            f"model '{name}' reads token ids, not images: it has no {', '.join(given)}\n"
            "  expected: its options alone, such as vocabulary and context; or a model for images"
        )


def _load_weights(net: nn.Module, name: str, path: str) -> None:
    """Loads a state dict. UserError where there is none, or it is another network's."""
    if not isinstance(path, (str, Path)):
        raise UserError(
            f"'weights' is the path of a file with a state dict, got {checks.shown(path)}"
        )
    wanted = net.state_dict()
    state = {_of_model(key, wanted): value for key, value in _read_state(Path(path)).items()}
    problems = [f"'{key}' is missing" for key in wanted if key not in state]
    problems += [f"'{key}' is not the model's" for key in state if key not in wanted]
    problems += [
        f"'{key}' is {list(state[key].shape)}, not {list(tensor.shape)}"
        for key, tensor in wanted.items()
        if key in state and state[key].shape != tensor.shape
    ]
    if problems:
        more = f"\n  and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise UserError(
            f"the weights in {path} are not those of model '{name}' with these options\n  "
            + "\n  ".join(problems[:5])
            + more
        )
    net.load_state_dict(state)


def _of_model(key: str, wanted: Mapping[str, object]) -> str:
    """The key of a model for a key of its template, where layers are in slots.

    The files of weights beside a store are of templates.
    """
    head, dot, tail = key.rpartition(".layer.")
    return f"{head}.{tail}" if dot and key not in wanted else key


def _read_state(path: Path) -> dict[str, torch.Tensor]:
    import torch
    from safetensors.torch import load_file

    if not checks.is_file(path):
        raise UserError(f"there is no file with weights at {path}")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle raises whatever its instructions lead to
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(
            f"{path} holds no state dict: {reason}\n"
            "  expected: torch.save(net.state_dict(), path), or a .safetensors file"
        ) from error
    if not isinstance(state, dict) or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise UserError(
            f"{path} holds no state dict, but {type(state).__name__}\n"
            "  expected: torch.save(net.state_dict(), path), or a .safetensors file"
        )
    return dict(state)
