// Indices of loop nests: whole-number functions of the loops' axes, in a normal form.
//
//     constant + sum of coefficient * atom          an atom is an axis, (e div d) or (e mod d), e an index, d > 1
//
// Splits, merges, shifts, strides and windows compose to such functions. The normal form is no more than bookkeeping:
// like terms are added, a quotient whose dividend is known to be small is gone, and d * (e div d) + e mod d is e.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace syno {

class Index {
 public:
  enum class Kind : std::uint8_t { kAxis, kQuotient, kRemainder };

  struct Term {
    std::int64_t coefficient = 1;
    Kind kind = Kind::kAxis;
    int axis = -1;                    ///< kAxis
    std::shared_ptr<const Index> of;  ///< kQuotient, kRemainder
    std::int64_t divisor = 1;
  };

  Index() = default;
  explicit Index(std::int64_t constant) : constant_(constant) {}
  static Index axis(int axis);
  static Index term(const Term& term);

  std::int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }

  /// The coefficient of an axis outside of quotients and remainders.
  std::int64_t coefficient(int axis) const;
  bool depends_on(int axis) const;
  /// Whether it is a sum of multiples of axes and a constant.
  bool is_affine() const;

  /// `axes` are the values of the axes; floor division.
  std::int64_t evaluate(const std::vector<std::int64_t>& axes) const;
  /// The axis that the index is, or -1 where it is more.
  int only_axis() const;
  /// In C and Python alike where values are not negative: "3*h + ((w + 1) % 7)". `divide` is "/" or "//".
  std::string text(const std::vector<std::string>& axes, const char* divide = "/") const;
  /// In another language: `part` writes a quotient or remainder of what has the text `of`.
  using PartText = std::function<std::string(const Term& part, const std::string& of)>;
  std::string text(const std::vector<std::string>& axes, const PartText& part) const;

  friend Index operator+(const Index& a, const Index& b);
  friend Index operator-(const Index& a, const Index& b) { return a + b * -1; }
  friend Index operator*(const Index& a, std::int64_t factor);
  friend std::strong_ordering operator<=>(const Index& a, const Index& b);
  friend bool operator==(const Index& a, const Index& b) { return (a <=> b) == 0; }

 private:
  friend class Indices;
  void add(const Term& term);
  /// The floor of index / factor, a factor of all coefficients.
  Index floor_divided(std::int64_t factor) const;
  /// d * (e div d) + e mod d becomes e.
  void join_parts();

  std::int64_t constant_ = 0;
  std::vector<Term> terms_;
};

/// 0 <= index < extent.
struct Condition {
  Index index;
  std::int64_t extent = 1;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

/// Arithmetic that knows the axes' extents, and conditions that hold wherever a value is used.
class Indices {
 public:
  explicit Indices(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {}

  const std::vector<std::int64_t>& extents() const { return extents_; }
  /// From now on the condition holds. Returns false when it holds anyway.
  bool assume(const Condition& condition);
  const std::vector<Condition>& conditions() const { return conditions_; }

  Range range(const Index& index) const;
  Index quotient(const Index& index, std::int64_t divisor) const;
  Index remainder(const Index& index, std::int64_t divisor) const;
  /// `index` of other axes, whose values here are `axes`.
  Index substitute(const Index& index, const std::vector<Index>& axes) const;

 private:
  std::vector<std::int64_t> extents_;
  std::vector<Condition> conditions_;
};

}  // namespace syno
