"""A session of TVM on the device: files, modules and calls, as TVM's own server has them."""

from __future__ import annotations

import os

from syno._util.errors import UserError
from syno.codegen.emitters.tvm import EMITTER, imported


def load() -> None:
    """Import TVM. UserError where it is missing, or has no remote calls."""
    missing = EMITTER.available()
    if missing is not None:
        raise UserError(f"a device needs TVM: {missing}")
    imported()
    from tvm import rpc

    if getattr(rpc._ffi_api, "ServerLoop", None) is None:
        raise UserError("this package of TVM has no remote calls\n  what to do: use apache-tvm")


def own_target() -> str:
    """The processor of this machine as a target of TVM."""
    tvm = imported()
    triple = tvm.get_global_func("target.llvm_get_system_triple")()
    return f"llvm -mtriple={triple} -mcpu={tvm.get_global_func('target.llvm_get_system_cpu')()}"


class _Folder:
    """The files of a session, as TVM asks for them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.temp_dir = path
        self.libs: list[object] = []

    def relpath(self, name: str) -> str:
        return os.path.join(self._path, name)


def serve(descriptor: int, folder: str) -> None:
    """Serve the client at a socket until it leaves."""
    import logging

    from tvm import rpc
    from tvm.rpc import server

    logging.getLogger("RPCServer").setLevel(logging.WARNING)
    server._server_env(None, _Folder(folder))
    rpc._ffi_api.ServerLoop(descriptor)
