#include "syno/space/state.h"

#include <algorithm>
#include <cstdlib>

#include "syno/quality/quality.h"
#include "syno/spec/legality.h"
#include "syno/spec/variable_fingerprints.h"
#include "syno/support/error.h"

namespace syno {
namespace {

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

// Whether a weight may still hold a coordinate of this size, or one that is made of it. Merges make smaller ones; what a
// window slides over may be smaller, too.
bool StateSpace::may_be_held(const State& state, SizeId size) const {
  if (state.weight_count() >= spec_.limits().max_weights) return false;
  for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
    const PrimitiveInfo& info = primitive_info(static_cast<Primitive>(p));
    if (!has_left(state, info.primitive)) continue;
    if (info.cuts() || (info.slides() && sizes_.is_window(size))) return true;
  }
  return affords_share(state, sizes_.size(size));
}

// A Reduce that no weight has seen and that no coordinate which a weight may still hold is made of is summed over data
// alone. `reductions` are those that the last step used. (What a weight has seen in part only is checked when the operator is complete.)
Reason StateSpace::pool(State& state, std::uint16_t reductions) {
  auto lost =
      static_cast<std::uint16_t>(reductions & ~state.seen_reductions & ~state.pooled_reductions);
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
  return spec_.fit_suffices(state.fit & fit) ? reason::kNone : reason::kPooling;
}

// A state that a move is entered in.
class StateSpace::Account {
 public:
  using Extent = SizeId;

  Account(StateSpace& space, State& state)
      : spec_(space.spec_), sizes_(space.sizes_), input_(space.input_elements_), state_(state) {}

  SizeId times(SizeId a, SizeId b) { return sizes_.times(a, b); }
  SizeId over(SizeId a, SizeId b) { return sizes_.over(a, b); }
  bool legal(SizeId id) const { return sizes_.legal(id); }
  FitMask fit(SizeId id) const { return sizes_.fit(id); }
  const Size& size(SizeId id) const { return sizes_.size(id); }
  double value(SizeId id, std::size_t b) const { return static_cast<double>(sizes_.value(id, b)); }
  FitMask odd_fit(SizeId window) const { return sizes_.odd_fit(window); }
  FitMask window_fit(SizeId window) const { return sizes_.window_fit(window); }
  FitMask slide_fit(SizeId extent, SizeId window) { return sizes_.slide_fit(extent, window); }
  int add_step() { return ++state_.depth; }
  int add(Primitive primitive) { return ++state_.counts[static_cast<std::size_t>(primitive)]; }
  bool pay(std::size_t v, int charge) {
    state_.left[v] = static_cast<std::int8_t>(state_.left[v] - charge);
    return state_.left[v] >= 0;
  }
  FitMask& fit_left() { return state_.fit; }
  SizeId add_reduction(SizeId id) {
    return state_.reductions = sizes_.times(state_.reductions, id);
  }
  SizeId add_repeat(SizeId id) { return state_.repeats = sizes_.times(state_.repeats, id); }
  SizeId input() const { return input_; }

 private:
  const Specification& spec_;
  SizeSpace& sizes_;
  SizeId input_;
  State& state_;
};

Reason StateSpace::advance(State& state, const Move& move) {
  Account account(*this, state);
  StepRequest<SizeId> request{.info = move.info()};
  const PrimitiveInfo& info = request.info;
  // Written by a contraction only, and read as far as it is written.
  std::array<TakenDim<SizeId>, kMaxFrontier> taken;
  std::uint16_t reductions = 0;
  if (info.kind == StepKind::kContraction) {
    std::size_t count = 0;
    for (std::size_t place = 0; place < state.size; ++place) {
      const unsigned role = move.role(place);
      if (role == kNoRole) continue;
      const Slot& slot = state.slots[place];
      request.on_passed = request.on_passed || slot.passed;
      taken[count++] = {slot.size, role != kKeepRole, slot.reductions_only};
    }
    request.taken = {taken.data(), count};
  } else {
    const std::uint8_t places[2] = {move.a, move.b};
    for (std::size_t j = 0; j < static_cast<std::size_t>(info.consumes); ++j) {
      const Slot& slot = state.slots[places[j]];
      request.in[j] = slot.size;
      request.on_passed = request.on_passed || slot.passed;
      if (info.kind == StepKind::kView) request.chain = std::max(request.chain, slot.chain + 1);
      reductions = static_cast<std::uint16_t>(reductions | slot.reductions);
    }
    request.on_causal = info.consumes > 0 && state.slots[move.a].causal;
    request.size = move.size;
    request.amount = move.amount;
    request.causal = move.causal;
  }
  if (const Reason why = decide(spec_, account, request); !why.empty()) return why;
  switch (info.kind) {
    case StepKind::kReduction: {
      Slot slot;
      slot.size = move.size;
      slot.origin = Origin::kReduction;
      slot.reductions_only = true;
      slot.reductions = static_cast<std::uint16_t>(1U << (state.reduction_count() - 1));
      state.reduction_sizes[state.reduction_count() - 1U] = move.size;
      append(state, slot);
      return reason::kNone;
    }
    case StepKind::kContraction: contract(state, move); return reason::kNone;
    case StepKind::kRepetition: erase(state, move.a); return reason::kNone;
    case StepKind::kView: make_views(state, move, request.made); break;
  }
  // What takes one coordinate and makes one loses nothing that a weight could have held before.
  return info.consumes + info.produces > 2 ? pool(state, reductions) : reason::kNone;
}

void StateSpace::make_views(State& state, const Move& move,
                            const std::array<SizeId, 2>& sizes) const {
  const PrimitiveInfo& info = move.info();
  Slot made = state.slots[move.a];
  if (info.consumes == 2) {
    const Slot& other = state.slots[move.b];
    made.chain = std::max(made.chain, other.chain);
    made.reductions_only = made.reductions_only && other.reductions_only;
    made.seen = made.seen || other.seen;
    made.reductions = static_cast<std::uint16_t>(made.reductions | other.reductions);
    made.causal = made.causal || other.causal;
    erase(state, std::max(move.a, move.b));
    erase(state, std::min(move.a, move.b));
  } else {
    erase(state, move.a);
  }
  made.weights = 0;
  made.origin = info.produces == 2 ? Origin::kMerge : Origin::kOther;
  ++made.chain;
  for (std::size_t i = 0; i < static_cast<std::size_t>(info.produces); ++i) {
    made.size = sizes[i];
    append(state, made);
  }
}

void StateSpace::contract(State& state, const Move& move) const {
  const std::size_t weight = state.weight_count() - 1U;
  std::size_t kept = 0;
  for (std::size_t place = 0; place < state.size; ++place) {
    const unsigned role = move.role(place);
    Slot& slot = state.slots[place];
    if (role != kNoRole) state.seen_reductions |= slot.reductions;
    if (role == kDropRole || role == kJoinRole) continue;
    if (role == kKeepRole) {
      slot.weights = static_cast<std::uint8_t>(slot.weights | 1U << weight);
      slot.seen = true;
    }
    state.slots[kept++] = slot;
  }
  state.size = static_cast<std::uint8_t>(kept);
}

// Whether a contraction may take a coordinate of this size.
bool StateSpace::affords_share(const State& state, const Size& size) const {
  for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
    if (spec_.variable(v).primary && std::abs(size.power(v)) > state.left[v]) return false;
  }
  return true;
}

std::span<const SizeId> StateSpace::reductions_after(const State& state) const {
  const std::vector<SizeId>& all = sizes_.universe();
  if (state.depth == 0) return all;
  const Size& least = sizes_.size(state.slots[state.size - 1].size);
  const auto begin =
      std::lower_bound(all.begin(), all.end(), least,
                       [&](SizeId id, const Size& bound) { return sizes_.size(id) < bound; });
  return {begin, all.end()};
}

void StateSpace::add_reductions(const State& state, std::vector<Move>& out) {
  if (state.reduction_count() >= spec_.limits().max_reductions) return;
  for (const SizeId id : reductions_after(state)) {
    if (!affords(state, sizes_.size(id))) continue;
    Move move;
    move.primitive = kReductionPrimitive;
    move.size = id;
    out.push_back(move);
  }
}

// Every coordinate takes part or not, and stays or leaves, cut where a budget is used up.
void StateSpace::add_contractions(const State& state, bool restricted, std::vector<Move>& out) {
  if (state.weight_count() >= spec_.limits().max_weights) return;
  Move move;
  move.primitive = kContractionPrimitive;
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
    if (!affords_share(budgets, size)) return;
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
  // What takes one coordinate and only repeats comes last.
  InlineVector<const PrimitiveInfo*, kPrimitiveCount> of_two;
  InlineVector<const PrimitiveInfo*, kPrimitiveCount> of_one;
  for (const StepKind kind : {StepKind::kView, StepKind::kRepetition}) {
    for (std::size_t p = 0; p < kPrimitiveCount; ++p) {
      const PrimitiveInfo& info = primitive_info(static_cast<Primitive>(p));
      if (info.kind == kind && has_left(state, info.primitive))
        (info.consumes == 2 ? of_two : of_one).push_back(&info);
    }
  }
  for (std::size_t i = 0; i < state.size; ++i) {
    const Slot& slot = state.slots[i];
    if (slot.passed) continue;
    for (std::size_t j = 0; j < state.size; ++j) {
      const Slot& other = state.slots[j];
      if (i == j || other.passed || !first(i, j) || !first(j, i)) continue;
      if (i > j && slot.untouched() && other.untouched() && slot.size == other.size) continue;
      for (const PrimitiveInfo* info : of_two) {
        if (!info->slides()) {
          emit(info->primitive, i, j, kNoSize, 0, false);
        } else if (sizes_.is_window(other.size) && sizes_.slides(slot.size, other.size)) {
          emit(info->primitive, i, j, kNoSize, 0, slot.causal);
        }
      }
    }
    if (!first(i, kMaxFrontier)) continue;
    for (const PrimitiveInfo* info : of_one) {
      const auto with_size = [&](SizeId size) { emit(info->primitive, i, 0, size, 0, false); };
      switch (info->argument) {
        case Argument::kBlock:
          for (const SizeId block : sizes_.blocks(slot.size)) with_size(block);
          break;
        case Argument::kFactor:
          for (const SizeId factor : sizes_.universe())
            if (affords(state, sizes_.size(factor))) with_size(factor);
          break;
        case Argument::kAmount:
          for (std::int64_t amount = 1; amount <= limits.max_shift_amount; ++amount) {
            emit(info->primitive, i, 0, kNoSize, static_cast<int>(amount), false);
            if (limits.negative_shifts)
              emit(info->primitive, i, 0, kNoSize, static_cast<int>(-amount), false);
          }
          break;
        case Argument::kNone:
        case Argument::kExtent:
        case Argument::kCausal:
        case Argument::kRoles: with_size(kNoSize); break;
      }
    }
  }
}

void StateSpace::moves(const State& state, bool drop_iterators_and_merges, std::vector<Move>& out) {
  out.clear();
  if (state.only_reductions()) add_reductions(state, out);
  add_contractions(state, drop_iterators_and_merges, out);
  add_views(state, out);
}

Step StateSpace::step(const State& state, const Move& move) const {
  const PrimitiveInfo& info = move.info();
  Step step;
  step.primitive = move.primitive;
  if (info.consumes > 0) step.in[0] = state.slots[move.a].id;
  if (info.consumes > 1) step.in[1] = state.slots[move.b].id;
  if (takes_size(info.argument)) step.size = sizes_.size(move.size);
  step.amount = move.amount;
  step.causal = move.causal;
  if (info.argument != Argument::kRoles) return step;
  for (std::size_t place = 0; place < state.size; ++place) {
    constexpr WeightRole kRoles[] = {WeightRole::kKeep, WeightRole::kKeep, WeightRole::kDrop,
                                     WeightRole::kJoin};
    const unsigned role = move.role(place);
    if (role != kNoRole) step.dims.push_back({state.slots[place].id, kRoles[role]});
  }
  return step;
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
  if (takes_size(step.info().argument)) move.size = sizes_.intern(step.size);
  for (const WeightDim& dim : step.dims) {
    const unsigned role = dim.role == WeightRole::kKeep   ? kKeepRole
                          : dim.role == WeightRole::kDrop ? kDropRole
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
    if (!why.empty()) throw UserError(describe_rejection(spec_, prefix, step, why));
    prefix.apply(step);
  }
  return state;
}

Hash128 StateSpace::fingerprint(SizeId size) {
  const auto index = static_cast<std::size_t>(size);
  if (size_fingerprints_.size() <= index) size_fingerprints_.resize(index + 1);
  if (size_fingerprints_[index] != Hash128{}) return size_fingerprints_[index];
  return size_fingerprints_[index] = size_fingerprint(spec_, sizes_.size(size));
}

Hash128 StateSpace::fingerprint_of_output(std::size_t dim) {
  const Dimension& dimension = spec_.output()[dim];
  return Hasher("output")
      .add(static_cast<int>(dim))
      .add(fingerprint(sizes_.intern(dimension.size)))
      .add(dimension.unordered)
      .add(dimension.causal)
      .finish();
}

}  // namespace syno
