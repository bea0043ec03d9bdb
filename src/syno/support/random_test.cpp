#include "syno/support/random.h"

#include <array>
#include <gtest/gtest.h>

namespace syno {
namespace {

TEST(CounterRandom, RepeatsForTheSameSeedAndStream) {
  CounterRandom a(3, 5);
  CounterRandom b(3, 5);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(CounterRandom, StreamsAndSeedsDiffer) {
  EXPECT_NE(CounterRandom(0, 0).next(), CounterRandom(0, 1).next());
  EXPECT_NE(CounterRandom(0, 1).next(), CounterRandom(1, 0).next());
}

TEST(CounterRandom, BelowIsUniform) {
  CounterRandom random(1, 2);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  // Six standard deviations of a binomial count around 10,000.
  for (const int count : counts) EXPECT_NEAR(count, 10000, 6 * 93);
}

TEST(CounterRandom, UniformStaysInTheUnitInterval) {
  CounterRandom random(9, 9);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

}  // namespace
}  // namespace syno
