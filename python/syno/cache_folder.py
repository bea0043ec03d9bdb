"""Where Syno keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """SYNO_CACHE, else XDG_CACHE_HOME/syno, else ~/.cache/syno."""
    if own := os.environ.get("SYNO_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "syno"
