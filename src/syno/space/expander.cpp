#include "syno/space/expander.h"

#include <algorithm>

#include "syno/support/error.h"

namespace syno {

Expander::Expander(const Specification& spec, const RuleSet& rules, BoundMode bound, bool costs)
    : spec_(spec),
      rules_(rules),
      space_(spec),
      bound_(space_, rules, bound),
      macs_(spec, space_.sizes()),
      bounds_macs_(costs && bound == BoundMode::kFull && macs_.is_on()),
      drop_restricted_(rules.guarantees(Guarantee::kPlainDrops)) {
  for (const Dimension& dim : spec.input()) target_.push_back(space_.sizes().intern(dim.size));
  std::sort(target_.begin(), target_.end());
}

Position Expander::root() {
  return {space_.root(), Graph(spec_.variables(), spec_.output()), start_ledger(spec_),
          Fingerprints(space_)};
}

void Expander::take(Position& position, const SpaceMove& spelled) {
  const Step step = step_of_move(position.graph, spelled);
  const Move move = space_.move(position.state, step);
  position.fingerprints.advance(space_, position.state, move);
  ensure(space_.advance(position.state, move).empty() &&
             admit(spec_, position.graph, step, position.ledger).empty(),
         "a live move is not admitted");
  position.graph.apply(step);
}

void Expander::count(Reason reason) {
  for (auto& [known, count] : reasons_) {
    if (known.data() == reason.data()) {
      ++count;
      return;
    }
  }
  reasons_.emplace_back(reason, 1);
}

Rejections Expander::take_rejections() {
  Rejections result;
  for (const auto& [reason, count] : reasons_) result[std::string(reason)] += count;
  reasons_.clear();
  return result;
}

const std::vector<LiveMove>& Expander::live_moves(const Position& position, int limit) {
  live_.clear();
  if (position.state.depth >= limit) return live_;
  space_.moves(position.state, drop_restricted_, moves_);
  macs_begun_ = false;
  for (std::uint32_t ordinal = 0; ordinal < moves_.size(); ++ordinal) {
    const Move& move = moves_[ordinal];
    State child = position.state;
    if (const Reason why = space_.advance(child, move); !why.empty()) {
      count(why);
      continue;
    }
    const int left = limit - child.depth;
    const bool alive = move.is_reduction() ? bound_.may_complete_with_more(child, left)
                                           : bound_.may_complete(child, left);
    if (!alive) {
      count(kBoundReason);
      continue;
    }
    live_.push_back({ordinal, move, position.fingerprints.after(space_, position.state, move)});
  }
  return live_;
}

bool Expander::costs_too_much(const Position& position, const Move& move, int limit) {
  if (!bounds_macs_) return false;
  State child = position.state;
  space_.advance(child, move);
  if (child.weight_count() == 0) return false;
  if (!macs_begun_) macs_.begin(position.graph);
  macs_begun_ = true;
  if (!macs_.rejects(child, space_.step(position.state, move), limit - child.depth)) return false;
  count(kMacsBoundReason);
  return true;
}

const Rule* Expander::rejection(const Position& position, const Move& move) {
  const Step step = space_.step(position.state, move);
  const RuleContext context{
      .spec = spec_, .graph = position.graph, .step = step, .before = &position.ledger};
  return rules_.rejecting_rule(context);
}

SpaceMove Expander::spelled(const Move& move) const {
  return {move.primitive,
          move.a,
          move.b,
          move.causal,
          move.amount,
          move.roles,
          move.size == kNoSize ? Size() : space_.sizes().size(move.size)};
}

bool Expander::has_input_sizes(const State& state) const {
  if (state.size != target_.size()) return false;
  std::array<SizeId, kMaxFrontier> now;
  for (std::size_t i = 0; i < state.size; ++i) now[i] = state.slots[i].size;
  std::sort(now.begin(), now.begin() + state.size);
  return std::equal(target_.begin(), target_.end(), now.begin());
}

}  // namespace syno
