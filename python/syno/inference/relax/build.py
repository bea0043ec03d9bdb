"""Modules of Relax compiled for a target: fused, with schedules, for Relax's virtual machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from syno._util.errors import UserError
from syno.codegen.emitters.tvm import imported
from syno.codegen.emitters.tvm_types import Executable, Module, PrimFunc, TvmTarget
from syno.inference.relax.schedules import is_scheduled, schedule_plainly

# The file of a database of MetaSchedule with its schedules, and that with what they are of.
_RECORDS, _WORKLOADS = "database_tuning_record.json", "database_workload.json"


def lower(module: Module, target: TvmTarget) -> Module:
    """The module with a function of TensorIR for every call, neighbouring operations fused.

    What MetaSchedule tunes are these functions. Buffers of weights are marked in them, so that a
    schedule may choose in which order a weight lies in memory.
    """
    tvm = imported()
    from tvm import relax

    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        *relax.pipeline.library_dispatch_passes(target),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.AttachAttrLayoutFreeBuffers(),
    ]
    with target:
        found: Module = tvm.transform.Sequential(passes)(module)
    return found


def build(
    module: Module, target: TvmTarget, databases: Sequence[Path] = ()
) -> tuple[Executable, int, int]:
    """Compile a lowered module.

    Returns TVM's executable, for a virtual machine or a library; how many of its functions have a
    schedule of a database; and how many functions it has.

    databases: folders of databases of MetaSchedule. A function with a schedule in one of them gets
    the fastest; others get a plain one.

    Raises:
        UserError: TVM cannot compile the module, or there is no database in a folder.
    """
    imported()
    from tvm import relax

    tuned, functions = 0, len(_functions(module))
    with target:
        if databases:
            with _union(databases):
                module = relax.transform.MetaScheduleApplyDatabase(enable_warning=False)(module)
            tuned = sum(is_scheduled(each) for each in _functions(module))
            module = relax.transform.SplitLayoutRewritePreproc()(module)
            module = relax.transform.FoldConstant()(module)
        module = schedule_plainly(module)
    try:
        return relax.build(module, target, relax_pipeline="default_build"), tuned, functions
    except Exception as error:  # of TVM, which raises whatever it likes
        words = str(error).strip().rpartition("\n")[2]
        raise UserError(f"TVM cannot compile the network for {target}: {words}") from error


def tuning_tasks(module: Module, target: TvmTarget) -> dict[str, Module]:
    """The functions of a lowered module that MetaSchedule can tune, by name, each as a module of
    its own. Equal functions are one."""
    imported()
    from tvm.s_tir.meta_schedule import relax_integration

    tasks = relax_integration.extract_tasks(module, target)
    return {str(task.task_name): task.dispatched[0] for task in tasks}


def _functions(module: Module) -> list[PrimFunc]:
    """The functions of TensorIR."""
    kind = imported().tirx.PrimFunc
    return [function for _, function in module.functions_items() if isinstance(function, kind)]


def databases_below(folder: Path) -> list[Path]:
    """The folders of databases of MetaSchedule in a folder, or anywhere below it.

    Raises:
        UserError: there is none.
    """
    found = sorted({each.parent for each in folder.rglob(_RECORDS) if _is_database(each.parent)})
    if not found:
        raise UserError(
            f"there are no schedules of TVM below '{folder}'\n"
            "  what to do: `syno tune` with the back end tvm makes them; name the folder of its "
            "results"
        )
    return found


def _is_database(folder: Path) -> bool:
    return (folder / _RECORDS).is_file() and (folder / _WORKLOADS).is_file()


def _union(folders: Sequence[Path]) -> AbstractContextManager[object]:
    """One database of all: the fastest schedule of each function counts."""
    from tvm.s_tir import meta_schedule

    for folder in folders:
        if not _is_database(folder):
            raise UserError(f"there is no database of MetaSchedule in the folder '{folder}'")
    found = [meta_schedule.database.JSONDatabase(work_dir=str(folder)) for folder in folders]
    union: AbstractContextManager[object] = meta_schedule.database.UnionDatabase(*found)
    return union
