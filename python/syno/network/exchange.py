"""A module that becomes another one, in every place where it stands. Requires PyTorch."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

# What torch calls around `forward`: attributes of a module, each with hooks by their number.
_HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def exchange(place: nn.Module, module: nn.Module) -> None:
    """Make the object `place` be `module`, with the hooks of both."""
    move_hooks(place, module)
    become(place, module)


def become(place: nn.Module, module: nn.Module) -> None:
    """Make the object `place` be `module`.

    A network may hold a layer as a part of several modules, in lists, tuples and dicts, in data
    classes, or as the object of a bound method. All of them have the new module then.
    """
    attributes = vars(module)
    object.__setattr__(place, "__class__", type(module))
    object.__setattr__(place, "__dict__", attributes)


def can_become(place: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether an object can get another class; those of classes with `__slots__` cannot."""
    try:
        object.__setattr__(twin_of(place), "__class__", kind)
    except TypeError:
        return False
    return True


def twin_of(layer: nn.Module) -> nn.Module:
    """Return another object with the class and the attributes of a layer."""
    twin: nn.Module = object.__new__(type(layer))
    object.__setattr__(twin, "__dict__", dict(vars(layer)))
    return twin


def move_hooks(source: nn.Module, target: nn.Module) -> None:
    """Move the hooks of a module to the one in its place, so that they run there.

    Hooks by which torch computes a weight of the layer remain there.
    """
    kept = {key for key, hook in source._forward_pre_hooks.items() if _computes_weight(hook)}
    for name in _HOOKS:
        hooks: dict[int, object] = getattr(source, name)
        own = OrderedDict((key, hook) for key, hook in hooks.items() if key in kept)
        moved = OrderedDict((key, hook) for key, hook in hooks.items() if key not in kept)
        setattr(source, name, own)
        setattr(target, name, OrderedDict([*getattr(target, name).items(), *moved.items()]))
    if source._is_full_backward_hook is not None:
        target._is_full_backward_hook = source._is_full_backward_hook
        source._is_full_backward_hook = None


def _computes_weight(hook: object) -> bool:
    return any(kind.__module__.startswith("torch.nn.utils") for kind in type(hook).__mro__)
