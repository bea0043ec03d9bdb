#include "syno/emit/cpp/depthwise.h"

#include <gtest/gtest.h>

#include "syno/emit/cpp/cpp.h"
#include "syno/interp/zoo_texts_test.h"
#include "syno/plan/loop_transform.h"
#include "syno/support/error.h"

namespace syno {
namespace {

Plan planned(const ZooText& zoo, std::string_view sizes) {
  const Operator op = Operator::parse(zoo.text);
  return plan(op, Binding::parse(sizes).resolve(*op.variables()));
}

// The first nest of an operator, with channels inside.
std::optional<cpp::Depthwise> matched(const ZooText& zoo, std::string_view sizes,
                                      bool inside = true) {
  LoopProgram program = loop_program(planned(zoo, sizes));
  if (inside) {
    permute_buffer(program, program.input, {0, 2, 3, 1});
    permute_buffer(program, program.nests[0].store.buffer, {0, 2, 3, 1});
  }
  return cpp::match_depthwise(program, merged(program, without_batch(program, program.nests[0])));
}

TEST(Depthwise, RowsAndColumnsSlideAndChannelsAreLanes) {
  const auto found = matched(kDepthwise, "N=2, C=16, H=9, W=7, k=3");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->extent(found->lane), 16);
  for (const cpp::SlidingAxis* axis : {&found->rows, &found->columns}) {
    EXPECT_EQ(found->extent(axis->tap), 3);
    EXPECT_EQ(axis->step, 1);
    EXPECT_EQ(axis->dilation, 1);
    EXPECT_EQ(axis->first, -1);
  }
  EXPECT_EQ(found->extent(found->rows.axis), 9);
  EXPECT_EQ(found->rows.extent, 9);
  EXPECT_EQ(found->rows.data, 7 * 16);
  EXPECT_EQ(found->columns.extent, 7);
  EXPECT_EQ(found->columns.data, 16);
  EXPECT_EQ(found->columns.stored, 16);
  EXPECT_EQ(found->data_start, 0);
  EXPECT_EQ(found->stored_start, 0);
}

TEST(Depthwise, OtherKindsAreLeftToOthers) {
  EXPECT_FALSE(matched(kDepthwise, "N=2, C=16, H=9, W=7, k=3", false)) << "channels lie outside";
  EXPECT_FALSE(matched(kDepthwise, "N=2, C=4, H=9, W=7, k=3")) << "few channels";
  EXPECT_FALSE(matched(kDepthwise, "N=2, C=16, H=29, W=29, k=13")) << "many taps";
  EXPECT_FALSE(matched(kConv2d, "N=2, C_in=16, C_out=16, H=9, W=7, k=3"));
}

TEST(Depthwise, OnlyCodesAreComputedSo) {
  CppOptions options;
  options.input_order = options.output_order = {0, 2, 3, 1};
  const Plan of = planned(kDepthwise, "N=2, C=16, H=9, W=7, k=3");
  EXPECT_EQ(emit_cpp(of, options).text.find("struct Depthwise0"), std::string::npos);
  options.precision = "int8";
  options.input_format = "uint8";
  EXPECT_NE(emit_cpp(of, options).text.find("struct Depthwise0"), std::string::npos);
}

TEST(Codes, TheManifestNamesWhatIsStoredAsCodes) {
  const Plan of = planned(kOperator1, "N=2, C_in=32, C_out=32, H=7, k=3, g=4, s=2");
  CppOptions options;
  options.precision = "int8";
  options.input_format = "uint8";
  EXPECT_TRUE(emit_cpp(of, options).manifest.codes.empty());
  options.value_format = "uint8";
  const Source source = emit_cpp(of, options);
  EXPECT_EQ(source.manifest.codes, std::vector<std::string>{"t0"});
  EXPECT_NE(source.manifest.json().find("\"codes\": [\"t0\"]"), std::string::npos);
  options.precision = "float32";
  options.input_format = "float32";
  EXPECT_THROW(emit_cpp(of, options), UserError);
}

}  // namespace
}  // namespace syno
