"""What a benchmark measured, with the machine, the versions and the commit behind it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from syno.store.environment import capture_environment


def report(found: dict[str, Any], out: Path | None) -> None:
    """Write what was found, and where, as JSON to a file, or print it."""
    environment = capture_environment(threads=1, rules="")
    found["machine"] = {
        "processor": environment.device,
        "cores": os.cpu_count(),
        "platform": environment.platform,
        "load_before": os.getloadavg()[2],
    }
    found["versions"] = dict(environment.libraries) | {"python": sys.version.split()[0]}
    found["commit"] = environment.commit
    shown = json.dumps(found, indent=1)
    if out is None:
        print(shown)
    else:
        out.write_text(shown + "\n", encoding="utf-8")
