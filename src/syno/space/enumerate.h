// Enumeration: all operators of a specification, level by level under growing depth limits, up to a budget.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/rules/catalogue.h"
#include "syno/space/bound.h"
#include "syno/space/space.h"
#include "syno/support/options.h"

namespace syno {

struct EnumerateOptions {
  /// Primitives in an operator; 0 takes the specification's max_depth.
  std::int64_t max_depth = 0;
  /// Partial graphs visited over all depth limits.
  std::int64_t max_nodes = 30'000;
  /// Bytes for partial graphs and tables; 0 for no limit.
  std::int64_t max_memory = 0;
  /// 0 for no limit. Where it ends the enumeration, the result depends on the machine.
  double max_seconds = 0;
  /// 0 for as many as the machine has cores; at most kMaxThreads (support/threads.h). The result does not depend on it.
  std::int64_t threads = 1;
  RuleSet rules;
  BoundMode bound = BoundMode::kFull;
  /// Whether quality conditions and windows of MACs and parameters apply; off for counting raw structures.
  bool quality = true;
  /// Whether partial graphs are rejected from which every operator needs more than max_macs (macs_bound.h). The operators
  /// are the same; with `quality` and BoundMode::kFull only.
  bool macs_bound = true;
  /// Whether operators are compared by their keys; off, every structure is enumerated and has the key 0.
  bool keys = true;
  /// The depth limit to begin with; smaller ones are contained in it.
  std::int64_t first_depth = 1;
};

/// The budgets of an enumeration: depth, max_nodes, max_memory, max_seconds.
std::span<const Option<EnumerateOptions>> enumerate_options();

/// What an enumeration has reached, and whether it should go on.
struct EnumerateStatus {
  std::int64_t depth_limit = 0;
  std::int64_t level = 0;
  std::int64_t nodes = 0;
  std::int64_t operators = 0;
  /// Of the graphs of this level, those visited.
  double level_share = 0;
};
/// Called now and then from the calling thread; returning false stops the enumeration like a spent budget.
using EnumerateProgress = std::function<bool(const EnumerateStatus&)>;

/// The space of `spec`. Deterministic unless time ends it: the same arguments give the same space whatever the number of
/// threads. When a budget ends inside a depth limit, the space of the last complete limit is returned (or, when there
/// is none with an operator, what was found so far).
Space enumerate_space(const Specification& spec, const EnumerateOptions& options,
                      const EnumerateProgress& progress = {});

struct FoundOperator {
  Operator op;
  /// The semantic key under the specification's bindings.
  Hash128 key;
  int depth = 0;
};

struct Enumeration {
  /// One operator a semantic key, in the order of their depth and key.
  std::vector<FoundOperator> operators;
  /// Complete graphs met, before matchings and keys.
  std::int64_t graphs = 0;
  /// Structures met that pass all conditions, before keys are compared.
  std::int64_t structures = 0;
  /// Partial graphs visited over all depth limits.
  std::int64_t nodes = 0;
  /// The largest depth limit that was enumerated completely.
  std::int64_t complete_depth = 0;
  /// Whether the whole space up to the depth requested was enumerated.
  bool exhausted = false;
  Rejections rejections;
};

/// enumerate_space with the operators written out.
Enumeration enumerate(const Specification& spec, const EnumerateOptions& options,
                      const EnumerateProgress& progress = {});

/// Distinct numbers below `count` in a seeded uniform order: sample number n of a seed is the same on every machine.
class UniformSamples {
 public:
  UniformSamples(std::uint64_t count, std::uint64_t seed);
  /// The n-th sample without replacement, n < count.
  std::uint64_t at(std::uint64_t n) const { return order_[n]; }
  std::uint64_t count() const { return order_.size(); }

 private:
  std::vector<std::uint64_t> order_;
};

}  // namespace syno
