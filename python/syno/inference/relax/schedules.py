"""Plain schedules for functions that MetaSchedule has not tuned: threads over rows of vectors."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

from syno.codegen.emitters.tvm import imported
from syno.codegen.emitters.tvm_types import Foreign, Module, PrimFunc

# The attribute of functions that have a schedule.
_SCHEDULED = "tirx.is_scheduled"
# The longest row that is one vector; LLVM cuts it into those of the processor.
_LONGEST = 64
# With fewer steps of a loop nest, threads would wait for each other for longer than they work.
_LEAST_SHARED = 1 << 14
# TVM's number for iterators over outputs; others are those of sums.
_DATA_PARALLEL = 0


def schedule_plainly(module: Module) -> Module:
    """The module with a schedule for every function of TensorIR that has none.

    The last loop over outputs comes to be inside of all sums, as vectors, and threads share the
    others. Each function computes what it did before, in the same order of summands.
    """
    tvm = imported()
    found = module.clone()
    for variable, function in module.functions_items():
        if isinstance(function, tvm.tirx.PrimFunc) and not is_scheduled(function):
            found.update_func(variable, _scheduled(function))
    return found


def is_scheduled(function: PrimFunc) -> bool:
    """Whether a function of TensorIR has a schedule."""
    return bool(function.attrs and function.attrs.get(_SCHEDULED, False))


def _scheduled(function: PrimFunc) -> PrimFunc:
    from tvm.s_tir import Schedule, ScheduleError

    module = imported().IRModule({"main": function})
    schedule = Schedule(module)
    blocks: Sequence[object] = []
    with contextlib.suppress(ScheduleError):  # sorts and sums of prefixes are no tensor expressions
        blocks = schedule.get_child_blocks(schedule.get_sblock("root", "main"))
    for block in blocks:
        # A step that does not apply changes nothing, and the steps before it hold without it.
        with contextlib.suppress(ScheduleError):
            _schedule_block(schedule, block)
    found: PrimFunc = schedule.mod["main"].with_attr(_SCHEDULED, True)
    return found


def _schedule_block(schedule: Foreign, block: object) -> None:
    loops, iterators = schedule.get_loops(block), schedule.get(block).iter_vars
    if len(loops) != len(iterators):
        return  # not the loops of one tensor expression
    pairs = [*zip(loops, iterators, strict=True)]
    outputs = [loop for loop, each in pairs if each.iter_type == _DATA_PARALLEL]
    sums = [loop for loop, each in pairs if each.iter_type != _DATA_PARALLEL]
    if not outputs:
        return
    extents = [_extent(schedule, loop) for loop in loops]
    shared = None in extents or math.prod(n for n in extents if n is not None) >= _LEAST_SHARED
    *rows, last = outputs
    if rows and sums:
        schedule.reorder(*rows, *sums, last)
    if rows and shared:
        schedule.parallel(schedule.fuse(*rows) if len(rows) > 1 else rows[0])
    extent = _extent(schedule, last)
    # TVM stores a vector of truth values with the wrong type.
    truth = any(str(each.source.dtype) == "bool" for each in schedule.get(block).writes)
    if rows and extent is not None and 1 < extent <= _LONGEST and not truth:
        schedule.vectorize(last)
    if rows and sums:
        schedule.decompose_reduction(block, sums[0])


def _extent(schedule: Foreign, loop: object) -> int | None:
    """The number of steps of a loop; None where it depends on the batch."""
    found = schedule.get(loop).extent
    return int(found) if isinstance(found, imported().tirx.IntImm) else None
