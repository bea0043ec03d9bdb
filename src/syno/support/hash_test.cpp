#include "syno/support/hash.h"

#include <gtest/gtest.h>
#include <set>

namespace syno {
namespace {

TEST(Hash, IsTheSameOnEveryMachine) {
  // Golden: a change of these values invalidates every stored key.
  EXPECT_EQ(Hasher("empty").finish().hex(), "0005ce6638e80fb2436e0b5026cbffed");
  EXPECT_EQ(Hasher("words").add(1).add(std::int64_t{-1}).add("C_in").finish().hex(),
            "d896d2a4a47c177a029a7020910925c0");
}

TEST(Hash, RoundTripsThroughText) {
  const Hash128 hash = Hasher("x").add(7).finish();
  EXPECT_EQ(Hash128::parse(hash.hex()), hash);
  EXPECT_FALSE(Hash128::parse("123"));
  EXPECT_FALSE(Hash128::parse(std::string(31, '0') + "g"));
}

TEST(Hash, DependsOnOrderTagAndLength) {
  std::set<Hash128> seen;
  seen.insert(Hasher("t").add(1).add(2).finish());
  seen.insert(Hasher("t").add(2).add(1).finish());
  seen.insert(Hasher("u").add(1).add(2).finish());
  seen.insert(Hasher("t").add(1).add(2).add(0).finish());
  seen.insert(Hasher("t").add("ab").add("c").finish());
  seen.insert(Hasher("t").add("a").add("bc").finish());
  EXPECT_EQ(seen.size(), 6U);
}

TEST(Hash, HasNoCollisionAmongSmallInputs) {
  std::set<Hash128> seen;
  for (int a = 0; a < 200; ++a) {
    for (int b = 0; b < 200; ++b) seen.insert(Hasher("pair").add(a).add(b).finish());
  }
  EXPECT_EQ(seen.size(), 40000U);
}

}  // namespace
}  // namespace syno
