#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit) return false;
  const auto [i, j] = c.step.in;
  for (const Weight& weight : c.graph.weights()) {
    if (weight.holds(i) && weight.holds(j)) return true;
  }
  return false;
}

bool holds(const Step& step, CoordinateId id) {
  for (const SharedDim& dim : step.dims) {
    if (dim.coordinate == id) return true;
  }
  return false;
}

// The steps that come after the Split in the rewritten graph: the weights that hold both of its parts, and whatever
// needs one of them to stand before it.
std::vector<bool> moved_steps(const Graph& graph, CoordinateId i, CoordinateId j) {
  std::vector<bool> moved(graph.steps().size(), false);
  const auto needs_moved = [&](const Step& step) {
    const auto made_by_moved = [&](CoordinateId id) {
      return graph.coordinate(id).step >= 0 &&
             moved[static_cast<std::size_t>(graph.coordinate(id).step)];
    };
    for (const SharedDim& dim : step.dims) {
      if (made_by_moved(dim.coordinate)) return true;
    }
    for (const CoordinateId in : step.in) {
      if (in == kNoCoordinate) continue;
      if (made_by_moved(in)) return true;
      for (std::size_t s = 0; s < moved.size(); ++s) {
        if (moved[s] && holds(graph.steps()[s], in)) return true;
      }
    }
    return false;
  };
  for (std::size_t s = 0; s < moved.size(); ++s) {
    const Step& step = graph.steps()[s];
    moved[s] = (holds(step, i) && holds(step, j)) || needs_moved(step);
  }
  return moved;
}

// The step with roles that fit the new order: the last weight that holds a coordinate which leaves takes it out.
Step with_roles(const Graph& original, std::size_t index, const std::vector<bool>& taken,
                const Graph& now, Step renamed) {
  const Step& step = original.steps()[index];
  for (std::size_t d = 0; d < step.dims.size(); ++d) {
    const CoordinateId id = step.dims[d].coordinate;
    bool leaves = false;
    bool held_later = false;
    for (std::size_t s = 0; s < original.steps().size(); ++s) {
      for (const SharedDim& dim : original.steps()[s].dims) {
        if (dim.coordinate != id) continue;
        leaves = leaves || dim.role != ShareRole::kKeep;
        held_later = held_later || (s != index && !taken[s]);
      }
    }
    renamed.dims[d].role = !leaves || held_later                             ? ShareRole::kKeep
                           : now.share_count(renamed.dims[d].coordinate) > 0 ? ShareRole::kJoin
                                                                             : ShareRole::kDrop;
  }
  return renamed;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const auto [i, j] = c.step.in;
  const std::vector<bool> moved = moved_steps(c.graph, i, j);
  // Weights that hold one part only stand below the Split.
  for (std::size_t s = 0; s < moved.size(); ++s) {
    const Step& step = c.graph.steps()[s];
    if (moved[s] && holds(step, i) != holds(step, j)) return std::nullopt;
  }
  Rebuild rebuild(c);
  std::vector<bool> taken(moved.size(), false);
  CoordinateId whole = kNoCoordinate;
  for (const bool phase : {false, true}) {
    if (phase) whole = rebuild.add(rebuild.renamed(c.step)).out[0];
    for (std::size_t s = 0; s < moved.size(); ++s) {
      if (moved[s] != phase) continue;
      const Step& step = c.graph.steps()[s];
      if (step.primitive != Primitive::kShare) {
        rebuild.copy(s);
      } else {
        Step weight = with_roles(c.graph, s, taken, rebuild.graph(), rebuild.renamed(step));
        if (holds(step, i) && holds(step, j)) {
          SharedDims dims{{whole, ShareRole::kKeep}};
          for (std::size_t d = 0; d < step.dims.size(); ++d) {
            if (step.dims[d].coordinate != i && step.dims[d].coordinate != j)
              dims.push_back(weight.dims[d]);
          }
          weight.dims = std::move(dims);
        }
        rebuild.add(std::move(weight));
      }
      taken[s] = true;
    }
  }
  return rebuild.graph();
}

}  // namespace

const Rule kSplitAboveShare{
    .id = "R7",
    .name = "split-above-share",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      a Split of two coordinates that one weight holds both stands below that weight instead
Why:       a weight dimension pair (i, j) and the one dimension B*i+j are relabellings of each other. The order of
           independent contractions, and of the Shares inside one, needs no rule: graphs that differ only so are equal.
When:      weights that hold one of the two only can stand below the Split
Soundness: exact (E3)
Status:    stable since 0.1
Example:   contract(i keep, j keep, ..); split(i, j) is refused; split(i, j) -> u; contract(u keep, ..) is kept)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
