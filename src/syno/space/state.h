// Partial graphs as an enumeration holds them: what decides which steps may follow, in a value of fixed size without
// heap memory. The graph itself (graph.h) is kept beside it where rules look at it.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "syno/graph/graph.h"
#include "syno/space/size_space.h"
#include "syno/spec/ledger.h"

namespace syno {

/// Coordinates that the frontier of a search may hold at once.
inline constexpr std::size_t kMaxFrontier = 24;
/// Reduces in one graph.
inline constexpr std::size_t kMaxReductions = 12;

enum class Origin : std::uint8_t { kIterator, kReduction, kMerge, kOther };

/// A coordinate of the frontier. Its place in the frontier is its place in Graph::frontier().
struct Slot {
  SizeId size = kNoSize;
  CoordinateId id = kNoCoordinate;
  /// Bit t: weight t holds it.
  std::uint8_t weights = 0;
  std::uint8_t chain = 0;
  Origin origin = Origin::kOther;
  bool reductions_only = false;
  /// Whether a weight holds it or something that it is made of.
  bool seen = false;
  /// Bit r: it is made of the r-th Reduce.
  std::uint16_t reductions = 0;
  /// Made of a causal output dimension.
  bool causal = false;
  /// No step may touch it.
  bool passed = false;

  /// A Reduce that nothing has used yet: any two of one size are exchangeable.
  bool untouched() const { return origin == Origin::kReduction && weights == 0; }
};

/// A step by places in the frontier: what Step says, in 24 bytes and blind to coordinate numbers.
struct Move {
  Primitive primitive{};
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  bool causal = false;
  std::int16_t amount = 0;
  /// Merge: the block. Stride: the factor. Reduce: the extent.
  SizeId size = kNoSize;
  /// Two bits a place: 0 not shared, 1 keep, 2 drop, 3 join.
  std::uint64_t roles = 0;

  const PrimitiveInfo& info() const { return primitive_info(primitive); }
  bool is_view() const { return info().kind == StepKind::kView; }
  bool is_repetition() const { return info().kind == StepKind::kRepetition; }
  bool is_reduction() const { return info().kind == StepKind::kReduction; }
  bool is_contraction() const { return info().kind == StepKind::kContraction; }
  unsigned role(std::size_t place) const {
    return static_cast<unsigned>(roles >> (2 * place) & 3U);
  }
  friend bool operator==(const Move&, const Move&) = default;
};
inline constexpr unsigned kNoRole = 0;
inline constexpr unsigned kKeepRole = 1;
inline constexpr unsigned kDropRole = 2;
inline constexpr unsigned kJoinRole = 3;

struct State {
  std::array<Slot, kMaxFrontier> slots;
  std::uint8_t size = 0;
  std::uint8_t depth = 0;
  std::array<std::uint8_t, kPrimitiveCount> counts{};
  /// Budget left, per variable.
  std::array<std::int8_t, kMaxVariables> left{};
  FitMask fit = 0;
  /// The coordinates that the graph has made so far.
  CoordinateId coordinates = 0;
  /// The products of all Reduces, of all Expands, and of all Reduces that no weight can tell apart any more.
  SizeId reductions = kNoSize;
  SizeId repeats = kNoSize;
  SizeId pooled = kNoSize;
  /// Bit r: a weight sees the r-th Reduce; it is pooled.
  std::uint16_t seen_reductions = 0;
  std::uint16_t pooled_reductions = 0;
  std::array<SizeId, kMaxReductions> reduction_sizes{};

  std::uint8_t count(Primitive primitive) const {
    return counts[static_cast<std::size_t>(primitive)];
  }
  std::uint8_t reduction_count() const { return count(kReductionPrimitive); }
  std::uint8_t weight_count() const { return count(kContractionPrimitive); }
  bool only_reductions() const { return reduction_count() == depth; }
};

/// The steps of one specification on states. Owns the table of sizes; one object a thread.
class StateSpace {
 public:
  /// Keeps a reference to `spec`. Throws UserError for a specification without bindings, or with more output dimensions
  /// or weights than a state can hold.
  explicit StateSpace(const Specification& spec);

  const Specification& specification() const { return spec_; }
  SizeSpace& sizes() { return sizes_; }
  const SizeSpace& sizes() const { return sizes_; }

  State root() const;
  /// Takes the move, or says why the specification does not allow it (`decide` in legality.h) or that too much is pooled,
  /// and leaves `state` in between.
  Reason advance(State& state, const Move& move);
  /// Every move that `advance` may allow, in a fixed order that depends on content alone. Reductions come before other
  /// steps, in ascending order of size; of exchangeable ones the first is used first. `drop_iterators_and_merges`: no
  /// other coordinate is dropped (Guarantee::kPlainDrops).
  void moves(const State& state, bool drop_iterators_and_merges, std::vector<Move>& out);

  /// The sizes of Reduces that may come next by their order: the universe from that of the last one on.
  std::span<const SizeId> reductions_after(const State& state) const;
  /// Whether the budgets left cover the powers of a size.
  bool affords(const State& state, const Size& size) const {
    const std::size_t variables = spec_.variables()->count();
    for (std::size_t v = 0; v < variables; ++v) {
      if (std::abs(size.power(v)) > state.left[v]) return false;
    }
    return true;
  }

  /// The step on the graph whose frontier the state describes, and back. A step whose sizes are not legal has no move.
  Step step(const State& state, const Move& move) const;
  Move move(const State& state, const Step& step);
  /// The state of a graph; throws UserError with describe_rejection's text when a step is rejected.
  State replay(const Graph& graph);

  /// A hash of a size that is blind to the names of variables and to the order of their declaration: variables that a
  /// specification cannot tell apart are exchanged with the operators that use them.
  Hash128 fingerprint(SizeId size);
  /// The same of an output dimension.
  Hash128 fingerprint_of_output(std::size_t dim);

 private:
  class Account;
  /// Whether a weight may still hold a coordinate of this size.
  bool may_be_held(const State& state, SizeId size) const;
  Reason pool(State& state, std::uint16_t reductions);
  void contract(State& state, const Move& move) const;
  void make_views(State& state, const Move& move, const std::array<SizeId, 2>& sizes) const;
  void add_reductions(const State& state, std::vector<Move>& out);
  void add_contractions(const State& state, bool restricted, std::vector<Move>& out);
  void add_views(const State& state, std::vector<Move>& out);
  bool affords_share(const State& state, const Size& size) const;
  /// Whether one more step may use the primitive.
  bool has_left(const State& state, Primitive primitive) const {
    return state.count(primitive) < spec_.cap(primitive);
  }

  const Specification& spec_;
  SizeSpace sizes_;
  SizeId input_elements_;
  std::vector<Hash128> size_fingerprints_;
};

}  // namespace syno
