"""When a process that ended is started again, and how long one that should end may take.

There is one policy, with other numbers for workers of this machine, for workers and the connection
of a Ray cluster, and for the process that forks evaluations: a process that fails early has failed
once more in a row, and the pause before the next start doubles; so many failures in a row end it.
"""

from __future__ import annotations

import itertools
import math
import subprocess
from dataclasses import dataclass

from syno.runs.retry import pauses


@dataclass(frozen=True)
class Policy:
    """How often, and after which pauses, a process is started again.

    most: failures in a row after which it is given up; early_s: a process that fails later than so
    many seconds after its start had begun to work, and its failure is the first one in a row;
    first_s, most_s: the pauses before the next start, in seconds.
    """

    most: int
    early_s: float = math.inf
    first_s: float = 0.0
    most_s: float = 60.0


class Restarts:
    """The failures in a row of one process that is started again and again."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.reset()

    def reset(self) -> None:
        """Forget the failures: the process works, or it ended without a failure."""
        endless = pauses(self._policy.first_s, self._policy.most_s)
        self._pauses = itertools.islice(endless, self._policy.most - 1)

    def works(self, seconds: float) -> None:
        """Note for how long the process has been running."""
        if seconds > self._policy.early_s:
            self.reset()

    def failed(self, seconds: float) -> float | None:
        """Count a failure so many seconds after the start.

        Returns:
            The pause before the next start in seconds; None if the process is given up.
        """
        if seconds >= self._policy.early_s:
            self.reset()
        return next(self._pauses, None)


def wait_or_kill(process: subprocess.Popen[str], seconds: float) -> int:
    """Wait for a process that was asked to end, kill it after so many seconds, and return its exit
    code."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
