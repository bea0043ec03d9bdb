// Operators of a small space for the tests of search methods, and a fake evaluator.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/search/steps.h"
#include "syno/space/small_spaces_test.h"
#include "syno/support/mix.h"

namespace syno::samples {

inline std::vector<Operator> small_operators(const std::string& name = "conv1d", int depth = 7) {
  for (SmallSpace& space : small_spaces()) {
    if (space.name != name) continue;
    space.source.limits.max_depth = depth;
    EnumerateOptions options;
    std::vector<Operator> found;
    for (FoundOperator& each : enumerate(Specification(space.source), options).operators)
      found.push_back(std::move(each.op));
    return found;
  }
  throw InternalError("no such small space: " + name);
}

inline std::vector<LabeledSteps> labeled(const std::vector<Operator>& operators) {
  std::vector<LabeledSteps> found;
  for (const Operator& op : operators) found.push_back(labeled_steps(op));
  return found;
}

/// A value from 0 to 1 that follows from the steps: operators with common steps have similar values.
inline double fake_value(const LabeledSteps& steps) {
  double sum = 0;
  for (const LabeledStep& step : steps)
    sum += static_cast<double>(mix_bits(step.label) >> 11) * 0x1.0p-53;
  return sum / static_cast<double>(steps.size());
}

}  // namespace syno::samples
