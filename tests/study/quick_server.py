"""The process that forks evaluations, without the compiler of torch: it starts in a second."""

from __future__ import annotations

from syno.study.evaluate import fork_server


def main() -> None:
    fork_server._PRELOADED = ("torch",)
    fork_server.main()
