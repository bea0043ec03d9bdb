"""The features of one operator: of its linear map (computed in C++) and of its graph."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping

from syno import _core
from syno._util.arguments import SEED, checked, instance
from syno._util.errors import UserError
from syno.features.probe import Positions, probe_bindings
from syno.operators.operator import Operator

# What each feature of the map is (src/syno/features/map_features.cpp).
MAP_FEATURES: dict[str, str] = dict(_core.map_feature_list())
_PRIMITIVES = tuple(_core.primitive_names())
# What each feature of the graph is.
GRAPH_FEATURES: dict[str, str] = {
    "log_macs": "Logarithm of the MACs in all layers of the specification.",
    "log_params": "Logarithm of the parameters in all layers of the specification.",
    "depth": "Number of primitives.",
    **{f"count_{name}": f"Number of {name} primitives." for name in _PRIMITIVES},
    "log_largest_weight": "Logarithm of the elements of the largest weight.",
    "log_second_weight": "Logarithm of those of the second largest; 0 if there is one weight.",
    "weight_dims": "Number of dimensions of all weights.",
    "log_reductions": "Logarithm of the product of the reductions.",
}
FEATURES: dict[str, str] = MAP_FEATURES | GRAPH_FEATURES


@checked(operator=instance(Operator), seed=SEED)
def features(operator: Operator, *, seed: int = 0) -> dict[str, float]:
    """Compute all features of an operator, in the order of `FEATURES`.

    The operator is examined at small sizes that follow from its specification
    (`syno.features.probe`), with random weights. It takes a few milliseconds.

    Args:
        operator: an operator with a specification that has bindings.
        seed: of the random weights and vectors.

    Returns:
        A number for each name of `FEATURES`.

    Raises:
        UserError: the operator has no specification with bindings, or no size was found at which
            it has few enough terms.
    """
    specification = operator.specification
    if specification is None or not has_layers(operator):
        raise UserError(
            "features() of an operator without layers\n"
            "  expected: an operator with a specification that has bindings\n"
            "  what to do: use operator.with_specification(specification)"
        )
    positions = Positions.of(operator, specification)
    problem: UserError | None = None
    for binding in probe_bindings(specification, positions):
        try:
            values = _core.map_features(
                operator._core, binding, positions.output, positions.input, seed
            )
        except UserError as error:  # a size is not whole here, or there are too many terms
            problem = problem or error
            continue
        of_map = dict(zip(MAP_FEATURES, values, strict=True))
        return of_map | _of_graph(operator, binding)
    raise UserError(f"the features of operator {operator.structure[:8]} are unknown: {problem}")


def has_layers(operator: Operator) -> bool:
    """Whether an operator has a specification with bindings."""
    return operator.specification is not None and bool(operator.specification.full_bindings)


def graph_features(operator: Operator) -> dict[str, float]:
    """Compute the features of the graph alone, at the first sizes that are whole.

    Args:
        operator: an operator with a specification that has bindings.

    Returns:
        A number for each name of `GRAPH_FEATURES`.

    Raises:
        UserError: its sizes are whole in no layer.
    """
    specification = operator.specification
    assert specification is not None
    for binding in probe_bindings(specification, Positions.of(operator, specification)):
        with contextlib.suppress(UserError):
            return _of_graph(operator, binding)
    raise UserError(f"the sizes of operator {operator.structure[:8]} are whole in no layer")


def _of_graph(operator: Operator, binding: Mapping[str, int]) -> dict[str, float]:
    counts = operator.primitives()
    shapes = operator.weight_shapes(binding)
    sizes = [*sorted((math.prod(shape) for shape in shapes), reverse=True), 1, 1]
    reductions = math.prod(_core.evaluate_size(size, binding) for size in operator.reductions)
    return {
        "log_macs": math.log(max(1, operator.macs())),
        "log_params": math.log(max(1, operator.params())),
        "depth": float(sum(counts.values())),
        **{f"count_{name}": float(counts.get(name, 0)) for name in _PRIMITIVES},
        "log_largest_weight": math.log(sizes[0]),
        "log_second_weight": math.log(sizes[1]),
        "weight_dims": float(sum(map(len, shapes))),
        "log_reductions": math.log(reductions),
    }
