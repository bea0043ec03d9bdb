#include "syno/space/path.h"

#include <set>

#include "syno/space/step_order.h"
#include "syno/support/error.h"
#include "syno/support/interrupt.h"
#include "syno/support/text.h"

namespace syno {
namespace {

// Steps that are tried, over all sets of steps taken before: some seconds. All orders of fourteen steps need fewer.
constexpr std::int64_t kMaxTries = 200'000;

class PathFinder {
 public:
  PathFinder(ChildGenerator& generator, const Operator& op, std::int64_t max_depth)
      : generator_(generator), goal_(op.graph()), order_(goal_), max_depth_(max_depth) {}

  Path run() {
    path_.reached = visit(generator_.root());
    if (path_.reached) {
      path_.obstacle.clear();
      path_.obstacle_reason.clear();
    }
    return std::move(path_);
  }

 private:
  bool visit(const PartialGraph& partial) {
    if (order_.done()) return true;
    if (!dead_.insert(order_.taken()).second) return false;
    for (const std::size_t s : order_.ready()) {
      check_interrupt();
      if (++tries_ > kMaxTries) refuse();
      const Step step = order_.translated(s, partial.graph);
      const std::string why = generator_.why_not(partial, step, max_depth_);
      if (!why.empty()) {
        if (path_.steps.size() >= furthest_) {
          furthest_ = path_.steps.size();
          path_.obstacle_reason = why;
          path_.obstacle = "step " + std::to_string(path_.steps.size() + 1) + " (" +
                           std::string(primitive_info(step.primitive).name) + "): " + why;
        }
        continue;
      }
      PartialGraph child = partial;
      ensure(admit(generator_.specification(), partial.graph, step, child.ledger).empty(),
             "find_path: a child is not admitted");
      order_.take(s, child.graph.apply(step));
      path_.steps.push_back(step);
      path_.order.push_back(s);
      if (visit(child)) return true;
      path_.steps.pop_back();
      path_.order.pop_back();
      order_.undo(s);
    }
    return false;
  }

  [[noreturn]] void refuse() const {
    throw Complaint("cannot determine how this operator of " +
                    std::to_string(goal_.steps().size()) + " steps is built")
        .where("the allowed orders of its steps; none of those tried reaches the operator")
        .expected("at most " + with_thousands(kMaxTries) + " steps to be tried", "more")
        .hint("explain an operator of fewer steps")
        .error();
  }

  ChildGenerator& generator_;
  const Graph& goal_;
  StepOrder order_;
  std::int64_t max_depth_;
  std::set<std::vector<bool>> dead_;
  std::size_t furthest_ = 0;
  std::int64_t tries_ = 0;
  Path path_;
};

}  // namespace

Path find_path(ChildGenerator& generator, const Operator& op, std::int64_t max_depth) {
  const Operator local = op.in_table(generator.specification().variables());
  return PathFinder(generator, local, max_depth).run();
}

}  // namespace syno
