#include "syno/spec/symmetry.h"

#include <gtest/gtest.h>

#include "syno/support/error.h"

namespace syno {
namespace {

std::vector<Symmetry> parsed(const std::vector<std::string>& texts) {
  std::vector<Symmetry> found;
  for (const std::string& text : texts) found.push_back(parse_symmetry(text));
  return found;
}

std::size_t order(const std::vector<std::string>& texts) {
  return symmetry_group(parsed(texts), 4, 4).size();
}

TEST(Symmetry, IsReadAndWritten) {
  for (const std::string text : {"mirror 2", "exchange 2 3", "transpose 1 3"})
    EXPECT_EQ(symmetry_text(parse_symmetry(text)), text);
  EXPECT_EQ(symmetry_text(parse_symmetry(" exchange 3  2 ")), "exchange 2 3");
  for (const std::string text : {"", "mirror", "mirror x", "exchange 2", "mirror 1 2", "turn 1"})
    EXPECT_THROW(parse_symmetry(text), UserError) << text;
}

TEST(Symmetry, GroupsHaveTheOrderOfTheirTable) {
  EXPECT_EQ(order({}), 1U);
  EXPECT_EQ(order({"mirror 2"}), 2U);
  EXPECT_EQ(order({"mirror 2", "mirror 3"}), 4U);
  EXPECT_EQ(order({"exchange 2 3"}), 2U);
  // The symmetries of a square.
  EXPECT_EQ(order({"mirror 2", "exchange 2 3"}), 8U);
  EXPECT_EQ(order({"mirror 2", "mirror 3", "exchange 2 3"}), 8U);
  EXPECT_EQ(order({"exchange 2 3", "transpose 2 3"}), 4U);
  EXPECT_EQ(order({"mirror 2", "mirror 2"}), 2U);
}

TEST(Symmetry, AMirrorReversesInputAndOutput) {
  const std::vector<Image> group = symmetry_group(parsed({"mirror 1"}), 3, 2);
  EXPECT_EQ(group[0].mirrored, 0U);
  EXPECT_EQ(group[1].mirrored, 1U << 1 | 1U << 4);
}

}  // namespace
}  // namespace syno
