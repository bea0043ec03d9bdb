#include "syno/search/children.h"

#include <cstdlib>

#include "syno/support/error.h"

namespace syno {
namespace {

bool only_reductions(const Graph& graph) {
  for (const Step& step : graph.steps()) {
    if (step.primitive != Primitive::kReduce) return false;
  }
  return true;
}

}  // namespace

ChildGenerator::ChildGenerator(const Specification& spec, RuleSet rules, BoundMode bound)
    : spec_(spec), rules_(std::move(rules)), sizes_(spec), bound_(spec, rules_, sizes_, bound) {
  if (spec.bindings().empty()) {
    throw Complaint("the specification \"" + spec.text() + "\" has no binding")
        .hint("give the values of its primary variables (bindings), or a network with slots")
        .error();
  }
}

PartialGraph ChildGenerator::root() const {
  return {Graph(spec_.variables(), spec_.output()), start_ledger(spec_)};
}

PartialGraph ChildGenerator::child(const PartialGraph& parent, const Step& step) const {
  PartialGraph result = parent;
  const Reason why = admit(spec_, parent.graph, step, result.ledger);
  if (!why.empty()) throw UserError(describe_refusal(spec_, parent.graph, step, why));
  result.graph.apply(step);
  return result;
}

// Budgets and max_reduction_ratio are looked at here already: they refuse nearly all of the universe.
void ChildGenerator::add_reductions(const PartialGraph& parent, std::vector<Step>& steps) {
  const bool first = parent.graph.steps().empty();
  const Size elements = input_elements(spec_);
  std::vector<double> room;
  for (const Values& values : spec_.bindings()) {
    const auto most = spec_.limits().max_reduction_ratio *
                      static_cast<double>(elements.extent(values).value_or(0));
    const auto used = static_cast<double>(parent.ledger.reductions.extent(values).value_or(0));
    room.push_back(used > 0 ? most / used : 0.0);
  }
  for (const SizeId id : sizes_.universe()) {
    const Size& size = sizes_.size(id);
    if (!first && size < parent.graph.steps().back().size) continue;
    bool affordable = true;
    for (std::size_t v = 0; v < spec_.variables()->count() && affordable; ++v) {
      const int charge = std::abs(size.power(v));
      affordable = charge == 0 || parent.ledger.charges[v] + charge <= spec_.variable(v).budget;
    }
    if (!affordable) continue;
    FitMask fit = 0;
    for (std::size_t b = 0; b < room.size(); ++b) {
      // admit decides exactly; a hair of rounding is left to it.
      if (static_cast<double>(sizes_.value(id, b)) <= room[b] * (1 + 1e-9)) fit |= FitMask{1} << b;
    }
    if (spec_.fit_suffices(fit)) steps.push_back(Step::reduce(size));
  }
}

// Every coordinate takes part or not, and stays or leaves; 3^n choices, cut where a budget is already used up.
void ChildGenerator::add_contractions(const PartialGraph& parent, std::vector<Step>& steps) {
  const Graph& graph = parent.graph;
  if (parent.ledger.counts[static_cast<std::size_t>(Primitive::kShare)] >=
      spec_.limits().max_weights)
    return;
  std::vector<SharedDim> dims;
  const auto affordable = [&] {
    const Charges charges = step_charges(spec_, graph, Step::contract(dims));
    for (std::size_t v = 0; v < spec_.variables()->count(); ++v) {
      if (charges[v] != 0 && parent.ledger.charges[v] + charges[v] > spec_.variable(v).budget)
        return false;
    }
    return true;
  };
  const auto visit = [&](auto&& self, std::size_t place, bool leaves) -> void {
    if (place == graph.frontier().size()) {
      if (!dims.empty() && (leaves || spec_.limits().element_wise_weights))
        steps.push_back(Step::contract(dims));
      return;
    }
    self(self, place + 1, leaves);
    const CoordinateId id = graph.frontier()[place];
    if (graph.is_iterator(id) && spec_.passes_output(graph.coordinate(id).index)) return;
    dims.push_back({id, ShareRole::kKeep});
    if (affordable()) {
      self(self, place + 1, leaves);
      const bool shared = graph.share_count(id) > 0;
      // A Reduce that no weight holds yet would only add up this weight.
      if (shared || !graph.is_reduction(id)) {
        dims.back().role = shared ? ShareRole::kJoin : ShareRole::kDrop;
        self(self, place + 1, true);
      }
    }
    dims.pop_back();
  };
  visit(visit, 0, false);
}

void ChildGenerator::add_others(const PartialGraph& parent, std::vector<Step>& steps) {
  const Graph& graph = parent.graph;
  const Limits& limits = spec_.limits();
  add_contractions(parent, steps);
  const auto spent = [&](Primitive primitive, std::int64_t limit) {
    return parent.ledger.counts[static_cast<std::size_t>(primitive)] >= limit;
  };
  std::vector<CoordinateId> free;
  for (const CoordinateId id : graph.frontier()) {
    if (!graph.is_iterator(id) || !spec_.passes_output(graph.coordinate(id).index))
      free.push_back(id);
  }
  for (const CoordinateId i : free) {
    const SizeId extent = sizes_.intern(graph.extent(i));
    for (const CoordinateId j : free) {
      if (i == j) continue;
      if (!spent(Primitive::kSplit, limits.max_splits)) steps.push_back(Step::split(i, j));
      if (!spent(Primitive::kUnfold, limits.max_unfolds) &&
          sizes_.slides(extent, sizes_.intern(graph.extent(j)))) {
        steps.push_back(Step::unfold(i, j, false));
        steps.push_back(Step::unfold(i, j, true));
      }
    }
    if (!spent(Primitive::kMerge, limits.max_merges)) {
      for (const SizeId block : sizes_.blocks(extent))
        steps.push_back(Step::merge(i, sizes_.size(block)));
    }
    if (!spent(Primitive::kShift, limits.max_shifts)) {
      for (std::int64_t amount = 1; amount <= limits.max_shift_amount; ++amount) {
        steps.push_back(Step::shift(i, static_cast<int>(amount)));
        if (limits.negative_shifts) steps.push_back(Step::shift(i, static_cast<int>(-amount)));
      }
    }
    if (!spent(Primitive::kStride, limits.max_strides)) {
      for (const SizeId factor : sizes_.universe())
        steps.push_back(Step::stride(i, sizes_.size(factor)));
    }
    if (limits.max_repeat > 1) steps.push_back(Step::expand(i));
  }
}

std::string ChildGenerator::reason_against(const PartialGraph& parent, const Step& step,
                                           std::int64_t max_depth) {
  Ledger ledger = parent.ledger;
  if (const Reason why = admit(spec_, parent.graph, step, ledger); !why.empty())
    return std::string(why);
  const RuleContext context{spec_, parent.graph, step};
  if (const Rule* rule = rules_.first_refusal(context))
    return std::string(rule->id) + " " + std::string(rule->name);
  const auto left = static_cast<int>(max_depth - ledger.depth);
  if (left < 0) return std::string(reason::kDepth);
  Graph graph = parent.graph;
  graph.apply(step);
  // More reductions may follow a reduction; the bound proper speaks of graphs that have all of theirs.
  if (step.primitive == Primitive::kReduce) {
    return bound_.may_complete_with_more(graph, left) ? "" : std::string(kBoundReason);
  }
  return bound_.may_complete(graph, ledger, left) ? "" : std::string(kBoundReason);
}

std::vector<Step> ChildGenerator::steps(const PartialGraph& parent, std::int64_t max_depth) {
  std::vector<Step> children;
  if (parent.ledger.depth >= max_depth) return children;
  const auto left = static_cast<int>(max_depth - parent.ledger.depth);
  // Without further reductions: is anything left to do at all?
  const bool without = bound_.may_complete(parent.graph, parent.ledger, left);
  const bool reducible = only_reductions(parent.graph);
  if (!without && !reducible) return children;
  std::vector<Step> candidate_steps;
  if (reducible) add_reductions(parent, candidate_steps);
  if (without) add_others(parent, candidate_steps);
  for (Step& step : candidate_steps) {
    const std::string why = reason_against(parent, step, max_depth);
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
  if (step.primitive == Primitive::kReduce) {
    if (!only_reductions(parent.graph)) return "order: reductions come before every other step";
    if (!parent.graph.steps().empty() && step.size < parent.graph.steps().back().size) {
      return "order: reductions come in ascending order of size";
    }
  }
  return reason_against(parent, step, std::min(max_depth, spec_.limits().max_depth));
}

}  // namespace syno
