#include "syno/affine/index.h"

#include <algorithm>
#include <numeric>

#include "syno/affine/sum_text.h"
#include "syno/support/checked.h"
#include "syno/support/error.h"

namespace syno {
namespace {

using Term = Index::Term;
using Kind = Index::Kind;

std::strong_ordering compare_atoms(const Term& a, const Term& b) {
  if (a.kind != b.kind) return a.kind <=> b.kind;
  if (a.kind == Kind::kAxis) return a.axis <=> b.axis;
  if (a.divisor != b.divisor) return a.divisor <=> b.divisor;
  return *a.of <=> *b.of;
}

Term part(Kind kind, const Index& of, std::int64_t divisor) {
  Term term;
  term.kind = kind;
  term.of = std::make_shared<const Index>(of);
  term.divisor = divisor;
  return term;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  return checked_add(a, b, "an index");
}
std::int64_t multiply(std::int64_t a, std::int64_t b) {
  return checked_multiply(a, b, "an index");
}

// Of the divisor and the coefficients of all terms.
std::int64_t common_factor(const Index& index, std::int64_t divisor) {
  std::int64_t common = divisor;
  for (const Term& term : index.terms()) common = std::gcd(common, term.coefficient);
  return common;
}

// How many divisors must be added so that no dividend is negative, where an axis counts down: languages that truncate
// would round up. Dividends that only begin below 0 are read where a condition keeps them above it.
std::int64_t missing_divisors(const Index& rest, const Range& known, std::int64_t divisor) {
  const bool down = std::any_of(rest.terms().begin(), rest.terms().end(),
                                [](const Term& term) { return term.coefficient < 0; });
  return down ? std::max<std::int64_t>(0, -floor_divide(known.least, divisor)) : 0;
}

}  // namespace

Index Index::axis(int axis) {
  Index index;
  Term term;
  term.axis = axis;
  index.terms_.push_back(term);
  return index;
}

Index Index::term(const Term& term) {
  Index index;
  index.add(term);
  return index;
}

std::int64_t Index::coefficient(int axis) const {
  for (const Term& term : terms_) {
    if (term.kind == Kind::kAxis && term.axis == axis) return term.coefficient;
  }
  return 0;
}

bool Index::depends_on(int axis) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return term.kind == Kind::kAxis ? term.axis == axis : term.of->depends_on(axis);
  });
}

bool Index::is_affine() const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [](const Term& term) { return term.kind == Kind::kAxis; });
}

std::int64_t Index::evaluate(const std::vector<std::int64_t>& axes) const {
  std::int64_t value = constant_;
  for (const Term& term : terms_) {
    std::int64_t atom = 0;
    switch (term.kind) {
      case Kind::kAxis: atom = axes[static_cast<std::size_t>(term.axis)]; break;
      case Kind::kQuotient: atom = floor_divide(term.of->evaluate(axes), term.divisor); break;
      case Kind::kRemainder: atom = floor_modulo(term.of->evaluate(axes), term.divisor); break;
    }
    value = plus(value, multiply(term.coefficient, atom));
  }
  return value;
}

int Index::only_axis() const {
  const bool only = constant_ == 0 && terms_.size() == 1 && terms_[0].kind == Kind::kAxis &&
                    terms_[0].coefficient == 1;
  return only ? terms_[0].axis : -1;
}

std::string Index::text(const std::vector<std::string>& axes, const char* divide) const {
  return text(axes, [&](const Term& term, const std::string& of) {
    return "(" + (term.of->only_axis() >= 0 ? of : "(" + of + ")") + " " +
           (term.kind == Kind::kQuotient ? divide : "%") + " " + std::to_string(term.divisor) + ")";
  });
}

std::string Index::text(const std::vector<std::string>& axes, const PartText& part) const {
  SumText sum(SumText::Spaces::kAround);
  for (const Term& term : terms_) {
    sum.add(term.coefficient, term.kind == Kind::kAxis ? axes[static_cast<std::size_t>(term.axis)]
                                                       : part(term, term.of->text(axes, part)));
  }
  sum.add(constant_);
  return sum.text();
}

void Index::add(const Term& term) {
  if (term.coefficient == 0) return;
  const auto at =
      std::lower_bound(terms_.begin(), terms_.end(), term,
                       [](const Term& a, const Term& b) { return compare_atoms(a, b) < 0; });
  if (at == terms_.end() || compare_atoms(*at, term) != 0) {
    terms_.insert(at, term);
    return;
  }
  at->coefficient = plus(at->coefficient, term.coefficient);
  if (at->coefficient == 0) terms_.erase(at);
}

Index Index::floor_divided(std::int64_t factor) const {
  Index result(floor_divide(constant_, factor));
  for (Term term : terms_) {
    term.coefficient /= factor;
    result.add(term);
  }
  return result;
}

void Index::join_parts() {
  for (std::size_t q = 0; q < terms_.size(); ++q) {
    if (terms_[q].kind != Kind::kQuotient) continue;
    for (std::size_t r = 0; r < terms_.size(); ++r) {
      if (terms_[r].kind != Kind::kRemainder ||
          terms_[q].coefficient != multiply(terms_[r].coefficient, terms_[r].divisor))
        continue;
      // m * (e div m) + e mod m is e; with e = f div d, the quotient is f div (d * m).
      const Index& of = *terms_[r].of;
      const bool plain = terms_[r].divisor == terms_[q].divisor && of == *terms_[q].of;
      const bool nested = of.constant_ == 0 && of.terms_.size() == 1 &&
                          of.terms_[0].kind == Kind::kQuotient && of.terms_[0].coefficient == 1 &&
                          *of.terms_[0].of == *terms_[q].of &&
                          multiply(of.terms_[0].divisor, terms_[r].divisor) == terms_[q].divisor;
      if (!plain && !nested) continue;
      const Index whole = of * terms_[r].coefficient;
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(std::max(q, r)));
      terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(std::min(q, r)));
      *this = *this + whole;
      return;
    }
  }
}

Index operator+(const Index& a, const Index& b) {
  Index sum = a;
  sum.constant_ = plus(sum.constant_, b.constant_);
  for (const Term& term : b.terms_) sum.add(term);
  sum.join_parts();
  return sum;
}

Index operator*(const Index& a, std::int64_t factor) {
  if (factor == 0) return {};
  Index product = a;
  product.constant_ = multiply(product.constant_, factor);
  for (Term& term : product.terms_) term.coefficient = multiply(term.coefficient, factor);
  return product;
}

std::strong_ordering operator<=>(const Index& a, const Index& b) {
  if (a.constant_ != b.constant_) return a.constant_ <=> b.constant_;
  if (a.terms_.size() != b.terms_.size()) return a.terms_.size() <=> b.terms_.size();
  for (std::size_t t = 0; t < a.terms_.size(); ++t) {
    if (const auto atoms = compare_atoms(a.terms_[t], b.terms_[t]); atoms != 0) return atoms;
    const auto factors = a.terms_[t].coefficient <=> b.terms_[t].coefficient;
    if (factors != 0) return factors;
  }
  return std::strong_ordering::equal;
}

bool Indices::assume(const Condition& condition) {
  const Range known = range(condition.index);
  if (known.least >= 0 && known.most < condition.extent) return false;
  if (std::find(conditions_.begin(), conditions_.end(), condition) != conditions_.end())
    return false;
  conditions_.push_back(condition);
  return true;
}

Range Indices::range(const Index& index) const {
  Range sum{index.constant(), index.constant()};
  for (const Term& term : index.terms()) {
    Range atom;
    switch (term.kind) {
      case Kind::kAxis: atom = {0, extents_[static_cast<std::size_t>(term.axis)] - 1}; break;
      case Kind::kQuotient: {
        const Range of = range(*term.of);
        atom = {floor_divide(of.least, term.divisor), floor_divide(of.most, term.divisor)};
        break;
      }
      case Kind::kRemainder: {
        const Range of = range(*term.of);
        const bool small = of.least >= 0 && of.most < term.divisor;
        atom = small ? of : Range{0, term.divisor - 1};
        break;
      }
    }
    const std::int64_t one = multiply(term.coefficient, atom.least);
    const std::int64_t other = multiply(term.coefficient, atom.most);
    sum = {plus(sum.least, std::min(one, other)), plus(sum.most, std::max(one, other))};
  }
  // Differs by a constant from something that a condition bounds?
  for (const Condition& condition : conditions_) {
    const std::int64_t shift = index.constant() - condition.index.constant();
    if (condition.index + Index(shift) != index) continue;
    sum.least = std::max(sum.least, shift);
    sum.most = std::min(sum.most, shift + condition.extent - 1);
  }
  return sum;
}

Index Indices::quotient(const Index& index, std::int64_t divisor) const {
  ensure(divisor > 0, "Indices::quotient: the divisor is not positive");
  if (divisor == 1) return index;
  Index multiple(floor_divide(index.constant(), divisor));
  Index rest(floor_modulo(index.constant(), divisor));
  for (const Term& term : index.terms()) {
    Term copy = term;
    const bool whole = term.coefficient % divisor == 0;
    if (whole) copy.coefficient /= divisor;
    (whole ? multiple : rest).add(copy);
  }
  multiple.join_parts();
  rest.join_parts();
  const Range known = range(rest);
  const std::int64_t least = floor_divide(known.least, divisor);
  if (least == floor_divide(known.most, divisor)) return multiple + Index(least);
  // A common factor of the terms and the divisor.
  const std::int64_t common = common_factor(rest, divisor);
  if (common > 1) {
    return multiple + quotient(rest.floor_divided(common), divisor / common);
  }
  const bool nested = rest.constant() == 0 && rest.terms().size() == 1 &&
                      rest.terms()[0].kind == Kind::kQuotient && rest.terms()[0].coefficient == 1;
  if (nested) {
    const Term& inner = rest.terms()[0];
    return multiple + quotient(*inner.of, multiply(inner.divisor, divisor));
  }
  // (e mod m) div d is (e div d) mod (m div d) where d divides m.
  const bool wrapped = rest.constant() == 0 && rest.terms().size() == 1 &&
                       rest.terms()[0].kind == Kind::kRemainder &&
                       rest.terms()[0].coefficient == 1 && rest.terms()[0].divisor % divisor == 0;
  if (wrapped) {
    const Term& inner = rest.terms()[0];
    return multiple + remainder(quotient(*inner.of, divisor), inner.divisor / divisor);
  }
  const std::int64_t missing = missing_divisors(rest, known, divisor);
  Index result(-missing);
  result.add(part(Kind::kQuotient, rest + Index(multiply(missing, divisor)), divisor));
  return multiple + result;
}

Index Indices::remainder(const Index& index, std::int64_t divisor) const {
  ensure(divisor > 0, "Indices::remainder: the divisor is not positive");
  if (divisor == 1) return {};
  Index rest(floor_modulo(index.constant(), divisor));
  for (const Term& term : index.terms()) {
    if (term.coefficient % divisor != 0) rest.add(term);
  }
  rest.join_parts();
  const Range known = range(rest);
  const std::int64_t least = floor_divide(known.least, divisor);
  if (least == floor_divide(known.most, divisor)) return rest - Index(multiply(least, divisor));
  // c * (e mod m) and c * e differ by a multiple of c * m.
  for (const Term& term : rest.terms()) {
    if (term.kind != Kind::kRemainder || term.coefficient < 0 ||
        multiply(term.coefficient, term.divisor) % divisor != 0)
      continue;
    return remainder(rest - Index::term(term) + *term.of * term.coefficient, divisor);
  }
  const std::int64_t common = common_factor(rest, divisor);
  if (common > 1) {
    return remainder(rest.floor_divided(common), divisor / common) * common +
           Index(floor_modulo(rest.constant(), common));
  }
  const std::int64_t missing = missing_divisors(rest, known, divisor);
  Index result;
  result.add(part(Kind::kRemainder, rest + Index(multiply(missing, divisor)), divisor));
  return result;
}

Index Indices::substitute(const Index& index, const std::vector<Index>& axes) const {
  Index result(index.constant());
  for (const Term& term : index.terms()) {
    Index atom;
    switch (term.kind) {
      case Kind::kAxis: atom = axes[static_cast<std::size_t>(term.axis)]; break;
      case Kind::kQuotient: atom = quotient(substitute(*term.of, axes), term.divisor); break;
      case Kind::kRemainder: atom = remainder(substitute(*term.of, axes), term.divisor); break;
    }
    result = result + atom * term.coefficient;
  }
  return result;
}

}  // namespace syno
