// Changes of variables on one digit r of extent n by what is added to it.
//
//   top digit   (c*r + X) mod c*n = c*((r + floor(X/c)) mod n) + X mod c, so
//               r' = (r + floor(X/c)) mod n may take the place of r where r is seen only through
//               that remainder: a*r - a*n*floor((c*r + X)/(c*n)) becomes a*r' - a*floor(X/c).
//   window      low <= r + X <= high with low >= max X and high <= min X + n - 1: for every X each
//               place u in low..high is r + X for one r, so (u, X) may take the place of the
//               unmasked (r, X).
#include <algorithm>
#include <utility>

#include "syno/key/points.h"

namespace syno::key {
namespace {

Integer factor_of_atom(const Form& form, std::int32_t id) {
  for (const Term& term : form.terms) {
    if (term.atom == id) return term.factor;
  }
  return 0;
}

// The one carry that `base` is in, directly, when there is no other; -1 otherwise.
class CarryOf {
 public:
  CarryOf(const Points& points, int base) : algebra_(points.algebra), base_(base) {
    for (const Exact& exact : points.exact) look(exact.form);
    for (const Condition& condition : points.conditions) look(condition.form);
    for (const Partition& partition : points.partitions) {
      for (const Form& generator : partition.generators) look(generator);
    }
  }
  std::int32_t carry() const { return several_ ? -1 : carry_; }

 private:
  void look(const Form& form) {
    for (const Term& term : form.terms) {
      const Atom& atom = algebra_.atom(term.atom);
      if (atom.is_digit()) continue;
      if (!algebra_.mentions(atom.inner, base_)) continue;
      const bool deep =
          std::any_of(atom.inner.terms.begin(), atom.inner.terms.end(), [&](const Term& inner) {
            const Atom& found = algebra_.atom(inner.atom);
            return !found.is_digit() && algebra_.mentions(found.inner, base_);
          });
      several_ |= deep || (carry_ >= 0 && carry_ != term.atom);
      carry_ = term.atom;
    }
  }

  const Algebra& algebra_;
  int base_;
  std::int32_t carry_ = -1;
  bool several_ = false;
};

// Whether all atoms of `form` are generators of the partition on their own.
bool told(const Form& form, const Partition& partition) {
  return std::all_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
    return std::any_of(partition.generators.begin(), partition.generators.end(),
                       [&](const Form& generator) {
                         return generator.terms.size() == 1 && generator.terms[0].atom == term.atom;
                       });
  });
}

class TopDigit {
 public:
  TopDigit(Points& points, int base, std::int32_t carry)
      : points_(points), algebra_(points.algebra), base_(base), carry_(carry) {}

  bool free() {
    const Atom carry = algebra_.atom(carry_);
    extent_ = algebra_.extent(base_);
    unit_ = algebra_.factor_of(carry.inner, base_);
    if (unit_ <= 0 || carry.divisor % unit_ != 0 || carry.divisor / unit_ != extent_) return false;
    rest_ = algebra_.combine(carry.inner, 1, algebra_.base(base_), -unit_);
    if (!all_fit()) return false;
    // A fact in old variables must never meet a form in new ones.
    const std::vector<Fact> facts = std::exchange(algebra_.facts, {});
    for (const Fact& fact : facts) {
      if (survives(fact.form))
        algebra_.facts.push_back({freed(fact.form, fact.step), fact.high, fact.step});
    }
    for (Exact& exact : points_.exact) exact.form = freed(exact.form, kAllSteps);
    for (Condition& condition : points_.conditions)
      condition.form = freed(condition.form, condition.step);
    for (Partition& partition : points_.partitions) {
      for (Form& generator : partition.generators) {
        if (!is_lone(generator)) generator = freed(generator, kAllSteps);
      }
    }
    return true;
  }

 private:
  bool is_lone(const Form& form) const { return algebra_.is_lone(form, base_); }
  // Whether no other carry sees the digit, and the remainder is all that does.
  bool survives(const Form& form) const {
    return fits(form) && std::all_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
             const Atom& atom = algebra_.atom(term.atom);
             return term.atom == carry_ || atom.is_digit() || !algebra_.mentions(atom.inner, base_);
           });
  }
  bool fits(const Form& form) const {
    return factor_of_atom(form, carry_) == -extent_ * algebra_.factor_of(form, base_);
  }
  bool all_fit() const {
    const auto form_fits = [&](const auto& held) { return fits(held.form); };
    return std::all_of(points_.exact.begin(), points_.exact.end(), form_fits) &&
           std::all_of(points_.conditions.begin(), points_.conditions.end(), form_fits) &&
           std::all_of(points_.partitions.begin(), points_.partitions.end(),
                       [&](const Partition& partition) {
                         const auto& generators = partition.generators;
                         return std::all_of(
                             generators.begin(), generators.end(), [&](const Form& form) {
                               return fits(form) || (is_lone(form) && told(rest_, partition));
                             });
                       });
  }
  Form freed(const Form& form, int before) {
    const Integer factor = algebra_.factor_of(form, base_);
    if (factor == 0) return form;
    Form carry;
    carry.terms.push_back({carry_, 1});
    const Form plain = algebra_.combine(form, 1, carry, times(extent_, factor));
    return algebra_.combine(plain, 1, algebra_.floor_divide(rest_, unit_, before), -factor);
  }

  Points& points_;
  Algebra& algebra_;
  int base_;
  std::int32_t carry_;
  Integer extent_ = 1;
  Integer unit_ = 1;
  Form rest_;
};

// The digit of `condition` that covers the whole window, as a term; nothing when there is none.
std::optional<Term> covering_digit(const Points& points, const Condition& condition) {
  const Algebra& algebra = points.algebra;
  if (condition.low == kNoLow || condition.high == kNoHigh) return std::nullopt;
  for (const Term& term : condition.form.terms) {
    const Atom& atom = algebra.atom(term.atom);
    if (!atom.is_digit() || std::abs(term.factor) != 1) continue;
    Form rest = condition.form;
    erase_if(rest.terms, [&](const Term& other) { return other.atom == term.atom; });
    if (algebra.mentions(rest, atom.base)) continue;
    const Interval range = algebra.box_range(rest);
    const Interval digit =
        term.factor > 0 ? Interval{0, atom.range.high} : Interval{-atom.range.high, 0};
    if (condition.low >= plus(range.high, digit.low) &&
        condition.high <= plus(range.low, digit.high))
      return term;
  }
  return std::nullopt;
}

}  // namespace

bool free_top_digits(Points& points) {
  bool any_carry = false;
  visit_all(points, [&](const Atom& atom) { any_carry |= !atom.is_digit(); });
  if (!any_carry) return false;
  for (const int base : std::vector<int>(points.box)) {
    const std::int32_t carry = CarryOf(points, base).carry();
    if (carry >= 0 && TopDigit(points, base, carry).free()) return true;
  }
  return false;
}

bool cover_windows(Points& points) {
  Algebra& algebra = points.algebra;
  for (std::size_t i = 0; i < points.conditions.size(); ++i) {
    const Condition condition = points.conditions[i];
    const std::optional<Term> term = covering_digit(points, condition);
    if (!term) continue;
    const int base = algebra.atom(term->atom).base;
    const Integer extent = condition.high - condition.low + 1;
    // factor*r + X = low + u, so r = factor*(low + u - X).
    Form place;
    if (extent > 1) {
      const int fresh = algebra.add_base(extent);
      points.box.push_back(fresh);
      place = algebra.base(fresh);
    }
    place.constant = condition.low;
    Form rest = condition.form;
    erase_if(rest.terms, [&](const Term& other) { return other.atom == term->atom; });
    const Form digit = algebra.combine(place, term->factor, rest, -term->factor);
    points.conditions.erase(points.conditions.begin() + static_cast<std::ptrdiff_t>(i));
    std::erase(points.box, base);
    rewrite(points, [&](const Atom& atom) -> std::optional<Form> {
      if (atom.base == base) return digit;
      return std::nullopt;
    });
    return true;
  }
  return false;
}

}  // namespace syno::key
