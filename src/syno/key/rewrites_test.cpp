// One test for each rewrite of forms: it fires on forms made for it, its result looks as it says, and
// evaluation at every point finds nothing changed. Floors and digits are identities of functions;
// partitions keep what they tell apart; conditions keep where they hold.
#include <algorithm>
#include <gtest/gtest.h>

#include "syno/key/points_test.h"

namespace syno::key {
namespace {

// ---- digits

TEST(KeyDigits, TouchingDigitsOfOneBaseAreOne) {
  for_boxes([](Source& source, Box& box) {
    const Integer low = source.pick({2, 3, 4});
    const Integer middle = low * source.pick({2, 3});
    const Integer extent = middle * source.pick({2, 3});
    const int base = box.add(extent);
    Form whole = box.algebra.digit(base, 1, low);
    whole = box.algebra.combine(whole, 1, box.algebra.digit(base, middle, extent), middle);
    EXPECT_EQ(whole.terms.size(), 2U);
    whole = box.algebra.combine(whole, 1, box.algebra.digit(base, low, middle), low);
    EXPECT_EQ(whole, box.algebra.base(base));
    box.expect_equal(whole, box.algebra.base(base));
  });
}

TEST(KeyDigits, CutsThatDoNotDivideEachOtherStayApart) {
  for_boxes([](Source& source, Box& box) {
    const int base = box.add(source.pick({6, 12, 24}));
    const Form thirds = box.algebra.digit(base, 1, 3);
    const Form halves = box.algebra.digit(base, 1, 2);
    const Form both = box.algebra.combine(thirds, 1, halves, source.pick({1, 2, 3, -1}));
    EXPECT_EQ(both.terms.size(), 2U);
  });
}

// ---- floors

TEST(KeyFloor, MultiplesOfTheDivisorLeave) {
  for_boxes([](Source& source, Box& box) {
    const Integer divisor = source.pick({2, 3, 5, 6, 8});
    const Form multiple = box.sum(source, {1, source.pick({-3, 2, 5})});
    const Form rest = box.digit(source.pick({2, divisor}));
    const Form form = box.algebra.combine(multiple, divisor, rest, 1);
    const Form quotient = box.algebra.floor_divide(form, divisor, kAllSteps);
    EXPECT_EQ(quotient, multiple);
    box.expect_floor(quotient, form, divisor);
  });
}

TEST(KeyFloor, ADigitIsCutWhereItsFactorAllowsIt) {
  for_boxes([](Source& source, Box& box) {
    // factor*period is the divisor, so what is above the period leaves the floor.
    const Integer factor = source.pick({1, 2, 4});
    const Integer period = source.pick({3, 5});
    const int base = box.add(period * source.pick({2, 3, 4}));
    const Form form =
        Box::shifted(box.times_of(box.algebra.base(base), factor), source.below(factor * period));
    const Form quotient = box.algebra.floor_divide(form, factor * period, kAllSteps);
    const Form high = box.algebra.digit(base, period, box.algebra.extent(base));
    const bool leaves = std::find(quotient.terms.begin(), quotient.terms.end(),
                                  high.terms.front()) != quotient.terms.end();
    EXPECT_TRUE(leaves);
    box.expect_floor(quotient, form, factor * period);
  });
}

TEST(KeyFloor, ACommonDivisorCancels) {
  for_boxes([](Source& source, Box& box) {
    const Integer divisor = source.pick({3, 4, 5, 7});
    const Integer common = source.pick({2, 3, 4});
    const Form form = box.sum(source, {1, 2, source.pick({1, 3, -1})});
    const Form large = Box::shifted(box.times_of(form, common), source.below(common));
    const Form quotient = box.algebra.floor_divide(large, common * divisor, kAllSteps);
    EXPECT_EQ(quotient, box.algebra.floor_divide(form, divisor, kAllSteps));
    box.expect_floor(quotient, large, common * divisor);
  });
}

TEST(KeyFloor, LowPartsThatItDoesNotSeeDisappear) {
  for_boxes([](Source& source, Box& box) {
    const Integer divisor = source.pick({3, 5, 7});
    const Form high = box.sum(source, {1, 2});
    const Form low = box.digit(source.pick({2, 3, 4}));
    const Integer unit = 4 + source.below(3);
    const Form form = box.algebra.combine(high, unit, low, 1);
    const Form quotient = box.algebra.floor_divide(form, unit * divisor, kAllSteps);
    EXPECT_EQ(quotient, box.algebra.floor_divide(high, divisor, kAllSteps));
    box.expect_floor(quotient, form, unit * divisor);
  });
}

TEST(KeyFloor, AFloorOfAFloorIsOneFloor) {
  for_boxes([](Source& source, Box& box) {
    const Integer inner_divisor = source.pick({3, 4, 5});
    const Integer divisor = source.pick({3, 4, 5});
    const Form inside = box.sum(source, {1, 2});
    const Form inner = box.algebra.floor_divide(inside, inner_divisor, kAllSteps);
    const Form form = box.algebra.sum(box.sum(source, {1, 1}), inner);
    const Form quotient = box.algebra.floor_divide(form, divisor, kAllSteps);
    box.algebra.visit_atoms(quotient, [&](const Atom& atom) {
      if (atom.is_digit()) return;
      for (const Term& term : atom.inner.terms)
        EXPECT_TRUE(term.factor != 1 || box.algebra.atom(term.atom).is_digit());
    });
    box.expect_floor(quotient, form, divisor);
  });
}

TEST(KeyFloor, AnAtomOfTwoValuesIsLinear) {
  for_boxes([](Source& source, Box& box) {
    const Form bit = box.digit(2);
    const Integer divisor = source.pick({3, 4, 5, 7});
    const Form form =
        Box::shifted(box.times_of(bit, source.pick({1, 2, 5, 9, -1, -4})), source.below(20) - 10);
    const Form quotient = box.algebra.floor_divide(form, divisor, kAllSteps);
    EXPECT_EQ(box.carries(quotient), 0U);
    box.expect_floor(quotient, form, divisor);
  });
}

TEST(KeyFloor, TheHalvesOfTwoBitsAddUpToThem) {
  for_boxes([](Source&, Box& box) {
    const Form bits = box.algebra.sum(box.digit(2), box.digit(2));
    const Form lower = box.algebra.floor_divide(bits, 2, kAllSteps);
    const Form upper = box.algebra.floor_divide(Box::shifted(bits, 1), 2, kAllSteps);
    EXPECT_EQ(box.algebra.sum(lower, upper), bits);
    box.expect_floor(upper, Box::shifted(bits, 1), 2);
  });
}

TEST(KeyFloor, TwoBitsOfOneDigitAreJoinedInside) {
  for_boxes([](Source& source, Box& box) {
    const int base = box.add(4 * source.pick({1, 2, 3}));
    const Form bits = box.algebra.sum(box.algebra.digit(base, 1, 2), box.algebra.digit(base, 2, 4));
    const Form quotient = box.algebra.floor_divide(bits, 2, kAllSteps);
    ASSERT_EQ(quotient.terms.size(), 1U);
    EXPECT_EQ(box.algebra.atom(quotient.terms.front().atom).inner.terms.size(), 1U);
    box.expect_floor(quotient, bits, 2);
  });
}

TEST(KeyFloor, AFactMakesAFloorAConstantWhereItHolds) {
  for_boxes([](Source& source, Box& box) {
    const Integer divisor = source.pick({3, 5, 7});
    const Form known = box.sum(source, {1, source.pick({1, 2}), -1});
    const Form multiple = box.digit(3);
    box.algebra.facts.push_back({known, divisor - 1, 4});
    const Form form = box.algebra.combine(known, 1, multiple, divisor);
    EXPECT_EQ(box.algebra.floor_divide(form, divisor, 5), multiple);
    // A fact of this step or a later one may not be used.
    EXPECT_NE(box.algebra.floor_divide(form, divisor, 4), multiple);
    for_each_point(box.points, [&](const Point& point) {
      const Integer at = value(box.algebra, known, point);
      if (at < 0 || at >= divisor) return;
      ASSERT_EQ(syno::floor_divide(value(box.algebra, form, point), divisor),
                value(box.algebra, multiple, point));
    });
  });
}

// ---- partitions

// What a partition of `box` tells apart, by point.
std::vector<std::vector<Integer>> told(Box& box, const Partition& partition,
                                       const std::vector<Point>& points) {
  std::vector<std::vector<Integer>> result;
  for (const Point& point : points) {
    std::vector<Integer> element;
    for (const Form& form : partition.generators)
      element.push_back(value(box.algebra, form, point));
    result.push_back(std::move(element));
  }
  return result;
}

// Simplifies the partition; it must tell the same points apart as before. All digits stay whole.
Partition simplified(Box& box, const std::vector<Form>& generators) {
  box.points.partitions = {{kWeightSlot, {generators.begin(), generators.end()}}};
  std::vector<Point> points;
  for_each_point(box.points, [&](const Point& point) { points.push_back(point); });
  const auto before = told(box, box.points.partitions.front(), points);
  simplify_partitions(box.points);
  const auto after = told(box, box.points.partitions.front(), points);
  std::map<std::vector<Integer>, std::vector<Integer>> there;
  std::map<std::vector<Integer>, std::vector<Integer>> back;
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(there.emplace(before[i], after[i]).first->second, after[i]);
    EXPECT_EQ(back.emplace(after[i], before[i]).first->second, before[i]);
  }
  return box.points.partitions.front();
}

bool holds_form(const Partition& partition, const Form& form) {
  return std::find(partition.generators.begin(), partition.generators.end(), form) !=
         partition.generators.end();
}

TEST(KeyPartition, WhatIsKnownDisappearsFromTheRest) {
  for_boxes([](Source& source, Box& box) {
    const Form known = box.digit(source.pick({3, 4, 5}));
    const Form other = box.digit(4);
    const Form carry = box.algebra.floor_divide(Box::shifted(known, 1), 3, kAllSteps);
    Form mixed = box.algebra.combine(other, 1, known, source.pick({1, 2, -1}));
    mixed = box.algebra.combine(mixed, 1, carry, source.pick({1, 5}));
    const Partition partition = simplified(box, {known, Box::shifted(mixed, 7)});
    ASSERT_EQ(partition.generators.size(), 2U);
    EXPECT_TRUE(holds_form(partition, known));
    EXPECT_TRUE(holds_form(partition, other));
  });
}

TEST(KeyPartition, AGapSplitsAFormIntoItsParts) {
  for_boxes([](Source& source, Box& box) {
    const Form high = box.sum(source, {1, 1});
    const Form low = box.sum(source, {1, 1});
    const Integer width = box.algebra.box_range(low).width();
    const Form form = box.algebra.combine(high, width + 1 + source.below(3), low, 1);
    const Partition partition = simplified(box, {form});
    ASSERT_EQ(partition.generators.size(), 2U);
    EXPECT_TRUE(holds_form(partition, high));
    EXPECT_TRUE(holds_form(partition, low));
  });
}

TEST(KeyPartition, WithoutAGapAFormStaysWhole) {
  for_boxes([](Source& source, Box& box) {
    const Form high = box.digit(3);
    const Form low = box.digit(source.pick({4, 5}));
    const Form form = box.algebra.combine(high, 3, low, 1);
    EXPECT_EQ(simplified(box, {form}).generators.size(), 1U);
  });
}

TEST(KeyPartition, ARotationByAKnownAmountIsNone) {
  for_boxes([](Source& source, Box& box) {
    const Integer extent = source.pick({4, 5, 6});
    const Form turned = box.digit(extent);
    const Form amount = box.digit(3);
    const Form form = box.algebra.modulo(box.algebra.sum(turned, amount), extent, kAllSteps);
    ASSERT_GT(box.carries(form), 0U);
    const Partition partition = simplified(box, {form, amount});
    ASSERT_EQ(partition.generators.size(), 2U);
    EXPECT_TRUE(holds_form(partition, turned));
    EXPECT_TRUE(holds_form(partition, amount));
  });
}

TEST(KeyPartition, AShorterDifferenceTakesTheLongersPlace) {
  for_boxes([](Source& source, Box& box) {
    const Form common = box.algebra.sum(box.digit(3), box.digit(4));
    const Form more = box.digit(source.pick({4, 5}));
    const Partition partition =
        simplified(box, {box.times_of(common, source.pick({1, 2})),
                         box.algebra.combine(common, source.pick({1, 3}), more, 2)});
    ASSERT_EQ(partition.generators.size(), 2U);
    EXPECT_TRUE(holds_form(partition, common));
    EXPECT_TRUE(holds_form(partition, more));
  });
}

TEST(KeyPartition, ConstantsSignsAndRepeatsDoNotMatter) {
  for_boxes([](Source& source, Box& box) {
    const Form form = box.algebra.sum(box.digit(3), box.digit(4));
    const Partition partition =
        simplified(box, {Box::shifted(box.times_of(form, -2), source.below(9)), form});
    ASSERT_EQ(partition.generators.size(), 1U);
    EXPECT_TRUE(holds_form(partition, form));
  });
}

// ---- conditions

// Where the conditions hold, before and after `change`.
template <class Change>
void keep_where_they_hold(Box& box, const Change& change) {
  std::vector<Point> points;
  for_each_point(box.points, [&](const Point& point) { points.push_back(point); });
  std::vector<char> before;
  for (const Point& point : points) before.push_back(holds(box.points, point));
  change();
  for (std::size_t i = 0; i < points.size(); ++i)
    ASSERT_EQ(holds(box.points, points[i]), before[i] != 0);
}

TEST(KeyCondition, ConstantsAndCommonDivisorsGoIntoTheBounds) {
  for_boxes([](Source& source, Box& box) {
    const Form form = box.algebra.sum(box.digit(4), box.digit(5));
    const Integer scale = source.pick({2, 3, -1, -2});
    const Integer shift = source.below(9) - 4;
    const Integer low = scale * 2 + shift;
    const Integer high = scale * 5 + shift;
    box.points.conditions = {{Box::shifted(box.times_of(form, scale), shift), std::min(low, high),
                              std::max(low, high), 1}};
    keep_where_they_hold(box, [&] { simplify_conditions(box.points); });
    ASSERT_EQ(box.points.conditions.size(), 1U);
    EXPECT_EQ(box.points.conditions[0].form, form);
    EXPECT_EQ(box.points.conditions[0].low, 2);
    EXPECT_EQ(box.points.conditions[0].high, 5);
  });
}

TEST(KeyCondition, ABoundThatAlwaysHoldsVanishesAndOneThatNeverHoldsMasksAll) {
  for_boxes([](Source& source, Box& box) {
    const Form form = box.algebra.sum(box.digit(4), box.digit(5));  // 0..7
    box.points.conditions = {{form, -source.below(3), 6, 1}, {form, 0, 7 + source.below(3), 2}};
    keep_where_they_hold(box, [&] { simplify_conditions(box.points); });
    ASSERT_EQ(box.points.conditions.size(), 1U);
    EXPECT_EQ(box.points.conditions[0].low, kNoLow);
    EXPECT_EQ(box.points.conditions[0].high, 6);
    box.points.conditions = {{form, 8 + source.below(3), kNoHigh, 1}};
    keep_where_they_hold(box, [&] { simplify_conditions(box.points); });
    EXPECT_TRUE(box.points.masked);
  });
}

TEST(KeyCondition, LowDigitsThatNoBoundSeesDisappear) {
  for_boxes([](Source& source, Box& box) {
    const Form high = box.algebra.sum(box.digit(4), box.digit(3));  // 0..5
    const Form low = box.digit(3);
    const Integer unit = 3 + source.below(3);
    box.points.conditions = {
        {box.algebra.combine(high, unit, low, 1), 2 * unit, 4 * unit + unit - 1, 1}};
    keep_where_they_hold(box, [&] { simplify_conditions(box.points); });
    ASSERT_EQ(box.points.conditions.size(), 1U);
    EXPECT_EQ(box.points.conditions[0].form, high);
    EXPECT_EQ(box.points.conditions[0].low, 2);
    EXPECT_EQ(box.points.conditions[0].high, 4);
  });
}

TEST(KeyCondition, ConditionsOnOneFormMeet) {
  for_boxes([](Source& source, Box& box) {
    const Form form = box.algebra.sum(box.digit(4), box.digit(5));
    box.points.conditions = {{form, 1, 5, 2},
                             {box.times_of(form, -1), -6 + source.below(2), -2, 1}};
    keep_where_they_hold(box, [&] { simplify_conditions(box.points); });
    ASSERT_EQ(box.points.conditions.size(), 1U);
    EXPECT_EQ(box.points.conditions[0].low, 2);
    EXPECT_EQ(box.points.conditions[0].high, 5);
  });
}

TEST(KeyCondition, ABoundThatAnotherImpliesIsDropped) {
  for_boxes([](Source& source, Box& box) {
    const Form form = box.algebra.sum(box.digit(4), box.digit(5));
    const Form more = box.algebra.sum(form, box.digit(3));
    // form >= 3 gives more >= 3.
    box.points.conditions = {{form, 3, kNoHigh, 1}, {more, 1 + source.below(3), 7, 2}};
    keep_where_they_hold(box, [&] { drop_implied_bounds(box.points); });
    ASSERT_EQ(box.points.conditions.size(), 2U);
    EXPECT_EQ(box.points.conditions[1].low, kNoLow);
    EXPECT_EQ(box.points.conditions[1].high, 7);
  });
}

}  // namespace
}  // namespace syno::key
