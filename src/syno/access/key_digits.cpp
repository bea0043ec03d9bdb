// Changes of variables on single digits: a base for every digit, digits turned round, digits
// joined.
#include <algorithm>
#include <map>

#include "syno/access/key_points.h"

namespace syno::key {
namespace {

// One base that is cut: the bases of its digits.
struct Cut {
  std::vector<Integer> cuts;
  std::vector<int> bases;
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

// Whether high*extent(low) + low is one digit wherever either occurs.
bool fit_together(const Points& points, const std::vector<const Form*>& forms, int high, int low) {
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
std::vector<const Form*> fixed_forms(const Points& points) {
  std::vector<const Form*> forms;
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

// One round; whether anything was cut.
bool split_once(Points& points) {
  Algebra& algebra = points.algebra;
  std::map<int, std::vector<Integer>> cuts;
  visit_all(points, [&](const Atom& atom) {
    if (!atom.is_digit()) return;
    if (atom.low == 1 && atom.high == algebra.extent(atom.base)) return;
    auto& of_base = cuts[atom.base];
    of_base.push_back(atom.low);
    of_base.push_back(atom.high);
  });
  if (cuts.empty()) return false;
  std::map<int, Cut> replaced;
  for (auto& [base, all] : cuts) {
    all.push_back(1);
    all.push_back(algebra.extent(base));
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    Cut cut;
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
    if (std::erase(points.box, base) > 0)
      points.box.insert(points.box.end(), cut.bases.begin(), cut.bases.end());
    for (Rotation& rotation : points.rotations) {
      std::vector<Rotation::Part> parts;
      for (const Rotation::Part& part : rotation.parts) {
        if (part.base != base) {
          parts.push_back(part);
          continue;
        }
        for (std::size_t i = 0; i < cut.bases.size(); ++i)
          parts.push_back({cut.bases[i], part.low * cut.cuts[i], part.low * cut.cuts[i + 1]});
      }
      rotation.parts = std::move(parts);
    }
    replaced.emplace(base, std::move(cut));
  }
  rewrite(points, [&](const Atom& atom) -> std::optional<Form> {
    const auto place = replaced.find(atom.base);
    if (place == replaced.end()) return std::nullopt;
    const Form from_low = shifted(algebra, place->second, atom.low);
    const Form from_high = shifted(algebra, place->second, atom.high);
    return algebra.combine(from_low, 1, from_high, -(atom.high / atom.low));
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

void reflect_digits(Points& points) {
  Algebra& algebra = points.algebra;
  for (const int base : std::vector<int>(points.box)) {
    bool down = false;
    bool up = false;
    for (const Exact& exact : points.exact) {
      const Integer factor = algebra.factor_of(exact.form, base);
      down |= factor < 0;
      up |= factor > 0;
    }
    if (!down || up) continue;
    const Integer last = algebra.extent(base) - 1;
    rewrite(points, [&](const Atom& atom) -> std::optional<Form> {
      if (atom.base != base) return std::nullopt;
      Form turned = algebra.combine({}, 0, algebra.base(base), -1);
      turned.constant = last;
      return turned;
    });
  }
}

bool coarsen_digits(Points& points) {
  Algebra& algebra = points.algebra;
  const std::vector<int> all = points.box;
  for (const int base : all) {
    bool found = false;
    visit_all(points, [&](const Atom& atom) { found |= atom.base == base; });
    if (found) continue;
    std::erase(points.box, base);
    points.multiplicity = times(points.multiplicity, algebra.extent(base));
  }
  bool any = false;
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<const Form*> forms = fixed_forms(points);
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
