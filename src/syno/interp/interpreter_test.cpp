#include "syno/interp/interpreter.h"

#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>

#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"

namespace syno {
namespace {

using Exact = Tensor<std::int64_t>;

struct Case {
  Operator op;
  Values values;
};

Case make_case(const char* text, const char* binding) {
  const Operator op = Operator::parse(text);
  return {op, Binding::parse(binding).resolve(*op.variables())};
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

std::vector<Exact> integer_weights(const Operator& op, const Values& values, std::uint64_t seed) {
  std::vector<Exact> weights;
  for (const auto& shape : operator_shapes(op, values).weights)
    weights.push_back(random_integers(shape, seed + 1 + weights.size()));
  return weights;
}

std::int64_t dot(const Exact& a, const Exact& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) sum += a.data[i] * b.data[i];
  return sum;
}

TEST(Interpreter, EvenWindowsPadHalfBeforeAndCausalOnesAll) {
  const Case even =
      make_case("syno operator 1\nout [H]\nin [H]\nreduce k -> r0\nunfold o0 r0 -> c0\nmatch c0\n",
                "H=4, k=2");
  EXPECT_EQ(interpret<std::int64_t>(even.op, even.values, {{4}, {1, 10, 100, 1000}}, {}).data,
            (std::vector<std::int64_t>{1, 11, 110, 1100}));
  const Case causal = make_case(
      "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\nunfold o0 r0 causal -> c0\nmatch c0\n",
      "H=4, k=3");
  EXPECT_EQ(interpret<std::int64_t>(causal.op, causal.values, {{4}, {1, 10, 100, 1000}}, {}).data,
            (std::vector<std::int64_t>{1, 11, 111, 1110}));
}

TEST(Interpreter, AMaskedTermStaysZeroWhenARotationBringsItBack) {
  const Case rotated = make_case(
      "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\nunfold o0 r0 -> c0\nshift c0 1 -> c1\n"
      "match c1\n",
      "H=4, k=3");
  // h + a - 1 in 0..3 first, then the next element, around the end.
  EXPECT_EQ(interpret<std::int64_t>(rotated.op, rotated.values, {{4}, {1, 10, 100, 1000}}, {}).data,
            (std::vector<std::int64_t>{110, 1110, 1101, 1001}));
}

TEST(Interpreter, WindowsOutsideMaskWeightsAndExpandedCoordinatesToo) {
  const Case weight = make_case(
      "syno operator 1\nout [H]\nin [W]\nreduce k -> r0\nreduce W -> r1\nunfold o0 r0 -> c0\n"
      "contract r1:keep c0:drop\nmatch r1\n",
      "H=3, W=1, k=3");
  EXPECT_EQ(interpret<std::int64_t>(weight.op, weight.values, {{1}, {1}},
                                    {{weight.op.weight_shapes()[0][0] == weight.op.input()[0].size
                                          ? std::vector<std::int64_t>{1, 3}
                                          : std::vector<std::int64_t>{3, 1},
                                      {1, 10, 100}}})
                .data,
            (std::vector<std::int64_t>{11, 111, 110}));
  const Case expanded = make_case(
      "syno operator 1\nout [H]\nin [W]\nreduce k -> r0\nreduce W -> r1\nunfold o0 r0 -> c0\n"
      "expand c0\nmatch r1\n",
      "H=3, W=2, k=3");
  EXPECT_EQ(interpret<std::int64_t>(expanded.op, expanded.values, {{2}, {2, 3}}, {}).data,
            (std::vector<std::int64_t>{10, 15, 10}));
}

TEST(Interpreter, NegativeRotationsAndStrides) {
  const Case rotated =
      make_case("syno operator 1\nout [H]\nin [H]\nshift o0 -6 -> c0\nmatch c0\n", "H=4");
  EXPECT_EQ(interpret<std::int64_t>(rotated.op, rotated.values, {{4}, {1, 2, 3, 4}}, {}).data,
            (std::vector<std::int64_t>{3, 4, 1, 2}));
  const Case strided =
      make_case("syno operator 1\nout [H]\nin [s*H]\nstride o0 s -> c0\nmatch c0\n", "H=2, s=3");
  EXPECT_EQ(interpret<std::int64_t>(strided.op, strided.values, {{6}, {1, 2, 3, 4, 5, 6}}, {}).data,
            (std::vector<std::int64_t>{1, 4}));
}

TEST(Interpreter, RealAndExactValuesAgreeAndSampledOutputsAreTheSame) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomOperator sampled = random_operator(seed);
    const OperatorShapes shapes = operator_shapes(sampled.op, sampled.values);
    const Exact x = random_integers(shapes.input, seed);
    const std::vector<Exact> weights = integer_weights(sampled.op, sampled.values, seed);
    const Exact y = interpret(sampled.op, sampled.values, x, weights);
    ASSERT_EQ(y.shape, shapes.output);

    const auto real = [](const Exact& tensor) {
      return Tensor<double>{tensor.shape, {tensor.data.begin(), tensor.data.end()}};
    };
    std::vector<Tensor<double>> real_weights;
    for (const Exact& weight : weights) real_weights.push_back(real(weight));
    EXPECT_EQ(interpret(sampled.op, sampled.values, real(x), real_weights), real(y)) << seed;

    std::vector<std::int64_t> positions;
    std::vector<std::int64_t> expected;
    for (std::size_t i = 0; i < y.data.size(); i += 1 + y.data.size() / 5) {
      positions.insert(positions.begin(), static_cast<std::int64_t>(i));
      expected.insert(expected.begin(), y.data[i]);
    }
    EXPECT_EQ(interpret_at(sampled.op, sampled.values, x, weights, positions), expected) << seed;

    const Exact bound = interpret(sampled.op, sampled.values, absolute(x), absolute(weights));
    for (std::size_t i = 0; i < y.data.size(); ++i) ASSERT_GE(bound.data[i], std::abs(y.data[i]));
  }
}

// y is linear in x and in each weight, so every gradient is checked exactly: dy . y(.., p in place of its operand)
// equals gradient . p for any p.
TEST(Interpreter, GradientsAreTheAdjointInEveryOperand) {
  int nonzero = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomOperator sampled = random_operator(seed);
    const OperatorShapes shapes = operator_shapes(sampled.op, sampled.values);
    const Exact x = random_integers(shapes.input, seed);
    const Exact dy = random_integers(shapes.output, seed + 7);
    std::vector<Exact> weights = integer_weights(sampled.op, sampled.values, seed);
    const auto result = gradients(sampled.op, sampled.values, x, weights, dy);
    ASSERT_EQ(result.x.shape, x.shape);
    ASSERT_EQ(result.weights.size(), weights.size());

    const Exact p = random_integers(shapes.input, seed + 8);
    const std::int64_t value = dot(dy, interpret(sampled.op, sampled.values, p, weights));
    nonzero += value != 0;
    EXPECT_EQ(dot(result.x, p), value) << seed << "\n" << sampled.op.text();
    for (std::size_t t = 0; t < weights.size(); ++t) {
      Exact other = random_integers(weights[t].shape, seed + 9);
      std::swap(weights[t], other);
      const Exact y = interpret(sampled.op, sampled.values, x, weights);
      EXPECT_EQ(dot(result.weights[t], weights[t]), dot(dy, y)) << seed << " weight " << t;
      std::swap(weights[t], other);
    }
  }
  EXPECT_GT(nonzero, 200);
}

TEST(Interpreter, WrongArgumentsAreNamed) {
  const Case conv = make_case(kConv1x1.text.data(), "N=1, C_in=2, C_out=3, H=4, W=5");
  const Exact x = zeros<std::int64_t>({1, 2, 4, 5});
  const auto run = [&](const Exact& data, const std::vector<Exact>& weights) {
    return error_of([&] { interpret(conv.op, conv.values, data, weights); });
  };
  EXPECT_EQ(run(zeros<std::int64_t>({1, 2, 5, 4}), {}),
            "the input x has the wrong shape\n  expected: [1, 2, 4, 5]      got: [1, 2, 5, 4]");
  EXPECT_EQ(run({{1, 2, 4, 5}, {0}}, {}),
            "the input x does not hold as many elements as its shape says\n"
            "  expected: 40 elements for [1, 2, 4, 5]      got: 1");
  EXPECT_EQ(run(x, {}), "the wrong number of weights\n  expected: 1      got: 0");
  EXPECT_EQ(run(x, {zeros<std::int64_t>({3, 3})}),
            "weight 0 has the wrong shape\n  expected: [3, 2]      got: [3, 3]");
  EXPECT_EQ(error_of([&] { gradients(conv.op, conv.values, x, {zeros<std::int64_t>({3, 2})}, x); }),
            "the gradient dy has the wrong shape\n"
            "  expected: [1, 3, 4, 5]      got: [1, 2, 4, 5]");
  const std::vector<std::int64_t> outside{60};
  EXPECT_EQ(error_of([&] {
              interpret_at(conv.op, conv.values, x, {zeros<std::int64_t>({3, 2})}, outside);
            }),
            "an output position is outside the output\n  in output [1, 3, 4, 5]\n"
            "  expected: 0..59      got: 60");
}

TEST(Interpreter, BindingsWithoutIntegerExtentsAreNamed) {
  const Operator op = Operator::parse(kGrouped.text);
  const Values values =
      Binding::parse("N=1, C_in=5, C_out=4, H=3, W=3, g=2, k=3").resolve(*op.variables());
  EXPECT_EQ(error_of([&] { operator_shapes(op, values); }),
            "a coordinate has no extent under this binding\n"
            "  in binding \"g=2, k=3, C_in=5, C_out=4, H=3, N=1, W=3\"\n"
            "  expected: a positive integer      got: g^-1*C_in");
  EXPECT_EQ(error_of([&] { operator_shapes(op, {1, 2}); }),
            "a binding for another list of variables\n"
            "  expected: 7 values for g, k, C_in, C_out, H, N, W      got: 2 values");
  Values missing = values;
  missing[0] = 0;
  EXPECT_EQ(error_of([&] { operator_shapes(op, missing); }),
            "variable 'g' has no value in the binding\n"
            "  expected: a positive integer      got: 0");
}

TEST(Interpreter, ExactOverflowIsAnErrorNotANumber) {
  const Case linear = make_case(kLinear.text.data(), "N=1, T=1, C_in=2, C_out=1");
  constexpr std::int64_t kBig = std::numeric_limits<std::int64_t>::max();
  const std::string message =
      "overflow in exact integer arithmetic: a result does not fit in 64 bits\n"
      "  hint: use smaller values, or float64";
  const std::vector<std::int64_t> shape = operator_shapes(linear.op, linear.values).weights[0];
  EXPECT_EQ(error_of([&] {
              interpret<std::int64_t>(linear.op, linear.values, {{1, 1, 2}, {kBig, 1}},
                                      {{shape, {1, 1}}});
            }),
            message);
  EXPECT_EQ(error_of([&] {
              interpret<std::int64_t>(linear.op, linear.values, {{1, 1, 2}, {kBig, 1}},
                                      {{shape, {2, 0}}});
            }),
            message);
  EXPECT_EQ(error_of([&] { absolute(Exact{{1}, {std::numeric_limits<std::int64_t>::min()}}); }),
            message);
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Interpreter, WhatWouldRunForHoursIsRefusedWithAnEstimate) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [H]\nin [H]\nreduce C -> r0\nreduce C -> r1\nreduce C -> r2\n"
      "expand r0\nexpand r1\nexpand r2\ncontract o0:keep\nmatch o0\n");
  const Values values = Binding::parse("C=100000, H=2").resolve(*op.variables());
  const Tensor<double> x{{2}, {1, 1}};
  const std::string all = refusal([&] { interpret(op, values, x, {x}); });
  EXPECT_NE(all.find("at most 1e+12 terms      got: 2e+15, about 1.1e+04 hours"), std::string::npos)
      << all;
  EXPECT_NE(all.find("output [2], reductions [100000, 100000, 100000]"), std::string::npos) << all;
  const std::vector<std::int64_t> first{0};
  EXPECT_NE(refusal([&] { interpret_at<double>(op, values, x, {x}, first); }).find("got: 1e+15"),
            std::string::npos);
  EXPECT_NE(refusal([&] { gradients(op, values, x, {x}, x); }).find("got: 2e+15"),
            std::string::npos);
}

TEST(Interpreter, AnOutputThatFitsInNoMemoryIsRefused) {
  // The output has a dimension that neither the data nor a large weight has.
  const Operator op = Operator::parse(
      "syno operator 1\nout [H, T]\nin [H]\nexpand o1\ncontract o0:keep\nmatch o0\n");
  const Values values = Binding::parse("H=2, T=4294967296").resolve(*op.variables());
  const Tensor<double> x{{2}, {1, 1}};
  const std::string refused = refusal([&] { interpret(op, values, x, {x}); });
  EXPECT_NE(refused.find("a tensor of the shape [2, 4294967296] is too large to be computed"),
            std::string::npos)
      << refused;
}

TEST(Interpreter, AnInterruptEndsIt) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [H]\nin [H]\nreduce C -> r0\nexpand r0\ncontract o0:keep\nmatch o0\n");
  const Values values = Binding::parse("C=100000000000, H=2").resolve(*op.variables());
  const Tensor<double> x{{2}, {1, 1}};
  const InterruptScope scope([] { throw std::runtime_error("interrupted"); });
  EXPECT_THROW(interpret(op, values, x, {x}), std::runtime_error);
  EXPECT_THROW(gradients(op, values, x, {x}, x), std::runtime_error);
}

}  // namespace
}  // namespace syno
