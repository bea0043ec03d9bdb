#include "syno/plan/partial_macs.h"

#include <gtest/gtest.h>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/plan.h"

namespace syno {
namespace {

std::vector<Values> values_of_all(const std::vector<Binding>& bindings,
                                  const Variables& variables) {
  std::vector<Values> result;
  for (const Binding& binding : bindings) result.push_back(binding.resolve(variables));
  return result;
}

// The coordinates of all prefixes whose parts all reach the input in `op`: none is dropped, repeated or lost as the index of a
// window.
CoordinateMask staying(const Operator& op) {
  CoordinateMask stays = 0;
  for (const CoordinateId id : op.match()) stays |= coordinate_bit(id);
  const auto& steps = op.graph().steps();
  for (std::size_t s = steps.size(); s-- > 0;) {
    const Step& step = steps[s];
    const auto stays_at = [&](CoordinateId id) { return (stays >> id & 1) != 0; };
    switch (step.primitive) {
      case Primitive::kMerge:
        if (stays_at(step.out[0]) && stays_at(step.out[1])) stays |= coordinate_bit(step.in[0]);
        break;
      case Primitive::kSplit:
        if (stays_at(step.out[0])) stays |= coordinate_bit(step.in[0]) | coordinate_bit(step.in[1]);
        break;
      case Primitive::kShift:
      case Primitive::kStride:
      case Primitive::kUnfold:
        if (stays_at(step.out[0])) stays |= coordinate_bit(step.in[0]);
        break;
      default: break;
    }
  }
  return stays;
}

struct Compared {
  std::int64_t prefixes = 0;
  std::int64_t exact = 0;
  std::int64_t whole = 0;
};

// Every prefix of the steps of an operator, as it is and with its last step pushed.
void compare(const Operator& op, const std::vector<Values>& bindings, Compared& count) {
  ExtentTable extents(bindings);
  PartialMacs partial(extents);
  const CoordinateMask stays = staying(op);
  std::vector<std::int64_t> wanted;
  for (const Values& values : bindings) wanted.push_back(macs(op, values));
  Graph prefix = op.graph().root();
  for (std::size_t s = 0; s <= op.graph().steps().size(); ++s) {
    CoordinateMask frontier = 0;
    for (const CoordinateId id : prefix.frontier()) frontier |= coordinate_bit(id);
    ASSERT_TRUE(partial.read(prefix));
    const std::vector<double> bound = partial.bound(stays & frontier);
    for (std::size_t b = 0; b < bindings.size(); ++b) {
      // Thirds of what goes into a Merge are rounded.
      ASSERT_LE(bound[b], static_cast<double>(wanted[b]) * (1 + 1e-12))
          << graph_text(prefix) << op.text();
      // What does not stay only lowers it.
      ASSERT_LE(partial.bound(0)[b], bound[b] * (1 + 1e-12));
      ++count.prefixes;
      count.exact += bound[b] == static_cast<double>(wanted[b]);
    }
    if (s == op.graph().steps().size()) {
      count.whole += bound[0] == static_cast<double>(wanted[0]);
      break;
    }
    const Step& step = op.graph().steps()[s];
    ASSERT_TRUE(partial.push(step));
    prefix.apply(step);
    CoordinateMask after = 0;
    for (const CoordinateId id : prefix.frontier()) after |= coordinate_bit(id);
    const std::vector<double> pushed = partial.bound(stays & after);
    PartialMacs fresh(extents);
    ASSERT_TRUE(fresh.read(prefix));
    ASSERT_EQ(pushed, fresh.bound(stays & after));
    partial.pop();
    ASSERT_EQ(partial.bound(stays & frontier), bound);
  }
}

TEST(PartialMacs, NeverExceedTheMacsOfAnOperatorThatIsCutAnywhere) {
  for (const bool views : {false, true}) {
    RandomOptions options;
    options.bindings = 4;
    options.max_steps = 12;
    options.min_weights = 1;
    if (views) {
      options.mix.merge = 3;
      options.mix.split = 2;
      options.mix.stride = 1.2;
      options.mix.expand = 1.2;
      options.wide_windows = 0.4;
    }
    Compared count;
    for (std::uint64_t seed = 0; seed < 3000; ++seed) {
      const RandomOperator random = random_operator(seed, options);
      ExtentTable extents(values_of_all(random.bindings, *random.op.variables()));
      CompactMap map;
      // Where a stride's factor is no integer under some binding, costs there mean nothing.
      if (!map.read(random.op.graph(), random.op.match(), extents)) continue;
      compare(random.op, extents.bindings(), count);
      if (HasFatalFailure()) FAIL() << "seed " << seed;
    }
    EXPECT_GT(count.prefixes, 50'000);
    RecordProperty(views ? "exact_with_views" : "exact", std::to_string(count.exact));
    EXPECT_GT(count.exact, count.prefixes / 20) << count.exact << " of " << count.prefixes;
  }
}

TEST(PartialMacs, OfAConvolutionAreItsMacsAsSoonAsItsWeightIsThere) {
  const Operator op = Operator::parse(kConv2d.text);
  ExtentTable extents(
      {Binding::parse("N=1, C_in=8, C_out=16, H=10, W=12, k=3").resolve(*op.variables())});
  PartialMacs partial(extents);
  Graph graph = op.graph().root();
  const CoordinateMask stays = staying(op);
  for (const Step& step : op.graph().steps()) {
    graph.apply(step);
    CoordinateMask frontier = 0;
    for (const CoordinateId id : graph.frontier()) frontier |= coordinate_bit(id);
    ASSERT_TRUE(partial.read(graph));
    EXPECT_EQ(partial.bound(stays & frontier)[0],
              graph.weights().empty() ? 0 : 10 * 12 * 16 * 8 * 9);
    // Without the promise that the map stays, the weight's own elements are left.
    EXPECT_EQ(partial.bound(0)[0], graph.weights().empty() ? 0 : 16 * 8 * 9);
  }
}

TEST(PartialMacs, OfOperator1AreThoseOfBothWeights) {
  const Operator op = Operator::parse(kOperator1.text);
  ExtentTable extents(
      {Binding::parse("N=1, C_in=64, C_out=64, H=56, g=32, s=2, k=3").resolve(*op.variables())});
  PartialMacs partial(extents);
  ASSERT_TRUE(partial.read(op.graph()));
  CoordinateMask matched = 0;
  for (const CoordinateId id : op.match()) matched |= coordinate_bit(id);
  EXPECT_EQ(partial.bound(matched)[0], static_cast<double>(macs(op, extents.bindings()[0])));
}

}  // namespace
}  // namespace syno
