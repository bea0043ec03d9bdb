#include "syno/sizes/size.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"
#include "syno/support/random.h"

namespace syno {
namespace {

const VariablesPtr kTable = Variables::make({"H", "C_in", "s", "k"});

std::string error_of(const std::string& text) {
  try {
    Size::parse(text, *kTable);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Size, PrintsCoefficientsFirst) {
  EXPECT_EQ(Size::parse("C_in*s^-1", *kTable).text(*kTable), "s^-1*C_in");
  EXPECT_EQ(Size::parse("k*k", *kTable).text(*kTable), "k^2");
  EXPECT_EQ(Size::parse("H*H^-1", *kTable).text(*kTable), "1");
  EXPECT_EQ(Size::parse("1", *kTable), Size());
}

TEST(Size, RoundTripsThroughTextForRandomPowers) {
  CounterRandom random(1, 0);
  for (int trial = 0; trial < 500; ++trial) {
    Size size;
    for (std::size_t i = 0; i < kTable->count(); ++i)
      size = size * Size::variable(i, static_cast<int>(random.below(7)) - 3);
    EXPECT_EQ(Size::parse(size.text(*kTable), *kTable), size);
  }
}

TEST(Size, EvaluatesToIntegersOnly) {
  const Values values = Binding({{"H", 8}, {"C_in", 6}, {"s", 2}, {"k", 3}}).resolve(*kTable);
  EXPECT_EQ(Size::parse("s^-1*C_in", *kTable).evaluate(values), 3);
  EXPECT_EQ(Size::parse("k^-1*H", *kTable).evaluate(values), std::nullopt);
  EXPECT_EQ(Size().evaluate(values), 1);
}

TEST(Size, RefusesToOverflow) {
  const Values values =
      Binding({{"H", 4000000000}, {"C_in", 6}, {"s", 2}, {"k", 3}}).resolve(*kTable);
  EXPECT_THROW(Size::parse("H^3", *kTable).evaluate(values), UserError);
  EXPECT_EQ(Size::parse("H^3", *kTable).extent(values), std::nullopt);
  EXPECT_EQ(Size::parse("H^2", *kTable).extent(values), std::nullopt);
  EXPECT_EQ(Size::parse("s^-1*H", *kTable).extent(values), 2000000000);
  EXPECT_THROW(Size::variable(0, 100) * Size::variable(0, 100), UserError);
}

TEST(Size, NamesTheColumnOfEveryMistake) {
  EXPECT_EQ(error_of("H*"),
            "expected a name of a variable, got the end\n  in size \"H*\", column 3");
  EXPECT_EQ(error_of("H*Q"),
            "unknown variable 'Q'; known variables: k, s, C_in, H\n  in size \"H*Q\", column 3");
  EXPECT_EQ(error_of("H^0"),
            "the power of 'H' must be a non-zero integer within -100..100, got 0\n  in size "
            "\"H^0\", column 3");
  EXPECT_EQ(error_of("H H"), "expected the end, got 'H'\n  in size \"H H\", column 3");
  EXPECT_EQ(error_of("3"),
            "a size is a product of variables: give the number a name, as in \"k=3: 2\"\n  in size "
            "\"3\", column 1");
  EXPECT_NE(error_of(""), "no error");
}

TEST(Size, SaysHowQuotientsPowersAndSumsAreWritten) {
  const auto message = [](const char* text) {
    const std::string error = error_of(text);
    return error.substr(0, error.find('\n'));
  };
  EXPECT_EQ(error_of("H/s"), "a size has no '/': write s^-1*H\n  in size \"H/s\", column 2");
  EXPECT_EQ(message("k*C_in/s^2"), "a size has no '/': write s^-2*k*C_in");
  EXPECT_EQ(message("H/s^-9223372036854775808"), message("H/s"));
  EXPECT_EQ(message("H/2"),
            "a size has no '/': give the number a name, as in \"s=2: 2\", and write s^-1*H");
  EXPECT_EQ(error_of("H**2"),
            "a power is written with '^', not '**': write H^2\n  in size \"H**2\", column 2");
  EXPECT_EQ(message("H**k"),
            "a power is written with '^', not '**': write H*k for a product, H^2 for a power");
  EXPECT_EQ(message("k*H**3"), "a power is written with '^', not '**': write k*H^3");
  EXPECT_EQ(
      error_of("H+1"),
      "sizes are products of variables, without '+': introduce a separate variable for a size that "
      "is a sum\n  in size \"H+1\", column 2");
  EXPECT_EQ(message("H-k"), message("H-1"));
  EXPECT_NE(message("H-1").find("without '-'"), std::string::npos);
}

TEST(Size, IsBelowOneWhereAllPowersAreNegative) {
  const auto is_below_one = [](const char* text) {
    return Size::parse(text, *kTable).is_below_one();
  };
  EXPECT_TRUE(is_below_one("s^-1*k^-2"));
  EXPECT_FALSE(is_below_one("s^-1*H"));
  EXPECT_FALSE(is_below_one("1"));
  EXPECT_EQ(Size::names_in("s^-1*H"), (std::vector<std::string>{"s", "H"}));
  // Under a binding where s is 1, it is an integer.
  EXPECT_EQ(Size::names_in("s^-1"), (std::vector<std::string>{"s"}));
}

TEST(Size, HashDependsOnNamesNotOnTheTable) {
  const VariablesPtr other = Variables::make({"s", "C_in", "a", "z", "B"});
  EXPECT_EQ(Size::parse("s^-1*C_in", *kTable).hash(*kTable),
            Size::parse("s^-1*C_in", *other).hash(*other));
  EXPECT_NE(Size::parse("s*C_in", *kTable).hash(*kTable),
            Size::parse("s^-1*C_in", *kTable).hash(*kTable));
}

TEST(Variables, KeepOneOrderHoweverDeclared) {
  EXPECT_EQ(*Variables::make({"b", "A", "a"}), *Variables::make({"a", "b", "A", "a"}));
  EXPECT_EQ(Variables::make({"b", "A", "a"})->names(), (std::vector<std::string>{"a", "b", "A"}));
  EXPECT_THROW(Variables::make({"2x"}), UserError);
}

TEST(Binding, RefusesZeroNegativeMissingAndRepeatedValues) {
  EXPECT_THROW(Binding({{"H", 0}}), UserError);
  EXPECT_THROW(Binding::parse("H=-1"), UserError);
  EXPECT_THROW(Binding::parse("H=1, H=2"), UserError);
  EXPECT_THROW(Binding::parse("H=1,, k=2"), UserError);
  EXPECT_THROW(Binding({{"H", 3}}).resolve(*kTable), UserError);
  EXPECT_EQ(Binding::parse("k=3, H=8").text(), "H=8, k=3");
}

}  // namespace
}  // namespace syno
