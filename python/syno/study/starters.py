"""Which workers a search starts: none, processes of this machine, or workers on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.launch.ray_workers import RayWorkers, check_options
from syno.launch.starter import Starter
from syno.options import RayOptions
from syno.store import Store
from syno.store.database import parse_address
from syno.study.local_workers import LocalWorkers, count_gpus
from syno.study.worker import check_tags
from syno.study_options import ResumeOptions, StudyOptions

if TYPE_CHECKING:
    from torch import nn


def check_workers(
    given: StudyOptions | ResumeOptions,
    net: str | nn.Module,
    store: Store | str,
    *,
    is_custom: bool,
) -> None:
    """Check the workers of a search before there is a store.

    Args:
        given: the options of the search.
        net: the network, and `is_custom` says whether the data is of this program: what other
            processes cannot have.
        store: the store or its address.
        is_custom: see `net`.

    Raises:
        UserError: for what does not go together.
    """
    jobs, cluster = given.jobs, given.cluster
    if given.gpus:
        jobs = _jobs_on_gpus(jobs, cluster)
    if jobs is None and cluster.ray is None:
        return
    if cluster.ray is not None:
        check_options(cluster.ray, jobs, cluster.gpus_per_worker)
        check_tags(cluster.worker_tags)
    option = "jobs (--jobs)" if cluster.ray is None else "ray (--ray)"
    if not isinstance(net, str) or is_custom:
        raise UserError(
            f"{option} evaluates in other processes, which cannot have a module or data of "
            "this program\n"
            "  what to do: pass the name of a model and of a data set, or leave out "
            f"{option.split()[0]}"
        )
    address = store if isinstance(store, Store) else parse_address(store)
    if address.in_memory:
        raise UserError("a store in memory has no workers: other processes cannot reach it")


def predictor_of(given: StudyOptions | ResumeOptions) -> str | None:
    """Return the file of the latency predictor of a study that is resumed with one."""
    return given.predictor if isinstance(given, ResumeOptions) else None


def _jobs_on_gpus(jobs: int | None, cluster: RayOptions) -> int:
    """Return the number of workers that train on GPUs, by default one for each."""
    if cluster.ray is not None:
        raise UserError(
            "gpus (--gpus) is for workers that a search starts on its own machine\n"
            "  what to do: gpus_per_worker (--gpus-per-worker) for workers on a Ray cluster"
        )
    if jobs == 0:
        raise UserError(
            "gpus (--gpus) is for the workers that this process starts, and --jobs 0 starts none\n"
            "  what to do: `syno worker --gpus` where the workers are"
        )
    count = count_gpus()
    return count if jobs is None else jobs


def starter(
    store: Store,
    study: str,
    given: StudyOptions | ResumeOptions,
    *,
    data_dir: str | None,
    note: Callable[[str], None],
) -> Starter | None:
    """Return what starts the workers of a search; None if the search evaluates itself.

    On GPUs, there are as many workers as GPUs unless `jobs` says otherwise.
    """
    cluster, predictor = given.cluster, predictor_of(given)
    if cluster.ray is not None:
        return RayWorkers(
            store,
            study,
            cluster.ray,
            given.jobs,
            cores=cluster.cores_per_worker,
            gpus=cluster.gpus_per_worker,
            tags=cluster.worker_tags,
            data_dir=data_dir,
            predictor=predictor,
            note=note,
        )
    if given.jobs is None and not given.gpus:
        return None
    count = count_gpus() if given.gpus else 0
    jobs = count if given.jobs is None else given.jobs
    return LocalWorkers(store, study, jobs, data_dir, gpus=count, predictor=predictor)
