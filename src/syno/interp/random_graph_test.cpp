#include "syno/interp/random_graph.h"

#include <gtest/gtest.h>
#include <set>

#include "syno/support/error.h"

namespace syno {
namespace {

TEST(RandomOperator, CoversEveryPrimitiveAndManyForms) {
  std::array<int, kPrimitiveCount> counts{};
  std::set<Hash128> structures;
  int rotated_windows = 0;
  int joins = 0;
  int derived = 0;
  int several_weights = 0;
  int even_windows = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const RandomOperator sampled = random_operator(seed);
    structures.insert(sampled.op.structure());
    const Graph& graph = sampled.op.graph();
    several_weights += graph.weights().size() >= 2;
    for (const Step& step : graph.steps()) {
      ++counts[static_cast<std::size_t>(step.primitive)];
      for (const WeightDim& dim : step.dims) {
        joins += dim.role == WeightRole::kJoin;
        derived += graph.producer(dim.coordinate) != nullptr && !graph.is_reduction(dim.coordinate);
      }
      if (step.primitive == Primitive::kShift && graph.producer(step.in[0]) != nullptr)
        rotated_windows += graph.producer(step.in[0])->primitive == Primitive::kUnfold;
      if (step.primitive == Primitive::kUnfold)
        even_windows += *graph.extent(step.in[1]).evaluate(sampled.values) % 2 == 0;
    }
  }
  for (const int count : counts) EXPECT_GE(count, 40);
  EXPECT_GE(structures.size(), 480U);
  EXPECT_GE(rotated_windows, 20);
  EXPECT_GE(joins, 20);
  EXPECT_GE(derived, 100);
  EXPECT_GE(several_weights, 100);
  EXPECT_GE(even_windows, 50);
}

TEST(RandomOperator, IsAFunctionOfSeedAndOptions) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomOperator a = random_operator(seed);
    const RandomOperator b = random_operator(seed);
    EXPECT_EQ(a.op.text(), b.op.text());
    EXPECT_EQ(a.binding, b.binding);
  }
}

TEST(RandomOperator, KeepsItsBounds) {
  RandomOptions options;
  options.batch = true;
  options.even_windows = false;
  options.bindings = 3;
  options.min_weights = 2;
  options.unordered = 0.5;
  int several_bindings = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomOperator sampled = random_operator(seed, options);
    const Graph& graph = sampled.op.graph();
    EXPECT_GE(graph.weights().size(), 2U);
    EXPECT_LE(graph.depth(), options.max_steps + 2);
    EXPECT_EQ(sampled.op.match()[0], 0);
    several_bindings += sampled.bindings.size() > 1;
    for (const Binding& binding : sampled.bindings) {
      const Values values = binding.resolve(*sampled.op.variables());
      std::int64_t terms = 1;
      for (std::size_t i = 0; i < graph.coordinates().size(); ++i) {
        const auto extent = graph.coordinates()[i].extent.evaluate(values);
        ASSERT_TRUE(extent.has_value());
        const auto id = static_cast<CoordinateId>(i);
        if (graph.is_iterator(id) || graph.is_reduction(id)) terms *= *extent;
      }
      EXPECT_LE(terms, options.max_terms);
    }
    for (const Step& step : graph.steps()) {
      if (step.primitive != Primitive::kUnfold) continue;
      EXPECT_EQ(*graph.extent(step.in[1]).evaluate(sampled.values) % 2, 1);
    }
    EXPECT_EQ(Operator::parse(sampled.op.text()).text(), sampled.op.text());
  }
  EXPECT_GE(several_bindings, 100);
}

TEST(RandomOperator, RefusesOptionsThatLeaveNothing) {
  RandomOptions options;
  options.extents = {};
  EXPECT_THROW(random_operator(1, options), UserError);
  options.extents = {7};
  options.max_terms = 1;
  EXPECT_THROW(random_operator(1, options), UserError);
}

}  // namespace
}  // namespace syno
