#include "syno/support/flat_table.h"

#include <gtest/gtest.h>
#include <map>
#include <memory>

#include "syno/support/random.h"

namespace syno {
namespace {

struct Slot {
  std::unique_ptr<std::uint64_t> key;
  int count = 0;
  bool is_free() const { return key == nullptr; }
  // Bad on purpose: long runs of occupied slots, which wrap around the end.
  std::uint64_t hash() const { return *key | 7; }
};

TEST(FlatTable, HoldsWhatAMapHoldsWhileItGrows) {
  FlatTable<Slot> table(4);
  std::map<std::uint64_t, int> expected;
  CounterRandom random(3, 0);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t key = random.below(5000);
    table.room(expected.size());
    Slot& slot = table.find(key | 7, [&](const Slot& other) { return *other.key == key; });
    ASSERT_EQ(slot.is_free(), !expected.contains(key)) << "key " << key;
    if (slot.is_free()) slot.key = std::make_unique<std::uint64_t>(key);
    ASSERT_EQ(++slot.count, ++expected[key]) << "key " << key;
  }
  EXPECT_GE(2 * table.slot_count(), 3 * expected.size());
  table.clear(4);
  EXPECT_TRUE(table.find(7, [](const Slot&) { return true; }).is_free());
  EXPECT_EQ(table.slot_count(), 4U);
}

}  // namespace
}  // namespace syno
