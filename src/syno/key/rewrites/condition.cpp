// Conditions low <= form <= high in one form. Ranges are those of the whole box, never of facts: a
// fact is a condition.
#include <algorithm>
#include <numeric>
#include <optional>

#include "syno/key/points.h"
#include "syno/support/checked.h"

namespace syno::key {
namespace {

Integer ceil_divide(Integer a, Integer b) {
  return -syno::floor_divide(-a, b);
}

// Bounds that always hold vanish; the constant and the common divisor go into the bounds.
void tighten(Algebra& algebra, Condition& condition) {
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

// f = g*H + L with 0 <= L < g: L goes when neither bound sees it. A digit may lie in both, cut
// where g asks for it.
bool drop_low_terms(Algebra& algebra, Condition& condition) {
  for (const Integer g : gap_candidates(condition.form)) {
    const std::optional<Parts> parts = split_at(algebra, condition.form, g);
    if (!parts) continue;
    const Interval range = algebra.box_range(parts->low);
    if (range.width() >= g) continue;
    Condition rest = condition;
    rest.form = parts->high;
    if (rest.low != kNoLow) {
      rest.low = plus(rest.low, -range.low);
      const Integer remainder = floor_modulo(rest.low, g);
      if (remainder != 0 && remainder <= range.width()) continue;
      rest.low = times(ceil_divide(rest.low, g), g);
    }
    if (rest.high != kNoHigh) {
      rest.high = plus(rest.high, -range.low);
      const Integer remainder = floor_modulo(rest.high, g);
      if (remainder < range.width()) continue;
      rest.high -= remainder;
    }
    condition = std::move(rest);
    return true;
  }
  return false;
}

Condition negated(const Condition& condition) {
  Condition result = condition;
  for (Term& term : result.form.terms) term.factor = -term.factor;
  result.low = opposite_low(condition.high);
  result.high = opposite_high(condition.low);
  return result;
}

// Whether `source` keeps target.form >= target.low: F >= low_G + min(F - G).
bool implies_low(Algebra& algebra, const Condition& source, const Condition& target) {
  if (source.low == kNoLow) return false;
  const Form difference = algebra.combine(target.form, 1, source.form, -1);
  return plus(source.low, algebra.box_range(difference).low) >= target.low;
}

}  // namespace

void drop_implied_bounds(Points& points) {
  Algebra& algebra = points.algebra;
  auto& conditions = points.conditions;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    for (int side = 0; side < 2; ++side) {
      Condition target = side == 0 ? conditions[i] : negated(conditions[i]);
      if (target.low == kNoLow) continue;
      for (std::size_t j = 0; j < conditions.size(); ++j) {
        if (i == j || (!implies_low(algebra, conditions[j], target) &&
                       !implies_low(algebra, negated(conditions[j]), target)))
          continue;
        target.low = kNoLow;
        conditions[i] = side == 0 ? target : negated(target);
        break;
      }
    }
  }
  std::erase_if(conditions, always_holds);
  // What was dropped is no condition any more, so its facts may not rewrite what is left.
  for (Condition& condition : conditions) condition.step = -1;
}

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
