"""The emitted source of an operator as a class of torch modules. Needs torch."""

from __future__ import annotations

import collections
import hashlib
import linecache
import sys
import threading
import types
import weakref

from torch import nn

from syno._util.errors import InternalError

_CLASS = "SynoOperator"
# So many of the classes loaded last stay, used or not: the next trial may need them again.
_MOST_UNUSED = 64

_lock = threading.RLock()  # `_forget` may run inside, whenever garbage is collected
_classes: weakref.WeakValueDictionary[str, type[nn.Module]] = weakref.WeakValueDictionary()
_last_used: collections.OrderedDict[str, type[nn.Module]] = collections.OrderedDict()


def load_module(source: str, *, keep: bool = True) -> type[nn.Module]:
    """The class `SynoOperator` that `source` defines.

    The module it lives in is named by the content, so equal sources share one class, and
    tracebacks show its lines. Module and lines stay while the class is in use, and those of the 64
    classes loaded last; then they go. keep=False makes a class for one use, which stays nowhere.
    """
    name = f"syno_kernel_{source_hash(source)[:32]}"
    if not keep:
        return _defined(name, source)
    with _lock:
        emitted = _classes.get(name)
    if emitted is None:
        # Without the lock: the source imports, and imports take locks of their own.
        made = _defined(name, source)
        with _lock:
            emitted = _classes.get(name)
            if emitted is None:
                _show(name, source, made)
                emitted = _classes[name] = made
    with _lock:
        _last_used[name] = emitted
        _last_used.move_to_end(name)
        if len(_last_used) > _MOST_UNUSED:
            _last_used.popitem(last=False)
    return emitted


def _defined(name: str, source: str) -> type[nn.Module]:
    namespace: dict[str, object] = {"__name__": name}
    exec(compile(source, _filename(name), "exec"), namespace)
    emitted = namespace.get(_CLASS)
    if not (isinstance(emitted, type) and issubclass(emitted, nn.Module)):
        raise InternalError(f"the emitted source defines no nn.Module named {_CLASS}:\n{source}")
    return emitted


class _EmittedModule(types.ModuleType):
    """What sys.modules has for emitted code: its names by a weak reference, so that it can go.

    torch.compile and pickle look there.
    """

    def __init__(self, name: str, emitted: type[nn.Module]) -> None:
        super().__init__(name)
        self.__dict__["_emitted"] = weakref.ref(emitted)

    def __getattr__(self, name: str) -> object:
        emitted = self.__dict__["_emitted"]()
        names = {} if emitted is None else {_CLASS: emitted} | emitted.forward.__globals__
        if name not in names:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return names[name]


def _filename(name: str) -> str:
    return f"<{name}>"


def _show(name: str, source: str, emitted: type[nn.Module]) -> None:
    """Lets others find the class and its lines, until nobody uses it."""
    module = _EmittedModule(name, emitted)
    filename = _filename(name)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    sys.modules[name] = module
    weakref.finalize(emitted, _forget, name, module).atexit = False


def _forget(name: str, module: types.ModuleType) -> None:
    with _lock:
        if sys.modules.get(name) is module:  # not that of a class made anew from the same source
            del sys.modules[name]
            linecache.cache.pop(_filename(name), None)


def source_hash(source: str) -> str:
    """SHA-256 of emitted source, 64 hexadecimal digits: the name a verification knows it by."""
    return hashlib.sha256(source.encode()).hexdigest()
