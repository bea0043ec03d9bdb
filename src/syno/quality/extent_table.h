// Sizes as numbers, with their exact values under each of a list of bindings: worked out once, looked up ever after.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/spec/specification.h"
#include "syno/support/flat_table.h"

namespace syno {

class ExtentTable {
 public:
  using Number = std::uint16_t;
  /// Numbers there are; `full` says when they are used up.
  static constexpr std::size_t kMaxSizes = 0xFFFF;

  explicit ExtentTable(std::vector<Values> bindings);

  /// Throws UserError when no number is left.
  Number number(const Size& size);
  bool full() const { return sizes_.size() + 256 > kMaxSizes; }
  /// Forgets all numbers.
  void clear();

  const std::vector<Values>& bindings() const { return bindings_; }
  const Size& size(Number number) const { return sizes_[number]; }
  /// One value a binding; 0 where the size is no positive integer of 64 bits.
  const std::int64_t* values(Number number) const { return &values_[number * bindings_.size()]; }
  /// The bindings under which it is one.
  FitMask fit(Number number) const { return fits_[number]; }

 private:
  static constexpr std::uint32_t kFree = static_cast<std::uint32_t>(-1);
  struct Slot {
    std::uint32_t low_hash = 0;
    std::uint32_t number = kFree;
    bool is_free() const { return number == kFree; }
    std::uint64_t hash() const { return low_hash; }
  };

  std::vector<Values> bindings_;
  std::vector<Size> sizes_;
  std::vector<std::int64_t> values_;
  std::vector<FitMask> fits_;
  FlatTable<Slot> slots_;
};

}  // namespace syno
