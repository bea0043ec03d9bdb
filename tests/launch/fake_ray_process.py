"""The process that speaks with a Ray cluster, with workers that give fake answers."""

from __future__ import annotations

import functools

from launch.fake_worker_process import FakeWorker
from syno.launch import ray_process
from syno.launch.ray_cluster import RayCluster


def main() -> None:
    """Keep workers running until the input ends."""
    ray_process.main(functools.partial(RayCluster, worker=FakeWorker))
