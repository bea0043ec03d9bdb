"""The latencies of a table: each operator in the compiled network, beside the original network.

It is a pass of its own, because it needs a quiet machine. Like the trainings, it can be stopped and
continued.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from syno._util.errors import UserError
from syno._util.inputs import Inputs
from syno._util.torch_threads import torch_threads
from syno.measure.timing import Timing, interleaved
from syno.operators.operator import Operator
from syno.runs.file_lock import one_writer
from syno.study.evaluate.engines import SharedCompilation
from syno_lab.benchmark.generator import Progress, TableFile, Trainer
from syno_lab.benchmark.table import BenchmarkTable, Latency, TableRow

if TYPE_CHECKING:
    from syno.study.evaluate.network import Network

REPEATS, WARMUP = 400, 20


@one_writer
def measure_latencies(
    path: Path,
    *,
    data_dir: str | None = None,
    limit: int | None = None,
    repeats: int = REPEATS,
    progress: Progress | None = None,
) -> BenchmarkTable:
    """Measure the operators of a table that have a result and no latency yet.

    The network runs with batch size 1 on one thread, in turns with the original network, both
    compiled by `syno.compile`.

    Args:
        path: the file of the table.
        data_dir: the folder of the data, whose sizes the network has.
        limit: the maximum number of operators.
        repeats: the number of timed runs.
        progress: called after each operator with (done, operators with a result, what was done).
    """
    with TableFile(path) as file:
        table, journal = file.table, file.latencies
        network = Trainer(table.configuration, data_dir).network(0)
        example = network.inputs(1)
        waiting = list(journal.waiting(sorted(table.numbers.values())))[:limit]
        with torch_threads(1), torch.inference_mode():
            shared = SharedCompilation(network)
            original = shared.prepared(network.original().eval(), example, is_original=True)
            for number in waiting:
                row = table.rows[number]
                found = _measured(table, network, row, number, shared, original, example, repeats)
                journal.put(number, found)
                if progress is not None:
                    progress(len(journal.done), len(table.numbers), _shown(row, found))
    return table


def _shown(row: TableRow, found: Latency) -> str:
    value = found.reason if found.ratio is None else f"{found.ratio:.2f} of the original"
    return f"{row.key[:8]}: {value}"


def _measured(
    table: BenchmarkTable,
    network: Network,
    row: TableRow,
    number: int,
    shared: SharedCompilation,
    original: Callable[[], object],
    example: Inputs,
    repeats: int,
) -> Latency:
    operator = Operator.from_text(row.text, table.specification)
    with torch.inference_mode(False):
        net, _ = network.with_operator(operator)
    try:
        own = shared.prepared(net.eval(), example, is_original=False)
    except UserError as error:
        return Latency(number, None, None, str(error).partition("\n")[0])
    for call in (own, original):
        for _ in range(WARMUP):
            call()
    mine, beside = map(Timing.of, interleaved([own, original], repeats, repeated=False))
    return Latency(number, round(mine.median_ms, 5), round(mine.median_ms / beside.median_ms, 4))
