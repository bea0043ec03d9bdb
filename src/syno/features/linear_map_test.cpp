#include "syno/features/linear_map.h"

#include <cmath>
#include <gtest/gtest.h>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/support/error.h"

namespace syno {
namespace {

RandomOperator random(std::uint64_t seed) {
  RandomOptions options;
  options.min_weights = 1;
  options.causal_windows = 0.2;
  options.max_terms = 4000;
  return random_operator(seed, options);
}

Tensor<double> tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return {std::move(shape), std::vector<double>(values.begin(), values.end())};
}

float dot(const std::vector<Probe>& a, const std::vector<Probe>& b, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i][n] * b[i][n];
  return sum;
}

TEST(LinearMap, ComputesWhatTheInterpreterComputes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomOperator drawn = random(seed);
    const Operator& op = drawn.op;
    const Values values = drawn.binding.resolve(*op.variables());
    const OperatorShapes shapes = operator_shapes(op, values);
    const LinearMap map(op, values, seed);
    const std::vector<Probe> x = random_probes(map.inputs(), seed, 1);
    std::vector<float> first;
    for (const Probe& probe : x) first.push_back(probe[0]);
    std::vector<Tensor<double>> weights;
    for (std::size_t k = 0; k < shapes.weights.size(); ++k)
      weights.push_back(tensor(shapes.weights[k], map.weights()[k]));
    const Tensor<double> expected = interpret(op, values, tensor(shapes.input, first), weights);
    const std::vector<Probe> y = map.apply(x);
    ASSERT_EQ(y.size(), expected.data.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(static_cast<double>(y[i][0]), expected.data[i],
                  1e-4 * (1 + std::abs(expected.data[i])));
  }
}

TEST(LinearMap, TheAdjointAndTheRowsAreThoseOfTheMap) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomOperator drawn = random(seed);
    const Operator& op = drawn.op;
    const LinearMap map(op, drawn.binding.resolve(*op.variables()), 3);
    const std::vector<Probe> x = random_probes(map.inputs(), seed, 1);
    const std::vector<Probe> y = random_probes(map.outputs(), seed, 2);
    const std::vector<Probe> result = map.apply(x);
    const float forward = dot(result, y, 1);
    EXPECT_NEAR(forward, dot(x, map.apply_adjoint(y), 1), 1e-3F * (1 + std::abs(forward)));
    for (std::size_t o = 0; o < map.outputs(); ++o) {
      std::vector<float> row(map.inputs());
      map.add_row(o, row.data());
      float sum = 0;
      for (std::size_t i = 0; i < row.size(); ++i) sum += row[i] * x[i][2];
      EXPECT_NEAR(sum, result[o][2], 1e-4F * (1 + std::abs(sum)));
    }
  }
}

TEST(LinearMap, TheJacobianOfOneWeightThatIsReadOnceIsTheIdentity) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [N, C]\nin [N, D]\nreduce D -> r0\ncontract o1:drop r0:keep\n"
      "match o0 r0\n");
  const LinearMap map(op, Binding::parse("N=3, C=20, D=30").resolve(*op.variables()), 0);
  const LinearMap::Moments moments = map.jacobian_moments(0);
  EXPECT_NEAR(moments.first, 600, 60);
  EXPECT_DOUBLE_EQ(moments.first, moments.second);
}

TEST(LinearMap, TooManyTermsAreAnError) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [N, C]\nin [N, D]\nreduce D -> r0\ncontract o1:drop r0:keep\n"
      "match o0 r0\n");
  const Values values = Binding::parse("N=3, C=20, D=30").resolve(*op.variables());
  EXPECT_THROW(LinearMap(op, values, 0, 1000), UserError);
}

}  // namespace
}  // namespace syno
