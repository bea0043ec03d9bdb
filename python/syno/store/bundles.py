"""Bundles: measurements of another machine as a signed file.

A bundle is JSON. Its signature is an HMAC of all else with a key that both machines have; nothing
of a file is believed before the signature is checked, and nothing in it is code. What a bundle says
must also hold in itself: `ratio` is that of the two medians, and keys are those of the operators.
"""

from __future__ import annotations

import dataclasses
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syno._util import checks
from syno._util.errors import UserError
from syno.runs.files import write_text
from syno.store.records import (
    BaselineLatency,
    Environment,
    MeasurementResult,
    VerificationResult,
    canonical_json,
    digest,
)

FORMAT = "syno measurements 1"
_ALGORITHM = "hmac-sha256"
MOST_BYTES = 64 << 20
MOST_ROWS = 100_000
# By how much a ratio may differ from that of the medians, which are rounded nowhere.
_RATIO_ERROR = 1e-9


@dataclass(frozen=True)
class BundleRow:
    """An operator's network on another machine: the operator, its verification, its latency."""

    text: str
    key: str
    verification: VerificationResult
    measurement: MeasurementResult


@dataclass(frozen=True)
class Bundle:
    """Measurements of one machine.

    environment: the machine, whose device is named; model: the network; size: height and width of
    its images; engine: what ran it; created: when.
    """

    environment: Environment
    model: str
    size: int
    engine: str
    created: str
    rows: tuple[BundleRow, ...]

    @property
    def digest(self) -> str:
        """What names the bundle, however it is written."""
        return digest(canonical_json(self))


def write_bundle(bundle: Bundle, path: Path, secret: bytes) -> None:
    """Write a signed bundle in one step.

    Raises:
        UserError: the file cannot be written.
    """
    content = {"format": FORMAT, **json.loads(canonical_json(bundle))}
    signature = {"algorithm": _ALGORITHM, "value": _signature(content, secret)}
    text = json.dumps({**content, "signature": signature}, indent=1) + "\n"
    write_text(path, text, "the bundle")


def read_bundle(path: Path, secret: bytes) -> Bundle:
    """Read a bundle, and check its signature and all that it says of itself.

    Raises:
        UserError: it cannot be read, is of another version, is not signed with this secret, or
            contradicts itself.
    """
    with checks.from_file(f"cannot read the bundle '{path}'", path):
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise UserError(f"the bundle '{path}' is larger than {MOST_BYTES >> 20} MiB")
    try:
        content = checks.fields(
            "the bundle", checks.json_content("the bundle", text, _without_repetition)
        )
        _check_signed(content, secret)
        return _bundle(content)
    except UserError as error:
        raise UserError(f"{error}\n  in {path}; nothing was stored") from error


def _check_signed(content: dict[str, object], secret: bytes) -> None:
    """Take the signature out of a bundle, if it is right."""
    found = content.get("format")
    if found != FORMAT:
        raise UserError(
            "this is no bundle that this Syno reads\n"
            f"  expected: the format '{FORMAT}'      got: {checks.shown(found)}\n"
            "  what to do: use the same version of Syno on both machines"
        )
    signature = checks.fields("the signature", content.pop("signature", None))
    algorithm, value = signature.get("algorithm"), signature.get("value")
    if algorithm != _ALGORITHM:
        raise UserError(
            "the bundle has a signature of another kind\n"
            f"  expected: {_ALGORITHM}      got: {checks.shown(algorithm)}"
        )
    right = _signature(content, secret)
    if not isinstance(value, str) or not hmac.compare_digest(value.encode(), right.encode()):
        raise UserError(
            "the signature of the bundle is not that of its content\n"
            "  what to do: give --secret the file that `syno measure` was given; if it is the "
            "same one, the bundle was changed on its way"
        )


def _signature(content: Mapping[str, object], secret: bytes) -> str:
    try:
        text = canonical_json(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"the bundle is no content that can be signed: {error}") from error
    return hmac.digest(secret, text.encode("utf-8", "surrogatepass"), "sha256").hex()


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object names a field twice")
    return found


def _bundle(content: dict[str, object]) -> Bundle:
    content.pop("format")
    rows = content.get("rows")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
        raise UserError(f"a bundle has from 1 to {MOST_ROWS:,} rows")
    given = _of(Bundle, "the bundle", content)
    environment = _of(Environment, "the environment", given["environment"])
    _check_texts("the environment", environment, "device", "platform", "commit", "rules")
    _check_texts("the bundle", given, "model", "engine", "created")
    libraries = checks.fields("the libraries", environment["libraries"])
    _check_texts("the libraries", libraries, *libraries)
    checks.whole("the number of threads", environment["threads"], 1, checks.MOST_INT)
    checks.whole("the size", given["size"], 1, checks.MOST_INT)
    made = tuple(_row(f"row {number}", row) for number, row in enumerate(rows, start=1))
    if len({row.text for row in made}) != len(made):
        raise UserError("the bundle has two rows about the same operator")
    return Bundle(**{**given, "environment": Environment(**environment), "rows": made})


def _row(where: str, content: object) -> BundleRow:
    row = _of(BundleRow, where, content)
    _check_texts(where, row, "text", "key")
    verified = _of(VerificationResult, f"the verification of {where}", row["verification"])
    timed = _of(MeasurementResult, f"the measurement of {where}", row["measurement"])
    baseline = _of(BaselineLatency, f"the baseline of {where}", timed["baseline"])
    _check_texts(where, verified, "source_hash", "emitter")
    if verified["passed"] is not True:
        raise UserError(f"the code of {where} has not passed its verification")
    _positive(where, verified, "max_error", zero=True)
    checks.whole(f"the seed of {where}", verified["seed"], 0)
    bindings = verified["bindings"]
    if not isinstance(bindings, list) or not bindings:
        raise UserError(f"the verification of {where} names no sizes")
    for binding in bindings:
        for name, size in checks.fields(f"the sizes of {where}", binding).items():
            checks.whole(f"'{name}' of {where}", size, 1)
    for each, zero in (("median_ms", False), ("spread_ms", True)):
        _positive(where, timed, each, zero=zero)
        _positive(f"the baseline of {where}", baseline, each, zero=zero)
    _positive(where, timed, "ratio")
    for each in ("threads", "repeats", "batch"):
        checks.whole(f"'{each}' of {where}", timed[each], 1, checks.MOST_INT)
    expected = timed["median_ms"] / baseline["median_ms"]
    if not math.isclose(timed["ratio"], expected, rel_tol=_RATIO_ERROR):
        raise UserError(
            f"the ratio of {where} is not that of its medians\n"
            f"  expected: {expected:.6g}      got: {timed['ratio']:.6g}"
        )
    measurement = MeasurementResult(**{**timed, "baseline": BaselineLatency(**baseline)})
    return BundleRow(row["text"], row["key"], VerificationResult(**verified), measurement)


def _of(kind: type, what: str, content: object) -> dict[str, Any]:
    """An object with the fields of a record, no more and no fewer."""
    found = checks.fields(what, content)
    names = [field.name for field in dataclasses.fields(kind)]
    if sorted(found) != sorted(names):
        raise UserError(
            f"{what} has other fields\n"
            f"  expected: {', '.join(sorted(names))}      got: {', '.join(sorted(found))}"
        )
    return found


def _check_texts(where: str, content: Mapping[str, object], *names: str) -> None:
    for name in names:
        checks.text(f"'{name}' of {where}", content[name])


def _positive(where: str, content: Mapping[str, object], name: str, *, zero: bool = False) -> None:
    value = checks.number(f"'{name}' of {where}", content[name])
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise UserError(
            f"'{name}' of {where} is no time or error\n  expected: a positive number      "
            f"got: {value}"
        )
