// Changes of variables on single digits: a base for every digit, digits turned round, digits
// joined.
#include <algorithm>

#include "syno/key/points.h"

namespace syno::key {
namespace {

// One base that is cut: the bases of its digits.
struct Cut {
  int base = 0;
  Integers cuts;
  InlineVector<int, 8> bases;
};

// floor(base / low), in the new bases. A digit that `low` lies inside is divided as a carry.
Form shifted(Algebra& algebra, const Cut& cut, Integer low) {
  Form result;
  for (std::size_t i = 0; i + 1 < cut.cuts.size(); ++i) {
    const Form digit = algebra.base(cut.bases[i]);
    if (cut.cuts[i] >= low) {
      result = algebra.combine(result, 1, digit, cut.cuts[i] / low);
    } else if (cut.cuts[i + 1] > low) {
      result = algebra.sum(result, algebra.floor_divide(digit, low / cut.cuts[i], 0));
    }
  }
  return result;
}

// (base mod high) div low, in the new bases.
Form in_new_bases(Algebra& algebra, const Cut& cut, Integer low, Integer high) {
  const auto is_cut = [&](Integer at) {
    return std::find(cut.cuts.begin(), cut.cuts.end(), at) != cut.cuts.end();
  };
  if (!is_cut(low) || !is_cut(high))
    return algebra.combine(shifted(algebra, cut, low), 1, shifted(algebra, cut, high),
                           -(high / low));
  Form result;
  for (std::size_t i = 0; i < cut.bases.size(); ++i) {
    if (cut.cuts[i] < low || cut.cuts[i + 1] > high) continue;
    result = algebra.combine(result, 1, algebra.base(cut.bases[i]), cut.cuts[i] / low);
  }
  return result;
}

// Whether high*extent(low) + low is one digit wherever either occurs.
bool fit_together(const Points& points, const InlineVector<const Form*, 16>& forms, int high,
                  int low) {
  const std::size_t first_carry = points.exact.size() + points.conditions.size();
  const Algebra& algebra = points.algebra;
  const Integer extent = algebra.extent(low);
  const auto fits = [&](const Form& form) {
    const Integer low_factor = algebra.factor_of(form, low);
    const Integer high_factor = algebra.factor_of(form, high);
    return high_factor % extent == 0 && high_factor / extent == low_factor;
  };
  // A carry of the two alone is one of the joined digit (Algebra::join_bit).
  const auto fits_as_bit = [&](const Form& form) {
    return extent == 2 && form.terms.size() == 2 && algebra.factor_of(form, low) == 1 &&
           algebra.factor_of(form, high) == 1;
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (!fits(*forms[i]) && !(i >= first_carry && fits_as_bit(*forms[i]))) return false;
  }
  for (const Partition& partition : points.partitions) {
    bool low_alone = false;
    bool high_alone = false;
    for (const Form& generator : partition.generators) {
      if (algebra.is_lone(generator, low)) {
        low_alone = true;
      } else if (algebra.is_lone(generator, high)) {
        high_alone = true;
      } else if (!fits(generator)) {
        return false;
      }
    }
    if (low_alone != high_alone) return false;
  }
  return true;
}

// Exact forms, conditions, then the inner forms of all carries that occur.
using Forms = InlineVector<const Form*, 16>;
Forms fixed_forms(const Points& points) {
  Forms forms;
  for (const Exact& exact : points.exact) forms.push_back(&exact.form);
  for (const Condition& condition : points.conditions) forms.push_back(&condition.form);
  visit_all(points, [&](const Atom& atom) {
    if (!atom.is_digit() && std::find(forms.begin(), forms.end(), &atom.inner) == forms.end())
      forms.push_back(&atom.inner);
  });
  return forms;
}

void join(Points& points, int high, int low) {
  Algebra& algebra = points.algebra;
  const Integer cut = algebra.extent(low);
  const Integer extent = times(cut, algebra.extent(high));
  const int joined = algebra.add_base(extent);
  for (Partition& partition : points.partitions) {
    auto& generators = partition.generators;
    const auto alone = [&](int base) {
      return std::find_if(generators.begin(), generators.end(),
                          [&](const Form& form) { return algebra.is_lone(form, base); });
    };
    if (alone(low) == generators.end()) continue;
    generators.erase(alone(low));
    *alone(high) = algebra.base(joined);
  }
  rewrite(points, [&](const Atom& atom) -> std::optional<Form> {
    if (atom.base == low) return algebra.digit(joined, 1, cut);
    if (atom.base == high) return algebra.digit(joined, cut, extent);
    return std::nullopt;
  });
  std::erase(points.box, low);
  std::erase(points.box, high);
  points.box.push_back(joined);
}

// Where digits that occur begin and end, for each base that is not whole; by base.
std::vector<Cut> find_cuts(const Points& points) {
  const Algebra& algebra = points.algebra;
  std::vector<Cut> found;
  visit_all(points, [&](const Atom& atom) {
    if (!atom.is_digit() || (atom.low == 1 && atom.high == algebra.extent(atom.base))) return;
    auto place = std::lower_bound(found.begin(), found.end(), atom.base,
                                  [](const Cut& cut, int base) { return cut.base < base; });
    if (place == found.end() || place->base != atom.base)
      place = found.insert(place, Cut{atom.base, {1, algebra.extent(atom.base)}, {}});
    for (const Integer at : {atom.low, atom.high}) {
      Integers& cuts = place->cuts;
      if (std::find(cuts.begin(), cuts.end(), at) == cuts.end()) cuts.push_back(at);
    }
  });
  return found;
}

// One round; whether anything was cut.
bool split_once(Points& points) {
  Algebra& algebra = points.algebra;
  std::vector<Cut> found = find_cuts(points);
  if (found.empty()) return false;
  for (Cut& cut : found) {
    Integers all = cut.cuts;
    cut.cuts.clear();
    sort_unique(all);
    // Real cuts are those that every other cut divides or is divided by.
    for (const Integer a : all) {
      if (std::all_of(all.begin(), all.end(),
                      [&](Integer b) { return a <= b ? b % a == 0 : a % b == 0; }))
        cut.cuts.push_back(a);
    }
    for (std::size_t i = 0; i + 1 < cut.cuts.size(); ++i) {
      cut.bases.push_back(algebra.add_base(cut.cuts[i + 1] / cut.cuts[i]));
      if (std::any_of(all.begin(), all.end(),
                      [&](Integer a) { return a > cut.cuts[i] && a < cut.cuts[i + 1]; }))
        algebra.forbid_cuts(cut.bases.back());
    }
    if (std::erase(points.box, cut.base) > 0)
      points.box.insert(points.box.end(), cut.bases.begin(), cut.bases.end());
    for (CyclicShift& cyclic_shift : points.cyclic_shifts) {
      decltype(cyclic_shift.parts) parts;
      for (const CyclicShift::Part& part : cyclic_shift.parts) {
        if (part.base != cut.base) {
          parts.push_back(part);
          continue;
        }
        for (std::size_t i = 0; i < cut.bases.size(); ++i)
          parts.push_back({cut.bases[i], part.low * cut.cuts[i], part.low * cut.cuts[i + 1]});
      }
      cyclic_shift.parts = std::move(parts);
    }
  }
  rewrite(points, [&](const Atom& atom) -> std::optional<Form> {
    const auto place = std::find_if(found.begin(), found.end(),
                                    [&](const Cut& cut) { return cut.base == atom.base; });
    if (place == found.end()) return std::nullopt;
    return in_new_bases(algebra, *place, atom.low, atom.high);
  });
  return true;
}

}  // namespace

bool split_bases(Points& points) {
  // Rewritten carries may ask for more cuts.
  int round = 0;
  while (split_once(points)) {
    if (++round > kMaxRecursion) throw CapExceeded{"digits"};
  }
  return round > 0;
}

bool reflect_digits(Points& points) {
  Algebra& algebra = points.algebra;
  bool any = false;
  for (const int base : std::vector<int>(points.box)) {
    bool down = false;
    bool otherwise = false;
    for (const Exact& exact : points.exact) {
      const Integer factor = algebra.factor_of(exact.form, base);
      down |= factor < 0;
      otherwise |= factor > 0;
    }
    if (!down || otherwise) continue;
    // Turned round inside a carry, a digit may come back turned.
    visit_all(points, [&](const Atom& atom) {
      otherwise |= !atom.is_digit() && algebra.mentions(atom.inner, base);
    });
    if (otherwise) continue;
    any = true;
    const Integer last = algebra.extent(base) - 1;
    rewrite(points, [&](const Atom& atom) -> std::optional<Form> {
      if (atom.base != base) return std::nullopt;
      Form turned = algebra.combine({}, 0, algebra.base(base), -1);
      turned.constant = last;
      return turned;
    });
  }
  return any;
}

bool coarsen_digits(Points& points) {
  Algebra& algebra = points.algebra;
  InlineVector<char, 64> seen;
  seen.assign(algebra.base_count(), 0);
  visit_all(points, [&](const Atom& atom) {
    if (atom.is_digit()) seen[static_cast<std::size_t>(atom.base)] = 1;
  });
  std::erase_if(points.box, [&](int base) {
    if (seen[static_cast<std::size_t>(base)]) return false;
    points.multiplicity = times(points.multiplicity, algebra.extent(base));
    return true;
  });
  bool any = false;
  for (bool changed = true; changed;) {
    changed = false;
    const Forms forms = fixed_forms(points);
    for (std::size_t i = 0; i < points.box.size() && !changed; ++i) {
      for (std::size_t j = 0; j < points.box.size() && !changed; ++j) {
        const int high = points.box[i];
        const int low = points.box[j];
        if (i == j || !fit_together(points, forms, high, low)) continue;
        join(points, high, low);
        changed = true;
      }
    }
    any |= changed;
  }
  return any;
}

}  // namespace syno::key
