#include "syno/space/bound.h"

#include <algorithm>
#include <cstdlib>

#include "syno/support/mix.h"

namespace syno {
namespace {

std::vector<SizeId> sorted_target(const Specification& spec, SizeSpace& sizes) {
  std::vector<SizeId> target;
  for (std::size_t d = 0; d < spec.input().size(); ++d) {
    if (!spec.passes_input(static_cast<int>(d)))
      target.push_back(sizes.intern(spec.input()[d].size));
  }
  std::sort(target.begin(), target.end());
  return target;
}

constexpr std::uint64_t kNotProved = 255;
/// Coordinates of which a contraction may drop or hold any subset.
constexpr std::size_t kMostChoices = 20;

}  // namespace

CompletionBound::CompletionBound(StateSpace& space, const RuleSet& rules, BoundMode mode)
    : spec_(space.specification()),
      space_(space),
      sizes_(space.sizes()),
      mode_(mode),
      restrict_dropped_(rules.guarantees(Guarantee::kPlainDrops)),
      restrict_windows_(rules.guarantees(Guarantee::kHeldWindows)),
      whole_reductions_(rules.guarantees(Guarantee::kWholeReductions)),
      apart_reductions_(rules.guarantees(Guarantee::kSeparateReductions)),
      target_(sorted_target(spec_, sizes_)),
      reshape_(sizes_, spec_, target_),
      table_(1U << 12) {
  sizes_.restrict_blocks(rules.guarantees(Guarantee::kSmallBlocks),
                         rules.guarantees(Guarantee::kFixedSizes));
  Size product;
  for (const SizeId size : target_) product = product * sizes_.size(size);
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v)
    target_powers_[v] = static_cast<std::int8_t>(product.power(v));
}

void CompletionBound::Frontier::insert(Piece piece) {
  std::size_t place = size++;
  while (place > 0 && pieces[place - 1] > piece) {
    pieces[place] = pieces[place - 1];
    --place;
  }
  pieces[place] = piece;
}

void CompletionBound::Frontier::erase(std::size_t place) {
  std::copy(pieces.begin() + static_cast<std::ptrdiff_t>(place) + 1, pieces.begin() + size,
            pieces.begin() + static_cast<std::ptrdiff_t>(place));
  --size;
}

CompletionBound::Kind CompletionBound::kind_of(const Slot& slot) const {
  if (mode_ != BoundMode::kFull) return kLeaves;
  switch (slot.origin) {
    case Origin::kIterator: return kLeaves;
    case Origin::kReduction: return slot.weights != 0 ? kHeldReduction : kBareReduction;
    case Origin::kMerge:
      if (!slot.reductions_only) return kLeaves;
      return slot.weights != 0 || slot.seen || !restrict_dropped_ || !restrict_windows_
                 ? kHeldReduction
                 : kBarePiece;
    case Origin::kOther: return restrict_dropped_ ? kStays : kLeaves;
  }
  return kLeaves;
}

bool CompletionBound::can_leave(Piece piece) const {
  if (mode_ != BoundMode::kFull) return true;
  switch (kind_of(piece)) {
    // It may be a piece of reductions after all, which is joined.
    case kLeaves: return sizes_.droppable(size_of(piece)) || sizes_.joinable(size_of(piece));
    case kBareReduction:
    case kBarePiece:
    case kHeldReduction: return sizes_.joinable(size_of(piece));
    case kStays: return false;
  }
  return true;
}

CompletionBound::Frontier CompletionBound::frontier(const State& state) const {
  const Limits& limits = spec_.limits();
  Frontier frontier;
  for (std::size_t place = 0; place < state.size; ++place) {
    const Slot& slot = state.slots[place];
    if (!slot.passed) frontier.insert(piece(slot.size, kind_of(slot)));
  }
  frontier.weighted = state.weight_count() > 0;
  if (mode_ == BoundMode::kFull) {
    const auto left = [&](std::int64_t limit, Primitive primitive) {
      return static_cast<std::int8_t>(
          std::clamp<std::int64_t>(limit - state.count(primitive), 0, 100));
    };
    frontier.splits = left(limits.max_splits, Primitive::kSplit);
    frontier.merges = left(limits.max_merges, Primitive::kMerge);
    frontier.unfolds = left(limits.max_unfolds, Primitive::kUnfold);
    frontier.strides = left(limits.max_strides, Primitive::kStride);
    frontier.weights = left(limits.max_weights, Primitive::kContraction);
    frontier.left = state.left;
  } else {
    frontier.splits = frontier.merges = frontier.unfolds = frontier.weights = 100;
    frontier.strides = limits.max_strides > 0 ? 100 : 0;
    frontier.left.fill(100);
  }
  return frontier;
}

bool CompletionBound::may_complete(const State& state, int steps) {
  if (mode_ == BoundMode::kNone) return steps >= 0;
  ++asked_;
  Frontier now = frontier(state);
  return feasible(now, steps);
}

bool CompletionBound::may_complete_with_more(const State& state, int steps) {
  if (mode_ == BoundMode::kNone) return steps >= 0;
  if (may_complete(state, steps)) return true;
  if (steps < 2 || state.reduction_count() >= spec_.limits().max_reductions) return false;
  for (const SizeId id : space_.reductions_after(state)) {
    if (!space_.affords(state, sizes_.size(id))) continue;
    State next = state;
    Move move;
    move.primitive = kReductionPrimitive;
    move.size = id;
    if (space_.advance(next, move).empty() && may_complete_with_more(next, steps - 1)) return true;
  }
  return false;
}

CompletionBound::Entry& CompletionBound::remember(std::uint64_t key, std::uint64_t check) {
  key |= key == 0;
  check &= (std::uint64_t{1} << 48) - 1;
  table_.room(used_);
  Entry& entry = table_.find(
      key, [&](const Entry& other) { return other.key == key && other.check == check; });
  if (entry.is_free()) {
    ++used_;
    entry.key = key;
    entry.check = check;
    entry.refuted = 0;
    entry.proved = kNotProved;
  }
  return entry;
}

bool CompletionBound::is_complete(const Frontier& frontier) const {
  if (!frontier.weighted || frontier.size != target_.size()) return false;
  bool pooled = false;
  for (std::size_t i = 0; i < target_.size(); ++i) {
    // The frontier is sorted by size first, and so is the target.
    if (size_of(frontier.pieces[i]) != target_[i]) return false;
    pooled = pooled || kind_of(frontier.pieces[i]) == kBareReduction;
  }
  if (!pooled || mode_ != BoundMode::kFull) return true;
  FitMask fit = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < target_.size(); ++i) {
      if (kind_of(frontier.pieces[i]) != kBareReduction) continue;
      product = std::min<std::int64_t>(product, 1 << 30) *
                std::min<std::int64_t>(sizes_.value(target_[i], b), 1 << 30);
    }
    if (product <= spec_.limits().max_pooling) fit |= FitMask{1} << b;
  }
  return spec_.fit_suffices(fit);
}

// Arithmetic that needs no search. Splits, Merges and Shifts keep the product of the frontier; a Stride multiplies it;
// the others divide it by sizes whose primary powers are not negative.
bool CompletionBound::out_of_reach(const Frontier& frontier, int steps) {
  if (!frontier.weighted && (steps == 0 || frontier.weights == 0)) return true;
  const int missing = static_cast<int>(target_.size()) - static_cast<int>(frontier.size);
  if (missing > std::min<int>(steps, frontier.merges)) return true;
  std::array<int, kMaxVariables> powers{};
  const std::size_t variables = spec_.variables()->count();
  for (std::size_t i = 0; i < frontier.size; ++i) {
    const Size& size = sizes_.size(size_of(frontier.pieces[i]));
    for (std::size_t v = 0; v < variables; ++v) powers[v] += size.power(v);
  }
  bool same = true;
  for (std::size_t v = 0; v < variables; ++v) {
    same = same && powers[v] == target_powers_[v];
    // A Stride pays for the powers that it adds.
    const int more = frontier.strides == 0 ? 0 : frontier.left[v];
    if (spec_.variable(v).primary && powers[v] + more < target_powers_[v]) return true;
  }
  // Without Strides, sizes are refuted below, all at once.
  if (mode_ == BoundMode::kFull && frontier.strides > 0 && frontier.merges == 0) {
    for (std::size_t i = 0; i < frontier.size; ++i) {
      if (kind_of(frontier.pieces[i]) == kStays && !may_stay(size_of(frontier.pieces[i])))
        return true;
    }
  }
  // Something has to leave before the frontier is the input.
  if (!same && frontier.strides == 0 && steps == 0) return true;
  // Coordinates larger in number than the target must go: one a step, or several in a contraction.
  if (missing < 0) {
    int droppable = 0;
    for (std::size_t i = 0; i < frontier.size; ++i) droppable += can_leave(frontier.pieces[i]);
    const int contractions = std::min<int>(steps, frontier.weights);
    // A merge makes two more that can be dropped, at the price of a step.
    const int with_contraction =
        contractions > 0 ? droppable + steps - 1 + std::min<int>(steps, frontier.merges) : 0;
    if (-missing > std::max(steps, with_contraction)) return true;
  }
  return false;
}

// It is a window, repeated, or a factor of a dimension of the input: a Split makes products, and nothing else changes
// the size of what stays but a Stride, which makes another coordinate.
bool CompletionBound::may_stay(SizeId size) {
  const auto place = static_cast<std::size_t>(size);
  if (place >= stay_.size()) stay_.resize(place + 1, 0);
  if (stay_[place] != 0) return stay_[place] == 2;
  const Size& now = sizes_.size(size);
  const std::int64_t repeat = spec_.limits().max_repeat;
  bool found =
      sizes_.is_window(size) || (repeat > 1 && spec_.fit_suffices(sizes_.fit_at_most(now, repeat)));
  for (const SizeId target : target_) {
    bool divides = true;
    for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
      const int left = sizes_.size(target).power(v) - now.power(v);
      divides = divides && (left >= 0 || !spec_.variable(v).primary);
    }
    FitMask fit = 0;
    for (std::size_t b = 0; divides && b < spec_.bindings().size(); ++b) {
      const std::int64_t value = sizes_.value(size, b);
      if (value > 0 && sizes_.value(target, b) % value == 0) fit |= FitMask{1} << b;
    }
    found = found || (divides && spec_.fit_suffices(fit));
  }
  stay_[place] = found ? 2 : 1;
  return found;
}

// What sizes alone refute. Strides multiply sizes, which groups do not.
bool CompletionBound::reshape_refutes(const Frontier& frontier, int steps) {
  if (mode_ != BoundMode::kFull || frontier.strides > 0) return false;
  std::array<ReshapeInput, kMaxFrontier> inputs;
  for (std::size_t i = 0; i < frontier.size; ++i) {
    const Piece now = frontier.pieces[i];
    const SizeId size = size_of(now);
    const Kind kind = kind_of(now);
    const bool bare = kind == kBareReduction || kind == kBarePiece;
    Removal removal;
    removal.contraction = can_leave(now);
    removal.second_contraction = bare;
    const bool window = sizes_.is_window(size);
    const bool repeat =
        spec_.limits().max_repeat > 1 &&
        spec_.fit_suffices(sizes_.fit_at_most(sizes_.size(size), spec_.limits().max_repeat));
    removal.step = window || repeat;
    removal.step_after_contraction = !repeat && bare && restrict_windows_;
    // From the front: sizes with primaries are interned first, and decide most.
    inputs[i] = {size, removal};
  }
  ReshapeLimits limits;
  // NOLINTBEGIN(bugprone-signed-char-misuse): numbers of steps, not characters.
  limits.splits = frontier.splits;
  limits.merges = frontier.merges;
  limits.contractions = frontier.weights;
  // NOLINTEND(bugprone-signed-char-misuse)
  limits.removals = spec_.limits().max_repeat > 1 ? steps : frontier.unfolds;
  limits.unweighted = !frontier.weighted;
  return !reshape_.possible({inputs.data(), frontier.size}, limits, steps);
}

// Budgets beyond any use are one and the same: the table knows such frontiers already.
void CompletionBound::clamp(Frontier& frontier) const {
  if (mode_ != BoundMode::kFull) return;
  frontier.unfolds = std::min<std::int8_t>(
      frontier.unfolds, static_cast<std::int8_t>(frontier.size + frontier.merges));
  frontier.splits = std::min<std::int8_t>(
      frontier.splits, static_cast<std::int8_t>(frontier.size + frontier.merges));
  if (frontier.strides > 0) return;
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
    int most = 0;
    if (spec_.variable(v).primary) {
      for (std::size_t i = 0; i < frontier.size; ++i)
        most += sizes_.size(size_of(frontier.pieces[i])).power(v);
      most *= frontier.weights;
    } else if (frontier.merges > 0) {
      most = 100;
    }
    frontier.left[v] = static_cast<std::int8_t>(std::min<int>(frontier.left[v], most));
  }
}

bool CompletionBound::feasible(Frontier& frontier, int steps) {
  if (is_complete(frontier)) return true;
  if (steps <= 0 || out_of_reach(frontier, steps)) return false;
  clamp(frontier);
  std::uint64_t key = 0;
  std::uint64_t check = 0;
  for (std::size_t i = 0; i < frontier.size; ++i) {
    const std::uint64_t word = mix_bits(frontier.pieces[i] + kGoldenRatio);
    key += word;
    check += mix_bits(word + 0x7F4A7C159E3779B9ULL);
  }
  std::uint64_t caps = frontier.weighted;
  for (const std::int8_t cap :
       {frontier.splits, frontier.merges, frontier.unfolds, frontier.strides, frontier.weights})
    caps = caps << 8 | static_cast<std::uint8_t>(cap);
  key = mix_bits(key ^ mix_bits(caps));
  check = mix_bits(check + caps);
  const auto depth = static_cast<std::uint64_t>(std::min(steps, 200));
  // Sizes alone, whatever the budgets.
  {
    Entry& entry = remember(key ^ 0x5851F42D4C957F2DULL, check);
    if (depth <= entry.refuted) return false;
    if (depth < entry.proved) {
      const bool refuted = reshape_refutes(frontier, steps);
      if (refuted) {
        entry.refuted = depth;
        return false;
      }
      entry.proved = depth;
    }
  }
  std::uint64_t budgets[2] = {};
  for (std::size_t v = 0; v < kMaxVariables; ++v)
    budgets[v / 8] = budgets[v / 8] << 8 | static_cast<std::uint8_t>(frontier.left[v]);
  key = mix_bits(key ^ mix_bits(budgets[0] + 1)) ^ mix_bits(budgets[1]);
  check = mix_bits(check + budgets[0]) + mix_bits(budgets[1] + 3);
  {
    const Entry& known = remember(key, check);
    if (depth <= known.refuted) return false;
    if (depth >= known.proved) return true;
  }
  const bool found = try_contractions(frontier, steps - 1) || try_windows(frontier, steps - 1) ||
                     try_splits(frontier, steps - 1) || try_merges(frontier, steps - 1) ||
                     try_strides(frontier, steps - 1) || try_repeats(frontier, steps - 1);
  Entry& entry = remember(key, check);
  if (found) {
    entry.proved = std::min<std::uint64_t>(entry.proved, depth);
  } else {
    entry.refuted = std::max<std::uint64_t>(entry.refuted, depth);
  }
  return found;
}

bool CompletionBound::charge_share(std::array<std::int8_t, kMaxVariables>& left,
                                   SizeId size) const {
  if (mode_ != BoundMode::kFull) return true;
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
    const int power = sizes_.size(size).power(v);
    if (power == 0 || !spec_.variable(v).primary) continue;
    left[v] = static_cast<std::int8_t>(left[v] - power);
    if (left[v] < 0) return false;
  }
  return true;
}

// A contraction may drop any coordinates that can leave and hold any reductions; those without primaries are held for
// free, so all of them are.
bool CompletionBound::try_contractions(const Frontier& frontier, int steps) {
  if (frontier.weights == 0) return false;
  Frontier base = frontier;
  base.weighted = true;
  --base.weights;
  std::array<std::size_t, kMaxFrontier> choices;
  std::size_t count = 0;
  for (std::size_t i = 0; i < base.size; ++i) {
    Piece& now = base.pieces[i];
    const Kind kind = kind_of(now);
    if (kind == kStays) continue;
    auto left = base.left;
    if (!charge_share(left, size_of(now))) continue;
    const bool bare = kind == kBareReduction || kind == kBarePiece;
    if (bare && left == base.left) {
      now = piece(size_of(now), kHeldReduction);
    } else if (bare || can_leave(now)) {
      choices[count++] = i;
    }
  }
  // Not so many subsets are tried: the graph is admitted, which loses nothing.
  if (count > kMostChoices) return true;
  const std::size_t subsets = std::size_t{1} << count;
  const std::size_t bindings = spec_.bindings().size();
  for (std::size_t subset = subsets; subset-- > 0;) {
    Frontier next = base;
    next.size = 0;
    bool legal = true;
    bool leaves = false;
    std::array<bool, kMaxFrontier> taken{};
    for (std::size_t n = 0; n < count && legal; ++n) {
      if (!(subset >> n & 1)) continue;
      taken[choices[n]] = true;
      legal = charge_share(next.left, size_of(base.pieces[choices[n]]));
    }
    if (!legal) continue;
    for (std::size_t i = 0; i < base.size; ++i) {
      const Kind kind = kind_of(base.pieces[i]);
      if (!taken[i]) {
        next.insert(base.pieces[i]);
      } else if (kind == kBareReduction || kind == kBarePiece) {
        next.insert(piece(size_of(base.pieces[i]), kHeldReduction));
      } else {
        leaves = true;
      }
    }
    if (mode_ == BoundMode::kFull) {
      if (!leaves && !spec_.limits().element_wise_weights) continue;
      FitMask fit = 0;
      for (std::size_t b = 0; b < bindings; ++b) {
        double dropped = 1;
        double joined = 1;
        for (std::size_t n = 0; n < count; ++n) {
          const Piece now = base.pieces[choices[n]];
          if (!(subset >> n & 1)) continue;
          const auto value = static_cast<double>(sizes_.value(size_of(now), b));
          if (kind_of(now) == kLeaves) dropped *= value;
          if (kind_of(now) == kHeldReduction) joined *= value;
        }
        const Limits& limits = spec_.limits();
        // What is counted as dropped here may be a piece of reductions, which is joined.
        const auto most = static_cast<double>(limits.max_dropped) *
                          static_cast<double>(std::max<std::int64_t>(1, limits.max_joined));
        if (joined <= static_cast<double>(limits.max_joined) && dropped * joined <= most)
          fit |= FitMask{1} << b;
      }
      if (!spec_.fit_suffices(fit)) continue;
    }
    if (feasible(next, steps)) return true;
  }
  return false;
}

// A Reduce that no weight holds and that goes into a coordinate which none can hold is pooled.
bool CompletionBound::may_pool(const Frontier& frontier, Piece part, SizeId into) const {
  // Of a piece, a weight may hold the sibling.
  if (mode_ != BoundMode::kFull || kind_of(part) != kBareReduction) return true;
  if (sizes_.poolable(size_of(part))) return true;
  if (frontier.weights == 0) return false;
  // As StateSpace::may_be_held.
  if (frontier.merges > 0 || (frontier.unfolds > 0 && sizes_.is_window(into))) return true;
  auto left = frontier.left;
  return charge_share(left, into);
}

bool CompletionBound::try_windows(const Frontier& frontier, int steps) {
  if (frontier.unfolds == 0) return false;
  for (std::size_t j = 0; j < frontier.size; ++j) {
    const Piece window = frontier.pieces[j];
    if (j > 0 && frontier.pieces[j - 1] == window) continue;
    if (!sizes_.is_window(size_of(window))) continue;
    if (restrict_windows_ && (kind_of(window) == kBareReduction || kind_of(window) == kBarePiece))
      continue;
    for (std::size_t i = 0; i < frontier.size; ++i) {
      const Piece over = frontier.pieces[i];
      if (i == j || (i > 0 && i - 1 != j && frontier.pieces[i - 1] == over)) continue;
      if (!sizes_.slides(size_of(over), size_of(window))) continue;
      if (!may_pool(frontier, over, size_of(over))) continue;
      Frontier next = frontier;
      --next.unfolds;
      next.erase(std::max(i, j));
      next.erase(std::min(i, j));
      next.insert(
          piece(size_of(over), mode_ == BoundMode::kFull && restrict_dropped_ ? kStays : kLeaves));
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_splits(const Frontier& frontier, int steps) {
  if (frontier.splits == 0) return false;
  for (std::size_t i = 0; i + 1 < frontier.size; ++i) {
    if (i > 0 && frontier.pieces[i - 1] == frontier.pieces[i]) continue;
    for (std::size_t j = i + 1; j < frontier.size; ++j) {
      if (j > i + 1 && frontier.pieces[j - 1] == frontier.pieces[j]) continue;
      const SizeId product =
          sizes_.product(size_of(frontier.pieces[i]), size_of(frontier.pieces[j]));
      if (product == kNoSize) continue;
      if (apart_reductions_ && kind_of(frontier.pieces[i]) == kBareReduction &&
          kind_of(frontier.pieces[j]) == kBareReduction)
        continue;
      if (!may_pool(frontier, frontier.pieces[i], product) ||
          !may_pool(frontier, frontier.pieces[j], product))
        continue;
      Frontier next = frontier;
      --next.splits;
      next.erase(j);
      next.erase(i);
      next.insert(
          piece(product, mode_ == BoundMode::kFull && restrict_dropped_ ? kStays : kLeaves));
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_merges(const Frontier& frontier, int steps) {
  if (frontier.merges == 0) return false;
  for (std::size_t i = 0; i < frontier.size; ++i) {
    if (i > 0 && frontier.pieces[i - 1] == frontier.pieces[i]) continue;
    const SizeId whole = size_of(frontier.pieces[i]);
    const Kind kind = kind_of(frontier.pieces[i]);
    if (whole_reductions_ && (kind == kBareReduction || kind == kHeldReduction)) continue;
    const bool bare = kind == kBareReduction || kind == kBarePiece;
    const Kind made = !bare && kind != kHeldReduction                  ? kLeaves
                      : bare && restrict_dropped_ && restrict_windows_ ? kBarePiece
                                                                       : kHeldReduction;
    const std::size_t count = sizes_.blocks(whole).size();
    for (std::size_t n = 0; n < count; ++n) {
      const SizeId block = sizes_.blocks(whole)[n];
      const SizeId quotient = sizes_.quotients(whole)[n];
      Frontier next = frontier;
      --next.merges;
      if (mode_ == BoundMode::kFull) {
        bool affordable = true;
        for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
          const int charge =
              (std::abs(sizes_.size(quotient).power(v)) + std::abs(sizes_.size(block).power(v)) -
               std::abs(sizes_.size(whole).power(v))) /
              2;
          next.left[v] = static_cast<std::int8_t>(next.left[v] - charge);
          affordable = affordable && (charge == 0 || next.left[v] >= 0);
        }
        if (!affordable) continue;
      }
      next.erase(i);
      next.insert(piece(quotient, made));
      next.insert(piece(block, made));
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_strides(const Frontier& frontier, int steps) {
  if (frontier.strides == 0) return false;
  const bool stays = mode_ == BoundMode::kFull && restrict_dropped_;
  const std::size_t variables = mode_ == BoundMode::kFull ? spec_.variables()->count() : 0;
  for (const SizeId factor : sizes_.universe()) {
    const Size& size = sizes_.size(factor);
    std::array<int, kMaxVariables> charge{};
    bool affordable = true;
    for (std::size_t v = 0; v < variables && affordable; ++v) {
      charge[v] = std::abs(size.power(v));
      affordable = charge[v] == 0 || charge[v] <= frontier.left[v];
    }
    if (!affordable) continue;
    for (std::size_t i = 0; i < frontier.size; ++i) {
      if (i > 0 && frontier.pieces[i - 1] == frontier.pieces[i]) continue;
      const SizeId product = sizes_.product(size_of(frontier.pieces[i]), factor);
      if (product == kNoSize || (stays && frontier.merges == 0 && !may_stay(product))) continue;
      Frontier next = frontier;
      --next.strides;
      for (std::size_t v = 0; v < variables; ++v)
        next.left[v] = static_cast<std::int8_t>(next.left[v] - charge[v]);
      next.erase(i);
      next.insert(piece(product, stays ? kStays : kLeaves));
      if (feasible(next, steps)) return true;
    }
  }
  return false;
}

bool CompletionBound::try_repeats(const Frontier& frontier, int steps) {
  if (spec_.limits().max_repeat <= 1) return false;
  for (std::size_t i = 0; i < frontier.size; ++i) {
    if (i > 0 && frontier.pieces[i - 1] == frontier.pieces[i]) continue;
    const Size& extent = sizes_.size(size_of(frontier.pieces[i]));
    if (!spec_.fit_suffices(sizes_.fit_at_most(extent, spec_.limits().max_repeat))) continue;
    Frontier next = frontier;
    next.erase(i);
    if (feasible(next, steps)) return true;
  }
  return false;
}

}  // namespace syno
