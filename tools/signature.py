"""Prints what the search finds in a few seconds as one number, the signature of the search.

The signature changes when the operators change that an enumeration finds, their order, the number
of partial graphs it visits, or the operators that a seed samples. A commit that touches the search
says `Signature: ...` with the new number, or `No functional change` (tools/check_commits.py).

Usage: signature.py [--write]
    prints a line for each enumeration, then `Signature: ...`; with --write also stores them in
    tests/golden/search/signature.txt, which a test compares with what the search finds
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from typing import Any

from project_files import ROOT

GOLDEN = ROOT / "tests/golden/search/signature.txt"
# Convolutions with few and with many orders of loops, a projection of text, and one of images.
ENUMERATIONS = (
    ("paper/resnet18", 6),
    ("paper/efficientnet_v2_s", 5),
    ("paper/gpt2", 4),
    ("paper/vit", 5),
)
SAMPLE = ("paper/resnet18", "--count", "20", "--seed", "0")


def lines() -> list[str]:
    """A line for each enumeration and for the sample, and the signature as the last line."""
    found = []
    for preset, depth in ENUMERATIONS:
        space = _syno("enumerate", "--preset", preset, "--depth", str(depth))
        found.append(
            f"enumerate {preset} --depth {depth}: {space['visited']} visited, "
            f"{space['operators']} operators, signature {space['signature']}"
        )
    keys = [operator["key"] for operator in _syno("sample", "--preset", *SAMPLE)["operators"]]
    found.append(f"sample {' '.join(SAMPLE)}: {_digest(keys)}")
    return [*found, f"Signature: {_digest(found)}"]


def _syno(*arguments: str) -> Any:
    """The JSON document that a command prints."""
    run = subprocess.run(
        [sys.executable, "-m", "syno.cli", *arguments, "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    if run.returncode:
        raise SystemExit(f"`syno {' '.join(arguments)}` failed:\n{run.stderr}")
    return json.loads(run.stdout)


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"Write {GOLDEN.relative_to(ROOT)}.")
    text = "\n".join(lines()) + "\n"
    if parser.parse_args().write:
        GOLDEN.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
