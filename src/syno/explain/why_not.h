// Why an operator is not in the space of a specification: what rejects it, which equal operator stands for it, and the
// smallest change of the specification that admits it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "syno/explain/explain.h"
#include "syno/graph/operator.h"
#include "syno/space/enumerate.h"

namespace syno {

struct WhyNotOptions {
  /// Graphs that may be enumerated to find an equal operator; 0 lists none.
  std::int64_t max_nodes = EnumerateOptions().max_nodes;
  /// Seconds for that, and as many for changes of the specification.
  double max_seconds = 10;
};

/// An equal operator that the specification admits, or a near-equal one.
struct KeptOperator {
  Operator op;
  Hash128 key;
  /// The rules that lead to it, one after the other; empty when it was found in an enumeration.
  std::vector<std::string> rules;
  /// Whether one of them is approximate: the operator differs on some outputs.
  bool near = false;
};

/// One change of a specification.
struct Relaxation {
  enum class Kind : std::uint8_t { kBudget, kLimit, kRule };
  Kind kind = Kind::kLimit;
  /// The variable, the limit, or the rule's id.
  std::string name;
  /// As it is, and as it would have to be: "2", "3"; "on", "off".
  std::string from;
  std::string to;
};

struct WhyNot {
  Explanation explanation;
  /// Whether this structure, or one with the same key, is enumerated by a search.
  bool admitted = false;
  std::optional<KeptOperator> kept;
  /// Changes that admit the operator together, none of them to spare; empty when there are none, or when nothing is to be
  /// changed. Verified on the changed specification.
  std::vector<Relaxation> relaxations;
  /// Why there are no such changes, in words; empty when there are.
  std::string no_relaxation;
};

/// Throws as `explain` does.
WhyNot why_not(const Operator& op, const Specification& spec, const RuleSet& rules,
               const WhyNotOptions& options = {});

/// `spec` with the changes, and the rules with those that are switched off.
Specification relaxed(const Specification& spec, const std::vector<Relaxation>& changes);
RuleSet relaxed(const RuleSet& rules, const std::vector<Relaxation>& changes);

}  // namespace syno
