// Enumeration: all operators of a specification, by iterative deepening up to a budget of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/search/children.h"

namespace syno {

struct EnumerateOptions {
  /// Primitives in an operator; 0 takes the specification's max_depth.
  std::int64_t max_depth = 0;
  /// Partial graphs visited over all depth limits.
  std::int64_t max_nodes = 30'000;
  RuleSet rules;
  BoundMode bound = BoundMode::kFull;
  /// Whether quality conditions and windows of multiply-adds and parameters apply; off for counting raw structures.
  bool quality = true;
};

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
  std::int64_t nodes = 0;
  /// The largest depth limit that was listed completely.
  std::int64_t complete_depth = 0;
  /// Whether the whole space up to the depth asked for was listed.
  bool exhausted = false;
  Rejections rejections;
};

/// Called now and then with (depth limit, nodes, operators); returning false stops the enumeration like a spent budget.
using EnumerateProgress = std::function<bool(std::int64_t, std::int64_t, std::int64_t)>;

/// Lists the operators of `spec`. Deterministic: the same arguments give the same operators in the same order. When the
/// budget ends inside a depth limit, the operators of the last complete limit are returned (or, when that has none,
/// those found so far).
Enumeration enumerate(const Specification& spec, const EnumerateOptions& options,
                      const EnumerateProgress& progress = {});

/// Distinct numbers below `count` in a seeded uniform order: draw number n of a seed is the same on every machine.
class UniformDraws {
 public:
  UniformDraws(std::uint64_t count, std::uint64_t seed);
  /// The n-th draw without replacement, n < count.
  std::uint64_t at(std::uint64_t n) const { return order_[n]; }
  std::uint64_t count() const { return order_.size(); }

 private:
  std::vector<std::uint64_t> order_;
};

}  // namespace syno
