#include "syno/trials/shape_distance.h"

#include <gtest/gtest.h>

#include "syno/space/reference_test.h"
#include "syno/space/small_spaces_test.h"

namespace syno {
namespace {

using namespace samples;

struct Shapes {
  explicit Shapes(const char* input)
      : spec([&] {
          SpecificationSource source;
          source.input = input;
          source.output = "[H]";
          source.primary = {"C_in: 2", "C_out: 2", "H: 2", "W: 2"};
          source.coefficient = {"k=3: 2", "s=2: 2"};
          source.bindings = {Binding::parse("C_in=8, C_out=16, H=32, W=32")};
          return source;
        }()),
        space(spec) {}

  int distance(DistanceForm form, const std::vector<const char*>& frontier) {
    std::vector<SizeId> sizes;
    for (const char* text : frontier)
      sizes.push_back(space.sizes().intern(Size::parse(text, *spec.variables())));
    return ShapeDistance(space, form).of(sizes);
  }

  Specification spec;
  StateSpace space;
};

constexpr auto kEach = DistanceForm::kEachGroup;
constexpr auto kOnce = DistanceForm::kOnce;

TEST(ShapeDistance, IsTheOneOfThePapersExample) {
  Shapes shapes("[C_in, H, W]");
  for (const DistanceForm form : {kEach, kOnce})
    EXPECT_EQ(shapes.distance(form, {"C_in", "s^-1*H", "s*W", "k"}), 3);
}

TEST(ShapeDistance, CountsReshapesAndWhatIsRemoved) {
  Shapes shapes("[C_in, H, W]");
  for (const DistanceForm form : {kEach, kOnce}) {
    EXPECT_EQ(shapes.distance(form, {"C_in", "H", "W"}), 0);
    EXPECT_EQ(shapes.distance(form, {"W", "C_in", "H"}), 0);
    // One Split; one Merge; one contraction.
    EXPECT_EQ(shapes.distance(form, {"s^-1*C_in", "s", "H", "W"}), 1);
    EXPECT_EQ(shapes.distance(form, {"C_in", "H*W"}), 1);
    EXPECT_EQ(shapes.distance(form, {"C_in", "H", "W", "C_out"}), 1);
    // Nothing makes C_in, and nothing makes H larger.
    EXPECT_EQ(shapes.distance(form, {"H", "W", "C_out"}), ShapeDistance::kUnreachable);
    EXPECT_EQ(shapes.distance(form, {"C_in", "s^-1*H", "W"}), ShapeDistance::kUnreachable);
    EXPECT_EQ(shapes.distance(form, {}), ShapeDistance::kUnreachable);
  }
}

// The two forms differ where several groups remove something: section 7.1 charges each, theorem A.2 once.
TEST(ShapeDistance, OneContractionRemovesWhatSection7ChargesEachGroupFor) {
  Shapes shapes("[C_in, H, W]");
  EXPECT_EQ(shapes.distance(kEach, {"C_in", "H", "W", "k", "k", "C_out"}), 3);
  EXPECT_EQ(shapes.distance(kOnce, {"C_in", "H", "W", "k", "k", "C_out"}), 1);
  EXPECT_EQ(shapes.distance(kEach, {"s*C_in", "s*H", "W"}), 2);
  EXPECT_EQ(shapes.distance(kOnce, {"s*C_in", "s*H", "W"}), 1);
}

TEST(ShapeDistance, TakesTheBestOfAllGroups) {
  Shapes shapes("[C_in, H, H]");
  for (const DistanceForm form : {kEach, kOnce}) {
    EXPECT_EQ(shapes.distance(form, {"s*H", "C_in", "s^-1*H"}), 2);
    EXPECT_EQ(shapes.distance(form, {"H", "s^-1*H", "C_in", "s", "k"}), 2);
    EXPECT_EQ(shapes.distance(form, {"H^2", "C_in"}), 1);
  }
}

// How many graphs that can be completed in time the paper's test would cut off, over all graphs of a reference
// enumeration that have their reductions.
std::int64_t cut_off(const SmallSpace& small, DistanceForm form, int depth) {
  const Specification spec(small.source);
  StateSpace space(spec);
  ShapeDistance distance(space, form);
  const reference::Reference all(spec, RuleSet::restrictions(), depth);
  std::int64_t count = 0;
  for (const reference::Node& node : all.nodes()) {
    if (node.distance_without_reductions < 0) continue;
    State state;
    try {
      state = space.replay(node.graph);
    } catch (const UserError&) {
      continue;
    }
    count += distance(state) > node.distance_without_reductions;
  }
  return count;
}

// Merge an iterator, drop both pieces: one contraction, where section 7.1 counts two groups.
TEST(ShapeDistance, OfSection7IsNoLowerBound) {
  EXPECT_GT(cut_off(small_space("linear"), kEach, 4), 0);
  EXPECT_GT(cut_off(small_space("repeat"), kEach, 4), 0);
  EXPECT_GT(cut_off(small_space("channels"), kEach, 4), 0);
}

TEST(ShapeDistance, OfTheoremA2CutsOffNothingInSmallSpaces) {
  for (const SmallSpace& small : small_spaces())
    EXPECT_EQ(cut_off(small, kOnce, small.name == "strided" ? 3 : 4), 0) << small.name;
}

}  // namespace
}  // namespace syno
