#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"
#include "syno/rules/reorder.h"

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

std::optional<Graph> rewrite(const RuleContext& c) {
  const auto [i, j] = c.step.in;
  // The steps that come after the Split in the rewritten graph.
  std::vector<bool> moved(c.graph.steps().size(), false);
  for (std::size_t s = 0; s < moved.size(); ++s)
    moved[s] = holds(c.graph.steps()[s], i) && holds(c.graph.steps()[s], j);
  move_what_follows(c.graph, moved);
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
      if (step.primitive != Primitive::kContraction) {
        rebuild.copy(s);
      } else {
        Step weight = with_roles(c.graph, s, taken, rebuild.graph(), rebuild.renamed(step));
        if (holds(step, i) && holds(step, j)) {
          WeightDims dims{{whole, WeightRole::kKeep}};
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
        R"(What:      A Split of two coordinates that one weight holds is rejected. The form with the Split below this weight is
           kept.
Why:       A pair (i, j) of dimensions of a weight and the one dimension B*i + j are relabelings of each other.
           Independent contractions, and the coordinates of one contraction, need no rule, because graphs that differ
           only in their order are equal.
When:      The weights that hold only one of the two coordinates can be placed below the Split.
Soundness: exact (E3)
Status:    stable since 0.1
Example:   contract(i keep, j keep, ..); split(i, j) is rejected; split(i, j) -> u; contract(u keep, ..) is kept.)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = rewrite,
    .version = "8ac7870f",
};

}  // namespace syno
