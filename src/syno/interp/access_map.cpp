#include "syno/interp/access_map.h"

#include "syno/support/error.h"

namespace syno {
namespace {

Expression expression_of(const Graph& graph, CoordinateId id) {
  Expression expression;
  expression.extent = graph.extent(id);
  const Step* step = graph.producer(id);
  if (step == nullptr) {
    expression.kind = ExpressionKind::kIterator;
    return expression;
  }
  expression.a = step->in[0];
  expression.b = step->in[1];
  expression.kind = step->info().makes[static_cast<std::size_t>(graph.coordinate(id).index)];
  expression.amount = step->amount;
  expression.causal = step->causal;
  switch (expression.kind) {
    case ExpressionKind::kMixed:
    case ExpressionKind::kWindow: expression.size = graph.extent(step->in[1]); break;
    case ExpressionKind::kCyclicShift: expression.size = expression.extent; break;
    case ExpressionKind::kQuotient:
    case ExpressionKind::kRemainder:
    case ExpressionKind::kScaled: expression.size = step->size; break;
    case ExpressionKind::kReduction: break;
    case ExpressionKind::kIterator:
      throw InternalError("expression_of: this primitive makes no coordinate");
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
    switch (map.expressions.back().kind) {
      case ExpressionKind::kIterator: map.iterators.push_back(id); break;
      case ExpressionKind::kReduction: map.reductions.push_back(id); break;
      case ExpressionKind::kWindow: map.windows.push_back(id); break;
      default: break;
    }
  }
  map.data = op.match();
  for (const Weight& weight : graph.weights()) map.weights.push_back(weight.dims);
  return map;
}

}  // namespace syno
