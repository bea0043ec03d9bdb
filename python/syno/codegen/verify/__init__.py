"""Generated code against the reference interpreter. Needs torch once a check runs."""

from syno.codegen.verify.check import Verification, verify
from syno.codegen.verify.random_check import Mismatch, RandomCheck, processes_for, random_check

__all__ = ["Mismatch", "RandomCheck", "Verification", "processes_for", "random_check", "verify"]
