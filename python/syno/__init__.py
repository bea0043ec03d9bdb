"""Syno: operator synthesis for neural networks.

`import syno` needs no torch; what builds a module imports it then.
"""

from syno._core import __version__
from syno._errors import InternalError, UserError

__all__ = ["InternalError", "UserError", "__version__"]
