#include "syno/space/fingerprints.h"

#include <algorithm>
#include <numeric>

namespace syno {
namespace {

void add(Hash128& sum, const Hash128& part) {
  sum.high += part.high;
  sum.low += part.low;
}

}  // namespace

Fingerprints::Fingerprint Fingerprints::make(const Hash128& value) {
  return {value, Hasher("frontier").add(value).finish(), Hasher("weight").add(value).finish()};
}

Fingerprints::Fingerprints(StateSpace& space) : rest_(1) {
  for (std::size_t d = 0; d < space.specification().output().size(); ++d)
    slots_.push_back(make(space.fingerprint_of_output(d)));
}

Fingerprints::Fingerprint Fingerprints::view(StateSpace& space, const State& state,
                                             const Move& move, int result,
                                             std::size_t labelling) const {
  (void)state;
  Hasher hasher("view");
  hasher.add(static_cast<int>(move.primitive) | result << 8 | static_cast<int>(move.causal) << 9 |
             static_cast<int>(move.amount) << 10);
  hasher.add(at(move.a, labelling).value);
  if (move.info().consumes == 2) hasher.add(at(move.b, labelling).value);
  if (move.size != kNoSize) hasher.add(space.fingerprint(move.size));
  return make(hasher.finish());
}

Hash128 Fingerprints::fingerprint(const State& state) const {
  Hash128 least{~0ULL, ~0ULL};
  for (std::size_t l = 0; l < labellings_; ++l) {
    Hash128 sum = rest_[l];
    for (std::size_t place = 0; place < state.size; ++place) {
      add(sum, at(place, l).in_frontier);
    }
    least = std::min(least, sum);
  }
  return least;
}

Hash128 Fingerprints::after(StateSpace& space, const State& state, const Move& move) const {
  if (move.is_reduction()) {
    Fingerprints next = *this;
    next.advance(space, state, move);
    State longer = state;
    ++longer.size;
    return next.fingerprint(longer);
  }
  Hash128 least{~0ULL, ~0ULL};
  for (std::size_t l = 0; l < labellings_; ++l) {
    Hash128 sum = rest_[l];
    if (move.is_contraction()) {
      Hash128 weight{};
      for (std::size_t place = 0; place < state.size; ++place) {
        const unsigned role = move.role(place);
        if (role != kNoRole) add(weight, at(place, l).in_weight);
        if (role == kNoRole || role == kKeepRole) add(sum, at(place, l).in_frontier);
      }
      add(sum, Hasher("contraction").add(weight).finish());
    } else {
      const bool two = move.info().consumes == 2;
      for (std::size_t place = 0; place < state.size; ++place) {
        if (place == move.a || (two && place == move.b)) continue;
        add(sum, at(place, l).in_frontier);
      }
      if (move.is_repetition()) {
        add(sum, Hasher("repeated").add(at(move.a, l).value).finish());
      } else {
        for (int result = 0; result < move.info().produces; ++result)
          add(sum, view(space, state, move, result, l).in_frontier);
      }
    }
    least = std::min(least, sum);
  }
  return least;
}

// All ways to label the reductions of each size, after one more was added.
void Fingerprints::relabel(StateSpace& space, const State& state, SizeId added) {
  std::vector<SizeId> sizes;
  std::size_t first = state.size;
  for (std::size_t place = 0; place < state.size; ++place) {
    if (state.slots[place].origin != Origin::kReduction) continue;
    first = std::min(first, place);
    sizes.push_back(state.slots[place].size);
  }
  sizes.push_back(added);
  // Reductions stand in ascending order of size, equal ones side by side.
  std::vector<std::vector<int>> ways{{}};
  for (std::size_t begin = 0; begin < sizes.size();) {
    std::size_t end = begin;
    while (end < sizes.size() && sizes[end] == sizes[begin]) ++end;
    std::vector<int> order(end - begin);
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::vector<int>> more;
    do {
      for (const std::vector<int>& way : ways) {
        more.push_back(way);
        more.back().insert(more.back().end(), order.begin(), order.end());
      }
    } while (std::next_permutation(order.begin(), order.end()) && more.size() < kMaxLabellings);
    ways = std::move(more);
    begin = end;
  }
  labellings_ = ways.size();
  std::vector<Fingerprint> slots;
  for (std::size_t place = 0; place < first; ++place)
    slots.insert(slots.end(), labellings_, make(space.fingerprint_of_output(place)));
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    for (const std::vector<int>& way : ways)
      slots.push_back(
          make(Hasher("reduction").add(space.fingerprint(sizes[r])).add(way[r]).finish()));
  }
  slots_ = std::move(slots);
  rest_.assign(labellings_, Hash128{});
}

void Fingerprints::advance(StateSpace& space, const State& state, const Move& move) {
  if (move.is_reduction()) {
    relabel(space, state, move.size);
    return;
  }
  const auto erase = [&](std::size_t place) {
    const auto begin = slots_.begin() + static_cast<std::ptrdiff_t>(place * labellings_);
    slots_.erase(begin, begin + static_cast<std::ptrdiff_t>(labellings_));
  };
  if (move.is_contraction()) {
    for (std::size_t l = 0; l < labellings_; ++l) {
      Hash128 weight{};
      for (std::size_t place = 0; place < state.size; ++place) {
        if (move.role(place) != kNoRole) add(weight, at(place, l).in_weight);
      }
      add(rest_[l], Hasher("contraction").add(weight).finish());
    }
    for (std::size_t place = state.size; place-- > 0;) {
      const unsigned role = move.role(place);
      if (role == kDropRole || role == kJoinRole) erase(place);
    }
    return;
  }
  std::vector<Fingerprint> made;
  if (move.is_repetition()) {
    for (std::size_t l = 0; l < labellings_; ++l)
      add(rest_[l], Hasher("repeated").add(at(move.a, l).value).finish());
  } else {
    for (int result = 0; result < move.info().produces; ++result) {
      for (std::size_t l = 0; l < labellings_; ++l)
        made.push_back(view(space, state, move, result, l));
    }
  }
  if (move.info().consumes == 2) {
    erase(std::max(move.a, move.b));
    erase(std::min(move.a, move.b));
  } else {
    erase(move.a);
  }
  slots_.insert(slots_.end(), made.begin(), made.end());
}

}  // namespace syno
