#include "syno/interp/moments.h"

#include <cmath>
#include <gtest/gtest.h>

#include "syno/interp/access_map.h"
#include "syno/interp/interpreter.h"
#include "syno/interp/program.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/support/error.h"

namespace syno {
namespace {

using Exact = Tensor<std::int64_t>;

Operator zoo(const std::string& name) {
  for (const ZooText& entry : kZooTexts) {
    if (name == entry.name) return Operator::parse(entry.text);
  }
  throw std::runtime_error("no operator " + name);
}

double of(const std::string& name, const std::string& binding) {
  const Operator op = zoo(name);
  return mean_square(op, Binding::parse(binding).resolve(*op.variables()));
}

// Every weight element and every input element alone: E[y^2] is the sum of the squares of all responses. Independent of
// the terms: it asks the interpreter for values.
double by_responses(const Operator& op, const Values& values) {
  const OperatorShapes shapes = operator_shapes(op, values);
  const auto zeros = [](const std::vector<std::int64_t>& shape) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    return Exact{shape, std::vector<std::int64_t>(size, 0)};
  };
  Exact x = zeros(shapes.input);
  std::vector<Exact> weights;
  std::int64_t combinations = 1;
  for (const auto& shape : shapes.weights) {
    weights.push_back(zeros(shape));
    combinations *= static_cast<std::int64_t>(weights.back().data.size());
  }
  double sum = 0;
  std::int64_t outputs = 1;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    std::fill(x.data.begin(), x.data.end(), 0);
    x.data[i] = 1;
    for (std::int64_t c = 0; c < combinations; ++c) {
      std::int64_t rest = c;
      for (Exact& weight : weights) {
        std::fill(weight.data.begin(), weight.data.end(), 0);
        const auto size = static_cast<std::int64_t>(weight.data.size());
        weight.data[static_cast<std::size_t>(rest % size)] = 1;
        rest /= size;
      }
      const Exact y = interpret(op, values, x, weights);
      outputs = static_cast<std::int64_t>(y.data.size());
      for (const std::int64_t value : y.data) sum += static_cast<double>(value * value);
    }
  }
  return sum / static_cast<double>(outputs);
}

TEST(Moments, AMatrixProductHasAsManyAsTerms) {
  EXPECT_DOUBLE_EQ(of("linear", "N=2, T=3, C_in=7, C_out=5"), 7);
  EXPECT_DOUBLE_EQ(of("conv1x1", "N=1, C_in=6, C_out=4, H=5, W=5"), 6);
}

TEST(Moments, MaskedTermsAreNotCounted) {
  // A window of 3 over 2 elements: each sees 2 of 3 in each dimension.
  EXPECT_DOUBLE_EQ(of("conv2d", "N=1, C_in=4, C_out=2, H=2, W=2, k=3"), 16);
}

TEST(Moments, EqualTermsAddUp) {
  // y = sum over a of x, s times: s^2 and not s.
  const Operator op =
      Operator::parse("syno operator 1\nout [H]\nin [H]\nreduce s -> r0\nexpand r0\nmatch o0\n");
  EXPECT_DOUBLE_EQ(mean_square(op, Binding::parse("H=4, s=3").resolve(*op.variables())), 9);
}

TEST(Moments, AreThoseOfTheInterpreterOnRandomOperators) {
  std::size_t compared = 0;
  std::size_t unlike = 0;
  for (std::uint64_t seed = 0; seed < 2'000 && compared < 150; ++seed) {
    RandomOptions options;
    options.max_terms = 60;
    const RandomOperator random = random_operator(seed, options);
    const OperatorShapes shapes = operator_shapes(random.op, random.values);
    std::int64_t runs = 1;
    const auto product = [](const std::vector<std::int64_t>& shape) {
      std::int64_t result = 1;
      for (const std::int64_t extent : shape) result *= extent;
      return result;
    };
    runs *= product(shapes.input);
    for (const auto& shape : shapes.weights) runs *= product(shape);
    if (runs > 2'000) continue;
    ++compared;
    const double expected = by_responses(random.op, random.values);
    EXPECT_NEAR(mean_square(random.op, random.values, 0, 1 << 30), expected, 1e-9 * expected)
        << random.op.text();
    // Without masks and terms that coincide it is the number of terms.
    double terms = 1;
    for (const CoordinateId id : make_access_map(random.op).reductions)
      terms *= static_cast<double>(Program(make_access_map(random.op), random.values).extent(id));
    unlike += std::abs(expected - terms) > 1e-9 ? 1 : 0;
  }
  EXPECT_GE(compared, 100U);
  EXPECT_GE(unlike, 30U);
}

TEST(Moments, ADrawIsNearTheWhole) {
  for (const std::string name : {"conv2d", "operator-1", "operator-2"}) {
    const Operator op = zoo(name);
    const Values values =
        Binding::parse("N=1, C_in=32, C_out=32, H=9, W=9, k=3, g=4, s=2").resolve(*op.variables());
    const double whole = mean_square(op, values, 0, std::int64_t{1} << 40);
    EXPECT_NEAR(mean_square(op, values, 1, 1 << 14), whole, 0.15 * whole) << name;
    EXPECT_EQ(mean_square(op, values, 1, 1 << 14), mean_square(op, values, 1, 1 << 14));
  }
}

TEST(Moments, SizesOfAnyKindAreComputedWithoutMemoryForThem) {
  // 2^32 terms an element, each of them another.
  EXPECT_DOUBLE_EQ(of("linear", "N=1, T=1, C_in=4294967296, C_out=4294967296"), 4294967296.0);
  // 2^80 terms: more than 64 bits count.
  const Operator op = Operator::parse(
      "syno operator 1\nout [H]\nin [H]\nreduce C -> r0\nreduce C -> r1\nexpand r0\n"
      "contract o0:keep r1:drop\nmatch o0\n");
  const Values values = Binding::parse("C=1099511627776, H=2").resolve(*op.variables());
  EXPECT_DOUBLE_EQ(mean_square(op, values), std::ldexp(1.0, 120));
}

TEST(Moments, TooManyTermsOfOneComponentAreRefused) {
  const Operator op = Operator::parse(
      "syno operator 1\nout [H]\nin [H]\nreduce k -> r0\ncontract r0:keep\nunfold o0 r0 -> c0\n"
      "match c0\n");
  const Values values = Binding::parse("H=4294967296, k=4294967295").resolve(*op.variables());
  try {
    mean_square(op, values);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("too many terms for mean_square"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("reductions [4294967295]"), std::string::npos);
  }
}

}  // namespace
}  // namespace syno
