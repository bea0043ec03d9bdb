#include "syno/support/inline_vector.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "syno/support/random.h"

namespace syno {
namespace {

// Long enough to live on the heap, so that a sanitizer sees every copy that is lost.
std::string word(std::uint64_t n) {
  return "a string beyond any small buffer, number " + std::to_string(n);
}

TEST(InlineVector, DoesWhatAVectorDoes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CounterRandom random(seed, 0);
    InlineVector<std::string, 4> items;
    std::vector<std::string> wanted;
    for (int n = 0; n < 60; ++n) {
      const std::size_t place = wanted.empty() ? 0 : random.below(wanted.size());
      switch (random.below(9)) {
        case 0:
        case 1:
        case 2:
          items.push_back(word(static_cast<std::uint64_t>(n)));
          wanted.push_back(word(static_cast<std::uint64_t>(n)));
          break;
        case 3:
          items.insert(items.begin() + place, word(place));
          wanted.insert(wanted.begin() + static_cast<std::ptrdiff_t>(place), word(place));
          break;
        case 4:
          if (wanted.empty()) break;
          items.erase(items.begin() + place);
          wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(place));
          break;
        case 5:
          if (wanted.empty()) break;
          items.push_back(items[place]);
          wanted.push_back(std::string(wanted[place]));
          break;
        case 6: {
          InlineVector<std::string, 4> copy = items;
          InlineVector<std::string, 4> moved = std::move(items);
          items = random.below(2) == 0 ? copy : std::move(moved);
          break;
        }
        case 7:
          items.resize(place);
          wanted.resize(place);
          break;
        case 8:
          if (wanted.empty()) break;
          items.pop_back();
          wanted.pop_back();
          break;
      }
      ASSERT_EQ(std::vector<std::string>(items), wanted) << "seed " << seed;
    }
    items.assign(seed % 7, word(seed));
    EXPECT_EQ(std::vector<std::string>(items), std::vector<std::string>(seed % 7, word(seed)));
    items.clear();
    EXPECT_TRUE(items.empty());
  }
}

TEST(InlineVector, ComparesByContentWhereverItIsKept) {
  InlineVector<int, 2> heap{1, 2, 3};
  heap.pop_back();
  EXPECT_EQ(heap, (InlineVector<int, 2>{1, 2}));
  EXPECT_LT((InlineVector<int, 2>{1}), heap);
  EXPECT_LT(heap, (InlineVector<int, 2>{1, 2, 0}));
}

TEST(InlineVector, ConvertsToAndFromAVector) {
  const std::vector<int> items{3, 1, 2};
  InlineVector<int, 2> copy = items;
  const std::vector<int>& back = copy;
  EXPECT_EQ(back, items);
}

}  // namespace
}  // namespace syno
