// Forms and points for tests of the key's rewrites: evaluation at every point, random forms, and the
// points as the terms of the oracle.
#pragma once

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "syno/key/oracle_test.h"
#include "syno/key/points.h"
#include "syno/support/checked.h"
#include "syno/support/random.h"

namespace syno::key {

using Point = std::map<int, Integer>;  // the value of each base

inline Integer value(const Algebra& algebra, const Form& form, const Point& point) {
  Integer total = form.constant;
  for (const Term& term : form.terms) {
    const Atom& atom = algebra.atom(term.atom);
    const Integer one = atom.is_digit()
                            ? point.at(atom.base) % atom.high / atom.low
                            : syno::floor_divide(value(algebra, atom.inner, point), atom.divisor);
    total += term.factor * one;
  }
  return total;
}

inline bool holds(const Points& points, const Point& point) {
  return !points.masked &&
         std::all_of(points.conditions.begin(), points.conditions.end(), [&](const Condition& c) {
           const Integer at = value(points.algebra, c.form, point);
           return c.low <= at && at <= c.high;
         });
}

// Calls visit(point) for every point of the box, with the values of cyclically shifted bases filled in.
inline void for_each_point(const Points& points, const std::function<void(const Point&)>& visit) {
  Point point;
  for (const int base : points.box) point[base] = 0;
  while (true) {
    for (const CyclicShift& cyclic_shift : points.cyclic_shifts) {
      const Integer turned =
          floor_modulo(value(points.algebra, cyclic_shift.before, point) + cyclic_shift.amount,
                       cyclic_shift.extent);
      for (const CyclicShift::Part& part : cyclic_shift.parts)
        point[part.base] = turned % part.high / part.low;
    }
    visit(point);
    std::size_t i = 0;
    for (; i < points.box.size(); ++i) {
      const int base = points.box[i];
      if (++point[base] < points.algebra.extent(base)) break;
      point[base] = 0;
    }
    if (i == points.box.size()) return;
  }
}

// The points as the oracle's terms: exact forms, then an element for each partition.
inline oracle::TermSet term_set(const Points& points) {
  oracle::TermSet set;
  for (const Partition& partition : points.partitions) set.column_groups.push_back(partition.slot);
  std::vector<std::map<std::vector<Integer>, int>> nodes(points.partitions.size());
  for_each_point(points, [&](const Point& point) {
    if (!holds(points, point)) return;
    std::vector<Integer> exact;
    for (const Exact& one : points.exact) exact.push_back(value(points.algebra, one.form, point));
    std::vector<int> row;
    for (std::size_t i = 0; i < points.partitions.size(); ++i) {
      std::vector<Integer> element;
      for (const Form& generator : points.partitions[i].generators)
        element.push_back(value(points.algebra, generator, point));
      const auto [place, fresh] =
          nodes[i].emplace(element, static_cast<int>(set.node_columns.size()));
      if (fresh) set.node_columns.push_back(static_cast<int>(i));
      row.push_back(place->second);
    }
    set.rows[{exact, row}] += points.multiplicity;
  });
  return set;
}

class Source {
 public:
  explicit Source(std::uint64_t seed) : random_(seed, 3) {}

  Integer below(Integer bound) {
    return static_cast<Integer>(random_.below(static_cast<std::uint64_t>(bound)));
  }
  Integer pick(std::initializer_list<Integer> values) {
    return values.begin()[below(static_cast<Integer>(values.size()))];
  }

  Points box(int count) {
    Points points;
    for (int i = 0; i < count; ++i)
      points.box.push_back(points.algebra.add_base(pick({2, 2, 3, 4, 6, 8, 12})));
    return points;
  }

  Form digit(Algebra& algebra, int base) {
    const Integer extent = algebra.extent(base);
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Integer low = pick({1, 1, 2, 3, 4});
      const Integer high = low * pick({2, 3, 4, 6});
      if (extent % high == 0) return algebra.digit(base, low, high);
    }
    return algebra.base(base);
  }

  // A sum of up to three digits; sometimes its quotient or remainder.
  Form form(Points& points, int depth = 2) {
    Algebra& algebra = points.algebra;
    Form result;
    for (Integer n = 1 + below(3); n > 0; --n) {
      const int base =
          points.box[static_cast<std::size_t>(below(static_cast<Integer>(points.box.size())))];
      result = algebra.combine(result, 1, below(3) == 0 ? digit(algebra, base) : algebra.base(base),
                               pick({1, 1, 1, 2, 3, 4, 6, -1, -2}));
    }
    result.constant = pick({0, 0, 1, 1, 2, 3, -1, -2});
    if (depth == 0 || below(3) == 0) return result;
    const Integer divisor = pick({2, 2, 3, 4, 6, 8, 12});
    const Form part = below(2) == 0 ? algebra.floor_divide(result, divisor, kAllSteps)
                                    : algebra.modulo(result, divisor, kAllSteps);
    return below(2) == 0 ? part : algebra.sum(part, form(points, depth - 1));
  }

 private:
  CounterRandom random_;
};

// Runs `check` on many seeds; forms beyond the caps are left out, and must be few.
inline void for_many_seeds(int count, const std::function<void(std::uint64_t)>& check) {
  int capped = 0;
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    try {
      check(static_cast<std::uint64_t>(seed));
    } catch (const CapExceeded&) {
      ++capped;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_LT(capped, count / 4);
}

// Points of a box, made by hand.
struct Box {
  Points points;
  Algebra& algebra = points.algebra;

  int add(Integer extent) {
    points.box.push_back(algebra.add_base(extent));
    return points.box.back();
  }
  Form digit(Integer extent) { return algebra.base(add(extent)); }
  Form times_of(const Form& form, Integer factor) { return algebra.combine(form, factor, {}, 0); }
  static Form shifted(Form form, Integer constant) {
    form.constant += constant;
    return form;
  }
  // A sum of new digits with the given factors.
  Form sum(Source& source, std::initializer_list<Integer> factors) {
    Form result;
    for (const Integer factor : factors)
      result = algebra.combine(result, 1, digit(source.pick({2, 3, 4})), factor);
    return result;
  }

  void expect_equal(const Form& a, const Form& b) {
    for_each_point(points, [&](const Point& point) {
      ASSERT_EQ(value(algebra, a, point), value(algebra, b, point));
    });
  }
  void expect_floor(const Form& quotient, const Form& form, Integer divisor) {
    for_each_point(points, [&](const Point& point) {
      ASSERT_EQ(value(algebra, quotient, point),
                syno::floor_divide(value(algebra, form, point), divisor));
    });
  }
  std::size_t carries(const Form& form) const {
    std::size_t count = 0;
    algebra.visit_atoms(form, [&](const Atom& atom) { count += !atom.is_digit(); });
    return count;
  }
  std::size_t all_carries() const {
    std::size_t count = 0;
    visit_all(points, [&](const Atom& atom) { count += !atom.is_digit(); });
    return count;
  }
};

// Calls check(source, box) for some seeds.
template <class Check>
void for_boxes(const Check& check) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Source source(seed);
    Box box;
    check(source, box);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace syno::key
