#include "syno/emit/cpp/epilogue.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno::cpp {
namespace {

TEST(Epilogue, IsReadPartByPart) {
  EXPECT_TRUE(parse_epilogue("").empty());
  const Epilogue all = parse_epilogue("scale+bias+residual+gelu_tanh");
  EXPECT_TRUE(all.scale && all.bias && all.residual && all.uses_channels());
  EXPECT_EQ(all.activation, "GeluTanh");
  const Epilogue some = parse_epilogue("residual+relu");
  EXPECT_FALSE(some.scale || some.bias || some.uses_channels() || some.empty());
  EXPECT_EQ(some.activation, "Relu");
  EXPECT_TRUE(parse_epilogue("scale+residual").activation.empty());
}

TEST(Epilogue, OfAnyOtherTextIsRefused) {
  for (const char* text : {"+", "bias+", "+bias", "bias bias", "bias+bias", "relu+relu",
                           "relu+bias", "bias+scale", "residual+scale", "residual+bias",
                           "scale+scale", "RELU", "leaky_relu", "bias,relu", " bias"}) {
    EXPECT_THROW(parse_epilogue(text), UserError) << text;
  }
}

TEST(Epilogue, HasChannelsThatAllImagesShare) {
  EXPECT_NO_THROW(check_channel(1, 4, true));
  EXPECT_NO_THROW(check_channel(0, 1, false));
  EXPECT_THROW(check_channel(0, 4, true), UserError);
  EXPECT_THROW(check_channel(4, 4, true), UserError);
  EXPECT_THROW(check_channel(-1, 4, false), UserError);
  EXPECT_THROW(check_channel(1, 1, true), UserError);
  EXPECT_THROW(check_channel(0, 0, false), UserError);
}

TEST(MemoryOrder, NamesEachDimensionOnceAndTheBatchFirst) {
  EXPECT_NO_THROW(check_order("input_order", {0, 2, 3, 1}, 4, true));
  EXPECT_NO_THROW(check_order("input_order", {1, 0}, 2, false));
  EXPECT_THROW(check_order("input_order", {1, 0}, 2, true), UserError);
  EXPECT_THROW(check_order("input_order", {0, 0}, 2, false), UserError);
  EXPECT_THROW(check_order("input_order", {0, 1, 2}, 2, false), UserError);
  EXPECT_THROW(check_order("input_order", {0, 2}, 2, false), UserError);
  EXPECT_THROW(check_order("input_order", {0, -1}, 2, false), UserError);
}

}  // namespace
}  // namespace syno::cpp
