// Operators of paper/resnet18 that several benchmarks measure, sampled with fixed seeds.
#pragma once

#include <algorithm>
#include <vector>

#include "syno/space/enumerate.h"
#include "syno/space/walks.h"
#include "syno/spec/presets.h"
#include "syno/spec/specification.h"

namespace syno::bench {

inline const Specification& resnet18() {
  static const Specification spec(preset("paper/resnet18"));
  return spec;
}

/// Everything up to 8 primitives.
inline const Space& listed_to_8() {
  static const Space space = [] {
    EnumerateOptions options;
    options.max_depth = options.first_depth = 8;
    options.max_nodes = 5'000'000;
    options.threads = 0;
    return enumerate_space(resnet18(), options);
  }();
  return space;
}

/// Of those, up to 5,000 with exactly 8 primitives, one of each key.
inline const std::vector<Operator>& operators_of_8() {
  static const std::vector<Operator> operators = [] {
    const Space& space = listed_to_8();
    const UniformSamples samples(space.operator_count(), 1);
    std::vector<Operator> sampled;
    for (std::uint64_t n = 0; n < samples.count() && sampled.size() < 5000; ++n) {
      const std::size_t index = samples.at(n);
      if (space.depth(space.operators[index].node) == 8)
        sampled.push_back(space.op(resnet18(), index).in_table(resnet18().variables()));
    }
    return sampled;
  }();
  return operators;
}

/// Some hundred with 11 or 12 primitives, which walks met.
inline const std::vector<Operator>& operators_of_12() {
  static const std::vector<Operator> operators = [] {
    WalkOptions options;
    options.walks = 4096;
    options.threads = 0;
    std::vector<Operator> met;
    for (const WalkedOperator& found : random_walks(resnet18(), options).operators) {
      if (found.depth >= 11) met.push_back(found.op.in_table(resnet18().variables()));
    }
    return met;
  }();
  return operators;
}

}  // namespace syno::bench
