"""Bundles: what another machine measured comes into a store, and a forged one changes nothing."""

from __future__ import annotations

import copy
import dataclasses
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from syno import UserError
from syno.store import Bundle, BundleRow, Store, StudyRecord, read_bundle, write_bundle
from syno.store.records import canonical_json

from .sample import BASELINE, ENVIRONMENT, MEASUREMENT, TRAINED, VERIFICATION, make_study

SECRET = b"0123456789abcdef"
OTHER = dataclasses.replace(ENVIRONMENT, device="jetson: Cortex-A78AE", threads=6)
ROW = BundleRow("an operator", "k1", VERIFICATION, MEASUREMENT)
BUNDLE = Bundle(OTHER, "resnet-small", 16, "eager", "2026-01-01T00:00:00.0Z", (ROW,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jetson.json"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "runs.db"))


def filled(store: Store) -> StudyRecord:
    study = make_study(store)
    baseline = store.ask(study, 0, None, "w")
    store.tell(baseline.id, BASELINE, ENVIRONMENT)
    for number, operator in enumerate([("an operator", "k1"), ("another", "k2")], start=1):
        asked = store.ask(study, number, operator, "w")
        store.tell(asked.id, TRAINED, ENVIRONMENT)
    return study


def changed(path: Path, change: Callable[[dict[str, Any]], object], *, signed: bool) -> str:
    """What is said of a bundle after a change, with the signature of before, or a right one."""
    write_bundle(BUNDLE, path, SECRET)
    content = json.loads(path.read_text())
    change(content)
    if signed:
        content.pop("signature", None)
        text = canonical_json(content)
        value = hmac.digest(SECRET, text.encode(), "sha256").hex()
        content["signature"] = {"algorithm": "hmac-sha256", "value": value}
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as caught:
        read_bundle(path, SECRET)
    assert "nothing was stored" in str(caught.value)
    return str(caught.value)


def test_a_bundle_is_read_as_it_was_written(path: Path) -> None:
    write_bundle(BUNDLE, path, SECRET)
    assert read_bundle(path, SECRET) == BUNDLE
    with pytest.raises(UserError, match="signature of the bundle is not that of its content"):
        read_bundle(path, b"another secret 12")


def test_a_bundle_comes_into_a_study_with_its_device(store: Store) -> None:
    study = filled(store)
    before = store.summary(study)
    done = store.measurements.add(study, BUNDLE)
    assert (done.device, done.stored, done.known, done.missing) == (OTHER.device, 1, False, ())
    (found,) = store.measurements.of(study)
    assert (found.ask, found.key, found.device) == (1, "k1", OTHER.device)
    assert (found.median_ms, found.ratio, found.baseline_ms) == (1.5, 0.75, 2.0)
    after = store.summary(study)
    # What the search found is as it was: an evaluation has one latency, its own.
    assert after.evaluations == before.evaluations and after.baseline == before.baseline
    assert store.measurements.add(study, BUNDLE).known
    assert len(store.measurements.of(study)) == 1
    third = dataclasses.replace(OTHER, device="a phone")
    store.measurements.add(study, dataclasses.replace(BUNDLE, environment=third))
    assert [each.device for each in store.measurements.of(study)] == [OTHER.device, "a phone"]
    name = store.name
    store.close()
    with Store.open(name, read_only=True) as again:  # which checks every row
        assert len(again.measurements.of(again.study())) == 2


def test_what_the_study_does_not_have_is_left_out(store: Store) -> None:
    study = filled(store)
    unknown = dataclasses.replace(ROW, text="unknown", key="k9")
    done = store.measurements.add(study, dataclasses.replace(BUNDLE, rows=(unknown, ROW)))
    assert (done.stored, done.missing) == (1, ("k9",))
    with pytest.raises(UserError, match="has evaluated no operator of the bundle"):
        store.measurements.add(study, dataclasses.replace(BUNDLE, rows=(unknown,)))


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        # The key of one operator with the text of another.
        ((dataclasses.replace(ROW, key="k2"),), "no operator of the bundle"),
        (
            (
                ROW,
                BundleRow(
                    "another",
                    "k2",
                    dataclasses.replace(VERIFICATION, source_hash="f0f0"),
                    MEASUREMENT,
                ),
            ),
            "other code of the operator k2",
        ),
        (
            (
                dataclasses.replace(
                    ROW, verification=dataclasses.replace(VERIFICATION, bindings=[{"H": 16}])
                ),
            ),
            "in other layers than the study",
        ),
    ],
)
def test_a_forged_row_stores_nothing(store: Store, rows: tuple[BundleRow, ...], what: str) -> None:
    study = filled(store)
    events = store.events(study)
    with pytest.raises(UserError, match=what):
        store.measurements.add(study, dataclasses.replace(BUNDLE, rows=rows))
    assert store.measurements.of(study) == []
    assert store.events(study) == events


def test_the_machine_of_the_study_itself_is_refused(store: Store) -> None:
    study = filled(store)
    with pytest.raises(UserError, match="measured where the study was"):
        store.measurements.add(study, dataclasses.replace(BUNDLE, environment=ENVIRONMENT))


def faster(content: dict[str, Any]) -> None:
    content["rows"][0]["measurement"]["median_ms"] = 0.5


def test_a_bundle_that_was_changed_is_refused(path: Path) -> None:
    assert "not that of its content" in changed(path, faster, signed=False)
    assert "not that of its content" in changed(
        path, lambda c: c["environment"].update(device="mine"), signed=False
    )
    assert "signature is not an object" in changed(path, lambda c: c.pop("signature"), signed=False)
    assert "of another kind" in changed(
        path, lambda c: c["signature"].update(algorithm="none"), signed=False
    )
    assert "'syno measurements 1'" in changed(
        path, lambda c: c.update(format="syno measurements 2"), signed=False
    )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (faster, "the ratio of row 1 is not that of its medians"),
        (lambda c: c.update(more=1), "the bundle has other fields"),
        (lambda c: c.update(rows=[]), "a bundle has from 1"),
        (lambda c: c["rows"].append(copy.deepcopy(c["rows"][0])), "about the same operator"),
        (lambda c: c["rows"][0].update(key=5), "'key' of row 1"),
        (lambda c: c["rows"][0]["verification"].update(passed=1), "has not passed"),
        (lambda c: c["rows"][0]["verification"].update(bindings=[{"H": -1}]), "'H' of row 1"),
        (lambda c: c["rows"][0]["measurement"].update(threads=0), "'threads' of row 1"),
        (lambda c: c["rows"][0]["measurement"].update(spread_ms=-1.0), "'spread_ms' of row 1"),
        (lambda c: c["environment"].update(threads="6"), "number of threads"),
        (lambda c: c["environment"].update(libraries={"torch": 2}), "'torch' of the libraries"),
        (lambda c: c.update(size=0), "the size"),
    ],
)
def test_a_signed_bundle_that_contradicts_itself_is_refused(
    path: Path, change: Callable[[dict[str, Any]], object], what: str
) -> None:
    assert what in changed(path, change, signed=True)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[]", b"{", b'{"format": "a", "format": "b"}', b"[" * 100_000, b"\x80\x04K."],
)
def test_what_is_no_bundle_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UserError, match="bundle"):
        read_bundle(path, SECRET)
    with pytest.raises(UserError, match="cannot read the bundle"):
        read_bundle(path.with_name("missing"), SECRET)
    with pytest.raises(UserError, match="cannot write the bundle"):
        write_bundle(BUNDLE, path / "below" / "it", SECRET)


def test_a_bundle_has_at_most_64_mebibytes(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(UserError, match="is larger than 64 MiB"):
        read_bundle(path, SECRET)
    with pytest.raises(UserError, match="is larger than 64 MiB"):
        read_bundle(Path("/dev/zero"), SECRET)  # which has no size
    with path.open("wb") as file:
        file.truncate(64 << 20)
    with pytest.raises(UserError, match="not valid JSON"):
        read_bundle(path, SECRET)


def test_a_bundle_has_at_most_100_000_rows(path: Path) -> None:
    def rows(count: int) -> str:
        return changed(path, lambda content: content.update(rows=[0] * count), signed=True)

    assert "a bundle has from 1 to 100,000 rows" in rows(100_001)
    assert "a bundle has from 1 to 100,000 rows" in rows(0)
    assert "row 1 is not an object" in rows(100_000)
