// Sizes as numbers, with their exact values under each of a list of bindings: worked out once, looked up ever after.
#pragma once

#include <cstdint>
#include <vector>

#include "syno/spec/specification.h"

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
  void grow();

  std::vector<Values> bindings_;
  std::vector<Size> sizes_;
  std::vector<std::int64_t> values_;
  std::vector<FitMask> fits_;
  /// Open addressing; a slot holds a number plus 1, or 0.
  std::vector<std::uint32_t> slots_;
};

}  // namespace syno
