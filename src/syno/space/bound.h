// The completion bound: can a partial graph still become an operator within a number of steps?
//
// It is evaluated before a child is built. An abstract frontier keeps only the size and the kind of each coordinate. A
// depth-limited search over abstract moves with one memo table decides. The bound is admissible: where the abstraction
// loses information, the better case is assumed, so a graph that can be completed is never rejected. Tests compare the
// operators that are found with every mode.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/space/reshape.h"
#include "syno/space/state.h"
#include "syno/support/flat_table.h"

namespace syno {

enum class BoundMode : std::uint8_t {
  kNone,   ///< every graph may be completed
  kLoose,  ///< sizes and steps alone: every coordinate may be dropped or be a window
  kFull,   ///< also kinds of coordinates, limits, budgets and the least MACs (macs_bound.h)
};

inline constexpr Reason kBoundReason = "completion_bound";

class CompletionBound {
 public:
  /// Keeps a reference to `space`.
  CompletionBound(StateSpace& space, const RuleSet& rules, BoundMode mode);

  BoundMode mode() const { return mode_; }
  /// Whether a graph in this state can become an operator with at most `steps` more steps, none of them a Reduce.
  bool may_complete(const State& state, int steps);
  /// Whether a graph of reductions alone, or one with more reductions, can become an operator with `steps` more steps.
  bool may_complete_with_more(const State& state, int steps);

  /// Entries of the memo table, and the number of lookups.
  std::size_t entries() const { return used_; }
  std::size_t bytes() const { return table_.slot_count() * sizeof(Entry); }
  std::int64_t asked() const { return asked_; }

 private:
  enum Kind : std::uint32_t {
    kLeaves,         ///< can leave as an outer index
    kBareReduction,  ///< a Reduce that no weight holds
    kBarePiece,      ///< a Merge result made of reductions that no weight holds
    kHeldReduction,  ///< a Reduce, or such a piece, that a weight holds
    kStays,          ///< can neither leave nor be held to any use
  };
  /// Size and kind in one number, so that a frontier sorts by size first.
  using Piece = std::uint32_t;
  static constexpr std::uint32_t kKindBits = 3;
  static Piece piece(SizeId size, Kind kind) {
    return static_cast<std::uint32_t>(size) << kKindBits | kind;
  }
  static SizeId size_of(Piece piece) { return static_cast<SizeId>(piece >> kKindBits); }
  static Kind kind_of(Piece piece) { return static_cast<Kind>(piece & ((1U << kKindBits) - 1)); }

  struct Frontier {
    std::array<Piece, kMaxFrontier> pieces;
    std::uint8_t size = 0;
    std::int8_t splits = 0;
    std::int8_t merges = 0;
    std::int8_t unfolds = 0;
    std::int8_t strides = 0;
    std::int8_t weights = 0;
    bool weighted = false;
    std::array<std::int8_t, kMaxVariables> left{};

    void insert(Piece piece);
    void erase(std::size_t place);
  };
  /// Depths refuted and proved, and the rest of the hash: 16 bytes.
  struct Entry {
    std::uint64_t key = 0;
    std::uint64_t check : 48 = 0;
    std::uint64_t refuted : 8 = 0;
    std::uint64_t proved : 8 = 0;
    bool is_free() const { return key == 0; }
    std::uint64_t hash() const { return key; }
  };

  Kind kind_of(const Slot& slot) const;
  bool can_leave(Piece piece) const;
  Frontier frontier(const State& state) const;
  bool feasible(Frontier& frontier, int steps);
  bool is_complete(const Frontier& frontier) const;
  bool out_of_reach(const Frontier& frontier, int steps);
  /// Whether a coordinate of this size that no Merge cuts and no weight takes can end in the input.
  bool may_stay(SizeId size);
  bool reshape_refutes(const Frontier& frontier, int steps);
  bool try_contractions(const Frontier& frontier, int steps);
  bool try_splits(const Frontier& frontier, int steps);
  bool try_windows(const Frontier& frontier, int steps);
  bool try_merges(const Frontier& frontier, int steps);
  bool try_strides(const Frontier& frontier, int steps);
  bool try_repeats(const Frontier& frontier, int steps);
  /// Whether `part` may go into a coordinate of size `into` (kNoSize: into a window).
  bool may_pool(const Frontier& frontier, Piece part, SizeId into) const;
  void clamp(Frontier& frontier) const;
  /// Takes the primary powers of `size` from the budgets; false when they do not suffice.
  bool charge_share(std::array<std::int8_t, kMaxVariables>& left, SizeId size) const;
  /// The entry, made where there is none. The reference holds until the next call.
  Entry& remember(std::uint64_t key, std::uint64_t check);

  const Specification& spec_;
  StateSpace& space_;
  SizeSpace& sizes_;
  BoundMode mode_;
  bool restrict_dropped_;
  bool restrict_windows_;
  /// Reductions are neither cut by Merges nor, while no weight holds them, joined to each other by Splits.
  bool whole_reductions_;
  bool apart_reductions_;
  std::vector<SizeId> target_;
  std::array<std::int8_t, kMaxVariables> target_powers_{};
  Reshape reshape_;
  /// By size, what `may_stay` said: 0 for nothing yet, 1 for no, 2 for yes.
  std::vector<std::uint8_t> stay_;
  FlatTable<Entry> table_;
  std::size_t used_ = 0;
  std::int64_t asked_ = 0;
};

}  // namespace syno
