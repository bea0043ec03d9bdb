"""Tuning of operators for a device, in several back ends: grids of tasks that survive a kill."""

from syno.tune.grid import Grid, Target, read_grid, single_grid
from syno.tune.run import GridRun, run_grid
from syno.tune.tasks import TuningTask, tasks_of

__all__ = [
    "Grid",
    "GridRun",
    "Target",
    "TuningTask",
    "read_grid",
    "run_grid",
    "single_grid",
    "tasks_of",
]
