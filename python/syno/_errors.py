"""The two exceptions of Syno: a user's mistake and a bug."""

from syno._core import InternalError, UserError

__all__ = ["InternalError", "UserError"]
