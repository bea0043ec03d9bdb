// An enumeration by definition, for tests: graphs and ledgers alone, every step tried on every graph, graphs told apart by
// structure_hash. It shares nothing with the enumeration but the ledger, the rules and the quality conditions, and is as
// slow as that sounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "syno/graph/canonical.h"
#include "syno/graph/operator.h"
#include "syno/rules/catalogue.h"
#include "syno/space/accept.h"
#include "syno/spec/ledger.h"

namespace syno::reference {

/// Sizes that a Reduce, a block or a factor may have: monomials within the budgets.
inline std::vector<Size> size_universe(const Specification& spec) {
  std::vector<Size> sizes{Size()};
  for (std::size_t v = 0; v < spec.variables()->count(); ++v) {
    const VariableInfo& info = spec.variable(v);
    std::vector<Size> more;
    for (const Size& size : sizes) {
      for (int power = info.primary ? 0 : -info.budget; power <= info.budget; ++power) {
        const Size next = power == 0 ? size : size * Size::variable(v, power);
        if (next.variable_count() <= spec.limits().max_size_variables) more.push_back(next);
      }
    }
    sizes = std::move(more);
  }
  std::erase_if(sizes, [&](const Size& size) {
    return !spec.legal(size) || !spec.fit_suffices(spec.fit(size));
  });
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

inline bool only_reductions(const Graph& graph) {
  return std::all_of(graph.steps().begin(), graph.steps().end(),
                     [](const Step& step) { return step.primitive == Primitive::kReduce; });
}

/// Every step that a search may take on `graph` as far as its order goes: reductions come first, in ascending order of
/// size. Whether the specification admits it is another question.
inline std::vector<Step> candidate_steps(const Specification& spec, const Graph& graph,
                                         const std::vector<Size>& universe) {
  std::vector<Step> steps;
  if (only_reductions(graph)) {
    for (const Size& size : universe) {
      if (graph.steps().empty() || !(size < graph.steps().back().size))
        steps.push_back(Step::reduce(size));
    }
  }
  const Limits& limits = spec.limits();
  for (const CoordinateId i : graph.frontier()) {
    for (const CoordinateId j : graph.frontier()) {
      if (i == j) continue;
      steps.push_back(Step::split(i, j));
      for (const bool causal : {false, true}) steps.push_back(Step::unfold(i, j, causal));
    }
    for (const Size& size : universe) {
      if (graph.extent(i) != size) steps.push_back(Step::merge(i, size));
      steps.push_back(Step::stride(i, size));
    }
    for (std::int64_t d = -limits.max_shift_amount - 1; d <= limits.max_shift_amount + 1; ++d) {
      if (d != 0) steps.push_back(Step::shift(i, static_cast<int>(d)));
    }
    steps.push_back(Step::expand(i));
  }
  std::vector<WeightDim> dims;
  const auto share = [&](auto&& self, std::size_t place) -> void {
    if (place == graph.frontier().size()) {
      if (!dims.empty()) steps.push_back(Step::contract({dims.begin(), dims.end()}));
      return;
    }
    self(self, place + 1);
    const CoordinateId id = graph.frontier()[place];
    const bool held = graph.weight_count(id) > 0;
    dims.push_back({id, WeightRole::kKeep});
    self(self, place + 1);
    // A bare Reduce would only add up the weight.
    if (held || !graph.is_reduction(id)) {
      dims.back().role = held ? WeightRole::kJoin : WeightRole::kDrop;
      self(self, place + 1);
    }
    dims.pop_back();
  };
  share(share, 0);
  return steps;
}

struct Node {
  Graph graph;
  Ledger ledger;
  std::vector<std::size_t> children;
  /// Accepted operators among the graph's matchings.
  std::vector<Operator> operators;
  /// Steps to the nearest graph with an accepted operator; -1 when there is none.
  int distance = -1;
  /// The same when none of those steps is a Reduce.
  int distance_without_reductions = -1;
};

/// All graphs of at most `depth` steps that children reach, by level, and the operators among them.
class Reference {
 public:
  Reference(const Specification& spec, const RuleSet& rules, int depth) {
    const std::vector<Size> universe = size_universe(spec);
    nodes_.push_back({Graph(spec.variables(), spec.output()), start_ledger(spec), {}, {}});
    place_[structure_hash(nodes_[0].graph)] = 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      accept(spec, rules, nodes_[n]);
      if (nodes_[n].ledger.depth == depth) continue;
      const Graph graph = nodes_[n].graph;
      const Ledger ledger = nodes_[n].ledger;
      for (const Step& step : candidate_steps(spec, graph, universe)) {
        Ledger after = ledger;
        if (!admit(spec, graph, step, after).empty()) continue;
        if (rules.rejecting_rule({spec, graph, step}) != nullptr) continue;
        Graph child = graph;
        child.apply(step);
        const auto [place, is_new] = place_.try_emplace(structure_hash(child), nodes_.size());
        if (is_new) nodes_.push_back({std::move(child), after, {}, {}});
        nodes_[n].children.push_back(place->second);
      }
    }
    measure();
  }

  const std::vector<Node>& nodes() const { return nodes_; }
  bool holds(const Hash128& structure) const { return place_.contains(structure); }
  std::set<Hash128> operators() const {
    std::set<Hash128> all;
    for (const Node& node : nodes_) {
      for (const Operator& op : node.operators) all.insert(op.structure());
    }
    return all;
  }

 private:
  static void accept(const Specification& spec, const RuleSet& rules, Node& node) {
    if (node.graph.weights().empty()) return;
    for (auto& match : matchings(node.graph, spec.input(), spec.passed_through())) {
      if (rules.rejecting_rule(spec, node.graph, spec.input(), match) != nullptr) continue;
      Operator op(node.graph, spec.input(), match);
      if (quality_and_cost_rejections(op.in_table(spec.variables()), spec).empty())
        node.operators.push_back(std::move(op));
    }
  }

  void measure() {
    const auto nearer = [](int& distance, int other) {
      if (other >= 0 && (distance < 0 || other + 1 < distance)) distance = other + 1;
    };
    // Children have one step more than their parents, so they stand behind them.
    for (std::size_t n = nodes_.size(); n-- > 0;) {
      Node& node = nodes_[n];
      if (!node.operators.empty()) node.distance = node.distance_without_reductions = 0;
      for (const std::size_t child : node.children) {
        nearer(node.distance, nodes_[child].distance);
        if (nodes_[child].graph.steps().back().primitive != Primitive::kReduce)
          nearer(node.distance_without_reductions, nodes_[child].distance_without_reductions);
      }
    }
  }

  std::vector<Node> nodes_;
  std::map<Hash128, std::size_t> place_;
};

}  // namespace syno::reference
