#include "syno/plan/macs_counter.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "syno/support/mix.h"

namespace syno {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53

std::size_t padded(std::size_t lanes) {
  return (lanes + 3) / 4 * 4;
}

}  // namespace

MacsCounter::MacsCounter(const ExtentTable& extents)
    : extents_(extents),
      lanes_(padded(extents.bindings().size())),
      extents_of_(CompactMap::kMaxCoordinates * lanes_, 1.0),
      macs_(extents.bindings().size(), 0),
      slots_(2 * kMaxStates) {}

CoordinateMask MacsCounter::waiting(const State& state) const {
  CoordinateMask dims = 0;
  for_each_bit(state.weights, [&](int w) { dims |= state.dims[static_cast<std::size_t>(w)]; });
  return dims;
}

void MacsCounter::execute(State& state, std::size_t number) const {
  const View& view = views_[number];
  bool touched = (state.data & view.out) != 0;
  // A window that neither the data nor a weight holds still masks: the data is repeated for it.
  bool held = touched;
  for_each_bit(state.weights, [&](int w) {
    CoordinateMask& dims = state.dims[static_cast<std::size_t>(w)];
    if ((dims & view.out) == 0) return;
    dims = (dims & ~view.out) | view.in;
    held = true;
  });
  touched = touched || (view.window != 0 && !held);
  if (touched) state.data = (state.data & ~view.out) | view.in;
  state.views &= ~(std::uint64_t{1} << number);
  state.open |= view.in;
}

bool MacsCounter::is_free_to_execute(const State& state, std::size_t number) const {
  const View& view = views_[number];
  if (view.window != 0) return (state.data & view.out) != 0 && (state.data & view.window) != 0;
  const CoordinateMask parts = state.data & view.out;
  if (!view.cuts || parts == view.out) return true;
  bool alone = parts != 0;
  for_each_bit(state.weights, [&](int w) {
    const CoordinateMask held = state.dims[static_cast<std::size_t>(w)] & view.out;
    alone = alone || (held != 0 && held != view.out);
  });
  return !alone;
}

void MacsCounter::settle(State& state) const {
  bool changed = true;
  while (changed) {
    changed = false;
    for_each_bit(state.views, [&](int v) {
      const auto view = static_cast<std::size_t>(v);
      if ((views_[view].out & ~state.open) != 0 || !is_free_to_execute(state, view)) return;
      execute(state, view);
      changed = true;
    });
  }
}

// The cost of a move that multiplies `elements` and goes on from the state at `next`.
void MacsCounter::offer(std::size_t place, CoordinateMask elements, std::size_t next) {
  double* best = &costs_[place * lanes_];
  const double* rest = &costs_[next * lanes_];
  for (std::size_t block = 0; block < lanes_; block += 4) {
    double product[4] = {1, 1, 1, 1};
    for (CoordinateMask left = elements; left != 0; left &= left - 1) {
      const double* extent =
          &extents_of_[static_cast<std::size_t>(__builtin_ctzll(left)) * lanes_ + block];
      for (std::size_t l = 0; l < 4; ++l) product[l] *= extent[l];
    }
    for (std::size_t l = 0; l < 4; ++l)
      best[block + l] = std::min(best[block + l], product[l] + rest[block + l]);
  }
}

bool MacsCounter::solve(State state, std::size_t& place) {
  settle(state);
  const std::uint64_t hash = table_hash(state.views ^ std::rotl(state.weights, 32), state.reduces);
  Slot& slot = slots_.find(hash, [&](const Slot& known) {
    return known.generation != generation_ ||
           (known.views == state.views && known.weights == state.weights &&
            known.reduces == state.reduces);
  });
  if (slot.generation == generation_) {
    place = slot.place;
    return true;
  }
  if (states_ == kMaxStates) return false;
  place = states_++;
  slot = {state.views, state.weights, state.reduces, generation_,
          static_cast<std::uint32_t>(place)};
  const bool done = state.views == 0 && state.weights == 0 && state.reduces == 0;
  costs_.resize(std::max(costs_.size(), states_ * lanes_));
  std::fill_n(costs_.begin() + static_cast<std::ptrdiff_t>(place * lanes_), lanes_,
              done ? 0.0 : std::numeric_limits<double>::infinity());
  if (done) return true;

  const CoordinateMask all_waiting = waiting(state);
  const auto ready = [&](const State& from, CoordinateMask held) {
    return from.reduces & from.open & ~held;
  };
  bool solved = true;
  std::size_t next_place = 0;
  for (std::uint64_t left = state.weights; left != 0 && solved; left &= left - 1) {
    const auto w = static_cast<std::size_t>(__builtin_ctzll(left));
    // The index of a window may enter the data before the window is taken.
    CoordinateMask closed = state.dims[w] & ~state.open;
    for_each_bit(state.views,
                 [&](int v) { closed &= ~views_[static_cast<std::size_t>(v)].window; });
    if (closed != 0) continue;
    const CoordinateMask elements = state.data | state.dims[w];
    State next = state;
    next.weights &= ~(std::uint64_t{1} << w);
    const CoordinateMask summed = ready(next, waiting(next)) & elements;
    next.reduces &= ~summed;
    next.data = elements & ~summed;
    solved = solve(next, next_place);
    if (solved) offer(place, elements, next_place);
  }
  for (std::uint64_t left = state.views; left != 0 && solved; left &= left - 1) {
    const auto v = static_cast<std::size_t>(__builtin_ctzll(left));
    if ((views_[v].out & ~state.open) != 0) continue;
    State next = state;
    execute(next, v);
    solved = solve(next, next_place);
    if (!solved) break;
    for (std::size_t l = 0; l < lanes_; ++l) {
      double& best = costs_[place * lanes_ + l];
      best = std::min(best, costs_[next_place * lanes_ + l]);
    }
  }
  const CoordinateMask can_sum = ready(state, all_waiting);
  for (const CoordinateMask summed : {can_sum & state.data, can_sum & ~state.data}) {
    if (summed == 0 || !solved) continue;
    State next = state;
    next.reduces &= ~summed;
    next.data &= ~summed;
    solved = solve(next, next_place);
    if (solved) offer(place, state.data, next_place);
  }
  return solved;
}

bool MacsCounter::count(const Graph& graph, const CompactMap& map, FitMask fit) {
  if (graph.steps().size() > 64) return false;
  State start;
  views_.clear();
  CoordinateMask consumed = 0;
  std::size_t weight = 0;
  for (const Step& step : graph.steps()) {
    const PrimitiveInfo& info = step.info();
    switch (info.kind) {
      case StepKind::kRepetition: continue;
      case StepKind::kReduction: start.reduces |= coordinate_bit(step.out[0]); continue;
      case StepKind::kContraction:
        start.dims[weight] = map.weights[weight];
        start.weights |= std::uint64_t{1} << weight;
        ++weight;
        continue;
      case StepKind::kView: break;
    }
    View view;
    view.cuts = info.cuts();
    for (const CoordinateId id : step.in) {
      if (id != kNoCoordinate) view.in |= coordinate_bit(id);
    }
    for (const CoordinateId id : step.out) {
      if (id != kNoCoordinate) view.out |= coordinate_bit(id);
    }
    if (info.slides()) view.window = coordinate_bit(step.in[1]);
    consumed |= view.in;
    start.views |= std::uint64_t{1} << views_.size();
    views_.push_back(view);
  }
  start.open = ~consumed;
  start.data = map.data;
  const std::size_t bindings = extents_.bindings().size();
  for (std::size_t i = 0; i < map.count; ++i) {
    const std::int64_t* values = extents_.values(map.nodes[i].extent);
    // Where a size does not fit, any number will do: it is not requested.
    for (std::size_t b = 0; b < bindings; ++b)
      extents_of_[i * lanes_ + b] = static_cast<double>(values[b]);
  }
  if (++generation_ == 0) {
    slots_.clear(2 * kMaxStates);
    generation_ = 1;
  }
  states_ = 0;
  std::size_t place = 0;
  if (!solve(start, place)) return false;
  for (std::size_t b = 0; b < bindings; ++b) {
    const double cost = costs_[place * lanes_ + b];
    if (!(fit >> b & 1)) continue;
    if (!(cost < kExact)) return false;
    macs_[b] = static_cast<std::int64_t>(cost);
  }
  return true;
}

}  // namespace syno
