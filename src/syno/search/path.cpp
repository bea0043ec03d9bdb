#include "syno/search/path.h"

#include <algorithm>
#include <set>

#include "syno/support/error.h"

namespace syno {
namespace {

class PathFinder {
 public:
  PathFinder(ChildGenerator& generator, const Operator& op, std::int64_t max_depth)
      : generator_(generator),
        goal_(op.graph()),
        max_depth_(max_depth),
        taken_(goal_.steps().size(), false) {
    for (std::size_t s = 0; s < goal_.steps().size(); ++s) {
      if (goal_.steps()[s].primitive == Primitive::kReduce) reductions_.push_back(s);
    }
    std::stable_sort(reductions_.begin(), reductions_.end(), [&](std::size_t a, std::size_t b) {
      return goal_.steps()[a].size < goal_.steps()[b].size;
    });
    now_.assign(goal_.coordinates().size(), kNoCoordinate);
    for (std::size_t d = 0; d < goal_.output().size(); ++d) now_[d] = static_cast<CoordinateId>(d);
  }

  Path run() {
    Path path;
    path.reached = visit(generator_.root(), path.steps);
    if (!path.reached) {
      path.steps.clear();
      path.obstacle = obstacle_;
    }
    return path;
  }

 private:
  // Steps of the goal that could come next; reductions in their fixed order.
  std::vector<std::size_t> ready() const {
    for (const std::size_t s : reductions_) {
      if (!taken_[s]) return {s};
    }
    std::vector<std::size_t> steps;
    for (std::size_t s = 0; s < goal_.steps().size(); ++s) {
      if (taken_[s]) continue;
      const Step& step = goal_.steps()[s];
      const auto missing = [&](CoordinateId id) {
        return id != kNoCoordinate && now_[static_cast<std::size_t>(id)] == kNoCoordinate;
      };
      bool waits = missing(step.in[0]) || missing(step.in[1]);
      for (const SharedDim& dim : step.dims) waits = waits || missing(dim.coordinate);
      for (std::size_t other = 0; other < goal_.steps().size() && !waits; ++other) {
        if (taken_[other] || other == s) continue;
        for (const SharedDim& dim : goal_.steps()[other].dims)
          waits = waits || dim.coordinate == step.in[0] || dim.coordinate == step.in[1];
      }
      if (!waits) steps.push_back(s);
    }
    return steps;
  }

  // The role of each shared coordinate follows from what is still to come: the last weight that holds a coordinate which
  // leaves the data drops or joins it.
  Step translated(std::size_t index, const Graph& graph) const {
    const Step& step = goal_.steps()[index];
    Step result = step;
    result.out = {kNoCoordinate, kNoCoordinate};
    for (CoordinateId& id : result.in) {
      if (id != kNoCoordinate) id = now_[static_cast<std::size_t>(id)];
    }
    for (SharedDim& dim : result.dims) {
      bool leaves = false;
      bool held_later = false;
      for (std::size_t other = 0; other < goal_.steps().size(); ++other) {
        for (const SharedDim& shared : goal_.steps()[other].dims) {
          if (shared.coordinate != dim.coordinate) continue;
          leaves = leaves || shared.role != ShareRole::kKeep;
          held_later = held_later || (other != index && !taken_[other]);
        }
      }
      dim.coordinate = now_[static_cast<std::size_t>(dim.coordinate)];
      dim.role = !leaves || held_later                   ? ShareRole::kKeep
                 : graph.share_count(dim.coordinate) > 0 ? ShareRole::kJoin
                                                         : ShareRole::kDrop;
    }
    return result;
  }

  bool visit(const PartialGraph& partial, std::vector<Step>& path) {
    if (path.size() == goal_.steps().size()) return true;
    if (!dead_.insert(taken_).second) return false;
    for (const std::size_t s : ready()) {
      const Step step = translated(s, partial.graph);
      const std::string why = generator_.why_not(partial, step, max_depth_);
      if (!why.empty()) {
        if (path.size() >= furthest_) {
          furthest_ = path.size();
          obstacle_ = "step " + std::to_string(path.size() + 1) + " (" +
                      std::string(primitive_info(step.primitive).name) + "): " + why;
        }
        continue;
      }
      PartialGraph child = partial;
      ensure(admit(generator_.specification(), partial.graph, step, child.ledger).empty(),
             "find_path: a child is not admitted");
      const Step applied = child.graph.apply(step);
      const Step& original = goal_.steps()[s];
      taken_[s] = true;
      for (std::size_t i = 0; i < 2; ++i) {
        if (original.out[i] != kNoCoordinate)
          now_[static_cast<std::size_t>(original.out[i])] = applied.out[i];
      }
      path.push_back(step);
      if (visit(child, path)) return true;
      path.pop_back();
      for (const CoordinateId id : original.out) {
        if (id != kNoCoordinate) now_[static_cast<std::size_t>(id)] = kNoCoordinate;
      }
      taken_[s] = false;
    }
    return false;
  }

  ChildGenerator& generator_;
  const Graph& goal_;
  std::int64_t max_depth_;
  std::vector<bool> taken_;
  std::vector<std::size_t> reductions_;
  std::vector<CoordinateId> now_;
  std::set<std::vector<bool>> dead_;
  std::size_t furthest_ = 0;
  std::string obstacle_;
};

}  // namespace

Path find_path(ChildGenerator& generator, const Operator& op, std::int64_t max_depth) {
  const Operator local = op.in_table(generator.specification().variables());
  return PathFinder(generator, local, max_depth).run();
}

}  // namespace syno
