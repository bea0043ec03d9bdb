// Conditions low <= form <= high in one form. Ranges are those of the whole box, never of facts: a fact is a condition.
#include <algorithm>
#include <numeric>

#include "syno/access/key_points.h"
#include "syno/support/checked.h"

namespace syno::key {
namespace {

Integer ceil_divide(Integer a, Integer b) {
  return -syno::floor_divide(-a, b);
}

// Bounds that always hold vanish; the constant and the common divisor go into the bounds.
void tighten(const Algebra& algebra, Condition& condition) {
  Form& form = condition.form;
  if (condition.low != kNoLow) condition.low = plus(condition.low, -form.constant);
  if (condition.high != kNoHigh) condition.high = plus(condition.high, -form.constant);
  form.constant = 0;
  Integer common = 0;
  for (const Term& term : form.terms) common = std::gcd(common, term.factor);
  if (common > 1) {
    for (Term& term : form.terms) term.factor /= common;
    if (condition.low != kNoLow) condition.low = ceil_divide(condition.low, common);
    if (condition.high != kNoHigh) condition.high = syno::floor_divide(condition.high, common);
  }
  const Interval range = algebra.box_range(form);
  if (condition.low <= range.low) condition.low = kNoLow;
  if (condition.high >= range.high) condition.high = kNoHigh;
}

bool always_holds(const Condition& condition) {
  return condition.low == kNoLow && condition.high == kNoHigh;
}

bool never_holds(const Algebra& algebra, const Condition& condition) {
  const Interval range = algebra.box_range(condition.form);
  return condition.low > condition.high ||
         (condition.low != kNoLow && condition.low > range.high) ||
         (condition.high != kNoHigh && condition.high < range.low);
}

// f = g*H + L with 0 <= L < g: L goes when neither bound sees it.
bool drop_low_terms(const Algebra& algebra, Condition& condition) {
  std::vector<Term> terms = condition.form.terms;
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    return std::abs(a.factor) != std::abs(b.factor) ? std::abs(a.factor) < std::abs(b.factor)
                                                    : a.atom < b.atom;
  });
  for (std::size_t cut = 1; cut < terms.size(); ++cut) {
    Integer common = 0;
    for (std::size_t j = cut; j < terms.size(); ++j) common = std::gcd(common, terms[j].factor);
    Form low;
    low.terms.assign(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(cut));
    const Interval range = algebra.box_range(low);
    if (range.width() >= common) continue;
    Condition rest = condition;
    std::erase_if(rest.form.terms, [&](const Term& term) {
      return std::any_of(low.terms.begin(), low.terms.end(),
                         [&](const Term& dropped) { return dropped.atom == term.atom; });
    });
    if (rest.low != kNoLow) {
      const Integer remainder = floor_modulo(plus(rest.low, -range.low), common);
      if (remainder != 0 && remainder <= range.width()) continue;
      rest.low = times(ceil_divide(plus(rest.low, -range.low), common), common);
    }
    if (rest.high != kNoHigh) {
      const Integer remainder = floor_modulo(plus(rest.high, -range.low), common);
      if (remainder < range.width()) continue;
      rest.high = plus(rest.high, -range.low) - remainder;
    }
    condition = std::move(rest);
    return true;
  }
  return false;
}

Condition negated(const Condition& condition) {
  Condition result = condition;
  for (Term& term : result.form.terms) term.factor = -term.factor;
  result.low = condition.high == kNoHigh ? kNoLow : -condition.high;
  result.high = condition.low == kNoLow ? kNoHigh : -condition.low;
  return result;
}

}  // namespace

void simplify_conditions(Points& points) {
  std::vector<Condition> kept;
  for (Condition condition : points.conditions) {
    tighten(points.algebra, condition);
    while (!never_holds(points.algebra, condition) && drop_low_terms(points.algebra, condition))
      tighten(points.algebra, condition);
    if (never_holds(points.algebra, condition)) points.masked = true;
    if (points.masked || always_holds(condition)) continue;
    if (condition.form.terms.front().factor < 0) condition = negated(condition);
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Condition& other) {
      return other.form == condition.form;
    });
    if (same == kept.end()) {
      kept.push_back(std::move(condition));
    } else {
      same->low = std::max(same->low, condition.low);
      same->high = std::min(same->high, condition.high);
      same->step = std::min(same->step, condition.step);
    }
  }
  points.conditions = std::move(kept);
  for (const Condition& condition : points.conditions)
    points.masked |= never_holds(points.algebra, condition);
}

}  // namespace syno::key
