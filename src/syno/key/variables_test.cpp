// One test for each change of variables: it fires on points made for it, its result looks as it says,
// and the operator, that is its terms up to a bijection of the points, is the same by brute force.
#include <algorithm>
#include <gtest/gtest.h>

#include "syno/key/label.h"
#include "syno/key/points_test.h"

namespace syno::key {
namespace {

// Applies `change`, which must keep the operator.
template <class Change>
void keep_the_operator(Box& box, const Change& change) {
  const oracle::TermSet before = term_set(box.points);
  change();
  ASSERT_TRUE(oracle::same_operator(before, term_set(box.points)));
}

Partition weight(std::initializer_list<Form> generators) {
  return {kWeightSlot, generators};
}

TEST(KeyVariables, EveryDigitGetsABaseOfItsOwn) {
  for_boxes([](Source& source, Box& box) {
    const Integer cut = source.pick({2, 3});
    const int base = box.add(cut * source.pick({2, 3, 4}));
    box.points.exact = {{0, box.algebra.base(base)},
                        {1, box.algebra.digit(base, cut, box.algebra.extent(base))}};
    box.points.partitions = {weight({box.algebra.digit(base, 1, cut)})};
    keep_the_operator(box, [&] { EXPECT_TRUE(split_bases(box.points)); });
    EXPECT_EQ(box.points.box.size(), 2U);
    visit_all(box.points, [&](const Atom& atom) {
      EXPECT_TRUE(atom.is_digit() && atom.low == 1 && atom.high == box.algebra.extent(atom.base));
    });
  });
}

TEST(KeyVariables, CutsThatDoNotDivideEachOtherBecomeCarries) {
  for_boxes([](Source& source, Box& box) {
    const int base = box.add(source.pick({6, 12}));
    box.points.exact = {{0, box.algebra.base(base)}};
    box.points.partitions = {weight({box.algebra.digit(base, 1, 3)}),
                             weight({box.algebra.digit(base, 1, 2)})};
    keep_the_operator(box, [&] { split_bases(box.points); });
    EXPECT_GT(box.all_carries(), 0U);
    const auto whole = [&](int b) { return !box.algebra.may_cut(b); };
    EXPECT_TRUE(std::any_of(box.points.box.begin(), box.points.box.end(), whole));
  });
}

TEST(KeyVariables, ARotationOfDigitsThatOnlyWeightsSeeIsNone) {
  for_boxes([](Source& source, Box& box) {
    const int low = box.add(source.pick({2, 3}));
    const int high = box.add(source.pick({2, 3}));
    const Integer extent = box.algebra.extent(low) * box.algebra.extent(high);
    const Form before = box.algebra.combine(box.algebra.base(high), box.algebra.extent(low),
                                            box.algebra.base(low), 1);
    const int turned = box.algebra.add_base(extent);
    box.points.cyclic_shifts.push_back(
        {{{turned, 1, extent}}, before, 1 + source.below(extent - 1), extent, 0});
    box.points.exact = {{0, box.digit(3)}, {1, box.algebra.base(turned)}};
    box.points.partitions = {weight({box.algebra.base(low)}),
                             weight({box.algebra.base(low), box.algebra.base(high)})};
    keep_the_operator(box, [&] { settle_cyclic_shifts(box.points); });
    EXPECT_TRUE(box.points.cyclic_shifts.empty());
    EXPECT_EQ(box.all_carries(), 0U);
  });
}

TEST(KeyVariables, ARotationIsWrittenOutWhereItIsSeenAndTurnedBackInWeights) {
  for_boxes([](Source& source, Box& box) {
    // A prime, so that no amount leaves a part of it alone.
    const int base = box.add(source.pick({3, 5, 7}));
    const Integer extent = box.algebra.extent(base);
    const int turned = box.algebra.add_base(extent);
    box.points.cyclic_shifts.push_back(
        {{{turned, 1, extent}}, box.algebra.base(base), 1 + source.below(extent - 1), extent, 0});
    box.points.exact = {{0, box.algebra.base(base)}, {1, box.algebra.base(turned)}};
    box.points.partitions = {weight({box.algebra.base(turned)})};
    keep_the_operator(box, [&] { settle_cyclic_shifts(box.points); });
    EXPECT_EQ(box.carries(box.points.exact[1].form), 1U);
    ASSERT_EQ(box.points.partitions[0].generators.size(), 1U);
    EXPECT_EQ(box.points.partitions[0].generators[0], box.algebra.base(base));
  });
}

TEST(KeyVariables, ADigitThatOnlyCountsDownIsTurnedRound) {
  for_boxes([](Source& source, Box& box) {
    const Form up = box.digit(3);
    const Form down = box.digit(source.pick({2, 3, 4}));
    const Integer factor = source.pick({1, 2, 3});
    box.points.exact = {{0, up}, {1, Box::shifted(box.algebra.combine(up, 1, down, -factor), 9)}};
    box.points.partitions = {weight({down})};
    keep_the_operator(box, [&] { EXPECT_TRUE(reflect_digits(box.points)); });
    for (const Term& term : box.points.exact[1].form.terms) EXPECT_GT(term.factor, 0);
    EXPECT_FALSE(reflect_digits(box.points));
  });
}

TEST(KeyVariables, DigitsThatAreAlwaysTogetherBecomeOne) {
  for_boxes([](Source& source, Box& box) {
    const Form low = box.digit(source.pick({2, 3}));
    const Form high = box.digit(source.pick({2, 3}));
    const Integer extent = box.algebra.box_range(low).width() + 1;
    box.points.exact = {{0, box.algebra.combine(high, 2 * extent, low, 2)}};
    box.points.partitions = {weight({low, high})};
    keep_the_operator(box, [&] { EXPECT_TRUE(coarsen_digits(box.points)); });
    EXPECT_EQ(box.points.box.size(), 1U);
    EXPECT_EQ(box.points.partitions[0].generators.size(), 1U);
  });
}

TEST(KeyVariables, DigitsThatSomethingTellsApartStay) {
  for_boxes([](Source& source, Box& box) {
    const Form low = box.digit(2);
    const Form high = box.digit(3);
    box.points.exact = {{0, box.algebra.combine(high, 2, low, 1)}};
    box.points.partitions = {source.below(2) == 0 ? weight({low}) : weight({high})};
    keep_the_operator(box, [&] { EXPECT_FALSE(coarsen_digits(box.points)); });
    EXPECT_EQ(box.points.box.size(), 2U);
  });
}

TEST(KeyVariables, ADigitThatNothingSeesIsCounted) {
  for_boxes([](Source& source, Box& box) {
    box.points.exact = {{0, box.digit(3)}};
    const Integer unseen = source.pick({2, 3, 5});
    box.add(unseen);
    keep_the_operator(box, [&] { coarsen_digits(box.points); });
    EXPECT_EQ(box.points.multiplicity, unseen);
    EXPECT_EQ(box.points.box.size(), 1U);
  });
}

TEST(KeyVariables, ATopDigitTakesUpWhatIsAddedToIt) {
  for_boxes([](Source& source, Box& box) {
    const int top = box.add(source.pick({2, 3}));
    const Form rest = box.algebra.sum(box.digit(4), box.digit(3));
    const Integer unit = source.pick({1, 2, 4});
    const Integer extent = unit * box.algebra.extent(top);
    const Form form = box.algebra.modulo(box.algebra.combine(box.algebra.base(top), unit, rest, 1),
                                         extent, kAllSteps);
    box.points.exact = {{0, rest}, {1, form}};
    const std::size_t before = box.carries(form);
    if (before == 0) return;
    keep_the_operator(box, [&] { EXPECT_TRUE(free_top_digits(box.points)); });
    // The carry over all of it is gone; that of the rest alone may stay.
    EXPECT_FALSE(std::any_of(box.points.exact[1].form.terms.begin(),
                             box.points.exact[1].form.terms.end(), [&](const Term& term) {
                               const Atom& atom = box.algebra.atom(term.atom);
                               return !atom.is_digit() && box.algebra.mentions(atom.inner, top);
                             }));
  });
}

TEST(KeyVariables, AWindowThatCoversItsExtentIsThePlaceInIt) {
  for_boxes([](Source& source, Box& box) {
    const Integer extent = source.pick({2, 3, 4});
    const Form index = box.digit(extent);
    const Form window = box.digit(2 * extent - 1 + source.below(2));
    // 0 <= index + window - (extent - 1) <= extent - 1: every place, for every index.
    const Form place = Box::shifted(box.algebra.sum(index, window), 1 - extent);
    box.points.exact = {{0, index}, {1, place}};
    box.points.partitions = {weight({window})};
    box.points.conditions = {{place, 0, extent - 1, 0}};
    keep_the_operator(box, [&] { EXPECT_TRUE(cover_windows(box.points)); });
    EXPECT_TRUE(box.points.conditions.empty());
    EXPECT_EQ(box.points.exact[1].form.terms.size(), 1U);
  });
}

TEST(KeyVariables, AWindowThatIsTooNarrowStays) {
  for_boxes([](Source& source, Box& box) {
    const Integer extent = source.pick({3, 4});
    const Form index = box.digit(extent);
    const Form window = box.digit(2 * extent - 2 - source.below(2));
    const Form place = Box::shifted(box.algebra.sum(index, window), 1 - extent);
    box.points.exact = {{0, index}, {1, place}};
    box.points.conditions = {{place, 0, extent - 1, 0}};
    EXPECT_FALSE(cover_windows(box.points));
  });
}

// ---- pieces

TEST(KeyPieces, AreJoinedByFormsAndConditionsNotByWeights) {
  Box box;
  const Form a = box.digit(3);
  const Form b = box.digit(4);
  const Form c = box.digit(5);
  const Form d = box.digit(6);
  const Form loose = box.digit(7);
  box.points.exact = {{0, a}, {1, box.algebra.sum(a, b)}};
  box.points.conditions = {{box.algebra.sum(c, d), 2, 5, 0}};
  box.points.partitions = {weight({b, c, loose}), weight({loose})};
  const Pieces pieces = find_pieces(box.points);
  EXPECT_EQ(pieces.count, 2);
  EXPECT_EQ(pieces.of_base[0], pieces.of_base[1]);
  EXPECT_EQ(pieces.of_base[2], pieces.of_base[3]);
  EXPECT_NE(pieces.of_base[0], pieces.of_base[2]);
  ASSERT_EQ(pieces.loose.size(), 1U);
  EXPECT_EQ(pieces.loose[0].weights, 3U);
  EXPECT_EQ(pieces.loose[0].extent, 7);
  // The numbers of weights count, their order does not.
  Labeller labeller;
  const std::vector<int> there{0, 1};
  const std::vector<int> back{1, 0};
  const Hash128 hash = labeller.hash(box.points, pieces, there);
  EXPECT_NE(hash, labeller.hash(box.points, pieces, back));
  std::swap(box.points.partitions[0], box.points.partitions[1]);
  EXPECT_EQ(hash, labeller.hash(box.points, find_pieces(box.points), back));
}

}  // namespace
}  // namespace syno::key
