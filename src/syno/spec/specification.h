// Specification: what operators are requested. Shapes, variables with budgets, the layers (bindings) that an operator
// must fit, and limits.
//
//     variable := name ( '=' integer )? ':' budget          "H: 2", "s=2: 2", "N: 0"
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syno/graph/primitive.h"
#include "syno/graph/shape.h"
#include "syno/sizes/size.h"
#include "syno/spec/limits.h"
#include "syno/spec/symmetry.h"
#include "syno/support/hash.h"

namespace syno {

struct VariableInfo {
  std::string name;
  /// The value where a binding gives none.
  std::optional<std::int64_t> value;
  /// How often it may be used on one path.
  int budget = 0;
  /// Large, from the shapes, never in a denominator; otherwise a coefficient.
  bool primary = false;

  friend bool operator==(const VariableInfo&, const VariableInfo&) = default;
};

/// Throws UserError with the column.
VariableInfo parse_variable(std::string_view text, bool primary);
std::string variable_text(const VariableInfo& variable);

/// A bit a binding: where all sizes seen so far are legal.
using FitMask = std::uint64_t;

/// What a specification is made from.
struct SpecificationSource {
  std::string input;
  std::string output;
  std::vector<std::string> primary;
  std::vector<std::string> coefficient;
  std::vector<Binding> bindings;
  /// How many layers each binding stands for; empty: one each.
  std::vector<std::int64_t> multiplicities;
  /// MACs of the layers each binding stands for, together; empty: elements of input times output.
  std::vector<double> layer_macs;
  /// Pairs (output dimension, input dimension) that no primitive touches.
  std::vector<std::pair<int, int>> passed_through;
  /// Of the data, as symmetry.h reads them.
  std::vector<std::string> symmetries;
  Limits limits;
};

class Specification {
 public:
  static constexpr std::size_t kMaxBindings = 64;

  /// Throws UserError for everything that is malformed or contradictory.
  explicit Specification(SpecificationSource source);

  const SpecificationSource& source() const { return source_; }
  const VariablesPtr& variables() const { return variables_; }
  const VariableInfo& variable(std::size_t index) const { return infos_[index]; }
  const Shape& input() const { return input_; }
  const Shape& output() const { return output_; }
  const Limits& limits() const { return source_.limits; }
  /// How many steps of an operator may use the primitive.
  std::int64_t cap(Primitive primitive) const { return caps_[static_cast<std::size_t>(primitive)]; }
  const std::vector<std::pair<int, int>>& passed_through() const { return source_.passed_through; }
  const std::vector<Symmetry>& symmetries() const { return symmetries_; }
  bool passes_output(int dim) const;
  bool passes_input(int dim) const;

  /// One set of values a binding.
  const std::vector<Values>& bindings() const { return values_; }
  const std::vector<std::int64_t>& multiplicities() const { return multiplicities_; }
  /// All bindings.
  FitMask full_fit() const { return full_fit_; }
  /// Whether the bindings left cover min_fit of the replaceable MACs.
  bool fit_suffices(FitMask fit) const;

  /// Whether a coordinate may have this extent: not 1, no primary in a denominator, few variables and small powers.
  bool legal(const Size& size) const;
  /// Why a size is not legal, in words; empty when it is.
  std::string why_illegal(const Size& size) const;
  /// The bindings under which `size` is a positive integer.
  FitMask fit(const Size& size) const;
  /// The same for copies of one specification, different for any two that were made apart; never 0.
  std::uint64_t identity() const { return identity_; }
  /// "[N, C_in, H, W] -> [N, C_out, H, W]".
  std::string text() const;
  /// Content alone: independent of the order in which variables or bindings were given.
  Hash128 key() const;

 private:
  void set_caps();
  void check_coefficients() const;

  SpecificationSource source_;
  VariablesPtr variables_;
  std::vector<VariableInfo> infos_;
  Shape input_;
  Shape output_;
  std::vector<Symmetry> symmetries_;
  std::vector<Values> values_;
  std::vector<std::int64_t> multiplicities_;
  std::vector<double> shares_;
  FitMask full_fit_ = 0;
  std::array<std::int64_t, kPrimitiveCount> caps_{};
  std::uint64_t identity_ = 0;
};

}  // namespace syno
