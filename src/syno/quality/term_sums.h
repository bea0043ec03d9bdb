// Sums over the unmasked terms of each output element of a component, without listing the terms.
//
// Give every value of every visible coordinate a number, and a term the product of its numbers. The sum over the terms
// of an element is computed like the contraction of a network of small tensors: the coordinates of the component are
// variables, its steps are functions from variables to variables, and variables that are no output index are summed
// away one after the other, the cheapest first (bucket elimination: Dechter, "Bucket elimination: a unifying framework
// for reasoning", 1999). What has billions of points often needs some thousand products.
//
// Numbers are random elements of the field of 2^61 - 1 elements. A sum is then the value of a polynomial whose monomials
// are the terms; two polynomials have one value by chance with a probability of about 2^-59.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/interp/components.h"

namespace syno {

/// Arithmetic modulo the Mersenne prime 2^61 - 1.
namespace field {

inline constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
__extension__ using Uint128 = unsigned __int128;

inline std::uint64_t reduce(std::uint64_t x) {
  x = (x & kPrime) + (x >> 61);
  return x >= kPrime ? x - kPrime : x;
}
inline std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  const Uint128 product = static_cast<Uint128>(a) * b;
  return reduce(static_cast<std::uint64_t>(product & kPrime) +
                static_cast<std::uint64_t>(product >> 61));
}
/// Of a number other than 0.
std::uint64_t inverse(std::uint64_t x);

}  // namespace field

/// A sum of products, and how many terms it has.
struct TermSum {
  std::uint64_t value = 0;
  std::uint64_t terms = 0;
};

class TermSums {
 public:
  /// Table entries that are computed before a component is too much work, and before a part of it is.
  static constexpr std::int64_t kMaxWork = std::int64_t{1} << 22;
  static constexpr std::int64_t kMaxWorkOfPart = std::int64_t{1} << 19;

  /// A dense tensor, row-major over `variables`.
  struct Table {
    std::vector<int> variables;
    std::vector<TermSum> entries;
  };

  /// Of `part` where only these of its coordinates are visible.
  TermSums(const Component& part, const Program& program, const std::vector<CoordinateId>& visible);

  /// The number that value `value` of coordinate `id` has in round `round`; never 0.
  static std::uint64_t number(int round, int id, std::int64_t value);

  /// Computes the sums with the numbers of `round`; false when that is too much work.
  bool run(int round, std::int64_t most_work = kMaxWork);
  /// The same for the first `most` values of the output index `cut` alone.
  bool run_cut(int round, int cut, std::int64_t most);
  /// After `run`: tables over output indices, no two with one in common. The sum of an element is the product of its
  /// entries in all of them, up to factors that are the same for all elements and numbers of indices that are visible
  /// themselves.
  const std::vector<Table>& tables() const { return tables_; }
  /// Extents of output indices that no term depends on.
  std::vector<std::int64_t> repeated() const;
  /// Output indices that some step uses.
  std::vector<int> indices() const;
  std::int64_t extent(int v) const { return variable(v).extent; }

 private:
  struct Variable {
    std::int64_t extent = 1;
    /// An index of the output; all others are summed over.
    bool kept = false;
    bool visible = false;
    bool exists = true;
  };
  /// One or more steps of the graph: from the values of `in` to those of `out`, unless masked.
  struct Function {
    std::vector<Instruction> steps;
    std::vector<int> in;
    std::vector<int> out;
    bool done = false;
  };
  /// What is done next: a function is replaced by tables, or a variable that no function needs is summed away.
  struct Move {
    Function* function = nullptr;
    int variable = -1;
    std::vector<std::size_t> joined;
    /// Variables of the tables joined that the function does not have.
    std::vector<int> others;
    /// Variables of the table that comes out.
    std::vector<int> left;
    std::int64_t work = 0;
  };

  Variable& variable(int v) { return variables_[static_cast<std::size_t>(v)]; }
  const Variable& variable(int v) const { return variables_[static_cast<std::size_t>(v)]; }
  Function* producer(int v);
  Function* consumer(int v);
  bool peel();
  bool swap();
  bool fuse();
  std::int64_t product(const std::vector<int>& list) const;
  bool stays(int v, const Move& move) const;
  void price(Move& move) const;
  Move cheapest();
  void make(const Move& move);
  bool join_tables();
  bool run_on(int round, std::int64_t most_work);

  std::vector<Variable> variables_;
  std::vector<Function> functions_;
  /// By variable: whether a function makes it or needs it, before any was replaced.
  std::vector<bool> bound_;
  /// Extents in this run.
  std::vector<std::int64_t> extents_;
  std::vector<Table> tables_;
  std::int64_t work_ = 0;
};

}  // namespace syno
