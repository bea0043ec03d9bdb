"""Generated code against the reference interpreter. Needs torch once a check runs."""

from syno.verify.check import Verification, verify
from syno.verify.many import Mismatch, RandomCheck, random_check

__all__ = ["Mismatch", "RandomCheck", "Verification", "random_check", "verify"]
