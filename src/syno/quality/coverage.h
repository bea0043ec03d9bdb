// What an operator reads and what it repeats, under one binding: decided exactly, or reported as undecided.
//
// Without a Stride every input element is read. Proof, from the input back to the output: choose any value for every
// coordinate of the data frontier, and 0 for every coordinate that was expanded or dropped. Each step has values of
// what it consumes that produce the chosen ones, unmasked: a Split, Merge or Shift is one to one; an Unfold takes i = v
// and j = K div 2 (causal: K - 1), which is in 0..K-1 and gives v itself. A coordinate is consumed once, so no choice
// meets another one. The same argument gives every value of a component's visible coordinates when only one of its
// coordinates is requested. With a Stride the points of its component are enumerated.
//
// Outputs are compared one component at a time (repeats.h).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "syno/interp/components.h"
#include "syno/quality/repeats.h"

namespace syno {

struct InputCoverage {
  /// Whether every input element is read by an unmasked term.
  Decision whole = Decision::kYes;
  /// kNo: an index that is never read; -1 where the dimension does not matter. kUndecided: empty.
  std::vector<std::int64_t> unread;
};
InputCoverage input_coverage(const Operator& op, const Values& values);
InputCoverage input_coverage(const std::vector<Component>& parts, const Program& program);

struct OutputClasses {
  bool decided = true;
  /// The most output elements that are equal to each other for all inputs and weights; elements whose windows lie
  /// wholly outside (always 0) do not count. 0: all elements are such.
  std::int64_t largest = 1;
};
OutputClasses output_classes(const Operator& op, const Values& values);
/// What one component has to say about it; components without iterators too, which may mask everything. `limit` as in
/// component_classes.
ComponentClasses output_classes(const Component& part, const AccessMap& map, const Program& program,
                                std::int64_t limit = 0);
/// The most elements of one class, where all components together repeat elements like this; nothing when there are too
/// many combinations to look at.
std::optional<std::int64_t> largest_class(const std::vector<const std::set<Profile>*>& repeats);
OutputClasses output_classes(const std::vector<Component>& parts, const AccessMap& map,
                             const Program& program);

}  // namespace syno
