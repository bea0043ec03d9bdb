#include "syno/affine/index.h"

#include <functional>
#include <gtest/gtest.h>
#include <limits>

#include "syno/affine/sum_text.h"
#include "syno/support/checked.h"
#include "syno/support/random.h"

namespace syno {
namespace {

TEST(Index, FormsNormalFormsThatHaveTheSameValue) {
  const Indices indices({4, 3, 5});
  const Index a = Index::axis(0);
  const Index b = Index::axis(1);
  const Index mixed = a * 3 + b;
  EXPECT_EQ(indices.quotient(mixed, 3), a);
  EXPECT_EQ(indices.remainder(mixed, 3), b);
  const Index whole =
      indices.quotient(Index::axis(2), 2) * 2 + indices.remainder(Index::axis(2), 2);
  EXPECT_EQ(whole, Index::axis(2));
  // Three parts of one axis, in both orders of joining them.
  const Indices one({60});
  const Index x = Index::axis(0);
  const Index outer = one.quotient(x, 12) * 12;
  const Index middle = one.remainder(one.quotient(x, 4), 3) * 4;
  const Index inner = one.remainder(x, 4);
  EXPECT_EQ((outer + middle) + inner, x);
  EXPECT_EQ((inner + middle) + outer, x);
  EXPECT_EQ(indices.remainder(a * 6 + b * 2 + Index(1), 4).text({"a", "b", "c"}),
            "2*((3*a + b) % 2) + 1");
  EXPECT_EQ(indices.quotient(indices.quotient(mixed + Index(1), 2), 3).text({"a", "b", "c"}),
            "((3*a + b + 1) / 6)");
  EXPECT_EQ((a - a).text({"a", "b", "c"}), "0");
  // Rotations of one axis add up, and a rotation of what is merged rotates its outer part.
  const Index turned = indices.remainder(mixed + Index(1), 12);
  EXPECT_EQ(indices.remainder(turned + Index(1), 12).text({"a", "b", "c"}), "((3*a + b + 2) % 12)");
  EXPECT_EQ(indices.quotient(indices.remainder(a * 3 + Index(4), 12), 3).text({"a", "b", "c"}),
            "((a + 1) % 4)");
  EXPECT_EQ(indices.remainder(turned * -1 + Index(11), 12), turned * -1 + Index(11));
}

TEST(Index, HasTheSameValueAfterAnyQuotientsAndRemainders) {
  const Indices indices({4, 6, 5});
  CounterRandom random(7, 0);
  for (int round = 0; round < 20'000; ++round) {
    Index exact = Index::axis(static_cast<int>(random.below(3)));
    std::vector<std::function<std::int64_t(std::int64_t)>> steps;
    const int first = exact.terms()[0].axis;
    for (int step = 0; step < 4; ++step) {
      const std::int64_t divisor = 1 + static_cast<std::int64_t>(random.below(12));
      switch (random.below(4)) {
        case 0:
          exact = indices.quotient(exact, divisor);
          steps.push_back([=](std::int64_t v) { return floor_divide(v, divisor); });
          break;
        case 1:
          exact = indices.remainder(exact, divisor);
          steps.push_back([=](std::int64_t v) { return floor_modulo(v, divisor); });
          break;
        case 2:
          exact = exact * divisor;
          steps.push_back([=](std::int64_t v) { return v * divisor; });
          break;
        default:
          exact = exact + Index(divisor);
          steps.push_back([=](std::int64_t v) { return v + divisor; });
      }
    }
    for (std::int64_t value = 0; value < indices.extents()[static_cast<std::size_t>(first)];
         ++value) {
      std::int64_t expected = value;
      for (const auto& step : steps) expected = step(expected);
      std::vector<std::int64_t> axes(3, 0);
      axes[static_cast<std::size_t>(first)] = value;
      EXPECT_EQ(exact.evaluate(axes), expected) << exact.text({"a", "b", "c"});
    }
  }
}

TEST(Index, DividesNothingNegativeWhereAnAxisCountsDown) {
  const Indices indices({4, 3});
  const Index down = Index::axis(0) * -1;
  EXPECT_EQ(indices.remainder(down, 3).text({"a", "b"}), "((-a + 3) % 3)");
  EXPECT_EQ(indices.quotient(down + Index(3), 2).text({"a", "b"}), "((-a + 3) / 2)");
  const Index e = down + Index::axis(1);
  EXPECT_EQ(indices.quotient(e, 5) * 5 + indices.remainder(e, 5), e);
}

TEST(Index, AConditionBoundsWhatItIsAbout) {
  Indices indices({4, 3});
  const Index window = Index::axis(0) + Index::axis(1) - Index(1);
  EXPECT_TRUE(indices.assume({window, 4}));
  EXPECT_FALSE(indices.assume({window, 4}));
  EXPECT_EQ(indices.remainder(window, 4), window);
  EXPECT_EQ(indices.range(window + Index(2)).least, 2);
  EXPECT_EQ(indices.range(window + Index(2)).most, 5);
}

TEST(Index, IsWrittenInTheWordsOfAnotherLanguage) {
  const Indices indices({4, 3});
  const Index a = Index::axis(0);
  const Index index = indices.quotient(a * 3 + Index::axis(1) + Index(1), 2) * 5 - a;
  const auto part = [](const Index::Term& term, const std::string& of) {
    return (term.kind == Index::Kind::kQuotient ? "div(" : "mod(") + of + ", " +
           std::to_string(term.divisor) + ")";
  };
  EXPECT_EQ(index.text({"a", "b"}), "-a + 5*((3*a + b + 1) / 2)");
  EXPECT_EQ(index.text({"a", "b"}, "//"), "-a + 5*((3*a + b + 1) // 2)");
  EXPECT_EQ(index.text({"a", "b"}, part), "-a + 5*div(3*a + b + 1, 2)");
  EXPECT_EQ(a.only_axis(), 0);
  for (const Index& more :
       {a + Index(1), a * 2, a + Index::axis(1), Index(), indices.quotient(a, 2)})
    EXPECT_EQ(more.only_axis(), -1) << more.text({"a", "b"});
}

TEST(SumText, WritesEverySignAndFactor) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  for (const bool spaced : {false, true}) {
    SumText sum(spaced ? SumText::Spaces::kAround : SumText::Spaces::kNone);
    EXPECT_EQ(sum.text(), "0");
    sum.add(0, "z");
    sum.add(-1, "a");
    sum.add(1, "b");
    sum.add(-3, "c");
    sum.add(2, "d");
    sum.add(kLeast, "e");
    sum.add(-1);
    sum.add(1);
    EXPECT_EQ(sum.text(), spaced ? "-a + b - 3*c + 2*d - 9223372036854775808*e - 1 + 1"
                                 : "-a+b-3*c+2*d-9223372036854775808*e-1+1");
  }
}

}  // namespace
}  // namespace syno
