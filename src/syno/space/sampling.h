// Samples from an enumerated space: distinct operators, seeded, uniform or spread over strata.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "syno/space/space.h"

namespace syno {

/// What a sample is spread over.
enum class Stratify : std::uint8_t {
  kNone,        ///< nothing: every set of operators is as likely as any other of its size
  kMacs,        ///< quantiles of MACs over all layers
  kParams,      ///< quantiles of parameters over all layers
  kPrimitives,  ///< multisets of primitives
};
/// "none", "macs", "params", "primitives"; throws UserError for another name.
Stratify parse_stratify(std::string_view name);

/// Indices of `count` distinct operators, or of all when there are fewer, in the order in which they were sampled.
///
/// By quantiles: the operators in order of their cost are cut into `count` groups of equal size (within one), and each
/// gives one. By primitives: the multisets take turns in a seeded order, each gives an operator a turn while it has some.
/// Inside a group every operator is as likely as any other. The same space, count and seed give the same sample on every
/// machine, and for any number of threads (0: as many as there are cores).
std::vector<std::size_t> sample_operators(const Space& space, const Specification& spec,
                                          std::uint64_t count, std::uint64_t seed,
                                          Stratify by = Stratify::kNone, std::int64_t threads = 1);

}  // namespace syno
