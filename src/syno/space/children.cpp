#include "syno/space/children.h"

#include "syno/support/error.h"

namespace syno {

ChildGenerator::ChildGenerator(const Specification& spec, RuleSet rules, BoundMode bound)
    : spec_(spec),
      rules_(std::move(rules)),
      space_(spec),
      bound_(space_, rules_, bound),
      macs_(spec, space_.sizes()),
      bounds_macs_(bound == BoundMode::kFull && macs_.is_on()) {}

PartialGraph ChildGenerator::root() const {
  return {Graph(spec_.variables(), spec_.output()), start_ledger(spec_)};
}

PartialGraph ChildGenerator::child(const PartialGraph& parent, const Step& step) const {
  PartialGraph result = parent;
  const Reason why = admit(spec_, parent.graph, step, result.ledger);
  if (!why.empty()) throw UserError(describe_rejection(spec_, parent.graph, step, why));
  result.graph.apply(step);
  return result;
}

std::string ChildGenerator::rejection_reason(const PartialGraph& parent, const State& state,
                                             const Step& step, std::int64_t max_depth) {
  Ledger ledger = parent.ledger;
  if (const Reason why = admit(spec_, parent.graph, step, ledger); !why.empty())
    return std::string(why);
  const RuleContext context{spec_, parent.graph, step};
  if (const Rule* rule = rules_.rejecting_rule(context))
    return std::string(rule->id) + " " + std::string(rule->name);
  const auto left = static_cast<int>(max_depth - ledger.depth);
  if (left < 0) return std::string(reason::kDepth);
  State child = state;
  if (const Reason why = space_.advance(child, space_.move(state, step)); !why.empty())
    return std::string(why);
  // More reductions may follow a reduction.
  const bool alive = step.is_reduction() ? bound_.may_complete_with_more(child, left)
                                         : bound_.may_complete(child, left);
  if (!alive) return std::string(kBoundReason);
  return bounds_macs_ && macs_.rejects(child, step, left) ? std::string(kMacsBoundReason) : "";
}

std::vector<Step> ChildGenerator::steps(const PartialGraph& parent, std::int64_t max_depth) {
  std::vector<Step> children;
  if (parent.ledger.depth >= max_depth) return children;
  const State state = space_.replay(parent.graph);
  std::vector<Move> moves;
  space_.moves(state, rules_.guarantees(Guarantee::kPlainDrops), moves);
  if (bounds_macs_) macs_.begin(parent.graph);
  for (const Move& move : moves) {
    Step step = space_.step(state, move);
    const std::string why = rejection_reason(parent, state, step, max_depth);
    if (why.empty()) {
      children.push_back(std::move(step));
    } else {
      ++rejections_[why];
    }
  }
  return children;
}

std::string ChildGenerator::why_not(const PartialGraph& parent, const Step& step,
                                    std::int64_t max_depth) {
  const State state = space_.replay(parent.graph);
  if (step.is_reduction()) {
    if (!state.only_reductions()) return "order: reductions come before every other step";
    if (!parent.graph.steps().empty() && step.size < parent.graph.steps().back().size) {
      return "order: reductions come in ascending order of size";
    }
  }
  if (bounds_macs_) macs_.begin(parent.graph);
  return rejection_reason(parent, state, step, std::min(max_depth, spec_.limits().max_depth));
}

}  // namespace syno
