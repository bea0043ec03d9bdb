// Integer forms: the arithmetic of the semantic key.
//
//     form := sum of factor * atom + constant
//     atom := (base mod high) div low     a digit: low | high | extent of the base
//           | floor(form / divisor)       a carry: the only opaque function
//
// A base is an output iterator, a reduction, or a cyclically shifted coordinate that is kept as a variable of
// its own (rewrites/cyclic_shift.cpp). Digits of one base that touch and whose factors fit become one digit as
// soon as they meet, so B*(i div B) + i mod B is i again. `i mod B` is `i - B*floor(i/B)`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "syno/support/inline_vector.h"

namespace syno::key {

using Integer = std::int64_t;

/// A limit of the key is exceeded. Never leaves semantic_key, which falls back to the hash of the
/// structure.
struct CapExceeded {
  const char* cap;
};

inline constexpr std::size_t kMaxTerms = 14;
inline constexpr std::size_t kMaxCarries = 240;
inline constexpr int kMaxRecursion = 24;

inline Integer times(Integer a, Integer b) {
  Integer result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw CapExceeded{"64 bits"};
  return result;
}
inline Integer plus(Integer a, Integer b) {
  Integer result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw CapExceeded{"64 bits"};
  return result;
}

/// A function somebody else holds, for the time of a call.
template <class Signature>
class FunctionRef;
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Function>
    requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef>)
  FunctionRef(const Function& function)  // NOLINT(google-explicit-constructor): stands for it
      : function_(&function), call_([](const void* held, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(held))(arguments...);
        }) {}
  Result operator()(Arguments... arguments) const { return call_(function_, arguments...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

template <class T, std::size_t N, class Predicate>
std::size_t erase_if(InlineVector<T, N>& list, Predicate predicate) {
  const auto kept = std::remove_if(list.begin(), list.end(), predicate);
  const auto erased = static_cast<std::size_t>(list.end() - kept);
  list.erase(kept, list.end());
  return erased;
}

/// Short lists, ascending and each value once.
using Integers = InlineVector<Integer, 16>;
inline void sort_unique(Integers& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

struct Interval {
  Integer low = 0;
  Integer high = 0;
  Integer width() const { return high - low; }
};

struct Term {
  std::int32_t atom = 0;
  Integer factor = 0;
  friend bool operator==(const Term&, const Term&) = default;
};

/// Terms ascend by atom, no factor is zero.
struct Form {
  InlineVector<Term, 5> terms;
  Integer constant = 0;

  bool is_constant() const { return terms.empty(); }
  friend bool operator==(const Form&, const Form&) = default;
};

struct Atom {
  /// The base of a digit, or -1 for a carry.
  int base = -1;
  Integer low = 1;
  Integer high = 1;
  /// Of a carry: floor(inner / divisor).
  Form inner;
  Integer divisor = 1;
  /// Values over the whole box of points, masked ones included.
  Interval range;

  bool is_digit() const { return base >= 0; }
};

/// Something known at unmasked points: 0 <= form <= high wherever no condition of a step up to
/// `step` fails.
struct Fact {
  Form form;
  Integer high = 0;
  int step = 0;
};

inline constexpr int kAllSteps = std::numeric_limits<int>::max();

/// What a digit is replaced by; nothing when it stays.
using Replace = FunctionRef<std::optional<Form>(const Atom& digit)>;

class Algebra {
 public:
  /// Forgets everything.
  void clear();
  int add_base(Integer extent);
  Integer extent(int base) const { return bases_[static_cast<std::size_t>(base)].extent; }
  bool may_cut(int base) const { return !bases_[static_cast<std::size_t>(base)].whole; }
  /// From now on no rewrite cuts the base into digits: what is not the whole base is a carry.
  void forbid_cuts(int base) { bases_[static_cast<std::size_t>(base)].whole = true; }
  std::size_t base_count() const { return bases_.size(); }
  const Atom& atom(std::int32_t id) const { return atoms_[static_cast<std::size_t>(id)]; }

  /// (base mod high) div low; 0 when low equals high.
  Form digit(int base, Integer low, Integer high);
  Form base(int base) { return digit(base, 1, extent(base)); }

  /// a*fa + b*fb.
  Form combine(const Form& a, Integer fa, const Form& b, Integer fb);
  Form sum(const Form& a, const Form& b) { return combine(a, 1, b, 1); }

  /// Least and greatest value over the box, conditions ignored.
  Interval box_range(const Form& form) const;
  /// The same, narrowed by the facts of steps before `before`.
  Interval range(const Form& form, int before);

  /// floor(form / divisor), rewritten as far as the rules know (form.cpp). Uses facts of steps
  /// before `before`.
  Form floor_divide(Form form, Integer divisor, int before);
  Form modulo(const Form& form, Integer divisor, int before);

  /// Replaces digits everywhere, inside carries too.
  void substitute(Form& form, Replace replace, int before);

  /// Calls visit(atom) for every atom in `form` and inside its carries.
  template <class Visit>
  void visit_atoms(const Form& form, const Visit& visit) const {
    for (const Term& term : form.terms) {
      const Atom& found = atom(term.atom);
      visit(found);
      if (!found.is_digit()) visit_atoms(found.inner, visit);
    }
  }

  /// Whether `base` occurs in `form` or inside its carries.
  bool mentions(const Form& form, int base) const;
  /// The factor of the first digit of `base` outside carries; 0 when there is none.
  Integer factor_of(const Form& form, int base) const;
  /// Whether `form` is a digit of `base` times a factor, and a constant.
  bool is_lone(const Form& form, int base) const;

  std::vector<Fact> facts;

 private:
  struct Base {
    Integer extent = 1;
    bool whole = false;
    InlineVector<std::int32_t, 4> digits;
  };
  friend class Recursion;

  std::int32_t digit_atom(int base, Integer low, Integer high);
  std::int32_t carry_atom(const Form& inner, Integer divisor);
  /// Restores the invariant of Form: sorted, merged, digits of one base joined.
  void tidy(Form& form);
  static void merge(Form& form);
  void join(Form& form);
  void join_digits(Form& form, int base);

  // The rules of floor_divide; each returns whether it changed something. `out` collects what
  // leaves the floor.
  void take_multiples(Form& form, Integer divisor, Form& out);
  bool cut_digits(Form& form, Integer divisor, Form& out);
  bool drop_low_part(Form& form, Integer& divisor, int before);
  bool flatten(Form& form, Integer& divisor);
  bool quotient_by_fact(const Form& form, Integer divisor, int before, Form& out);
  bool join_bit(Form& form, Integer& divisor);
  bool two_valued(const Form& form, Integer divisor, Form& out);

  std::vector<Base> bases_;
  std::vector<Atom> atoms_;
  std::vector<std::int32_t> carries_;
  int depth_ = 0;
};

/// form = high + low, where g divides high.
struct Parts {
  Form high;
  Form low;
};
/// Values of g at which a form may fall into parts, ascending.
Integers gap_candidates(const Form& form);
/// Digits are cut where that moves a part of them into `high`; nothing when one of the parts would
/// be empty. The constant is in `low`.
std::optional<Parts> split_at(Algebra& algebra, const Form& form, Integer g);

/// Counts nested rewrites of one algebra.
class Recursion {
 public:
  explicit Recursion(Algebra& algebra) : algebra_(algebra) {
    if (++algebra_.depth_ > kMaxRecursion) {
      --algebra_.depth_;
      throw CapExceeded{"recursion"};
    }
  }
  ~Recursion() { --algebra_.depth_; }
  Recursion(const Recursion&) = delete;
  Recursion& operator=(const Recursion&) = delete;

 private:
  Algebra& algebra_;
};

}  // namespace syno::key
