#include "syno/search/steps.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "syno/search/operators_test.h"
#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

using namespace samples;

// The same operator with independent steps in another order, chosen at random.
Graph reordered(const Operator& op, CounterRandom& random, std::vector<CoordinateId>& renamed) {
  const Graph& from = op.graph();
  Graph to = from.root();
  renamed.assign(from.coordinates().size(), kNoCoordinate);
  for (std::size_t i = 0; i < renamed.size(); ++i)
    if (from.coordinates()[i].step < 0)
      renamed[i] = static_cast<CoordinateId>(from.coordinates()[i].index);
  std::vector<bool> taken(from.steps().size(), false);
  for (std::size_t count = 0; count < taken.size(); ++count) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i]) continue;
      // Steps that touch one coordinate keep their order.
      bool is_ready = true;
      const auto touches = [](const Step& step, CoordinateId id) {
        return std::find(step.in.begin(), step.in.end(), id) != step.in.end() ||
               std::any_of(step.dims.begin(), step.dims.end(),
                           [&](const WeightDim& dim) { return dim.coordinate == id; });
      };
      const auto needs = [&](CoordinateId id) {
        if (id == kNoCoordinate) return;
        is_ready = is_ready && renamed[static_cast<std::size_t>(id)] != kNoCoordinate;
        for (std::size_t before = 0; before < i; ++before)
          is_ready = is_ready && (taken[before] || !touches(from.steps()[before], id));
      };
      for (const CoordinateId id : from.steps()[i].in) needs(id);
      for (const WeightDim& dim : from.steps()[i].dims) needs(dim.coordinate);
      if (is_ready) ready.push_back(i);
    }
    const std::size_t next = ready[random.below(ready.size())];
    taken[next] = true;
    Step step = from.steps()[next];
    for (CoordinateId& id : step.in)
      if (id != kNoCoordinate) id = renamed[static_cast<std::size_t>(id)];
    for (WeightDim& dim : step.dims)
      dim.coordinate = renamed[static_cast<std::size_t>(dim.coordinate)];
    const Step& made = to.apply(step);
    for (std::size_t r = 0; r < made.out.size(); ++r)
      if (from.steps()[next].out[r] != kNoCoordinate)
        renamed[static_cast<std::size_t>(from.steps()[next].out[r])] = made.out[r];
  }
  return to;
}

TEST(Steps, HaveEqualLabelsInAnyOrderOfIndependentSteps) {
  CounterRandom random(7, 0);
  for (const char* name : {"search", "square", "channels"}) {
    for (const Operator& op : small_operators(name, 6)) {
      std::vector<CoordinateId> renamed;
      const Graph graph = reordered(op, random, renamed);
      std::vector<CoordinateId> match;
      for (const CoordinateId id : op.match())
        match.push_back(renamed[static_cast<std::size_t>(id)]);
      // Operator brings it back into canonical form, which is what methods see.
      const LabeledSteps once = labeled_steps(op);
      const LabeledSteps again = labeled_steps(Operator(graph, op.input(), match));
      ASSERT_EQ(once.size(), again.size());
      for (std::size_t i = 0; i < once.size(); ++i) {
        EXPECT_EQ(once[i].label, again[i].label) << op.text();
        EXPECT_EQ(once[i].from_output, again[i].from_output) << op.text();
      }
    }
  }
}

TEST(Steps, DistinguishOperators) {
  const std::vector<Operator> operators = small_operators();
  std::set<std::vector<std::uint64_t>> seen;
  for (const Operator& op : operators) {
    std::vector<std::uint64_t> all;
    for (const LabeledStep& step : labeled_steps(op)) all.push_back(step.from_output);
    std::sort(all.begin(), all.end());
    EXPECT_TRUE(seen.insert(all).second) << op.text();
  }
}

TEST(Steps, StandBehindWhatTheyNeedAndReductionsComeFirst) {
  for (const Operator& op : small_operators()) {
    const LabeledSteps steps = labeled_steps(op);
    EXPECT_EQ(steps.size(), op.graph().steps().size() + 1);
    EXPECT_EQ(steps.back().kind, kMatchStep);
    bool reductions = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].needs >> i, 0U) << op.text();
      const bool reduces = steps[i].kind == static_cast<std::uint8_t>(Primitive::kReduce);
      EXPECT_TRUE(reductions || !reduces) << op.text();
      reductions = reduces;
    }
  }
}

}  // namespace
}  // namespace syno
