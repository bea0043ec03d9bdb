"""Two processes that torchrun starts train one network as one process does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPT = textwrap.dedent("""
    import json, sys
    import numpy as np
    import torch
    from torch import nn
    from syno.data import DataSet, Split
    from syno.data.dataset import statistics
    from syno.train import Fidelity, joined, recipe, train

    torch.set_num_threads(1)
    folder, stop = sys.argv[1], int(sys.argv[2]) or None
    random = np.random.default_rng(0)
    labels = np.arange(61) % 2
    images = random.integers(0, 128, (61, 1, 4, 4)) + 100 * labels[:, None, None, None]
    split = Split(images.astype(np.uint8), labels.astype(np.int64))
    mean, std = statistics(split.images)
    data = DataSet("made", split, split, ("dark", "bright"), mean, std, "0" * 32)
    few = Fidelity("few", resolution=4, epochs=3, recipe=recipe("fast/digits"), holdout=0.2)
    few = few.changed(batch=9, learning_rate=0.05, flip=True, ema=0.9)
    with joined() as group:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
        path = f"{folder}/run{group.world}.ckpt"
        outcome = train(net, data, few, 0, checkpoint=path, stop_after=stop)
        weights = [p.flatten().tolist() for p in net.parameters()]
        found = {"rank": group.rank, "world": group.world, "status": outcome.status,
                 "accuracy": outcome.accuracy, "loss_sum": outcome.loss_sum,
                 "images": outcome.images_seen, "weights": sum(weights, [])}
        with open(f"{folder}/found{group.rank}.json", "w") as file:
            json.dump(found, file)
""")


def run(folder: Path, processes: int, stop: int = 0) -> list[dict]:
    """What each process found."""
    folder.mkdir(exist_ok=True)
    script = folder / "together.py"
    script.write_text(SCRIPT)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node", str(processes)]
    command = [*(launcher if processes > 1 else [sys.executable]), str(script)]
    done = subprocess.run(
        [*command, str(folder), str(stop)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads((folder / f"found{rank}.json").read_text()) for rank in range(processes)]


@pytest.mark.slow
def test_two_processes_train_as_one_and_go_on_after_a_pause(tmp_path: Path) -> None:
    (alone,) = run(tmp_path / "one", 1)
    first, second = run(tmp_path / "two", 2)
    assert (first["rank"], second["rank"], first["world"]) == (0, 1, 2)
    assert first["weights"] == second["weights"]
    assert first["weights"] == pytest.approx(alone["weights"], abs=1e-5)
    for name in ("accuracy", "loss_sum", "images"):
        assert first[name] == second[name] == pytest.approx(alone[name], rel=1e-5)
    (paused, _) = run(tmp_path / "parts", 2, stop=1)
    assert paused["status"] == "paused"
    resumed = run(tmp_path / "parts", 2)
    assert [found["weights"] for found in resumed] == [first["weights"]] * 2
