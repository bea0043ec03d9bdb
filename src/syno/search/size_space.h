// The sizes a search meets, numbered, with what is asked of them again and again computed once.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "syno/spec/specification.h"

namespace syno {

/// Number of an interned size; kNoSize where a size is not legal.
using SizeId = std::int32_t;
inline constexpr SizeId kNoSize = -1;

class SizeSpace {
 public:
  explicit SizeSpace(const Specification& spec);

  SizeId intern(const Size& size);
  const Size& size(SizeId id) const { return entries_[static_cast<std::size_t>(id)].size; }
  /// Legal, and a positive integer under enough bindings.
  bool usable(SizeId id) const { return entries_[static_cast<std::size_t>(id)].usable; }
  /// Whether windows of this size are allowed somewhere: odd unless even ones are, and not too large.
  bool is_window(SizeId id) const { return entries_[static_cast<std::size_t>(id)].window; }
  /// Whether a contraction may drop a coordinate of this size (an outer index).
  bool droppable(SizeId id) const { return entries_[static_cast<std::size_t>(id)].droppable; }
  /// Whether a contraction may join a Reduce of this size (an index only weights share).
  bool joinable(SizeId id) const { return entries_[static_cast<std::size_t>(id)].joinable; }
  /// Whether a window `window` may slide over `extent` under enough bindings.
  bool slides(SizeId extent, SizeId window);
  /// The value under binding `b`; 0 where it is not a positive integer.
  std::int64_t value(SizeId id, std::size_t b) const {
    return entries_[static_cast<std::size_t>(id)].values[b];
  }
  /// The bindings under which `size` is a positive integer of at most `limit`.
  FitMask fit_at_most(const Size& size, std::int64_t limit) const;
  /// The product, or kNoSize when it is not usable.
  SizeId product(SizeId a, SizeId b);
  /// Usable blocks B of `n` with a usable quotient n/B. The quotients stand in `quotients`, in the same order.
  const std::vector<SizeId>& blocks(SizeId n);
  const std::vector<SizeId>& quotients(SizeId n);
  /// Sizes that new coordinates may have by the budgets (for Reduce), in the order of sizes.
  const std::vector<SizeId>& universe() const { return universe_; }

 private:
  struct Entry {
    Size size;
    std::vector<std::int64_t> values;
    bool usable = false;
    bool window = false;
    bool droppable = false;
    bool joinable = false;
    bool blocks_known = false;
    std::vector<SizeId> blocks;
    std::vector<SizeId> quotients;
  };
  void list_universe(std::size_t variable, Size size);
  void find_blocks(SizeId n);

  const Specification& spec_;
  std::vector<Entry> entries_;
  std::map<Size, SizeId> ids_;
  std::unordered_map<std::uint64_t, SizeId> products_;
  std::unordered_map<std::uint64_t, bool> slides_;
  std::vector<SizeId> universe_;
};

}  // namespace syno
