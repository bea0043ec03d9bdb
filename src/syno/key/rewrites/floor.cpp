// floor(form / divisor): the rules that keep carries few and in one form.
#include <algorithm>
#include <numeric>

#include "syno/key/form.h"
#include "syno/support/checked.h"

namespace syno::key {
namespace {

// The divisor of all factors, and of `start`.
Integer common_divisor(const Form& form, Integer start) {
  for (const Term& term : form.terms) start = std::gcd(start, term.factor);
  return start;
}

std::optional<Integer> constant_quotient(const Interval& range, Integer divisor) {
  const Integer low = syno::floor_divide(range.low, divisor);
  if (range.low > range.high || low != syno::floor_divide(range.high, divisor)) return std::nullopt;
  return low;
}

}  // namespace

// Factors and the constant become their remainders: floor((q*B*a + R)/B) = q*a + floor(R/B).
void Algebra::take_multiples(Form& form, Integer divisor, Form& out) {
  bool changed = false;
  for (Term& term : form.terms) {
    const Integer quotient = syno::floor_divide(term.factor, divisor);
    if (quotient == 0) continue;
    out.terms.push_back({term.atom, quotient});
    term.factor -= quotient * divisor;
    changed = true;
  }
  const Integer quotient = syno::floor_divide(form.constant, divisor);
  out.constant = plus(out.constant, quotient);
  form.constant -= quotient * divisor;
  if (!changed) return;
  tidy(out);
  tidy(form);
}

// Where factor*p is a multiple of the divisor, the part of a digit from p on leaves the floor.
bool Algebra::cut_digits(Form& form, Integer divisor, Form& out) {
  bool changed = false;
  for (Term& term : form.terms) {
    const Atom atom = this->atom(term.atom);
    if (!atom.is_digit() || bases_[static_cast<std::size_t>(atom.base)].whole) continue;
    const Integer period = divisor / std::gcd(term.factor, divisor);
    const Integer extent = atom.high / atom.low;
    if (period >= extent || extent % period != 0) continue;
    const Integer cut = atom.low * period;
    out.terms.push_back(
        {digit_atom(atom.base, cut, atom.high), times(term.factor, period) / divisor});
    term.atom = period == 1 ? term.atom : digit_atom(atom.base, atom.low, cut);
    if (period == 1) term.factor = 0;
    changed = true;
  }
  if (changed) {
    tidy(out);
    tidy(form);
  }
  return changed;
}

// floor((H + L)/B) = floor((H/g + floor(L/g)) / (B/g)) when g divides B and all of H; used when
// floor(L/g) has no carry of its own: a constant or linear, so that low digits the floor does not
// see disappear.
bool Algebra::drop_low_part(Form& form, Integer& divisor, int before) {
  Integers candidates{std::gcd(form.constant, divisor)};
  for (std::size_t i = 0; i < form.terms.size(); ++i) {
    candidates.push_back(std::gcd(form.terms[i].factor, divisor));
    Integer others = divisor;
    for (std::size_t j = 0; j < form.terms.size(); ++j) {
      if (j != i) others = std::gcd(others, form.terms[j].factor);
    }
    candidates.push_back(others);
  }
  sort_unique(candidates);
  for (const Integer g : candidates) {
    if (g <= 1 || g >= divisor) continue;
    Form high;
    Form low;
    low.constant = form.constant;
    for (const Term& term : form.terms) {
      if (term.factor % g == 0) {
        high.terms.push_back({term.atom, term.factor / g});
      } else {
        low.terms.push_back(term);
      }
    }
    const Form quotient = floor_divide(low, g, before);
    const bool easy = std::all_of(quotient.terms.begin(), quotient.terms.end(), [&](const Term& t) {
      return atom(t.atom).is_digit() ||
             std::any_of(form.terms.begin(), form.terms.end(),
                         [&](const Term& old) { return old.atom == t.atom; });
    });
    if (!easy) continue;
    form = sum(high, quotient);
    divisor /= g;
    return true;
  }
  return false;
}

// floor((X + floor(R/C)) / B) = floor((C*X + R) / (B*C)).
bool Algebra::flatten(Form& form, Integer& divisor) {
  for (const Term& term : form.terms) {
    if (term.factor != 1 || atom(term.atom).is_digit()) continue;
    const Atom carry = atom(term.atom);
    Form one;
    one.terms.push_back(term);
    form = combine(combine(form, 1, one, -1), carry.divisor, carry.inner, 1);
    divisor = times(divisor, carry.divisor);
    return true;
  }
  return false;
}

// floor((a + b + k)/B) = floor((2*a + b + 1 + 2*k)/(2*B)) for a bit b: done where 2*a + b is one
// digit.
bool Algebra::join_bit(Form& form, Integer& divisor) {
  if (form.terms.size() != 2) return false;
  for (int i = 0; i < 2; ++i) {
    const Term& high_term = form.terms[static_cast<std::size_t>(i)];
    const Term& low_term = form.terms[static_cast<std::size_t>(1 - i)];
    const Atom& high = atom(high_term.atom);
    const Atom& low = atom(low_term.atom);
    if (high_term.factor != 1 || low_term.factor != 1 || low.base < 0 || low.base != high.base ||
        low.high != 2 * low.low || low.high != high.low)
      continue;
    const Integer constant = plus(times(2, form.constant), 1);
    form = digit(low.base, low.low, high.high);
    form.constant = constant;
    divisor = times(divisor, 2);
    return true;
  }
  return false;
}

// Any function of one two-valued atom is linear in it.
bool Algebra::two_valued(const Form& form, Integer divisor, Form& out) {
  if (form.terms.size() != 1) return false;
  const Term& term = form.terms.front();
  const Interval range = atom(term.atom).range;
  if (range.width() != 1) return false;
  const Integer first =
      syno::floor_divide(plus(times(term.factor, range.low), form.constant), divisor);
  const Integer second =
      syno::floor_divide(plus(times(term.factor, range.high), form.constant), divisor);
  // first + (second - first) * (atom - low)
  out.constant = plus(out.constant, first - times(second - first, range.low));
  if (second != first) out.terms.push_back({term.atom, second - first});
  tidy(out);
  return true;
}

// A fact that the form repeats up to multiples of the divisor: floor((fact + B*X + k)/B) = X +
// floor((fact + k)/B).
bool Algebra::quotient_by_fact(const Form& form, Integer divisor, int before, Form& out) {
  for (const Fact& fact : facts) {
    if (fact.step >= before || fact.form.terms.empty()) continue;
    Form multiples;
    Form rest = combine(form, 1, fact.form, -1);
    take_multiples(rest, divisor, multiples);
    const Interval other = box_range(rest);
    const auto constant = constant_quotient({other.low, plus(other.high, fact.high)}, divisor);
    if (!constant) continue;
    out = sum(out, multiples);
    out.constant = plus(out.constant, *constant);
    return true;
  }
  return false;
}

Form Algebra::floor_divide(Form form, Integer divisor, int before) {
  const Recursion recursion(*this);
  Form out;
  while (divisor != 1) {
    if (const auto constant = constant_quotient(range(form, before), divisor)) {
      out.constant = plus(out.constant, *constant);
      return out;
    }
    take_multiples(form, divisor, out);
    if (cut_digits(form, divisor, out)) continue;
    if (const auto constant = constant_quotient(range(form, before), divisor)) {
      out.constant = plus(out.constant, *constant);
      return out;
    }
    if (quotient_by_fact(form, divisor, before, out)) return out;
    const Integer common = common_divisor(form, divisor);
    if (common > 1) {
      for (Term& term : form.terms) term.factor /= common;
      form.constant = syno::floor_divide(form.constant, common);
      divisor /= common;
      continue;
    }
    if (two_valued(form, divisor, out)) return out;
    if (join_bit(form, divisor)) continue;
    if (divisor == 2 && form.constant == 1 && box_range(form).width() == 2) {
      // The halves of a sum of two bits add up to it: floor((R + 1)/2) = R - floor(R/2).
      form.constant = 0;
      return combine(sum(out, form), 1, floor_divide(form, 2, before), -1);
    }
    if (drop_low_part(form, divisor, before)) continue;
    if (flatten(form, divisor)) continue;
    Form carry;
    carry.terms.push_back({carry_atom(form, divisor), 1});
    return sum(out, carry);
  }
  return sum(out, form);
}

Form Algebra::modulo(const Form& form, Integer divisor, int before) {
  return combine(form, 1, floor_divide(form, divisor, before), -divisor);
}

Integers gap_candidates(const Form& form) {
  Integers candidates;
  for (std::size_t i = 0; i < form.terms.size(); ++i) {
    const Integer factor = std::abs(form.terms[i].factor);
    Integer others = 0;
    Integer larger = 0;
    for (std::size_t j = 0; j < form.terms.size(); ++j) {
      const Integer other = form.terms[j].factor;
      if (j != i) others = std::gcd(others, other);
      if (std::abs(other) >= factor) larger = std::gcd(larger, other);
    }
    candidates.push_back(others);
    candidates.push_back(larger);
  }
  erase_if(candidates, [](Integer g) { return g <= 1; });
  sort_unique(candidates);
  return candidates;
}

std::optional<Parts> split_at(Algebra& algebra, const Form& form, Integer g) {
  Parts parts;
  parts.low.constant = form.constant;
  for (const Term& term : form.terms) {
    const Atom atom = algebra.atom(term.atom);
    const Integer period = g / std::gcd(term.factor, g);
    const Integer extent = atom.high / atom.low;
    Form lone;
    lone.terms.push_back({term.atom, 1});
    if (period == 1) {
      parts.high = algebra.combine(parts.high, 1, lone, term.factor);
    } else if (atom.is_digit() && algebra.may_cut(atom.base) && period < extent &&
               extent % period == 0) {
      const Integer cut = atom.low * period;
      parts.low =
          algebra.combine(parts.low, 1, algebra.digit(atom.base, atom.low, cut), term.factor);
      parts.high = algebra.combine(parts.high, 1, algebra.digit(atom.base, cut, atom.high),
                                   times(term.factor, period));
    } else {
      parts.low = algebra.combine(parts.low, 1, lone, term.factor);
    }
  }
  if (parts.high.is_constant() || parts.low.is_constant()) return std::nullopt;
  return parts;
}

}  // namespace syno::key
