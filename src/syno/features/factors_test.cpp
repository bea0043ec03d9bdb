#include "syno/features/factors.h"

#include <gtest/gtest.h>

#include "syno/interp/zoo_texts_test.h"
#include "syno/sizes/variables.h"
#include "syno/support/error.h"

namespace syno {
namespace {

AccessTables tables_of(const std::string& name, const std::string& binding) {
  const Operator op = Operator::parse(zoo_text(name).text);
  return access_tables(op, Binding::parse(binding).resolve(*op.variables()));
}

const std::string kBinding = "N=1, C_in=8, C_out=8, H=6, W=5, k=3, s=2";

TEST(Factors, OfAConvolutionAreItsPatchesAndItsWeight) {
  const AccessTables tables = tables_of("conv2d", kBinding);
  const Factors made = factors(tables, TapOrder::kAscending, 1 << 20);
  EXPECT_EQ(made.rows, (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(made.free, std::vector<int>{1});
  EXPECT_EQ(made.taps, (std::vector<int>{4, 5, 6}));
  EXPECT_TRUE(made.blocks.empty() && made.ranks.empty());
  ASSERT_EQ(made.reads.size(), 6U * 5U * 8U * 9U);
  // The first patch: its first row and column are outside, then x[0, 0, 0, 0].
  EXPECT_EQ(std::vector<std::int64_t>(made.reads.begin(), made.reads.begin() + 9),
            (std::vector<std::int64_t>{-1, -1, -1, -1, 0, 1, -1, 5, 6}));
}

TEST(Factors, OfOperatorsThatReadTheSameHaveEqualReads) {
  std::vector<std::int64_t> reads;
  for (const char* name : {"conv2d", "low-rank-conv", "depthwise-separable"}) {
    const Factors made = factors(tables_of(name, kBinding), TapOrder::kByReads, 1 << 20);
    if (reads.empty()) reads = made.reads;
    EXPECT_EQ(made.reads, reads) << name;
  }
}

TEST(Factors, OfAMatrixThatIsTooLargeAreRefused) {
  const AccessTables tables = tables_of("conv2d", kBinding);
  EXPECT_EQ(factors(tables, TapOrder::kAscending, 576).free.size(), 1U);
  EXPECT_THROW(factors(tables, TapOrder::kAscending, 575), UserError);
}

}  // namespace
}  // namespace syno
