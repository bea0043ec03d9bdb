// The steps of operators as search methods see them: labels that say what a step is and what it is connected to, and
// which steps have to be taken before it. Equal steps of different operators have equal labels, whatever the order of
// independent steps, the names of reductions and variables' tables are.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/graph/operator.h"

namespace syno {

/// What the last step of an operator, the matching of its frontier to the input, has in place of a primitive.
inline constexpr std::uint8_t kMatchStep = kPrimitiveCount;
inline constexpr std::size_t kStepKinds = kPrimitiveCount + 1;

struct LabeledStep {
  /// A primitive, or kMatchStep.
  std::uint8_t kind = 0;
  /// The primitive, its argument and the sizes that it takes, without its surroundings.
  std::uint64_t label = 0;
  /// The label, those of the steps whose results it takes, and those of the steps that take its results.
  std::uint64_t in_context = 0;
  /// Everything from the output to this step. A partial graph is the set of these of its steps.
  std::uint64_t from_output = 0;
  /// Bit i: step i has to be taken before.
  std::uint64_t needs = 0;
};

/// The steps of an operator: reductions first and in a fixed order, as in `children.h`, and the matching last.
using LabeledSteps = std::vector<LabeledStep>;

/// Throws UserError for an operator of more than 63 steps.
LabeledSteps labeled_steps(const Operator& op);

}  // namespace syno
