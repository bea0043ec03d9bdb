// Operators of a small space for the tests of search methods, and a fake evaluator.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/search/steps.h"
#include "syno/space/small_spaces_test.h"
#include "syno/support/mix.h"

namespace syno::samples {

/// "search" has hundreds of operators; others are those of small_spaces().
inline std::vector<Operator> small_operators(const std::string& name = "search", int depth = 7) {
  std::vector<SmallSpace> spaces = small_spaces();
  spaces.push_back(make("search", "", "[N, C_in: unordered, H]", "[N, C_out: unordered, H]",
                        {"N: 0", "C_in: 2", "C_out: 2", "H: 0"}, {"k=3: 2", "s=2: 1"},
                        {"C_in=16, C_out=16, H=32"}, 7));
  spaces.back().source.passed_through = {{0, 0}};
  for (SmallSpace& space : spaces) {
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

/// A value around 0.5 to which each step adds or of which it takes: operators with common steps have similar values.
inline double fake_value(const LabeledSteps& steps) {
  double sum = 0;
  for (const LabeledStep& step : steps)
    sum += static_cast<double>(mix_bits(step.label) >> 11) * 0x1.0p-53 - 0.5;
  return 0.5 + sum / 8;
}

}  // namespace syno::samples
