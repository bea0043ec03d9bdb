"""Compiled kernels as PyTorch's operator syno::apply."""
