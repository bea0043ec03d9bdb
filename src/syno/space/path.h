// Paths: how an operator is built by children steps alone, or what stands in the way.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/space/children.h"

namespace syno {

struct Path {
  /// The steps from the output towards the input, each a child of the graph before it; their coordinates are numbered as
  /// in the graph built so far. Empty when there is no path.
  std::vector<Step> steps;
  /// For each of them, its number among the steps of the operator in the table of the specification.
  std::vector<std::size_t> order;
  /// Whether the last step completes the operator.
  bool reached = false;
  /// Without a path: the step that came furthest and the reason against it.
  std::string obstacle;
  /// That reason alone, as statistics count it; empty when there is a path.
  std::string obstacle_reason;
};

/// Finds a path to `op` among children that may use `max_depth` primitives. Independent steps are tried in every order.
/// Throws UserError after 200,000 steps that were tried in vain.
Path find_path(ChildGenerator& generator, const Operator& op, std::int64_t max_depth);

}  // namespace syno
