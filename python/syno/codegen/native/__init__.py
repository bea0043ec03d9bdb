"""Operators as compiled code for this machine."""

from syno.codegen.native.compiler import (
    FLAGS,
    QUICK_FLAGS,
    Compiler,
    find_compiler,
    no_compiler,
    processor,
)
from syno.codegen.native.function import (
    Function,
    Variant,
    compile_functions,
    compile_operator,
)
from syno.codegen.native.tuning_cache import find_tuning

__all__ = [
    "FLAGS",
    "QUICK_FLAGS",
    "Compiler",
    "Function",
    "Variant",
    "compile_functions",
    "compile_operator",
    "find_compiler",
    "find_tuning",
    "no_compiler",
    "processor",
]
