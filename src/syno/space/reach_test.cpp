#include <gtest/gtest.h>

#include "syno/space/accept.h"
#include "syno/space/path.h"
#include "syno/spec/paper_operators_test.h"
#include "syno/spec/presets.h"
#include "syno/support/error.h"

namespace syno {
namespace {

constexpr const char* kDepthwise = R"(syno operator 1
out [N, C_in: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce k_1 -> a
reduce k_1 -> b
contract o1:keep a:keep b:keep
unfold o2 a -> h
unfold o3 b -> w
match o0 o1 h w
)";

constexpr const char* kDepthwiseSeparable = R"(syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> i
reduce k_1 -> a
reduce k_1 -> b
contract o1:drop i:keep
contract i:keep a:keep b:keep
unfold o2 a -> h
unfold o3 b -> w
match o0 i h w
)";

Path path_to(const SpecificationSource& source, const char* text) {
  const Specification spec(source);
  ChildGenerator generator(spec, RuleSet());
  return find_path(generator, Operator::parse(text), spec.limits().max_depth);
}

TEST(Reachability, KnownOperatorsAreBuiltByChildrenOfThePaperPreset) {
  for (const char* text : {kConv2d, kOperator1, kOperator07795}) {
    const Path path = path_to(preset("paper/resnet18"), text);
    EXPECT_TRUE(path.reached) << text << path.obstacle;
    EXPECT_EQ(path.steps.size(), Operator::parse(text).graph().steps().size());
  }
}

TEST(Reachability, DepthwiseNeedsElementWiseWeights) {
  SpecificationSource source = preset("paper/resnet18");
  source.primary[1] = "C_in: 3";
  EXPECT_NE(path_to(source, kDepthwiseSeparable).obstacle.find("element_wise_weights"),
            std::string::npos);
  source.limits.element_wise_weights = true;
  EXPECT_TRUE(path_to(source, kDepthwiseSeparable).reached)
      << path_to(source, kDepthwiseSeparable).obstacle;
  source.primary[1] = "C_in: 2";
  // A depthwise convolution alone keeps its channels, so both sides are C_in.
  source.output = "[N, C_in: unordered, H, H]";
  EXPECT_TRUE(path_to(source, kDepthwise).reached) << path_to(source, kDepthwise).obstacle;
}

TEST(Reachability, TheObstacleHasAName) {
  SpecificationSource source = preset("paper/resnet18");
  source.limits.max_depth = 9;
  EXPECT_NE(path_to(source, kOperator1).obstacle.find("completion_bound"), std::string::npos)
      << path_to(source, kOperator1).obstacle;
}

TEST(ChildGenerator, NeedsABinding) {
  const Specification spec(preset("paper/readme"));
  EXPECT_THROW(ChildGenerator(spec, RuleSet()), UserError);
}

TEST(Rejections, SayWhatIsWrong) {
  const Specification spec(preset("paper/resnet18"));
  const auto first = [&](const char* text) {
    const auto found = rejections(Operator::parse(text), spec, RuleSet());
    return found.empty() ? std::string("none") : found.front().reason;
  };
  EXPECT_EQ(first(kOperator1), "none");
  EXPECT_EQ(first(kDepthwise), "shape");
  EXPECT_EQ(first(kDepthwiseSeparable), "budget");
  // conv2d in every layer costs more MACs than the original, whose 1x1 layers are cheaper.
  EXPECT_EQ(first(kConv2d), "max_macs");
}

}  // namespace
}  // namespace syno
