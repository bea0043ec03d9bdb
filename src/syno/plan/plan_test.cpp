#include "syno/plan/plan.h"

#include <gtest/gtest.h>
#include <numeric>
#include <string>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/support/error.h"

namespace syno {
namespace {

struct Bound {
  Operator op;
  Values values;
  Bound(std::string_view text, std::string_view binding)
      : op(Operator::parse(text)), values(Binding::parse(binding).resolve(*op.variables())) {}
  std::int64_t macs() const { return syno::macs(op, values); }
  Plan plan() const { return syno::plan(op, values); }
};

std::vector<StageKind> kinds(const Plan& plan) {
  std::vector<StageKind> found;
  for (const Stage& stage : plan.stages) found.push_back(stage.kind);
  return found;
}

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plan, ConvolutionsCostWhatTheirFormulasSay) {
  EXPECT_EQ(Bound(kConv2d.text, "N=1, C_in=64, C_out=64, H=56, W=56, k=3").macs(),
            56LL * 56 * 64 * 64 * 9);
  EXPECT_EQ(Bound(kConv1x1.text, "N=1, C_in=64, C_out=128, H=28, W=28").macs(),
            28LL * 28 * 64 * 128);
  EXPECT_EQ(Bound(kDepthwise.text, "N=1, C=32, H=14, W=14, k=3").macs(), 14LL * 14 * 32 * 9);
  EXPECT_EQ(Bound(kGrouped.text, "N=1, C_in=64, C_out=64, H=14, W=14, g=32, k=3").macs(),
            14LL * 14 * 64 * 2 * 9);
  EXPECT_EQ(Bound(kSeparable.text, "N=1, C_in=64, C_out=128, H=14, W=14, k=3").macs(),
            14LL * 14 * (64 * 9 + 64 * 128));
  EXPECT_EQ(Bound(kDilated.text, "N=1, C_in=8, C_out=8, H=14, W=14, k=3").macs(),
            14LL * 14 * 8 * 8 * 9);
  EXPECT_EQ(Bound(kLinear.text, "N=1, T=20, C_in=384, C_out=1152").macs(), 20LL * 384 * 1152);
}

// MACs of a 3x3 convolution.
std::int64_t conv(std::int64_t in, std::int64_t out, std::int64_t size) {
  return size * size * in * out * 9;
}

TEST(Plan, Operator1AndOperator2CostWhatThePaperSays) {
  const auto bound = [](const ZooText& zoo, int in, int out, int size) {
    return Bound(zoo.text, "N=1, C_in=" + std::to_string(in) + ", C_out=" + std::to_string(out) +
                               ", H=" + std::to_string(size) + ", g=32, s=2, k=3");
  };
  for (const auto& [channels, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}}) {
    const std::int64_t m = channels / 64;
    const std::int64_t pixels = std::int64_t{size} * size;
    const std::int64_t stage_1 = pixels * channels * 3 * m;
    EXPECT_EQ(bound(kOperator1, channels, channels, size).macs(),
              stage_1 + pixels * channels * 32 * 9 * m);
    EXPECT_EQ(bound(kOperator2, channels, channels, size).macs(),
              stage_1 + pixels * channels * 32 * 3 * m);
    const auto base = static_cast<double>(conv(channels, channels, size));
    EXPECT_NEAR(static_cast<double>(bound(kOperator1, channels, channels, size).macs()) / base,
                0.505, 0.0005);
    EXPECT_NEAR(static_cast<double>(bound(kOperator2, channels, channels, size).macs()) / base,
                0.172, 0.0005);
  }
  EXPECT_NEAR(static_cast<double>(bound(kOperator1, 64, 128, 28).macs()) /
                  static_cast<double>(conv(64, 128, 28)),
              1.005, 0.0005);
  EXPECT_NEAR(static_cast<double>(bound(kOperator1, 64, 128, 28).macs()) / (28. * 28 * 64 * 128),
              9.05, 0.005);
}

TEST(Plan, SumsEarlyWhatALaterWindowWouldRepeat) {
  // Fig. 4 of the paper: k*H terms in one loop nest, (1 + k/s)*H with the blocks summed first.
  const Bound figure(R"(syno operator 1
out [s^-1*H]
in [H]
reduce k -> r0
reduce s -> r1
unfold o0 r0 -> c0
split c0 r1 -> c1
match c1
)",
                     "H=60, s=4, k=3");
  EXPECT_EQ(figure.macs(), 60 + 3 * 60 / 4);
  EXPECT_EQ(Bound(kPooledConv.text, "N=1, C_in=8, C_out=8, H=16, W=16, k=3, s=2").macs(),
            16 * 16 * 8 + 8 * 8 * 8 * 8 * 9);
}

TEST(Plan, StagesAddUpToTheTotal) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomOperator random = random_operator(seed);
    const Plan chosen = plan(random.op, random.values);
    Cost sum;
    for (const Stage& stage : chosen.stages) sum = sum + stage.cost;
    EXPECT_EQ(sum, chosen.cost);
    EXPECT_EQ(chosen.cost.macs, macs(random.op, random.values));
    EXPECT_EQ(chosen.params, params(random.op, random.values));
    EXPECT_EQ(chosen.shape(chosen.output).size(), random.op.output().size());
  }
}

TEST(Plan, MovesTheWindowOfOperator1BehindItsFirstContraction) {
  const Plan chosen = Bound(kOperator1.text, "N=1, C_in=64, C_out=64, H=56, g=32, s=2, k=3").plan();
  EXPECT_EQ(kinds(chosen),
            (std::vector{StageKind::kSplit, StageKind::kSplit, StageKind::kContraction,
                         StageKind::kShear, StageKind::kConvolution}));
  // Both copies of Z, of 32*3 channels, and the result.
  EXPECT_EQ(chosen.cost.written, 56 * 56 * (2 * 32 * 3 + 64));
  EXPECT_EQ(chosen.fan_in, (std::vector<std::int64_t>{32 * 9, 2}));
}

TEST(Plan, AStrideOfAWindowIsTheConvolutionsOwn) {
  // Of the window's place a stride, of its index a dilation.
  const Plan strided =
      Bound(
          "syno operator 1\nout [N, D, H]\nin [N, C, s*H]\nreduce C -> r0\nreduce k -> r1\n"
          "contract o1:drop r0:keep r1:keep\nstride o2 s -> c0\nunfold c0 r1 -> c1\nmatch o0 r0 "
          "c1\n",
          "N=2, D=3, C=4, H=5, s=2, k=3")
          .plan();
  EXPECT_EQ(strided.text(),
            "x [n, c=4, I=10]\n"
            "w0 [d=3, c=4, k=3]\n"
            "t0 [n, d=3, h=5] = convolve x, w0 at 2*h+k-1, sum over c k    360 MACs\n"
            "total 360 MACs, 36 parameters, 30 elements written\n"
            "      584 bytes moved, peak memory 584 bytes\n");
  const Plan dilated = Bound(kDilated.text, kDilated.binding).plan();
  EXPECT_EQ(kinds(dilated), std::vector{StageKind::kConvolution});
  for (const SpatialDim& spatial : dilated.stages[0].convolution.spatial) {
    EXPECT_EQ(spatial.stride, 1);
    EXPECT_EQ(spatial.dilation, 3);
    EXPECT_EQ(spatial.before, 4);
    EXPECT_EQ(spatial.after, 2);
  }
}

TEST(Plan, AStridedWindowThatNoConvolutionTakesIsSliced) {
  // The weight depends on the window's place.
  const Plan plan =
      Bound(
          "syno operator 1\nout [H]\nin [s*H]\nreduce k -> r0\ncontract o0:keep r0:keep\n"
          "stride o0 s -> c0\nunfold c0 r0 -> c1\nmatch c1\n",
          "H=5, s=2, k=3")
          .plan();
  EXPECT_EQ(kinds(plan),
            (std::vector{StageKind::kWindow, StageKind::kSlice, StageKind::kContraction}));
}

TEST(Plan, TextNamesEveryStageWithShapeAndCost) {
  EXPECT_EQ(Bound(kOperator2.text, "N=1, C_in=8, C_out=12, H=5, g=2, s=2, k=3").plan().text(),
            "x [n, e=8, j=5, I=5]\n"
            "w0 [c=12, o=3, l=3, g=2]\n"
            "w1 [o=3, k=3, e=8]\n"
            "t0 [n, g=2, d=4, j=5, I=5] = split x: e into g, d\n"
            "t1 [o=3, k=3, g=2, d=4] = split w1: e into g, d\n"
            "t2 [n, g=2, o=3, j=5, i=5] = convolve t0, t1 at j, i+k-1, sum over d k    1,800 MACs\n"
            "t3 [n, g=2, o=3, H=5, i=5] = roll t2: j = (H+1) mod 5\n"
            "t4 [n, c=12, h=5, i=5] = convolve t3, w0 at h+l-1, i, sum over o l g    5,400 MACs\n"
            "total 7,200 MACs, 288 parameters, 600 elements written\n"
            "      5,552 bytes moved, peak memory 3,752 bytes\n");
}

TEST(Plan, PassThroughDimensionsAreFree) {
  const Plan chosen = Bound(kConv1x1.text, kConv1x1.binding).plan();
  std::vector<DimRole> roles;
  for (const int dim : chosen.tensor(chosen.input).dims) roles.push_back(chosen.dim(dim).role);
  EXPECT_EQ(roles,
            (std::vector{DimRole::kFree, DimRole::kReduction, DimRole::kFree, DimRole::kFree}));
  // A weight that holds the dimension fixes it.
  const Plan scaled =
      Bound("syno operator 1\nout [N, H]\nin [N, H]\ncontract o1:keep\nmatch o0 o1\n", "N=2, H=3")
          .plan();
  EXPECT_EQ(scaled.dim(0).role, DimRole::kFree);
  EXPECT_EQ(scaled.dim(1).role, DimRole::kOutput);
}

TEST(Plan, SizesThatAreNotWholeAreNamed) {
  EXPECT_EQ(
      error_of([] { Bound(kGrouped.text, "N=1, C_in=9, C_out=8, H=6, W=7, g=2, k=3").plan(); }),
      "the size g^-1*C_in is not a positive integer under this binding\n"
      "  in coordinate 'r0'\n"
      "  hint: give every variable a positive value, so that all quotients are whole");
}

TEST(Plan, AnOperatorOfMoreStepsThanAPlanHoldsIsRefused) {
  std::string text = "syno operator 1\nout [H]\nin [H]\nshift o0 1 -> c0\n";
  for (int i = 1; i < 65; ++i)
    text += "shift c" + std::to_string(i - 1) + " 1 -> c" + std::to_string(i) + "\n";
  EXPECT_EQ(error_of([&] { Bound(text + "match c64\n", "H=5").plan(); }),
            "cannot plan an operator of 65 steps and 66 coordinates\n"
            "  expected: at most 64 steps and 192 coordinates      got: 65 and 66");
}

TEST(Plan, OverflowIsAnErrorAndNeverAWrongNumber) {
  const std::string huge = "N=1, C_in=3000000000, C_out=3000000000, H=3000000000, W=1";
  EXPECT_EQ(error_of([&] { Bound(kConv1x1.text, huge).macs(); }),
            "overflow while computing MACs: every plan of this operator needs more than 2^63-1 of "
            "them under this binding");
  EXPECT_EQ(params(Operator::parse(kConv1x1.text), Bound(kConv1x1.text, huge).values),
            9'000'000'000'000'000'000);
  const Bound wide(
      "syno operator 1\nout [A, B, C]\nin [A]\ncontract o0:keep o1:drop o2:drop\nmatch o0\n",
      "A=3000000, B=3000000, C=3000000");
  EXPECT_EQ(error_of([&] { params(wide.op, wide.values); }),
            "overflow while computing parameters: 9000000000000 * 3000000 does not fit in 64 bits");
}

}  // namespace
}  // namespace syno
