#include "syno/emit/training/training.h"

#include <gtest/gtest.h>

#include "syno/emit/training/panel.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/adjoint.h"

namespace syno {
namespace {

Plan conv2d(const std::string& binding) {
  const Operator op = Operator::parse(zoo_text("conv2d").text);
  return plan(op, Binding::parse(binding).resolve(*op.variables()));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Training, DefinesTheOperatorAndItsGradients) {
  const Source source = emit_training(conv2d("N=1, C_in=4, C_out=8, H=5, W=6, k=3"),
                                      {.name = "op", .with_runtime = false, .images = 3});
  EXPECT_TRUE(contains(source.text, "extern \"C\" void op_run(const float* x, "));
  EXPECT_TRUE(contains(source.text, "extern \"C\" void op_gradients(const float* x, "));
  EXPECT_TRUE(contains(source.text, "for (long n = 0; n < batch; n += 3) {"));
  EXPECT_FALSE(contains(source.text, "#include"));
  EXPECT_TRUE(source.manifest.input[0].free);
}

TEST(Training, IsOneUnitWithTheRuntimeBeforeIt) {
  const Plan plan = conv2d("N=1, C_in=4, C_out=8, H=5, W=6, k=3");
  const std::string whole = emit_training(plan).text;
  const std::string alone = emit_training(plan, {.with_runtime = false}).text;
  EXPECT_TRUE(contains(training_runtime(), "run_product"));
  EXPECT_GT(whole.size(), alone.size() + training_runtime().size() / 2);
}

TEST(Panel, HasOneDimensionForAPlaceAndAWindow) {
  const GradientProgram gradients = gradient_program(conv2d("N=2, C_in=4, C_out=8, H=5, W=6, k=3"));
  // dw0[c, i, k, l] = sum(n, h, w) dy[n, c, h, w] * x[n, i, k + h - 1, l + w - 1]
  const LoopNest& nest = gradients.program.nests.back();
  ASSERT_EQ(nest.operands.size(), 2U);
  // Channels innermost; l slides outside of them in the other.
  const training::Panel channels = training::make_panel(gradients.program, nest, 1, {1});
  EXPECT_EQ(channels.shape, (std::vector<std::int64_t>{2, 7, 8, 4}));
  EXPECT_TRUE(channels.read.conditions.empty());
  const training::Panel taps = training::make_panel(gradients.program, nest, 1, {3, 1});
  EXPECT_EQ(taps.shape, (std::vector<std::int64_t>{2, 7, 8, 4}));
  // Places innermost: windows along their row are copied apart.
  const training::Panel places = training::make_panel(gradients.program, nest, 1, {5, 6});
  EXPECT_EQ(places.shape, (std::vector<std::int64_t>{2, 4, 3, 7, 6}));
}

}  // namespace
}  // namespace syno
