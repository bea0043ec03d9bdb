// The sizes a search meets, numbered, with what is asked of them again and again computed once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "syno/spec/specification.h"

namespace syno {

/// Number of an interned size; kNoSize where there is none.
using SizeId = std::int32_t;
inline constexpr SizeId kNoSize = -1;

class SizeSpace {
 public:
  explicit SizeSpace(const Specification& spec);

  SizeId intern(const Size& size);
  std::size_t count() const { return entries_.size(); }
  const Size& size(SizeId id) const { return at(id).size; }
  /// Allowed as an extent (Specification::legal).
  bool legal(SizeId id) const { return at(id).legal; }
  /// The bindings under which it is a positive integer.
  FitMask fit(SizeId id) const { return at(id).fit; }
  /// Legal, and a positive integer under enough bindings.
  bool usable(SizeId id) const { return at(id).usable; }
  /// The bindings under which windows of this size are odd, or even ones are allowed.
  FitMask odd_fit(SizeId id) const { return at(id).odd_fit; }
  /// The bindings under which windows of this size are allowed: that, and not too large.
  FitMask window_fit(SizeId id) const { return at(id).window_fit; }
  /// Whether that is enough bindings.
  bool is_window(SizeId id) const { return at(id).window; }
  /// Whether a contraction may drop a coordinate of this size (an outer index).
  bool droppable(SizeId id) const { return at(id).droppable; }
  /// Whether a contraction may join a Reduce of this size (an index only weights share).
  bool joinable(SizeId id) const { return at(id).joinable; }
  /// Whether a Reduce of this size, or one that it is a piece of, may be summed over data alone.
  bool poolable(SizeId id) const { return at(id).poolable; }
  /// The bindings under which a window may slide over `extent`.
  FitMask slide_fit(SizeId extent, SizeId window);
  /// Whether `window` is one, and may slide over `extent` under enough bindings.
  bool slides(SizeId extent, SizeId window);
  /// The value under binding `b`; 0 where it is not a positive integer.
  std::int64_t value(SizeId id, std::size_t b) const { return at(id).values[b]; }
  /// The bindings under which `size` is a positive integer of at most `limit`.
  FitMask fit_at_most(const Size& size, std::int64_t limit) const;
  /// a*b and a/b, legal or not.
  SizeId times(SizeId a, SizeId b);
  SizeId over(SizeId a, SizeId b);
  /// The product, or kNoSize when it is not usable.
  SizeId product(SizeId a, SizeId b);
  /// Leaves blocks out from now on: those with primaries (Guarantee::kSmallBlocks), and those that make a new size with
  /// a primary of budget 0 (Guarantee::kFixedSizes).
  void restrict_blocks(bool no_primaries, bool no_fixed);
  /// Usable blocks B of `n` with a usable quotient n/B. The quotients stand in `quotients`, in the same order.
  const std::vector<SizeId>& blocks(SizeId n);
  const std::vector<SizeId>& quotients(SizeId n);
  /// Sizes that new coordinates may have by the budgets (for Reduce), in the order of sizes.
  const std::vector<SizeId>& universe() const { return universe_; }

 private:
  struct Entry {
    Size size;
    std::vector<std::int64_t> values;
    FitMask fit = 0;
    FitMask odd_fit = 0;
    FitMask window_fit = 0;
    bool legal = false;
    bool usable = false;
    bool window = false;
    bool droppable = false;
    bool joinable = false;
    bool poolable = false;
    bool blocks_known = false;
    std::vector<SizeId> blocks;
    std::vector<SizeId> quotients;
  };
  // A table of pairs by their first number: rows grow with the second.
  template <class Value>
  class Pairs {
   public:
    Value& at(SizeId a, SizeId b, Value unknown) {
      if (rows_.size() <= static_cast<std::size_t>(a))
        rows_.resize(static_cast<std::size_t>(a) + 1);
      std::vector<Value>& row = rows_[static_cast<std::size_t>(a)];
      if (row.size() <= static_cast<std::size_t>(b))
        row.resize(static_cast<std::size_t>(b) + 1, unknown);
      return row[static_cast<std::size_t>(b)];
    }

   private:
    std::vector<std::vector<Value>> rows_;
  };

  const Entry& at(SizeId id) const { return entries_[static_cast<std::size_t>(id)]; }
  void list_universe(std::size_t variable, Size size);
  void find_blocks(SizeId n);
  bool has_primary(const Size& size, bool fixed) const;
  bool in_shapes(const Size& size) const;

  const Specification& spec_;
  std::vector<Entry> entries_;
  std::unordered_map<Size, SizeId, SizeHash> ids_;
  Pairs<SizeId> products_;
  Pairs<SizeId> ratios_;
  Pairs<FitMask> slides_;
  std::vector<SizeId> universe_;
  bool no_primary_blocks_ = false;
  bool no_fixed_pieces_ = false;
};

}  // namespace syno
