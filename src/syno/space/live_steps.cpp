#include "syno/space/live_steps.h"

#include <algorithm>

#include "syno/support/error.h"

namespace syno {

LiveSteps::LiveSteps(const Specification& spec, const RuleSet& rules, BoundMode bound)
    : spec_(spec),
      rules_(rules),
      space_(spec),
      bound_(space_, rules, bound),
      macs_(spec, space_.sizes()),
      bounds_macs_(bound == BoundMode::kFull && macs_.is_on()) {
  for (const Dimension& dim : spec.input()) target_.push_back(space_.sizes().intern(dim.size));
  std::sort(target_.begin(), target_.end());
}

Position LiveSteps::root() {
  return {space_.root(), Graph(spec_.variables(), spec_.output()), start_ledger(spec_),
          Fingerprints(space_)};
}

Position LiveSteps::position(const Graph& graph) {
  Position position = root();
  for (const Step& step : graph.steps()) {
    Ledger ledger = position.ledger;
    if (const Reason why = admit(spec_, position.graph, step, ledger); !why.empty())
      throw UserError(describe_rejection(spec_, position.graph, step, why));
    take(position, step);
  }
  return position;
}

bool LiveSteps::alive(const Position& position, const State& child, const Move& move, int limit) {
  const int left = limit - child.depth;
  if (left < 0) return false;
  const bool completes = move.is_reduction() ? bound_.may_complete_with_more(child, left)
                                             : bound_.may_complete(child, left);
  if (!completes || !bounds_macs_ || child.weight_count() == 0) return completes;
  return !macs_.rejects(child, space_.step(position.state, move), left);
}

bool LiveSteps::rejected(const Position& position, const Step& step) const {
  const RuleContext context{
      .spec = spec_, .graph = position.graph, .step = step, .before = &position.ledger};
  return rules_.rejecting_rule(context) != nullptr;
}

std::vector<LiveMove> LiveSteps::from(const Position& position, int limit) {
  std::vector<LiveMove> live;
  if (position.state.depth >= limit) return live;
  space_.moves(position.state, rules_.guarantees(Guarantee::kPlainDrops), moves_);
  if (bounds_macs_) macs_.begin(position.graph);
  for (std::uint32_t ordinal = 0; ordinal < moves_.size(); ++ordinal) {
    const Move& move = moves_[ordinal];
    State child = position.state;
    if (!space_.advance(child, move).empty() || !alive(position, child, move, limit)) continue;
    if (rejected(position, space_.step(position.state, move))) continue;
    live.push_back({ordinal, move, position.fingerprints.after(space_, position.state, move)});
  }
  std::sort(live.begin(), live.end(), [](const LiveMove& a, const LiveMove& b) {
    return std::tie(a.fingerprint, a.ordinal) < std::tie(b.fingerprint, b.ordinal);
  });
  live.erase(std::unique(live.begin(), live.end(),
                         [](const LiveMove& a, const LiveMove& b) {
                           return a.fingerprint == b.fingerprint;
                         }),
             live.end());
  return live;
}

bool LiveSteps::leads_on(const Position& position, const Step& step, int limit) {
  if (position.state.depth >= limit) return false;
  const Move move = space_.move(position.state, step);
  State child = position.state;
  if (bounds_macs_) macs_.begin(position.graph);
  return space_.advance(child, move).empty() && alive(position, child, move, limit) &&
         !rejected(position, step);
}

Step LiveSteps::step(const Position& position, const Move& move) const {
  return space_.step(position.state, move);
}

void LiveSteps::take(Position& position, const Step& step) {
  ensure(try_take(position, step), "a live step is not admitted");
}

bool LiveSteps::may_end(const Position& position) const {
  const State& state = position.state;
  if (position.graph.weights().empty() || state.size != target_.size()) return false;
  std::vector<SizeId> now;
  for (std::size_t i = 0; i < state.size; ++i) now.push_back(state.slots[i].size);
  std::sort(now.begin(), now.end());
  return now == target_;
}

bool LiveSteps::try_take(Position& position, const Step& step) {
  const Move move = space_.move(position.state, step);
  position.fingerprints.advance(space_, position.state, move);
  if (!space_.advance(position.state, move).empty()) return false;
  if (!admit(spec_, position.graph, step, position.ledger).empty()) return false;
  position.graph.apply(step);
  return true;
}

int LiveSteps::least_steps(const Position& position, int most) {
  for (int steps = 0; steps <= most; ++steps) {
    const bool reached = position.state.only_reductions()
                             ? bound_.may_complete_with_more(position.state, steps)
                             : bound_.may_complete(position.state, steps);
    if (reached) return steps;
  }
  return most + 1;
}

const Position& Parents::reduced(const Graph& graph, std::size_t count) {
  std::vector<Size> sizes;
  for (std::size_t s = 0; s < count; ++s) sizes.push_back(graph.steps()[s].size);
  const auto place = reduced_.find(sizes);
  if (place != reduced_.end()) return place->second;
  Position position = steps_.root();
  for (const Size& size : sizes) steps_.take(position, Step::reduce(size));
  return reduced_.emplace(std::move(sizes), std::move(position)).first->second;
}

std::optional<Position> Parents::without(const Graph& graph, std::size_t last, Step& step) {
  // Reductions come first, and only the last of them can be the last step.
  std::size_t reductions = 0;
  while (reductions < graph.steps().size() && graph.steps()[reductions].is_reduction())
    ++reductions;
  if (last < reductions && last + 1 < graph.steps().size()) return std::nullopt;
  StepOrder order(graph);
  const std::size_t first = std::min(reductions, last);
  Position position = reduced(graph, first);
  for (std::size_t s = 0; s < first; ++s) order.take(s, position.graph.steps()[s]);
  for (std::size_t s = first; s < graph.steps().size(); ++s) {
    if (s == last) continue;
    const std::vector<std::size_t> ready = order.ready();
    if (std::find(ready.begin(), ready.end(), s) == ready.end()) return std::nullopt;
    if (!steps_.try_take(position, order.translated(s, position.graph))) return std::nullopt;
    order.take(s, position.graph.steps().back());
  }
  const std::vector<std::size_t> ready = order.ready();
  if (ready.size() != 1 || ready.front() != last) return std::nullopt;
  step = order.translated(last, position.graph);
  return position;
}

int Parents::count(const Graph& graph, const Hash128& fingerprint, int most) {
  const auto known = counts_.find(fingerprint);
  if (known != counts_.end()) return known->second;
  std::vector<Hash128> parents;
  for (std::size_t s = graph.steps().size(); s-- > 0;) {
    Step step;
    const std::optional<Position> before = without(graph, s, step);
    if (!before || !steps_.leads_on(*before, step, limit_)) continue;
    const Hash128 found = steps_.fingerprint(*before);
    if (std::find(parents.begin(), parents.end(), found) != parents.end()) continue;
    if (!reached(before->graph, found)) continue;
    parents.push_back(found);
    if (static_cast<int>(parents.size()) == most) return most;
  }
  const int number = static_cast<int>(parents.size());
  counts_.emplace(fingerprint, number);
  return number;
}

bool Parents::reached(const Graph& graph, const Hash128& fingerprint) {
  if (graph.steps().empty()) return true;
  const auto known = reached_.find(fingerprint);
  if (known != reached_.end()) return known->second;
  const bool found = count(graph, fingerprint, 1) > 0;
  reached_.emplace(fingerprint, found);
  return found;
}

int Parents::count(const Graph& graph, const Hash128& fingerprint) {
  const int number = count(graph, fingerprint, static_cast<int>(graph.steps().size()) + 1);
  reached_.insert_or_assign(fingerprint, number > 0 || graph.steps().empty());
  return number;
}

}  // namespace syno
