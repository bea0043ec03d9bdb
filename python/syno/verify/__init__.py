"""Generated code against the reference interpreter. Needs torch once a check runs."""

from syno.verify.check import Verification, verify

__all__ = ["Verification", "verify"]
