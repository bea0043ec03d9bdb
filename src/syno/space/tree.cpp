#include "syno/space/tree.h"

#include <algorithm>
#include <numeric>

#include "syno/graph/text_format.h"

namespace syno {
namespace {

int depth_limit(const Specification& spec, std::int64_t max_depth) {
  const std::int64_t most = spec.limits().max_depth;
  return static_cast<int>(max_depth > 0 ? std::min(max_depth, most) : most);
}

}  // namespace

Tree::Tree(const Specification& spec, RuleSet rules, std::int64_t max_depth,
           const Space* enumerated, BoundMode bound)
    : spec_(spec),
      rules_(std::move(rules)),
      limit_(depth_limit(spec, max_depth)),
      enumerated_(enumerated),
      exact_(enumerated != nullptr && enumerated->exhausted && enumerated->depth_limit == limit_),
      steps_(spec, rules_, bound),
      checker_(spec),
      keyer_(spec.variables(), spec.bindings()) {
  if (enumerated_ == nullptr) return;
  below_ = enumerated_->operators_below();
  by_node_.resize(enumerated_->operators.size());
  std::iota(by_node_.begin(), by_node_.end(), std::size_t{0});
  std::stable_sort(by_node_.begin(), by_node_.end(), [&](std::size_t a, std::size_t b) {
    return enumerated_->operators[a].node < enumerated_->operators[b].node;
  });
}

TreeNode Tree::node(const Position& position) {
  TreeNode node;
  node.graph = position.graph;
  node.fingerprint = steps_.fingerprint(position);
  if (!position.graph.steps().empty())
    node.step = step_text(position.graph, position.graph.steps().back());
  node.least_steps =
      steps_.may_end(position) ? 0 : steps_.least_steps(position, limit_ - position.state.depth);
  node.exact = exact_;
  return node;
}

TreeNode Tree::root() {
  TreeNode result = node(steps_.root());
  if (enumerated_ == nullptr) return result;
  result.enumerated = 0;
  result.count = below_.front();
  return result;
}

// Within a level, nodes stand in the order of their parents.
std::vector<std::uint32_t> Tree::enumerated_children(std::uint32_t node) const {
  std::vector<std::uint32_t> children;
  const auto level = static_cast<std::size_t>(enumerated_->depth(node)) + 1;
  if (level + 1 >= enumerated_->levels.size()) return children;
  const auto begin = enumerated_->nodes.begin() + enumerated_->levels[level];
  const auto end = enumerated_->nodes.begin() + enumerated_->levels[level + 1];
  auto place = std::lower_bound(begin, end, node, [](const SpaceNode& child, std::uint32_t parent) {
    return child.parent < parent;
  });
  for (; place != end && place->parent == node; ++place)
    children.push_back(static_cast<std::uint32_t>(place - enumerated_->nodes.begin()));
  return children;
}

std::vector<TreeNode> Tree::children(const TreeNode& parent) {
  const Position here = steps_.position(parent.graph);
  std::vector<TreeNode> result;
  if (parent.enumerated) {
    for (const std::uint32_t child : enumerated_children(*parent.enumerated)) {
      Position next = here;
      steps_.take(next,
                  step_of_move(here.graph, enumerated_->moves[enumerated_->nodes[child].move]));
      result.push_back(node(next));
      result.back().enumerated = child;
      result.back().count = below_[child];
    }
    if (exact_) return result;
  }
  // Steps that are enumerated come first; the others lead deeper, or to graphs that are enumerated under another parent.
  const std::size_t known = result.size();
  for (const LiveMove& live : steps_.from(here, limit_)) {
    const auto end = result.begin() + static_cast<std::ptrdiff_t>(known);
    const auto place = std::find_if(result.begin(), end, [&](const TreeNode& child) {
      return child.fingerprint == live.fingerprint;
    });
    if (place != end) continue;
    Position next = here;
    steps_.take(next, steps_.step(here, live.move));
    result.push_back(node(next));
  }
  return result;
}

std::vector<FoundOperator> Tree::operators(const TreeNode& node) {
  std::vector<FoundOperator> found;
  if (exact_ && node.enumerated) {
    const auto place = std::lower_bound(by_node_.begin(), by_node_.end(), *node.enumerated,
                                        [&](std::size_t index, std::uint32_t wanted) {
                                          return enumerated_->operators[index].node < wanted;
                                        });
    for (auto at = place;
         at != by_node_.end() && enumerated_->operators[*at].node == *node.enumerated; ++at)
      found.push_back(
          {enumerated_->op(spec_, *at), enumerated_->operators[*at].key, node.graph.depth()});
    return found;
  }
  const Position here = steps_.position(node.graph);
  if (!steps_.may_end(here)) return found;
  for (const auto& match : matchings(here.graph, spec_.input(), spec_.passed_through())) {
    if (rules_.rejecting_rule(spec_, here.graph, spec_.input(), match) != nullptr) continue;
    if (!checker_.rejection_reason(here.graph, match, here.state.fit).empty()) continue;
    found.push_back({Operator(here.graph, spec_.input(), match),
                     keyer_.key(here.graph, spec_.input(), match), here.state.depth});
  }
  return found;
}

}  // namespace syno
