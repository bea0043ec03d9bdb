// The semantic key: equal for operators that are the same (semantics: E1 renamed reductions, E2
// permuted weights and weight dimensions, E3 relabelled weight elements, E4 permuted unordered
// dimensions), as far as that is recognised.
//
// The operator falls into sections that only weights connect (section.h). Under each binding each
// section is brought into a symbolic normal form (points.h), its digits are labelled in a
// canonical order (label.h), and the labelled forms are hashed. No numbers are evaluated. What is
// not recognised stays as it is, and where a cap is hit the hash of the structure stands in: an error
// leaks a duplicate, it never makes two different operators one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "syno/graph/operator.h"
#include "syno/sizes/variables.h"
#include "syno/support/hash.h"

namespace syno {

/// What a Keyer has seen.
struct KeyCounts {
  std::int64_t operators = 0;
  /// Operators whose structure stands in for a normal form under some binding.
  std::int64_t fallbacks = 0;
  /// Different sections, sizes as names; and normal forms, sizes as numbers.
  std::int64_t sections = 0;
  std::int64_t normal_forms = 0;
};

/// Keys of many operators of one specification. A section is brought into normal form once; the same
/// key comes out whatever was asked before. For one thread at a time.
class Keyer {
 public:
  /// `bindings` give values in the order of `variables`; neither their order nor repeats matter.
  /// Throws UserError when one has not one value a variable.
  Keyer(VariablesPtr variables, std::vector<Values> bindings);
  Keyer(Keyer&&) noexcept;
  Keyer& operator=(Keyer&&) noexcept;
  ~Keyer();

  /// semantic_key(op.in_table(variables), bindings). Throws UserError when `variables` does not hold
  /// every variable of the operator.
  Hash128 key(const Operator& op);
  /// The key of Operator(graph, input, match), in whatever order the graph was built.
  /// `mirrored`: of its image with these dimensions reversed, output dimensions as bits from 0 and input dimensions after
  /// them.
  Hash128 key(const Graph& graph, const Shape& input, std::span<const CoordinateId> match,
              std::uint64_t mirrored = 0);

  const KeyCounts& counts() const;

 private:
  class Table;
  std::unique_ptr<Table> table_;
};

/// Equal only for operators that realise the same set of linear maps under each of `bindings`, up
/// to the order of unordered dimensions. Each binding gives values in the order of op.variables();
/// neither their order nor repeats matter. Keys are comparable between operators over one table of
/// variables. Under a binding that some size of the operator is not legal for, the key records just
/// that.
/// Throws UserError when a binding has not one value a variable.
Hash128 semantic_key(const Operator& op, const std::vector<Values>& bindings);

/// The normal form under one binding, in readable lines: digits, exact index forms, partitions,
/// conditions. Says why when there is none: "unfit" (a size is not legal), "zero" (all terms are
/// masked), "fallback: <cap>".
std::string key_normal_form(const Operator& op, const Values& values);

}  // namespace syno
