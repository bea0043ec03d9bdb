// Every rewrite of the key on random forms, by evaluation at every point: floors, partitions,
// conditions, and each change of variables as a whole.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "syno/key/points_test.h"

namespace syno::key {
namespace {

TEST(KeyRules, FloorsAreExactWhereTheFactsHold) {
  for_many_seeds(3000, [](std::uint64_t seed) {
    Source source(seed);
    Points points = source.box(3);
    Algebra& algebra = points.algebra;
    const Form known = source.form(points, 1);
    const Integer high = source.pick({1, 2, 3, 5, 7});
    const Form form = source.below(2) == 0 ? source.form(points)
                                           : algebra.combine(source.form(points, 0), 1, known,
                                                             source.pick({1, 1, 2, -1}));
    const Integer divisor = source.pick({2, 3, 4, 5, 6, 8, 12});
    algebra.facts.push_back({known, high, 0});
    const Form quotient = algebra.floor_divide(form, divisor, 1);
    for_each_point(points, [&](const Point& point) {
      const Integer fact = value(algebra, known, point);
      if (fact < 0 || fact > high) return;
      ASSERT_EQ(value(algebra, quotient, point),
                syno::floor_divide(value(algebra, form, point), divisor));
    });
  });
}

TEST(KeyRules, PartitionsTellTheSamePointsApart) {
  int simpler = 0;
  for_many_seeds(3000, [&](std::uint64_t seed) {
    Source source(seed);
    Points points = source.box(3);
    for (int slot = 0; slot < 3; ++slot)
      points.exact.push_back(
          {slot, points.algebra.base(points.box[static_cast<std::size_t>(slot)])});
    Partition partition;
    for (Integer n = 1 + source.below(3); n > 0; --n)
      partition.generators.push_back(source.form(points));
    if (source.below(2) == 0) {
      // A generator of a known width: a condition and its fact, as an Unfold makes them.
      const Form place = source.form(points, 0);
      const Integer high = source.pick({1, 2, 3, 5});
      points.conditions.push_back({place, 0, high, 0});
      points.algebra.facts.push_back({place, high, 0});
      partition.generators.push_back(points.algebra.combine(
          place, 1, points.algebra.base(points.box[0]), source.pick({1, 2, 3, 4, 6, 8})));
    }
    points.partitions.push_back(partition);
    const auto labels = [](const Points& of) {
      std::map<std::vector<Integer>, std::vector<Integer>> by_point;
      for_each_point(of, [&](const Point& point) {
        if (!holds(of, point)) return;
        std::vector<Integer> original;
        for (const Exact& exact : of.exact)
          original.push_back(value(of.algebra, exact.form, point));
        std::vector<Integer> told;
        for (const Form& form : of.partitions[0].generators)
          told.push_back(value(of.algebra, form, point));
        by_point[original] = told;
      });
      return by_point;
    };
    const auto before = labels(points);
    simplify_partitions(points);
    const auto after = labels(points);
    ASSERT_EQ(before.size(), after.size());
    std::map<std::vector<Integer>, std::vector<Integer>> there;
    std::map<std::vector<Integer>, std::vector<Integer>> back;
    for (const auto& [point, label] : before) {
      ASSERT_EQ(there.emplace(label, after.at(point)).first->second, after.at(point));
      ASSERT_EQ(back.emplace(after.at(point), label).first->second, label);
    }
    simpler += points.partitions[0].generators != partition.generators;
  });
  EXPECT_GT(simpler, 1000);
}

TEST(KeyRules, ConditionsHoldAtTheSamePoints) {
  int fewer = 0;
  for_many_seeds(3000, [&](std::uint64_t seed) {
    Source source(seed);
    Points points = source.box(3);
    for (int slot = 0; slot < 3; ++slot)
      points.exact.push_back(
          {slot, points.algebra.base(points.box[static_cast<std::size_t>(slot)])});
    const Form shared = source.form(points, 0);
    for (int n = 0; n < 3; ++n) {
      const Form form =
          n == 0 ? shared
                 : points.algebra.combine(shared, source.below(2), source.form(points, 1), 1);
      const Integer low = source.pick({kNoLow, -2, 0, 0, 1, 2});
      points.conditions.push_back({form, low, source.pick({kNoHigh, 0, 1, 3, 5, 7, 11}), n});
    }
    const auto kept = [](const Points& of) {
      std::set<std::vector<Integer>> result;
      for_each_point(of, [&](const Point& point) {
        if (!holds(of, point)) return;
        std::vector<Integer> original;
        for (const Exact& exact : of.exact)
          original.push_back(value(of.algebra, exact.form, point));
        result.insert(original);
      });
      return result;
    };
    const auto before = kept(points);
    simplify_conditions(points);
    ASSERT_EQ(before, kept(points));
    if (points.masked) return;
    split_bases(points);
    ASSERT_EQ(before, kept(points));
    drop_implied_bounds(points);
    ASSERT_EQ(before, kept(points));
    fewer += points.conditions.size() < 3;
  });
  EXPECT_GT(fewer, 500);
}

// Points that look like operators: some exact forms, some partitions of digits, a window.
Points random_points(Source& source) {
  Points points = source.box(static_cast<int>(2 + source.below(2)));
  Algebra& algebra = points.algebra;
  const auto any_base = [&] {
    return points
        .box[static_cast<std::size_t>(source.below(static_cast<Integer>(points.box.size())))];
  };
  if (source.below(3) == 0) {
    const Form place = source.form(points, 0);
    const Integer high = source.pick({1, 2, 3, 5});
    points.conditions.push_back({place, 0, high, 0});
    algebra.facts.push_back({place, high, 0});
  }
  std::vector<int> rotated;
  for (Integer n = source.below(3); n > 0; --n) {
    // A mixed radix of all or some bases, or any coordinate of that extent.
    Form before;
    Integer extent = 1;
    for (const int base : points.box) {
      if (source.below(3) == 0) continue;
      before = algebra.combine(before, 1, algebra.base(base), extent);
      extent *= algebra.extent(base);
    }
    if (extent == 1 || extent > 30) continue;
    const int base = algebra.add_base(extent);
    points.cyclic_shifts.push_back(
        {{{base, 1, extent}}, before, 1 + source.below(extent - 1), extent, 1});
    rotated.push_back(base);
  }
  const auto small = [&] {
    if (!rotated.empty() && source.below(2) == 0) {
      const int base =
          rotated[static_cast<std::size_t>(source.below(static_cast<Integer>(rotated.size())))];
      return source.digit(algebra, base);
    }
    return source.below(2) == 0 ? source.digit(algebra, any_base()) : algebra.base(any_base());
  };
  points.exact.push_back({0, small()});
  points.exact.push_back({1, source.below(2) == 0
                                 ? source.form(points)
                                 : algebra.combine(small(), 1, small(), source.pick({1, 2, -1}))});
  for (Integer n = 1 + source.below(2); n > 0; --n) {
    Partition partition;
    partition.slot = source.below(2) == 0 ? kWeightSlot : 2;
    for (Integer m = 1 + source.below(2); m > 0; --m) partition.generators.push_back(small());
    points.partitions.push_back(std::move(partition));
  }
  return points;
}

TEST(KeyRules, ChangesOfVariablesKeepTheOperator) {
  std::map<std::string, int> used;
  for_many_seeds(2500, [&](std::uint64_t seed) {
    Source source(seed);
    Points points = random_points(source);
    const oracle::TermSet before = term_set(points);
    if (before.rows.size() > 250) return;
    const auto check = [&](const char* rule, bool changed) {
      used[rule] += changed;
      ASSERT_TRUE(oracle::same_operator(before, term_set(points))) << rule;
    };
    const bool rotated = !points.cyclic_shifts.empty();
    settle_cyclic_shifts(points);
    check("rotation", rotated);
    reflect_digits(points);
    check("reflection", false);
    simplify_partitions(points);
    simplify_conditions(points);
    check("simplification", false);
    if (points.masked) return;
    for (int round = 0; round < 20; ++round) {
      split_bases(points);
      check("split", false);
      bool changed = free_top_digits(points);
      check("top digit", changed);
      const bool covered = cover_windows(points);
      check("window", covered);
      split_bases(points);
      simplify_partitions(points);
      simplify_conditions(points);
      check("simplification", false);
      if (!changed && !covered) break;
    }
    split_bases(points);
    check("coarsening", coarsen_digits(points));
    drop_implied_bounds(points);
    check("bounds", false);
  });
  EXPECT_GT(used["rotation"], 500);
  EXPECT_GT(used["top digit"], 20);
  EXPECT_GT(used["window"], 20);
  EXPECT_GT(used["coarsening"], 100);
}

}  // namespace
}  // namespace syno::key
