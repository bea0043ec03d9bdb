#include "syno/plan/adjoint.h"

#include <gtest/gtest.h>

#include "syno/interp/interpreter.h"
#include "syno/interp/random_graph.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/run_loops_test.h"

namespace syno {
namespace {

void expect_gradients(const Operator& op, const Values& values, std::uint64_t seed) {
  const OperatorShapes shapes = operator_shapes(op, values);
  const Exact x = random_integers(shapes.input, seed);
  std::vector<Exact> weights;
  for (const auto& shape : shapes.weights) weights.push_back(random_integers(shape, ++seed));
  const Exact dy = random_integers(shapes.output, ++seed);
  const auto expected = gradients(op, values, x, weights, dy);
  for (const Plan& form : plans(op, values, {3, false})) {
    const GradientProgram found = gradient_program(form);
    const std::vector<Exact> all = run_all(found.program, x, weights, dy);
    const auto of = [&](int buffer) { return all[static_cast<std::size_t>(buffer)].data; };
    EXPECT_EQ(of(found.input_gradient), expected.x.data)
        << op.text() << form.text() << found.program.text();
    ASSERT_EQ(found.weight_gradients.size(), weights.size());
    for (std::size_t w = 0; w < weights.size(); ++w) {
      EXPECT_EQ(of(found.weight_gradients[w]), expected.weights[w].data)
          << "weight " << w << "\n"
          << op.text() << form.text() << found.program.text();
    }
  }
}

TEST(Adjoint, IsTheGradientOfTheInterpreterOnRandomOperators) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    RandomOptions options;
    options.batch = seed % 3 == 0;
    options.max_terms = 3000;
    options.causal_windows = seed % 5 == 0 ? 0.3 : 0.0;
    options.max_steps = 6 + static_cast<int>(seed % 6);
    const RandomOperator random = random_operator(seed, options);
    expect_gradients(random.op, random.values, seed);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Adjoint, IsTheGradientOfTheInterpreterOnTheZoo) {
  for (const ZooText& zoo : kZooTexts) {
    const Operator op = Operator::parse(zoo.text);
    expect_gradients(op, Binding::parse(zoo.binding).resolve(*op.variables()), 7);
  }
}

TEST(Adjoint, OfAConvolutionIsTheWellKnownForms) {
  const Operator op = Operator::parse(zoo_text("conv2d").text);
  const Values values =
      Binding::parse("N=2, C_in=4, C_out=8, H=5, W=6, k=3").resolve(*op.variables());
  EXPECT_EQ(gradient_program(plan(op, values)).program.text(),
            "dx[n, i, H, W] = sum(c<8, k<3, l<3) dy[n, c, H + k - 1, W + l - 1] "
            "{0 <= H + k - 1 < 5} {0 <= W + l - 1 < 6} * w0[c, i, -k + 2, -l + 2]\n"
            "dw0[c, i, k, l] = sum(n<2, h<5, w<6) dy[n, c, h, w] * "
            "x[n, i, k + h - 1, l + w - 1] {0 <= k + h - 1 < 5} {0 <= l + w - 1 < 6}\n");
}

}  // namespace
}  // namespace syno
