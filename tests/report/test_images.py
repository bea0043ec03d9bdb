"""Pictures of a study's progress."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

from syno.report.images import save_progress

from . import sample


def size(path: Path) -> tuple[int, int]:
    return struct.unpack(">II", path.read_bytes()[16:24])


def test_several_objectives_have_their_hypervolume_beside_the_best_result(tmp_path: Path) -> None:
    report = sample.report(6)
    one, several = tmp_path / "one.png", tmp_path / "several.png"
    save_progress(report, one)
    save_progress(replace(report, volumes=(None, 0.1, 0.1, 0.25, 0.3, 0.3)), several)
    assert size(several)[0] > 1.3 * size(one)[0]
    assert size(several)[1] == size(one)[1]
