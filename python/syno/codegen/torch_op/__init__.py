"""Compiled operators inside PyTorch: one operator, torch.ops.syno.apply, for all kernels."""

from syno.codegen.torch_op.kernel import Kernel

__all__ = ["Kernel"]
