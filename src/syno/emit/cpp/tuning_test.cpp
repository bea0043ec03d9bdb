#include "syno/emit/cpp/tuning.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno::cpp {
namespace {

TEST(Tuning, IsReadNestByNest) {
  EXPECT_TRUE(parse_tuning("").empty());
  EXPECT_TRUE(parse_tuning("  ").empty());
  const Tuning found =
      parse_tuning("0: over=rows width=8 order=columns; 12: block=whole pairs=off form=product");
  ASSERT_EQ(found.size(), 2u);
  const NestTuning& first = found.at(0);
  EXPECT_EQ(first.over, NestTuning::Over::kRows);
  EXPECT_EQ(first.width, 8);
  EXPECT_EQ(first.order, NestTuning::Outside::kColumns);
  EXPECT_EQ(first.rows, 0);
  EXPECT_TRUE(first.has_tiles());
  const NestTuning& second = found.at(12);
  EXPECT_EQ(second.block, NestTuning::kWhole);
  EXPECT_EQ(second.pairs, NestTuning::Switch::kOff);
  EXPECT_EQ(second.form, NestTuning::Form::kProduct);
  EXPECT_FALSE(second.has_tiles());
}

TEST(Tuning, OfAnyOtherTextIsRefused) {
  for (const char* text :
       {"0", "x: rows=1", ": rows=1", "-1: rows=1", "0: rows", "0: rows=", "0: rows=0",
        "0: rows=17", "0: rows=1x", "0: over=up", "0: block=none", "0: block=0", "0: pairs=1",
        "0: tile=3", "0: rows=1; 0: width=2", "0: rows=1;", "0: rows=99999999999999999999"}) {
    EXPECT_THROW(parse_tuning(text), UserError) << text;
  }
}

}  // namespace
}  // namespace syno::cpp
