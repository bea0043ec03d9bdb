#include "syno/space/state.h"

#include <algorithm>
#include <cstdlib>

#include "syno/spec/variable_marks.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// As the quality condition is called (quality/quality.h).
constexpr Reason kPoolingReason = "max_pooling";

void erase(State& state, std::size_t place) {
  std::copy(state.slots.begin() + static_cast<std::ptrdiff_t>(place) + 1,
            state.slots.begin() + state.size,
            state.slots.begin() + static_cast<std::ptrdiff_t>(place));
  --state.size;
}

void append(State& state, Slot slot) {
  slot.id = state.coordinates++;
  state.slots[state.size++] = slot;
}

// Takes from the budget of variable `v`; false when that is spent.
bool take_budget(State& state, std::size_t v, int charge) {
  if (charge == 0) return true;
  state.left[v] = static_cast<std::int8_t>(state.left[v] - charge);
  return state.left[v] >= 0;
}

}  // namespace

StateSpace::StateSpace(const Specification& spec)
    : spec_(spec), sizes_(spec), input_elements_(sizes_.intern(input_elements(spec))) {
  if (spec.bindings().empty()) {
    throw Complaint("the specification \"" + spec.text() + "\" has no binding")
        .hint("give the values of its primary variables (bindings), or a network with slots")
        .error();
  }
  const Limits& limits = spec.limits();
  constexpr std::int64_t kMost = 8;
  if (limits.max_weights > kMost) {
    throw Complaint("an enumeration allows at most " + std::to_string(kMost) + " weights")
        .expected("max_weights of at most " + std::to_string(kMost),
                  std::to_string(limits.max_weights))
        .error();
  }
  const auto most =
      static_cast<std::int64_t>(spec.output().size()) + limits.max_reductions + limits.max_merges;
  if (most > static_cast<std::int64_t>(kMaxFrontier)) {
    throw Complaint("an enumeration holds at most " + std::to_string(kMaxFrontier) +
                    " coordinates at once")
        .expected("output dimensions + max_reductions + max_merges of at most " +
                      std::to_string(kMaxFrontier),
                  std::to_string(most))
        .error();
  }
  if (limits.max_reductions > static_cast<std::int64_t>(kMaxReductions)) {
    throw Complaint("an enumeration allows at most " + std::to_string(kMaxReductions) +
                    " reductions")
        .expected("max_reductions of at most " + std::to_string(kMaxReductions),
                  std::to_string(limits.max_reductions))
        .error();
  }
  if (limits.max_depth > 100) {
    throw Complaint("an enumeration takes at most 100 steps")
        .expected("max_depth of at most 100", std::to_string(limits.max_depth))
        .error();
  }
}

State StateSpace::root() const {
  State state;
  state.fit = spec_.full_fit();
  SizeSpace& sizes = const_cast<SizeSpace&>(sizes_);
  for (std::size_t d = 0; d < spec_.output().size(); ++d) {
    Slot slot;
    slot.size = sizes.intern(spec_.output()[d].size);
    slot.origin = Origin::kIterator;
    slot.causal = spec_.output()[d].causal;
    slot.passed = spec_.passes_output(static_cast<int>(d));
    append(state, slot);
  }
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v)
    state.left[v] = static_cast<std::int8_t>(std::min(spec_.variable(v).budget, 100));
  state.reductions = state.repeats = state.pooled = sizes.intern(Size());
  return state;
}

Reason StateSpace::narrow(State& state, FitMask fit, Reason reason) const {
  state.fit &= fit;
  return spec_.fit_suffices(state.fit) ? reason::kNone : reason;
}

// Whether a weight may still hold a coordinate of this size, or one that is made of it. Merges make smaller ones; what a
// window slides over may be smaller, too.
bool StateSpace::may_be_held(const State& state, SizeId size) const {
  const Limits& limits = spec_.limits();
  if (state.count(Primitive::kShare) >= limits.max_weights) return false;
  if (state.count(Primitive::kMerge) < limits.max_merges) return true;
  if (state.count(Primitive::kUnfold) < limits.max_unfolds && sizes_.is_window(size)) return true;
  return affords(state, sizes_.size(size), true);
}

// A Reduce that no weight has seen and that no coordinate which a weight may still hold is made of is summed over data
// alone. `made` is what the last step made. (What a weight has seen in part only is judged when the operator is complete.)
Reason StateSpace::pool(State& state, const Slot& made) {
  auto lost = static_cast<std::uint16_t>(made.reductions & ~state.seen_reductions &
                                         ~state.pooled_reductions);
  for (std::size_t place = 0; place < state.size && lost != 0; ++place) {
    const Slot& slot = state.slots[place];
    if ((slot.reductions & lost) != 0 && may_be_held(state, slot.size))
      lost = static_cast<std::uint16_t>(lost & ~slot.reductions);
  }
  if (lost == 0) return reason::kNone;
  for (std::size_t r = 0; r < state.reduction_sizes.size(); ++r) {
    if (lost >> r & 1) state.pooled = sizes_.times(state.pooled, state.reduction_sizes[r]);
  }
  state.pooled_reductions |= lost;
  FitMask fit = 0;
  for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
    const std::int64_t value = sizes_.value(state.pooled, b);
    if (value > 0 && value <= spec_.limits().max_pooling) fit |= FitMask{1} << b;
  }
  return spec_.fit_suffices(state.fit & fit) ? reason::kNone : kPoolingReason;
}

Reason StateSpace::advance(State& state, const Move& move) {
  const Limits& limits = spec_.limits();
  ++state.depth;
  ++state.counts[static_cast<std::size_t>(move.primitive)];
  const std::size_t variables = spec_.variables()->count();
  switch (move.primitive) {
    case Primitive::kReduce: {
      const Size& size = sizes_.size(move.size);
      for (std::size_t v = 0; v < variables; ++v) {
        const int charge = std::abs(size.power(v));
        if (!take_budget(state, v, charge)) return reason::kBudget;
      }
      if (!sizes_.legal(move.size)) return reason::kIllegalSize;
      if (Reason why = narrow(state, sizes_.fit(move.size), reason::kFit); !why.empty()) return why;
      state.reductions = sizes_.times(state.reductions, move.size);
      FitMask fit = 0;
      for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
        if (static_cast<double>(sizes_.value(state.reductions, b)) <=
            limits.max_reduction_ratio * static_cast<double>(sizes_.value(input_elements_, b)))
          fit |= FitMask{1} << b;
      }
      Slot slot;
      slot.size = move.size;
      slot.origin = Origin::kReduction;
      slot.reductions_only = true;
      slot.reductions = static_cast<std::uint16_t>(1U << (state.count(Primitive::kReduce) - 1));
      state.reduction_sizes[state.count(Primitive::kReduce) - 1U] = move.size;
      append(state, slot);
      return narrow(state, fit, reason::kReductionRatio);
    }
    case Primitive::kShare: return share(state, move);
    case Primitive::kExpand: {
      state.repeats = sizes_.times(state.repeats, state.slots[move.a].size);
      erase(state, move.a);
      FitMask fit = 0;
      for (std::size_t b = 0; b < spec_.bindings().size(); ++b) {
        if (sizes_.value(state.repeats, b) <= limits.max_repeat) fit |= FitMask{1} << b;
      }
      return narrow(state, fit, reason::kRepeat);
    }
    case Primitive::kSplit:
    case Primitive::kMerge:
    case Primitive::kShift:
    case Primitive::kUnfold:
    case Primitive::kStride: break;
  }
  const Slot in = state.slots[move.a];
  Slot out = in;
  out.weights = 0;
  out.origin = Origin::kOther;
  ++out.chain;
  switch (move.primitive) {
    case Primitive::kSplit:
    case Primitive::kUnfold: {
      const Slot other = state.slots[move.b];
      out.chain = static_cast<std::uint8_t>(std::max(in.chain, other.chain) + 1);
      out.reductions_only = in.reductions_only && other.reductions_only;
      out.seen = in.seen || other.seen;
      out.reductions = static_cast<std::uint16_t>(in.reductions | other.reductions);
      out.causal = in.causal || other.causal;
      if (out.chain > limits.max_chain_length) return reason::kChain;
      if (move.primitive == Primitive::kSplit) {
        out.size = sizes_.times(in.size, other.size);
        if (!sizes_.legal(out.size)) return reason::kIllegalSize;
        if (Reason why = narrow(state, sizes_.fit(out.size), reason::kFit); !why.empty())
          return why;
      } else {
        if (!sizes_.legal(out.size)) return reason::kIllegalSize;
        if (move.causal != in.causal) return reason::kCausal;
        if (Reason why = narrow(state, sizes_.window_fit(other.size), reason::kWindow);
            !why.empty())
          return why;
        if (Reason why = narrow(state, sizes_.slide_fit(in.size, other.size), reason::kUnfoldRatio);
            !why.empty())
          return why;
      }
      erase(state, std::max(move.a, move.b));
      erase(state, std::min(move.a, move.b));
      append(state, out);
      return pool(state, out);
    }
    case Primitive::kMerge: {
      if (out.chain > limits.max_chain_length) return reason::kChain;
      const SizeId quotient = sizes_.over(in.size, move.size);
      const Size& block = sizes_.size(move.size);
      const Size& whole = sizes_.size(in.size);
      for (std::size_t v = 0; v < variables; ++v) {
        const int n = whole.power(v);
        const int k = block.power(v);
        const int charge = (std::abs(n - k) + std::abs(k) - std::abs(n)) / 2;
        if (!take_budget(state, v, charge)) return reason::kBudget;
      }
      if (!sizes_.legal(quotient) || !sizes_.legal(move.size)) return reason::kIllegalSize;
      if (Reason why = narrow(state, sizes_.fit(quotient) & sizes_.fit(move.size), reason::kFit);
          !why.empty())
        return why;
      out.origin = Origin::kMerge;
      erase(state, move.a);
      out.size = quotient;
      append(state, out);
      out.size = move.size;
      append(state, out);
      return pool(state, out);
    }
    case Primitive::kShift:
      if (out.chain > limits.max_chain_length) return reason::kChain;
      if (!sizes_.legal(out.size)) return reason::kIllegalSize;
      erase(state, move.a);
      append(state, out);
      return reason::kNone;
    case Primitive::kStride: {
      if (out.chain > limits.max_chain_length) return reason::kChain;
      const Size& factor = sizes_.size(move.size);
      for (std::size_t v = 0; v < variables; ++v) {
        const int charge = std::abs(factor.power(v));
        if (!take_budget(state, v, charge)) return reason::kBudget;
      }
      out.size = sizes_.times(in.size, move.size);
      if (!sizes_.legal(out.size)) return reason::kIllegalSize;
      if (Reason why = narrow(state, sizes_.fit(out.size) & sizes_.fit(move.size), reason::kFit);
          !why.empty())
        return why;
      erase(state, move.a);
      append(state, out);
      return reason::kNone;
    }
    case Primitive::kReduce:
    case Primitive::kShare:
    case Primitive::kExpand: break;
  }
  throw InternalError("advance: not a primitive");
}

Reason StateSpace::share(State& state, const Move& move) {
  const Limits& limits = spec_.limits();
  const std::size_t weight = state.count(Primitive::kShare) - 1U;
  const std::size_t bindings = spec_.bindings().size();
  std::array<double, Specification::kMaxBindings> params;
  std::array<double, Specification::kMaxBindings> dropped;
  std::array<double, Specification::kMaxBindings> joined;
  std::fill_n(params.begin(), bindings, 1.0);
  std::fill_n(dropped.begin(), bindings, 1.0);
  std::fill_n(joined.begin(), bindings, 1.0);
  bool leaves = false;
  std::size_t kept = 0;
  for (std::size_t place = 0; place < state.size; ++place) {
    const unsigned role = move.role(place);
    Slot& slot = state.slots[place];
    if (role != kNoRole) {
      const Size& size = sizes_.size(slot.size);
      for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
        const int power = size.power(v);
        if (power == 0 || !spec_.variable(v).primary) continue;
        state.left[v] = static_cast<std::int8_t>(state.left[v] - power);
        if (state.left[v] < 0) return reason::kBudget;
      }
      for (std::size_t b = 0; b < bindings; ++b) {
        const auto value = static_cast<double>(sizes_.value(slot.size, b));
        params[b] *= value;
        if (role == kKeepRole) continue;
        (slot.reductions_only ? joined : dropped)[b] *= value;
      }
      if (role != kKeepRole) {
        state.seen_reductions |= slot.reductions;
        leaves = true;
        continue;
      }
      slot.weights = static_cast<std::uint8_t>(slot.weights | 1U << weight);
      slot.seen = true;
      state.seen_reductions |= slot.reductions;
    }
    state.slots[kept++] = slot;
  }
  state.size = static_cast<std::uint8_t>(kept);
  if (!leaves && !limits.element_wise_weights) return reason::kElementWise;
  FitMask enough = 0;
  FitMask few_dropped = 0;
  FitMask few_joined = 0;
  // Beyond 64 bits a product is no number of parameters (Size::extent).
  constexpr double kMost = 9.2e18;
  for (std::size_t b = 0; b < bindings; ++b) {
    const FitMask bit = FitMask{1} << b;
    if (params[b] < kMost && params[b] >= static_cast<double>(limits.min_weight_params))
      enough |= bit;
    if (dropped[b] <= static_cast<double>(limits.max_dropped)) few_dropped |= bit;
    if (joined[b] <= static_cast<double>(limits.max_joined)) few_joined |= bit;
  }
  if (Reason why = narrow(state, enough, reason::kWeightParams); !why.empty()) return why;
  if (Reason why = narrow(state, few_dropped, reason::kDropped); !why.empty()) return why;
  return narrow(state, few_joined, reason::kJoined);
}

bool StateSpace::affords(const State& state, const Size& size, bool primaries_only) const {
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
    if (primaries_only && !spec_.variable(v).primary) continue;
    if (std::abs(size.power(v)) > state.left[v]) return false;
  }
  return true;
}

void StateSpace::add_reductions(const State& state, std::vector<Move>& out) {
  if (state.count(Primitive::kReduce) >= spec_.limits().max_reductions) return;
  const bool first = state.depth == 0;
  const Size least = first ? Size() : sizes_.size(state.slots[state.size - 1].size);
  for (const SizeId id : sizes_.universe()) {
    if (!first && sizes_.size(id) < least) continue;
    if (!affords(state, sizes_.size(id), false)) continue;
    Move move;
    move.primitive = Primitive::kReduce;
    move.size = id;
    out.push_back(move);
  }
}

// Every coordinate takes part or not, and stays or leaves, cut where a budget is used up.
void StateSpace::add_contractions(const State& state, bool restricted, std::vector<Move>& out) {
  if (state.count(Primitive::kShare) >= spec_.limits().max_weights) return;
  Move move;
  move.primitive = Primitive::kShare;
  const auto visit = [&](auto&& self, State& budgets, std::size_t place, bool leaves) -> void {
    if (place == state.size) {
      if (move.roles != 0 && (leaves || spec_.limits().element_wise_weights)) out.push_back(move);
      return;
    }
    self(self, budgets, place + 1, leaves);
    const Slot& slot = state.slots[place];
    if (slot.passed) return;
    if (slot.untouched()) {
      // Of exchangeable reductions the first ones are taken.
      for (std::size_t before = place; before-- > 0;) {
        if (!state.slots[before].untouched() || state.slots[before].size != slot.size) continue;
        if (move.role(before) == kNoRole) return;
        break;
      }
    }
    const Size& size = sizes_.size(slot.size);
    if (!affords(budgets, size, true)) return;
    const auto left = budgets.left;
    for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
      if (spec_.variable(v).primary)
        budgets.left[v] = static_cast<std::int8_t>(budgets.left[v] - size.power(v));
    }
    const auto with = [&](unsigned role) {
      move.roles |= static_cast<std::uint64_t>(role) << (2 * place);
      self(self, budgets, place + 1, leaves || role != kKeepRole);
      move.roles &= ~(std::uint64_t{3} << (2 * place));
    };
    with(kKeepRole);
    if (slot.weights != 0) {
      if (!restricted || slot.origin != Origin::kOther) with(kJoinRole);
    } else if (!slot.untouched()) {
      // A Reduce that no weight holds yet would only add up this weight.
      if (!restricted || (slot.origin != Origin::kOther && !slot.reductions_only)) with(kDropRole);
    }
    budgets.left = left;
  };
  State budgets = state;
  visit(visit, budgets, 0, false);
}

void StateSpace::add_views(const State& state, std::vector<Move>& out) {
  const Limits& limits = spec_.limits();
  // Whether `place` is the first of the untouched reductions of its size, `other` apart.
  const auto first = [&](std::size_t place, std::size_t other) {
    const Slot& slot = state.slots[place];
    if (!slot.untouched()) return true;
    for (std::size_t before = 0; before < place; ++before) {
      if (before != other && state.slots[before].untouched() &&
          state.slots[before].size == slot.size)
        return false;
    }
    return true;
  };
  const auto emit = [&](Primitive primitive, std::size_t a, std::size_t b, SizeId size, int amount,
                        bool causal) {
    Move move;
    move.primitive = primitive;
    move.a = static_cast<std::uint8_t>(a);
    move.b = static_cast<std::uint8_t>(b);
    move.size = size;
    move.amount = static_cast<std::int16_t>(amount);
    move.causal = causal;
    out.push_back(move);
  };
  for (std::size_t i = 0; i < state.size; ++i) {
    const Slot& slot = state.slots[i];
    if (slot.passed) continue;
    for (std::size_t j = 0; j < state.size; ++j) {
      const Slot& other = state.slots[j];
      if (i == j || other.passed || !first(i, j) || !first(j, i)) continue;
      if (i > j && slot.untouched() && other.untouched() && slot.size == other.size) continue;
      if (state.count(Primitive::kSplit) < limits.max_splits)
        emit(Primitive::kSplit, i, j, kNoSize, 0, false);
      if (state.count(Primitive::kUnfold) < limits.max_unfolds && sizes_.is_window(other.size) &&
          sizes_.slides(slot.size, other.size))
        emit(Primitive::kUnfold, i, j, kNoSize, 0, slot.causal);
    }
    if (!first(i, kMaxFrontier)) continue;
    if (state.count(Primitive::kMerge) < limits.max_merges) {
      const std::vector<SizeId>& blocks = sizes_.blocks(slot.size);
      for (const SizeId block : blocks) emit(Primitive::kMerge, i, 0, block, 0, false);
    }
    if (state.count(Primitive::kShift) < limits.max_shifts) {
      for (std::int64_t amount = 1; amount <= limits.max_shift_amount; ++amount) {
        emit(Primitive::kShift, i, 0, kNoSize, static_cast<int>(amount), false);
        if (limits.negative_shifts)
          emit(Primitive::kShift, i, 0, kNoSize, static_cast<int>(-amount), false);
      }
    }
    if (state.count(Primitive::kStride) < limits.max_strides) {
      for (const SizeId factor : sizes_.universe()) {
        if (affords(state, sizes_.size(factor), false))
          emit(Primitive::kStride, i, 0, factor, 0, false);
      }
    }
    if (limits.max_repeat > 1) emit(Primitive::kExpand, i, 0, kNoSize, 0, false);
  }
}

void StateSpace::moves(const State& state, bool drop_iterators_and_merges, std::vector<Move>& out) {
  out.clear();
  if (state.only_reductions()) add_reductions(state, out);
  add_contractions(state, drop_iterators_and_merges, out);
  add_views(state, out);
}

Step StateSpace::step(const State& state, const Move& move) const {
  const auto id = [&](std::uint8_t place) { return state.slots[place].id; };
  switch (move.primitive) {
    case Primitive::kSplit: return Step::split(id(move.a), id(move.b));
    case Primitive::kMerge: return Step::merge(id(move.a), sizes_.size(move.size));
    case Primitive::kShift: return Step::shift(id(move.a), move.amount);
    case Primitive::kExpand: return Step::expand(id(move.a));
    case Primitive::kUnfold: return Step::unfold(id(move.a), id(move.b), move.causal);
    case Primitive::kStride: return Step::stride(id(move.a), sizes_.size(move.size));
    case Primitive::kReduce: return Step::reduce(sizes_.size(move.size));
    case Primitive::kShare: {
      std::vector<SharedDim> dims;
      for (std::size_t place = 0; place < state.size; ++place) {
        constexpr ShareRole kRoles[] = {ShareRole::kKeep, ShareRole::kKeep, ShareRole::kDrop,
                                        ShareRole::kJoin};
        const unsigned role = move.role(place);
        if (role != kNoRole) dims.push_back({state.slots[place].id, kRoles[role]});
      }
      return Step::contract(dims);
    }
  }
  throw InternalError("step: not a primitive");
}

Move StateSpace::move(const State& state, const Step& step) {
  const auto place = [&](CoordinateId id) {
    for (std::size_t i = 0; i < state.size; ++i) {
      if (state.slots[i].id == id) return static_cast<std::uint8_t>(i);
    }
    throw InternalError("move: a coordinate is not in the frontier");
  };
  Move move;
  move.primitive = step.primitive;
  if (step.in[0] != kNoCoordinate) move.a = place(step.in[0]);
  if (step.in[1] != kNoCoordinate) move.b = place(step.in[1]);
  move.causal = step.causal;
  move.amount = static_cast<std::int16_t>(step.amount);
  if (step.primitive == Primitive::kMerge || step.primitive == Primitive::kStride ||
      step.primitive == Primitive::kReduce)
    move.size = sizes_.intern(step.size);
  for (const SharedDim& dim : step.dims) {
    const unsigned role = dim.role == ShareRole::kKeep   ? kKeepRole
                          : dim.role == ShareRole::kDrop ? kDropRole
                                                         : kJoinRole;
    move.roles |= static_cast<std::uint64_t>(role) << (2 * place(dim.coordinate));
  }
  return move;
}

State StateSpace::replay(const Graph& graph) {
  State state = root();
  Graph prefix(graph.variables(), graph.output());
  for (const Step& step : graph.steps()) {
    const Reason why = advance(state, move(state, step));
    if (!why.empty()) throw UserError(describe_refusal(spec_, prefix, step, why));
    prefix.apply(step);
  }
  return state;
}

Hash128 StateSpace::mark(SizeId size) {
  const auto index = static_cast<std::size_t>(size);
  if (size_marks_.size() <= index) size_marks_.resize(index + 1);
  if (size_marks_[index] != Hash128{}) return size_marks_[index];
  return size_marks_[index] = size_mark(spec_, sizes_.size(size));
}

Hash128 StateSpace::mark_of_output(std::size_t dim) {
  const Dimension& dimension = spec_.output()[dim];
  return Hasher("output")
      .add(static_cast<int>(dim))
      .add(mark(sizes_.intern(dimension.size)))
      .add(dimension.unordered)
      .add(dimension.causal)
      .finish();
}

}  // namespace syno
