#include "syno/support/text.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno {
namespace {

TEST(Text, TrimsSplitsAndJoins) {
  EXPECT_EQ(trim("  a b \r\n"), "a b");
  EXPECT_EQ(split_lines("a\nb\n"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(with_thousands(-1234567), "-1,234,567");
  EXPECT_EQ(with_thousands(123), "123");
}

TEST(Text, WritesNumbersWithoutTrailingZeros) {
  EXPECT_EQ(number_text(2.5), "2.5");
  EXPECT_EQ(number_text(0.1 + 0.2), "0.3");
  EXPECT_EQ(number_text(1e15), "1e+15");
  EXPECT_EQ(digits_text(1e15), "1000000000000000");
  EXPECT_EQ(digits_text(-3), "-3");
  EXPECT_EQ(digits_text(2.3), "2.3");
  EXPECT_EQ(digits_text(1e300), "1e+300");
}

TEST(Cursor, NamesTheColumnOfAnError) {
  Cursor cursor("ab  ?", "thing");
  EXPECT_EQ(cursor.name("here"), "ab");
  try {
    cursor.integer("as the power");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "expected an integer as the power, got '?'\n  in thing \"ab  ?\", column 5");
  }
}

TEST(Cursor, RefusesIntegersThatOverflow) {
  Cursor cursor("99999999999999999999", "thing");
  EXPECT_THROW(cursor.integer("here"), UserError);
  Cursor minus("-", "thing");
  EXPECT_THROW(minus.integer("here"), UserError);
}

}  // namespace
}  // namespace syno
