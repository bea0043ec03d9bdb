#include "syno/interp/access_map.h"

namespace syno {
namespace {

Expression expression_of(const Graph& graph, CoordinateId id) {
  Expression expression;
  expression.extent = graph.extent(id);
  const Step* step = graph.producer(id);
  if (step == nullptr) return expression;
  expression.a = step->in[0];
  expression.b = step->in[1];
  expression.kind = step->info().makes[static_cast<std::size_t>(graph.coordinate(id).index)];
  expression.amount = step->amount;
  expression.causal = step->causal;
  if (!is_leaf(expression.kind)) {
    const Size second = takes_two(expression.kind) ? graph.extent(expression.b) : Size();
    expression.size =
        size_in_formula(expression.kind, expression.extent, graph.extent(expression.a), second);
  }
  return expression;
}

}  // namespace

AccessMap make_access_map(const Operator& op) {
  const Graph& graph = op.graph();
  AccessMap map;
  map.variables = op.variables();
  for (std::size_t i = 0; i < graph.coordinates().size(); ++i) {
    const auto id = static_cast<CoordinateId>(i);
    map.expressions.push_back(expression_of(graph, id));
    const ExpressionKind kind = map.expressions.back().kind;
    if (is_leaf(kind)) (is_summed(kind) ? map.reductions : map.iterators).push_back(id);
    if (is_masked(kind)) map.windows.push_back(id);
  }
  map.data = op.match();
  for (const Weight& weight : graph.weights()) map.weights.push_back(weight.dims);
  return map;
}

}  // namespace syno
