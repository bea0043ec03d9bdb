// Partitions: which points read the same element. Any generators that tell the same points apart
// are as good, so each rule replaces some of them by simpler ones, to a fixed point:
//   visible     a generator that is one atom is known; it and carries of known atoms disappear
//               from the others
//   gap         {H + L} is {H, L} when g divides H and L spans fewer than g integers
//   cyclic shift    {X + V mod B} is {X} when V is known and X spans fewer than B integers
//   difference  f - c*g replaces f when it is shorter
// All bases are whole here (split_bases has run).
#include <algorithm>
#include <numeric>

#include "syno/key/points.h"
#include "syno/support/checked.h"

namespace syno::key {
namespace {

using Generators = decltype(Partition::generators);

class Simplifier {
 public:
  Simplifier(Algebra& algebra, Generators& generators)
      : algebra_(algebra), generators_(generators) {}

  void run() {
    // Every rule lowers the number of terms or splits a generator; the bound is a guard, never met
    // in practice.
    for (int round = 0; round < 200; ++round) {
      normalise();
      if (hide_known() || split_at_gaps() || undo_cyclic_shift() || shorten()) continue;
      return;
    }
    throw CapExceeded{"partition"};
  }

 private:
  // No constant, common divisor 1, first factor positive, no generator twice.
  void normalise() {
    for (Form& form : generators_) {
      form.constant = 0;
      Integer common = 0;
      for (const Term& term : form.terms) common = std::gcd(common, term.factor);
      if (!form.terms.empty() && form.terms.front().factor < 0) common = -common;
      for (Term& term : form.terms) term.factor /= common;
    }
    erase_if(generators_, [](const Form& form) { return form.is_constant(); });
    for (std::size_t i = 1; i < generators_.size();) {
      const bool again = std::find(generators_.begin(), generators_.begin() + i, generators_[i]) !=
                         generators_.begin() + i;
      if (again) {
        generators_.erase(generators_.begin() + i);
      } else {
        ++i;
      }
    }
  }

  bool is_visible(std::int32_t atom) const {
    return std::any_of(generators_.begin(), generators_.end(), [&](const Form& form) {
      return form.terms.size() == 1 && form.terms[0].atom == atom;
    });
  }

  // Visible, or a carry of known atoms.
  bool is_known(std::int32_t id) const {
    if (is_visible(id)) return true;
    return is_carry_of_known(id);
  }
  bool is_carry_of_known(std::int32_t id) const {
    const Atom& atom = algebra_.atom(id);
    if (atom.is_digit()) return false;
    return std::all_of(atom.inner.terms.begin(), atom.inner.terms.end(),
                       [&](const Term& term) { return is_known(term.atom); });
  }

  bool hide_known() {
    for (Form& form : generators_) {
      const bool lone = form.terms.size() == 1;
      // A lone carry of known atoms goes; its inner form is strictly smaller, so nothing vanishes
      // in a circle.
      const std::size_t removed = erase_if(form.terms, [&](const Term& term) {
        return lone ? is_carry_of_known(term.atom) : is_known(term.atom);
      });
      if (removed > 0) return true;
    }
    return false;
  }

  bool split_at_gaps() {
    for (std::size_t i = 0; i < generators_.size(); ++i) {
      if (generators_[i].terms.size() < 2) continue;
      for (const Integer g : gap_candidates(generators_[i])) {
        std::optional<Parts> parts = split_at(algebra_, generators_[i], g);
        if (!parts || algebra_.range(parts->low, kAllSteps).width() >= g) continue;
        generators_[i] = std::move(parts->high);
        generators_.push_back(std::move(parts->low));
        return true;
      }
    }
    return false;
  }

  // f = c*(X - B*floor((X + V)/B)), known terms of f being gone already.
  bool undo_cyclic_shift() {
    for (Form& form : generators_) {
      for (const Term& term : form.terms) {
        const Atom carry = algebra_.atom(term.atom);
        if (carry.is_digit() || term.factor % carry.divisor != 0) continue;
        const Integer factor = -term.factor / carry.divisor;
        Form unknown = carry.inner;
        unknown.constant = 0;
        erase_if(unknown.terms, [&](const Term& t) { return is_known(t.atom); });
        if (unknown.terms.empty()) continue;
        Form lone;
        lone.terms.push_back(term);
        const Form rest =
            algebra_.combine(algebra_.combine(form, 1, lone, -1), 1, unknown, -factor);
        if (!rest.is_constant()) continue;
        if (algebra_.range(unknown, kAllSteps).width() >= carry.divisor) continue;
        form = unknown;
        return true;
      }
    }
    return false;
  }

  bool shorten() {
    for (std::size_t i = 0; i < generators_.size(); ++i) {
      for (std::size_t j = 0; j < generators_.size(); ++j) {
        if (i == j) continue;
        for (const Term& mine : generators_[i].terms) {
          for (const Term& other : generators_[j].terms) {
            if (mine.atom != other.atom) continue;
            const Integer common = std::gcd(mine.factor, other.factor);
            Form difference = algebra_.combine(generators_[i], other.factor / common,
                                               generators_[j], -mine.factor / common);
            if (difference.terms.size() >= generators_[i].terms.size()) continue;
            generators_[i] = std::move(difference);
            return true;
          }
        }
      }
    }
    return false;
  }

  Algebra& algebra_;
  Generators& generators_;
};

}  // namespace

void simplify_partitions(Points& points) {
  // Gaps may cut digits; then every partition is looked at again.
  for (int round = 0; round <= kMaxRecursion; ++round) {
    for (Partition& partition : points.partitions)
      Simplifier(points.algebra, partition.generators).run();
    if (!split_bases(points)) return;
  }
  throw CapExceeded{"partition"};
}

}  // namespace syno::key
