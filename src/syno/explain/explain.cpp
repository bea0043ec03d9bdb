#include "syno/explain/explain.h"

#include <algorithm>

#include "syno/graph/text_format.h"
#include "syno/key/key.h"
#include "syno/space/step_order.h"
#include "syno/support/error.h"

namespace syno {
namespace {

// The step as it reads once it is taken.
std::string applied_text(const Graph& graph, const Step& step) {
  Graph after = graph;
  const Step applied = after.apply(step);
  return step_text(after, applied);
}

// Rejected steps by reason, from what a generator counted before and after.
Rejections since(const Rejections& before, const Rejections& after) {
  Rejections counts;
  for (const auto& [reason, count] : after) {
    const auto place = before.find(reason);
    const std::int64_t more = count - (place == before.end() ? 0 : place->second);
    if (more > 0) counts[reason] = more;
  }
  return counts;
}

std::vector<ExplainedStep> along(ChildGenerator& generator, const Operator& op, const Path& path,
                                 std::int64_t max_depth) {
  std::vector<ExplainedStep> explained;
  StepOrder order(op.graph());
  PartialGraph partial = generator.root();
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    ExplainedStep here;
    const Rejections before = generator.rejections();
    here.children = static_cast<std::int64_t>(generator.steps(partial, max_depth).size());
    here.rejected = since(before, generator.rejections());
    for (const std::size_t other : order.ready()) {
      if (other == path.order[i]) continue;
      const Step step = order.translated(other, partial.graph);
      const std::string why = generator.why_not(partial, step, max_depth);
      if (!why.empty()) here.others.push_back({step_text(partial.graph, step), why});
    }
    here.step = applied_text(partial.graph, path.steps[i]);
    partial = generator.child(partial, path.steps[i]);
    order.take(path.order[i], partial.graph.steps().back());
    explained.push_back(std::move(here));
  }
  return explained;
}

}  // namespace

Explanation explain(const Operator& op, const Specification& spec, const RuleSet& rules) {
  Explanation result;
  result.rejections = rejections(op, spec, rules);
  if (!result.rejections.empty() && (result.rejections.front().reason == "unknown_variable" ||
                                     result.rejections.front().reason == "shape")) {
    throw Complaint(result.rejections.front().text)
        .hint("name the specification that the operator was found under")
        .error();
  }
  const Operator local = op.in_table(spec.variables());
  if (const Rule* rule = rules.rejecting_rule(spec, local.graph(), local.input(), local.match()))
    result.rejected_match = std::string(rule->id) + " " + std::string(rule->name);
  ChildGenerator generator(spec, rules);
  const std::int64_t max_depth = spec.limits().max_depth;
  result.path = find_path(generator, local, max_depth);
  result.steps = along(generator, local, result.path, max_depth);
  result.usage = usage(local, spec);
  result.key = semantic_key(local, spec.bindings());
  return result;
}

}  // namespace syno
