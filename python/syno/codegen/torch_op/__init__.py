"""Compiled operators inside PyTorch: one operator, torch.ops.syno.apply, for all kernels."""

from syno.codegen.torch_op.kernel import Kernel, register
from syno.codegen.torch_op.layer import ResizableLayer
from syno.codegen.torch_op.package import kernels_of, load_package, write_package

__all__ = ["Kernel", "ResizableLayer", "kernels_of", "load_package", "register", "write_package"]
