"""torchvision beside a torch that its compiled part is not for."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from syno.network.models.torchvision_shim import import_torchvision

PROGRAM = """
import sys
import torch
{before}
from syno.network.models.torchvision_shim import import_torchvision
first = import_torchvision()
assert import_torchvision() is first and sys.modules["torchvision"] is first
from torchvision import models, transforms, datasets
net = models.resnet18(weights=None).eval()
assert net(torch.zeros(1, 3, 32, 32)).shape == (1, 1000)
print(hasattr(torch.ops.torchvision, "nms"), first.extension._has_ops())
"""


FAILED = """
try:
    import torchvision
except RuntimeError:
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", FAILED], ids=["first", "after-a-failure"])
def test_torchvision_is_imported_once_whether_or_not_its_compiled_part_loads(before: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loaded = import_torchvision().extension._has_ops()
    assert done.stdout == f"True {loaded}\n"


def test_calling_what_is_only_declared_stays_an_error() -> None:
    torchvision = import_torchvision()
    if torchvision.extension._has_ops():
        return
    boxes = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    try:
        torchvision.ops.nms(boxes, torch.ones(1), 0.5)
    except (RuntimeError, NotImplementedError) as error:
        assert "torchvision" in str(error)
    else:
        raise AssertionError("nms has no code here")
