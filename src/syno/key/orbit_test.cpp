#include "syno/key/orbit.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace syno {
namespace {

Specification specification(const std::vector<std::string>& symmetries) {
  SpecificationSource source;
  source.input = "[N, C_in: unordered, H, H]";
  source.output = "[N, C_out: unordered, H, H]";
  source.primary = {"N: 0", "C_in: 2", "C_out: 2", "H: 1"};
  source.coefficient = {"k=3: 2", "s=2: 2"};
  source.bindings = {Binding({{"C_in", 16}, {"C_out", 16}, {"H", 8}})};
  source.passed_through = {{0, 0}};
  source.symmetries = symmetries;
  return Specification(source);
}

Operator parse(const std::string& steps) {
  return Operator::parse(
      "syno operator 1\nout [N, C_out: unordered, H, H]\nin [N, C_in: unordered, H, H]\n"
      "reduce C_in -> r0\n" +
      steps);
}

Operator shifted(int dimension, int amount) {
  const std::string dim = std::to_string(dimension);
  return parse("shift o" + dim + " " + std::to_string(amount) +
               " -> c0\ncontract o1:drop r0:keep\nmatch o0 r0 " +
               (dimension == 2 ? "c0 o3\n" : "o2 c0\n"));
}

bool same(const Operator& a, const Operator& b, const std::vector<std::string>& symmetries) {
  OrbitKeyer keyer(specification(symmetries));
  return keyer.key(a) == keyer.key(b);
}

TEST(Orbit, AMirroredCyclicShiftTurnsRound) {
  EXPECT_TRUE(same(shifted(2, 1), shifted(2, -1), {"mirror 2"}));
  EXPECT_FALSE(same(shifted(2, 1), shifted(2, -1), {"mirror 3"}));
  EXPECT_FALSE(same(shifted(2, 1), shifted(2, -1), {}));
  EXPECT_FALSE(same(shifted(2, 1), shifted(2, 2), {"mirror 2"}));
}

TEST(Orbit, ExchangedDimensionsExchangeCyclicShifts) {
  EXPECT_TRUE(same(shifted(2, 1), shifted(3, 1), {"exchange 2 3"}));
  EXPECT_FALSE(same(shifted(2, 1), shifted(3, -1), {"exchange 2 3"}));
  EXPECT_TRUE(same(shifted(2, 1), shifted(3, -1), {"exchange 2 3", "mirror 3"}));
}

TEST(Orbit, ATransposedResultIsAnImageUnderTransposeAlone) {
  const Operator straight = parse("contract o1:drop r0:keep\nmatch o0 r0 o2 o3\n");
  const Operator turned = parse("contract o1:drop r0:keep\nmatch o0 r0 o3 o2\n");
  EXPECT_TRUE(same(straight, turned, {"transpose 2 3"}));
  EXPECT_FALSE(same(straight, turned, {"exchange 2 3", "mirror 2", "mirror 3"}));
}

TEST(Orbit, AStrideBeforeAWindowIsReversedWithIt) {
  const auto strided = [](const std::string& shift) {
    return parse(
        "reduce k -> r1\ncontract o1:drop r0:keep r1:keep\nstride r1 s -> c0\nunfold o2 c0 -> "
        "c1\n" +
        shift + "match o0 r0 " + (shift.empty() ? "c1" : "c2") + " o3\n");
  };
  // 2*r - 3 counts from the right as 2*r - 1: a shifted window, which differs at the border from a cyclic shift.
  EXPECT_FALSE(same(strided(""), strided("shift c1 1 -> c2\n"), {"mirror 2"}));
  OrbitKeyer keyer(specification({"mirror 2"}));
  EXPECT_EQ(keyer.image_keys(strided("")).size(), 2U);
}

TEST(Orbit, OneOfTheImagesIsTheOperator) {
  const Specification spec = specification({"mirror 2", "mirror 3", "exchange 2 3"});
  OrbitKeyer keyer(spec);
  const Operator op = shifted(2, 1);
  const std::vector<Hash128> keys = keyer.image_keys(op);
  // A shift up, down, left and right.
  EXPECT_EQ(keys.size(), 4U);
  EXPECT_TRUE(std::ranges::binary_search(
      keys, semantic_key(op.in_table(spec.variables()), spec.bindings())));
}

}  // namespace
}  // namespace syno
