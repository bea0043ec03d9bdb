#include "syno/plan/loop_nest.h"

#include <gtest/gtest.h>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/loop_transform.h"
#include "syno/plan/one_tap.h"
#include "syno/plan/run_loops_test.h"

namespace syno {
namespace {

// Plans in which a shear became a convolution.
int one_tap_windows = 0;

// One point after the other, whatever the conditions connect.
std::int64_t counted_in_bounds(const LoopNest& nest) {
  std::vector<std::int64_t> point(nest.axes.size(), 0);
  std::int64_t count = 0;
  while (true) {
    bool inside = true;
    for (const Access& operand : nest.operands) {
      for (const Condition& condition : operand.conditions) {
        const std::int64_t index = condition.index.evaluate(point);
        inside = inside && index >= 0 && index < condition.extent;
      }
    }
    count += inside ? 1 : 0;
    std::size_t axis = 0;
    while (axis < point.size() && ++point[axis] == nest.axes[axis].extent) point[axis++] = 0;
    if (axis == point.size()) return count;
  }
}

void expect_computes(const Operator& op, const Values& values, std::uint64_t seed) {
  const OperatorShapes shapes = operator_shapes(op, values);
  const Exact x = random_integers(shapes.input, seed);
  std::vector<Exact> weights;
  for (const auto& shape : shapes.weights) weights.push_back(random_integers(shape, ++seed));
  const Exact expected = interpret(op, values, x, weights);
  for (const bool fold : {false, true}) {
    for (const Plan& lowered : plans(op, values, {3, fold})) {
      const Plan one_tap = with_one_tap_windows(lowered, 1e9);
      one_tap_windows += one_tap.stages.size() < lowered.stages.size() ||
                         one_tap.dims.size() > lowered.dims.size();
      for (const Plan& form : {lowered, one_tap}) {
        const LoopProgram program = loop_program(form);
        EXPECT_EQ(run(program, x, weights).data, expected.data)
            << op.text() << form.text() << program.text();
        for (const LoopNest& nest : program.nests) {
          EXPECT_EQ(nest.macs_in_bounds(), nest.macs() == 0 ? 0 : counted_in_bounds(nest))
              << program.text(nest);
        }
      }
    }
  }
  const LoopProgram by_axes = loop_program(plan(op, values), StoreOrder::kByAxes);
  EXPECT_EQ(run(by_axes, x, weights).data, expected.data) << op.text() << by_axes.text();
  for (const LoopNest& nest : by_axes.nests) {
    for (const Index& index : nest.store.index) {
      EXPECT_TRUE(index.terms().size() == 1 && index.is_affine() && index.constant() == 0)
          << by_axes.text();
    }
  }
}

TEST(LoopNest, ComputesWhatTheInterpreterComputesOnRandomOperators) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    RandomOptions options;
    options.batch = seed % 3 == 0;
    options.max_terms = 3000;
    options.causal_windows = seed % 5 == 0 ? 0.3 : 0.0;
    options.max_steps = 6 + static_cast<int>(seed % 6);
    const RandomOperator random = random_operator(seed, options);
    expect_computes(random.op, random.values, seed);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(one_tap_windows, 5);
}

// Every nest merged, and read in place where it is read by one other nest.
LoopProgram transformed(const LoopProgram& program) {
  LoopProgram result = program;
  for (std::size_t n = 0; n < result.nests.size(); ++n) {
    for (std::size_t o = 0; o < result.nests[n].operands.size(); ++o) {
      const int buffer = result.nests[n].operands[o].buffer;
      if (program.buffer(buffer).kind != BufferKind::kValue) continue;
      for (const LoopNest& producer : result.nests) {
        if (producer.store.buffer != buffer) continue;
        result.nests[n] = inlined(result.nests[n], o, producer);
        break;
      }
    }
  }
  result.nests = {result.nests.back()};
  result.nests[0] = merged(result, result.nests[0]);
  return result;
}

TEST(LoopNest, StaysTheSameInlinedAndMerged) {
  std::size_t merges = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    RandomOptions options;
    options.max_terms = 1000;
    options.max_steps = 6 + static_cast<int>(seed % 4);
    const RandomOperator random = random_operator(seed, options);
    const OperatorShapes shapes = operator_shapes(random.op, random.values);
    const Exact x = random_integers(shapes.input, seed);
    std::vector<Exact> weights;
    for (const auto& shape : shapes.weights) weights.push_back(random_integers(shape, seed + 1));
    const LoopProgram program = loop_program(plan(random.op, random.values));
    const LoopProgram other = transformed(program);
    merges += other.nests[0].axes.size() < program.nests.back().axes.size();
    std::int64_t terms = 1;
    for (const std::int64_t extent : other.nests[0].extents()) terms *= extent;
    if (terms > 200'000) continue;
    EXPECT_EQ(run(other, x, weights).data, run(program, x, weights).data)
        << "seed " << seed << "\n"
        << program.text() << other.text();
  }
  EXPECT_GT(merges, 50U);
}

TEST(LoopNest, ComputesTheZoo) {
  for (const ZooText& zoo : kZooTexts) {
    const Operator op = Operator::parse(zoo.text);
    expect_computes(op, Binding::parse(zoo.binding).resolve(*op.variables()), 7);
  }
}

TEST(LoopNest, StaysTheSameWhenRotationsOfTheStoreAreReadInstead) {
  std::size_t changed = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    RandomOptions options;
    options.max_terms = 1000;
    const RandomOperator random = random_operator(seed, options);
    const OperatorShapes shapes = operator_shapes(random.op, random.values);
    const Exact x = random_integers(shapes.input, seed);
    std::vector<Exact> weights;
    for (const auto& shape : shapes.weights) weights.push_back(random_integers(shape, seed + 1));
    const LoopProgram program = loop_program(plan(random.op, random.values));
    LoopProgram other = program;
    for (LoopNest& nest : other.nests) nest = unrotated(nest);
    changed += other.text() != program.text();
    EXPECT_EQ(run(other, x, weights).data, run(program, x, weights).data)
        << "seed " << seed << "\n"
        << program.text() << other.text();
  }
  EXPECT_GT(changed, 30U);
}

}  // namespace
}  // namespace syno
