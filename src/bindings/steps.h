// A step as plain data: what rules of users are asked about.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "syno/graph/graph.h"

namespace syno::bindings {

struct StepData {
  std::string op;
  std::vector<std::string> in;
  std::vector<std::string> out;
  std::string size;
  int amount = 0;
  bool causal = false;
  std::vector<std::pair<std::string, std::string>> dims;
};

/// A step of `graph`, coordinates by name.
StepData step_data(const Graph& graph, const Step& step);

}  // namespace syno::bindings
