#include "syno/support/seal.h"

#include <gtest/gtest.h>
#include <limits>

namespace syno {
namespace {

using namespace std::string_view_literals;

// What Python gives: hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).hexdigest()[:32]

TEST(Seal, OfNumbersIsThatOfPythonsDigits) {
  Seal seal;
  for (const double value :
       {0.0, 1.0, -1.5, 0.1, 1e-4, 1e-5, 123456789.0, 1e15, 1e16,
        std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min(), 2.5e-7,
        9007199254740993.0, 100.0, 0.001234})
    seal.add(value);
  EXPECT_EQ(seal.finish(), "295a1c0502bdce333615c3bd3bc600cb");
}

TEST(Seal, OfTextIsThatOfItsJson) {
  Seal seal;
  seal.add(""sv).add("a\"b\\c\b\f\n\r\t\0\x1f\x7f/"sv);
  seal.add("h\u00e9\u20ac\U0001f600"sv).add("ok\xff\xc3"sv);
  EXPECT_EQ(seal.finish(), "7ac2818eefca1cda80d228c0a7250be5");
  seal.add(U""sv).add(U"a\"b\\c\b\f\n\r\t\0\x1f\x7f/"sv);
  constexpr char32_t kHalves[] = {'o', 'k', 0xDCFF, 0xDCC3};
  seal.add(U"h\u00e9\u20ac\U0001f600"sv).add(std::u32string_view(kHalves, 4));
  EXPECT_EQ(seal.finish(), "7ac2818eefca1cda80d228c0a7250be5");
}

TEST(Seal, OfARowIsThatOfItsValues) {
  using Whole = std::numeric_limits<std::int64_t>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Seal seal;
  seal.add("proposal"sv).add(std::int64_t{1}).add(std::int64_t{-7}).add_null();
  seal.add(std::numeric_limits<double>::quiet_NaN()).add(kInfinity).add(-kInfinity);
  seal.add(Whole::max()).add(Whole::min()).add_integer("1208925819614629174706176");
  EXPECT_EQ(seal.add_bytes("\0bytes"sv).finish(), "73b6bfdcec23307fb06c7e0153cea297");
  EXPECT_EQ(seal.finish(), "4f53cda18c2baa0c0354bb5f9a3ecbe5");
  EXPECT_EQ(seal.add(-0.0).finish(), seal.add(0.0).finish());
}

}  // namespace
}  // namespace syno
