#include "syno/key/form.h"

#include <algorithm>

#include "syno/support/checked.h"

namespace syno::key {

void Algebra::clear() {
  facts.clear();
  bases_.clear();
  atoms_.clear();
  carries_.clear();
  depth_ = 0;
}

int Algebra::add_base(Integer extent) {
  bases_.push_back({extent, false, {}});
  return static_cast<int>(bases_.size()) - 1;
}

std::int32_t Algebra::digit_atom(int base, Integer low, Integer high) {
  for (const std::int32_t id : bases_[static_cast<std::size_t>(base)].digits) {
    if (atom(id).low == low && atom(id).high == high) return id;
  }
  const auto id = static_cast<std::int32_t>(atoms_.size());
  Atom digit;
  digit.base = base;
  digit.low = low;
  digit.high = high;
  digit.range = {0, high / low - 1};
  atoms_.push_back(std::move(digit));
  bases_[static_cast<std::size_t>(base)].digits.push_back(id);
  return id;
}

std::int32_t Algebra::carry_atom(const Form& inner, Integer divisor) {
  for (const std::int32_t id : carries_) {
    if (atom(id).divisor == divisor && atom(id).inner == inner) return id;
  }
  if (carries_.size() >= kMaxCarries) throw CapExceeded{"carries"};
  const auto id = static_cast<std::int32_t>(atoms_.size());
  Atom carry;
  carry.inner = inner;
  carry.divisor = divisor;
  const Interval range = box_range(inner);
  carry.range = {syno::floor_divide(range.low, divisor), syno::floor_divide(range.high, divisor)};
  atoms_.push_back(std::move(carry));
  carries_.push_back(id);
  return id;
}

Form Algebra::digit(int base, Integer low, Integer high) {
  Form form;
  if (low < high) form.terms.push_back({digit_atom(base, low, high), 1});
  return form;
}

Form Algebra::combine(const Form& a, Integer fa, const Form& b, Integer fb) {
  Form result;
  result.constant = plus(times(a.constant, fa), times(b.constant, fb));
  result.terms.reserve(a.terms.size() + b.terms.size());
  const Term* in_a = a.terms.begin();
  const Term* in_b = b.terms.begin();
  while (in_a != a.terms.end() || in_b != b.terms.end()) {
    const bool take_a =
        in_b == b.terms.end() || (in_a != a.terms.end() && in_a->atom <= in_b->atom);
    const bool take_b =
        in_a == a.terms.end() || (in_b != b.terms.end() && in_b->atom <= in_a->atom);
    Term term{take_a ? in_a->atom : in_b->atom, 0};
    if (take_a) term.factor = times((in_a++)->factor, fa);
    if (take_b) term.factor = plus(term.factor, times((in_b++)->factor, fb));
    if (term.factor != 0) result.terms.push_back(term);
  }
  join(result);
  return result;
}

void Algebra::merge(Form& form) {
  auto& terms = form.terms;
  if (terms.size() < 2) {
    if (terms.size() == 1 && terms.front().factor == 0) terms.clear();
    return;
  }
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return a.atom < b.atom; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < terms.size();) {
    Term term = terms[i++];
    while (i < terms.size() && terms[i].atom == term.atom)
      term.factor = plus(term.factor, terms[i++].factor);
    if (term.factor != 0) terms[kept++] = term;
  }
  terms.resize(kept);
}

void Algebra::tidy(Form& form) {
  merge(form);
  join(form);
}

// Joins the digits of every base that has several; for merged terms.
void Algebra::join(Form& form) {
  InlineVector<int, 8> several;
  for (std::size_t i = 0; i + 1 < form.terms.size(); ++i) {
    const int base = atom(form.terms[i].atom).base;
    if (base < 0) continue;
    bool again = false;
    for (std::size_t j = i + 1; j < form.terms.size(); ++j)
      again |= atom(form.terms[j].atom).base == base;
    if (again && std::find(several.begin(), several.end(), base) == several.end())
      several.push_back(base);
  }
  if (!several.empty()) {
    std::sort(several.begin(), several.end());
    for (const int base : several) join_digits(form, base);
    merge(form);
  }
  if (form.terms.size() > kMaxTerms) throw CapExceeded{"terms"};
}

// Expands the digits of `base` into the digits between all their cuts, adds up, and joins
// neighbours that fit. Cuts that do not divide each other stay as they are.
void Algebra::join_digits(Form& form, int base) {
  Integers cuts;
  for (const Term& term : form.terms) {
    const Atom& digit = atom(term.atom);
    if (digit.base != base) continue;
    cuts.push_back(digit.low);
    cuts.push_back(digit.high);
  }
  sort_unique(cuts);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i + 1] % cuts[i] != 0) return;
  }
  Integers factors;
  factors.assign(cuts.size() - 1, 0);
  decltype(form.terms) rest;
  for (const Term& term : form.terms) {
    const Atom& digit = atom(term.atom);
    if (digit.base != base) {
      rest.push_back(term);
      continue;
    }
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] < digit.low || cuts[i + 1] > digit.high) continue;
      factors[i] = plus(factors[i], times(term.factor, cuts[i] / digit.low));
    }
  }
  for (std::size_t i = 0; i < factors.size();) {
    std::size_t end = i + 1;
    if (factors[i] != 0) {
      while (end < factors.size() && factors[end] == times(factors[i], cuts[end] / cuts[i])) ++end;
      rest.push_back({digit_atom(base, cuts[i], cuts[end]), factors[i]});
    }
    i = end;
  }
  form.terms = std::move(rest);
}

Interval Algebra::box_range(const Form& form) const {
  Interval total{form.constant, form.constant};
  for (const Term& term : form.terms) {
    const Interval& range = atom(term.atom).range;
    const Integer low = times(term.factor, term.factor > 0 ? range.low : range.high);
    const Integer high = times(term.factor, term.factor > 0 ? range.high : range.low);
    total = {plus(total.low, low), plus(total.high, high)};
  }
  return total;
}

// A fact narrows the range when a multiple of its form takes all its atoms out of `form`.
Interval Algebra::range(const Form& form, int before) {
  Interval best = box_range(form);
  for (const Fact& fact : facts) {
    if (fact.step >= before || fact.form.terms.empty() ||
        fact.form.terms.size() > form.terms.size())
      continue;
    const Term& lead = fact.form.terms.front();
    const auto place = std::find_if(form.terms.begin(), form.terms.end(),
                                    [&](const Term& term) { return term.atom == lead.atom; });
    if (place == form.terms.end() || place->factor % lead.factor != 0) continue;
    const Integer factor = place->factor / lead.factor;
    const Form rest = combine(form, 1, fact.form, -factor);
    if (rest.terms.size() + fact.form.terms.size() != form.terms.size()) continue;
    const Interval other = box_range(rest);
    const Integer reach = times(factor, fact.high);
    best.low = std::max(best.low, plus(other.low, std::min<Integer>(reach, 0)));
    best.high = std::min(best.high, plus(other.high, std::max<Integer>(reach, 0)));
  }
  return best;
}

void Algebra::substitute(Form& form, Replace replace, int before) {
  const Recursion recursion(*this);
  // Terms are copied from where the first one changes.
  std::optional<Form> result;
  for (std::size_t i = 0; i < form.terms.size(); ++i) {
    const Term term = form.terms[i];
    std::optional<Form> replacement;
    if (atom(term.atom).is_digit()) {
      replacement = replace(Atom(atom(term.atom)));
    } else {
      const Atom carry = atom(term.atom);  // a copy: rewriting adds atoms
      Form inner = carry.inner;
      substitute(inner, replace, before);
      if (inner != carry.inner) replacement = floor_divide(inner, carry.divisor, before);
    }
    if (replacement && !result) {
      result.emplace();
      result->constant = form.constant;
      result->terms = decltype(form.terms)(form.terms.begin(), form.terms.begin() + i);
    }
    if (replacement) {
      result = combine(*result, 1, *replacement, term.factor);
    } else if (result) {
      result->terms.push_back(term);
      tidy(*result);
    }
  }
  if (result) form = *result;
}

bool Algebra::mentions(const Form& form, int base) const {
  return std::any_of(form.terms.begin(), form.terms.end(), [&](const Term& term) {
    const Atom& found = atom(term.atom);
    return found.is_digit() ? found.base == base : mentions(found.inner, base);
  });
}

Integer Algebra::factor_of(const Form& form, int base) const {
  for (const Term& term : form.terms) {
    if (atom(term.atom).base == base) return term.factor;
  }
  return 0;
}

bool Algebra::is_lone(const Form& form, int base) const {
  return form.terms.size() == 1 && atom(form.terms[0].atom).base == base;
}

}  // namespace syno::key
