// Rotations: s = (e + d) mod N.
//
// Where e runs over 0..N-1 as a mixed radix of digits S, turning e by d is a bijection of the
// points. When S is seen elsewhere only in partitions that with a digit of S hold every lower one
// (so e mod m, which turns with e), s may take the place of S: the cyclic shift is nothing. Otherwise s
// is written out with its carry,
//     s = e + d - N*floor((e + d)/N),
// except that a partition that tells s mod m apart tells e mod m apart when m divides N.
#include <algorithm>

#include "syno/key/points.h"

namespace syno::key {
namespace {

// The digits of `form` from the lowest when it is a mixed radix over 0..extent-1 of bases in the
// box; else empty.
std::vector<int> mixed_radix(const Points& points, const Form& form, Integer extent) {
  const Algebra& algebra = points.algebra;
  auto terms = form.terms;
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return a.factor < b.factor; });
  std::vector<int> digits;
  Integer next = 1;
  for (const Term& term : terms) {
    const Atom& atom = algebra.atom(term.atom);
    const bool whole =
        atom.is_digit() && atom.low == 1 && atom.high == algebra.extent(atom.base) &&
        std::find(points.box.begin(), points.box.end(), atom.base) != points.box.end();
    if (!whole || term.factor != next) return {};
    next = times(next, atom.high);
    digits.push_back(atom.base);
  }
  return form.constant == 0 && next == extent ? digits : std::vector<int>{};
}

// The base that a generator is, or -1.
int lone_base(const Algebra& algebra, const Form& form) {
  return form.terms.size() == 1 ? algebra.atom(form.terms[0].atom).base : -1;
}

class Settler {
 public:
  Settler(Points& points, const CyclicShift& cyclic_shift)
      : points_(points), algebra_(points.algebra), cyclic_shift_(cyclic_shift) {
    std::sort(cyclic_shift_.parts.begin(), cyclic_shift_.parts.end(),
              [](const auto& a, const auto& b) { return a.low < b.low; });
  }

  // Whether s took the place of the digits of e.
  bool free() {
    digits_ = mixed_radix(points_, cyclic_shift_.before, cyclic_shift_.extent);
    if (digits_.empty() || seen_outside_partitions()) return false;
    std::vector<std::size_t> held;
    for (const Partition& partition : points_.partitions) {
      const std::optional<std::size_t> count = lower_digits(partition);
      if (!count) return false;
      held.push_back(*count);
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (held[i] == 0) continue;
      Integer modulus = 1;
      for (std::size_t j = 0; j < held[i]; ++j)
        modulus = times(modulus, algebra_.extent(digits_[j]));
      auto& generators = points_.partitions[i].generators;
      erase_if(generators, [&](const Form& form) { return is_digit(lone_base(algebra_, form)); });
      generators.push_back(algebra_.modulo(value_of_parts(), modulus, kAllSteps));
    }
    for (const int base : digits_) {
      std::erase(points_.box, base);
      std::erase_if(algebra_.facts,
                    [&](const Fact& fact) { return algebra_.mentions(fact.form, base); });
    }
    for (const CyclicShift::Part& part : cyclic_shift_.parts) points_.box.push_back(part.base);
    return true;
  }

  void undo_cyclic_shifts_of_partitions() {
    for (Partition& partition : points_.partitions) {
      std::vector<int> lower;
      Integer modulus = 1;
      for (const CyclicShift::Part& part : cyclic_shift_.parts) {
        const auto& generators = partition.generators;
        const bool seen = std::any_of(generators.begin(), generators.end(), [&](const Form& form) {
          return lone_base(algebra_, form) == part.base;
        });
        if (!seen) break;
        lower.push_back(part.base);
        modulus = part.high;
      }
      if (lower.empty()) continue;
      erase_if(partition.generators, [&](const Form& form) {
        return std::find(lower.begin(), lower.end(), lone_base(algebra_, form)) != lower.end();
      });
      partition.generators.push_back(algebra_.modulo(cyclic_shift_.before, modulus, kAllSteps));
    }
  }

  void write_out() {
    Form turned = cyclic_shift_.before;
    turned.constant = plus(turned.constant, cyclic_shift_.amount);
    turned = algebra_.modulo(turned, cyclic_shift_.extent, cyclic_shift_.step);
    algebra_.facts.push_back({turned, cyclic_shift_.extent - 1, cyclic_shift_.step});
    rewrite(points_, [&](const Atom& atom) -> std::optional<Form> {
      for (const CyclicShift::Part& part : cyclic_shift_.parts) {
        if (part.base != atom.base) continue;
        const Integer low = times(part.low, atom.low);
        const Integer high = times(part.low, atom.high);
        const Form from_low = algebra_.floor_divide(turned, low, cyclic_shift_.step);
        const Form from_high = high == cyclic_shift_.extent
                                   ? Form{}
                                   : algebra_.floor_divide(turned, high, cyclic_shift_.step);
        return algebra_.combine(from_low, 1, from_high, -(high / low));
      }
      return std::nullopt;
    });
  }

 private:
  bool is_digit(int base) const {
    return base >= 0 && std::find(digits_.begin(), digits_.end(), base) != digits_.end();
  }

  bool mentions_digit(const Form& form) const {
    return std::any_of(digits_.begin(), digits_.end(),
                       [&](int base) { return algebra_.mentions(form, base); });
  }

  bool seen_outside_partitions() const {
    const auto seen = [&](const auto& held) { return mentions_digit(held.form); };
    return std::any_of(points_.exact.begin(), points_.exact.end(), seen) ||
           std::any_of(points_.conditions.begin(), points_.conditions.end(), seen) ||
           std::any_of(points_.cyclic_shifts.begin(), points_.cyclic_shifts.end(),
                       [&](const CyclicShift& other) { return mentions_digit(other.before); });
  }

  // How many of the lowest digits the partition holds as generators; nothing when it sees digits in
  // another way.
  std::optional<std::size_t> lower_digits(const Partition& partition) const {
    std::vector<char> held(digits_.size(), 0);
    for (const Form& generator : partition.generators) {
      const int base = lone_base(algebra_, generator);
      const auto place = std::find(digits_.begin(), digits_.end(), base);
      if (place != digits_.end()) {
        held[static_cast<std::size_t>(place - digits_.begin())] = 1;
      } else if (mentions_digit(generator)) {
        return std::nullopt;
      }
    }
    const auto gap = std::find(held.begin(), held.end(), 0);
    if (std::find(gap, held.end(), 1) != held.end()) return std::nullopt;
    return static_cast<std::size_t>(gap - held.begin());
  }

  Form value_of_parts() {
    Form value;
    for (const CyclicShift::Part& part : cyclic_shift_.parts)
      value = algebra_.combine(value, 1, algebra_.base(part.base), part.low);
    return value;
  }

  Points& points_;
  Algebra& algebra_;
  CyclicShift cyclic_shift_;
  std::vector<int> digits_;
};

}  // namespace

void settle_cyclic_shifts(Points& points) {
  split_bases(points);
  while (!points.cyclic_shifts.empty()) {
    simplify_partitions(points);
    split_bases(points);
    const CyclicShift cyclic_shift = points.cyclic_shifts.front();
    points.cyclic_shifts.erase(points.cyclic_shifts.begin());
    Settler settler(points, cyclic_shift);
    if (!settler.free()) {
      settler.undo_cyclic_shifts_of_partitions();
      settler.write_out();
    }
    split_bases(points);
  }
}

}  // namespace syno::key
