#include "syno/support/mix.h"

#include <gtest/gtest.h>
#include <set>

namespace syno {
namespace {

TEST(Mix, IsTheSameOnEveryMachine) {
  // Golden: semantic keys and random samples are made of these.
  EXPECT_EQ(mix_bits(kGoldenRatio), 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(mix_words(1, 2), 0xAC0B98B45C618DBDULL);
  EXPECT_EQ(mix_words(2, 1), 0x1A1BDE9F3316EDDFULL);
}

TEST(Mix, TellsSmallWordsApart) {
  std::set<std::uint64_t> words;
  std::set<std::uint64_t> places;
  for (std::uint64_t a = 0; a < 64; ++a) {
    for (std::uint64_t b = 0; b < 64; ++b) {
      words.insert(mix_words(mix_words(0, a), b));
      // High words, such as the packed powers of a size, must reach the low bits, too.
      places.insert(table_hash(a << 56, b << 48) & 0xFFFF);
    }
  }
  EXPECT_EQ(words.size(), 4096U);
  EXPECT_GT(places.size(), 3500U);
}

}  // namespace
}  // namespace syno
