"""Random small networks against PyTorch, in every way to run them: right, or refused.

`python -m tests.inference.test_random_networks FIRST COUNT` tries networks of other seeds.
"""

import sys
import tempfile
from pathlib import Path

import pytest
import torch
from tests.inference import bundles
from tests.inference.grammar import network

from syno.codegen.native import QUICK_FLAGS
from syno.inference.library import load as loading

pytestmark = pytest.mark.usefixtures("one_torch_thread")

# Networks that are traced and compiled as one.
TOGETHER = 25
BUNDLES = 200
FEW = 5  # networks


def check(seeds, folder):
    """The faults of a bundle, and how many of its networks are compiled and written."""
    faults, compiled = [], 0
    single = {seed: network(seed, one_result=True) for seed in seeds}
    with_code = [seed for seed, each in single.items() if bundles.has_code(each, faults)]
    # Those with code are for any batch size, mostly, and so is what they are compiled to together.
    for group in (with_code, [seed for seed in seeds if seed not in with_code]):
        compiled += bundles.check_compiled([network(seed) for seed in group], faults)
    written = [single[seed] for seed in with_code]
    if written:
        with torch.no_grad():
            bundles.check_written(written, folder, "cpp-network", bundles.library, faults)
            bundles.check_written(written, folder, "torch-export", bundles.exported, faults)
    return faults, compiled, len(written)


def test_random_networks_are_right_or_refused(tmp_path):
    faults, compiled, written = check(range(FEW), tmp_path)
    assert not faults, "\n\n".join(faults)
    assert compiled > FEW / 2 and written > FEW / 4  # most of them are not refused


@pytest.mark.slow
@pytest.mark.parametrize("bundle", range(BUNDLES))
def test_many_random_networks_are_right_or_refused(bundle, tmp_path):
    faults, _, _ = check(_seeds(bundle), tmp_path)
    assert not faults, "\n\n".join(faults)


def _seeds(bundle):
    return range(TOGETHER * bundle, TOGETHER * (bundle + 1))


def main(first, count):
    loading.FLAGS = QUICK_FLAGS
    torch.set_num_threads(1)
    for bundle in range(first // TOGETHER, -(-(first + count) // TOGETHER)):
        with tempfile.TemporaryDirectory() as folder:
            faults, compiled, written = check(_seeds(bundle), Path(folder))
        print(f"{TOGETHER * (bundle + 1)}: {compiled} compiled, {written} written", *faults)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
