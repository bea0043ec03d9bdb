"""What `syno measure` does: operators in a network, verified and timed here, for another store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from syno._util import numbers as fmt
from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno._util.tables import Table
from syno.codegen.verify import verify
from syno.engines import engine as engines
from syno.measure.latency import Measurement, latency
from syno.network import models
from syno.network.models.info import ModelOptions
from syno.network.substitute import replace as put
from syno.operands.layers import fit_to_network, layer_specification
from syno.operands.lookup import NamedOperator, named_operators
from syno.operators.layer import Layer
from syno.store import Bundle, BundleRow, DeviceMeasurement, capture_environment
from syno.store.records import canonical_json, utc_now
from syno.study.evaluate.parts import measurement_result, verification_result

# The engine in which a search times networks on the CPU by default: compiled kernels.
_ENGINE = "syno"
Progress = Callable[[int, int, str], None]


def measure_operators(
    ops: Sequence[str],
    *,
    model: str,
    options: ModelOptions | None = None,
    size: int | None = None,
    binding: Mapping[str, int] | None = None,
    engine: str = _ENGINE,
    device_name: str = "",
    threads: int = 1,
    repeats: int = 30,
    store: str | None = None,
    study: str | None = None,
    progress: Progress = lambda *_: None,
) -> tuple[Bundle, list[str]]:
    """Measure a network with each of several operators, beside the original network.

    Args:
        ops: operators, as for `syno train`.
        model, options, size: the network, and the height and width of its images.
        binding: values of variables that the layers do not have.
        engine: the inference engine that runs the networks.
        device_name: the name of this machine; by default that of its processor alone.
        threads: number of threads.
        repeats: number of timed runs, at least 20.
        store, study: where operators are looked for by their keys.
        progress: called with (finished operators, all operators, description).

    Returns:
        The bundle, and a line for each operator that has no place in it.

    Raises:
        UserError: an operator is unknown, or none can be measured.
    """
    if models.describe(model).images is None:
        raise UserError(f"the model '{model}' does not process images\n  expected: another model")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        original = models.build(model, size=size, **dict(options or {})).eval()
    template = models.slots(original)
    known = layer_specification(template, dict(binding or {}))
    named = named_operators(list(ops), store=store, study=study, layers=known)
    shape = models.built(original).input_shape
    prepare = engines.get(engine).prepare
    rows: list[BundleRow] = []
    left: list[str] = []
    for number, each in enumerate(named):
        progress(number, len(named), each.name)
        try:
            rows.append(
                _row(each, template, binding or {}, shape, original, threads, repeats, prepare)
            )
        except UserError as error:
            left.append(f"{each.name}: {error}".partition("\n")[0])
    progress(len(named), len(named), "done")
    if not rows:
        raise UserError("no operator could be measured\n  " + "\n  ".join(left))
    environment = capture_environment(threads=threads, rules="")
    environment = replace(environment, libraries={**environment.libraries, "engine": engine})
    if device_name:
        environment = replace(environment, device=f"{device_name}: {environment.device}")
    return Bundle(environment, model, int(shape[-1]), engine, utc_now(), tuple(rows)), left


def _row(
    named: NamedOperator,
    template: torch.nn.Module,
    binding: Mapping[str, int],
    shape: Sequence[int],
    original: torch.nn.Module,
    threads: int,
    repeats: int,
    prepare: Callable[..., Callable[[], object]],
) -> BundleRow:
    net = copy_network(template)
    operator = fit_to_network(named, net, binding)
    put(net, operator)
    layers = [module for module in net.modules() if isinstance(module, Layer)]
    bindings = {canonical_json(layer.binding): layer.binding for layer in layers}
    checks = [verify(operator, each) for each in bindings.values()]
    failed = next((check for check in checks if not check.passed), None)
    if failed is not None:
        raise UserError(f"the generated code is wrong: {failed.failure}")
    timed: Measurement = latency(
        net.eval(),
        shape,
        baseline=original,
        verifications=checks,
        repeats=repeats,
        threads=threads,
        prepare=prepare,
    )
    together = verification_result(checks)
    return BundleRow(operator.text, operator.key, together, measurement_result(timed))


def rows_table(bundle: Bundle) -> Table:
    """The rows of a bundle."""
    return Table.of(
        bundle.rows,
        ("operator", lambda row: row.key[:8]),
        ("median ms>", lambda row: fmt.milliseconds(row.measurement.median_ms)),
        ("original ms>", lambda row: fmt.milliseconds(row.measurement.baseline.median_ms)),
        ("speed-up>", lambda row: fmt.speedup(row.measurement.ratio)),
    )


def measurements_table(found: Sequence[DeviceMeasurement]) -> Table:
    """Measurements of other machines, by operator."""
    return Table.of(
        found,
        ("ask>", lambda each: str(each.ask)),
        ("operator", lambda each: each.key[:8]),
        ("device~", lambda each: each.device),
        ("median ms>", lambda each: fmt.milliseconds(each.median_ms)),
        ("original ms>", lambda each: fmt.milliseconds(each.baseline_ms)),
        ("speed-up>", lambda each: fmt.speedup(each.ratio)),
        ("accuracy>?", lambda each: fmt.percent(each.accuracy)),
    ).without_empty()
