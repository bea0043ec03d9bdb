#include <algorithm>
#include <utility>
#include <vector>

#include "syno/graph/cut.h"
#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"
#include "syno/rules/reorder.h"

namespace syno {
namespace {

bool is_part(const Parts& parts, CoordinateId id) {
  return std::find(parts.begin(), parts.end(), id) != parts.end();
}

// Whether Splits and Shifts make `id` of one of the parts. Notes in `held` whether a weight holds what they make.
bool is_made_of(const Graph& graph, CoordinateId id, const Parts& parts, bool& held) {
  if (is_part(parts, id)) return true;
  const Step* step = graph.producer(id);
  if (step == nullptr ||
      (step->primitive != Primitive::kSplit && step->primitive != Primitive::kShift))
    return false;
  bool made = false;
  for (const CoordinateId in : step->in)
    made = (in != kNoCoordinate && is_made_of(graph, in, parts, held)) || made;
  held = held || (made && graph.weight_count(id) > 0);
  return made;
}

// The parts that the Merge cuts off again after Shifts, where the same weights hold all of them and none holds what was
// made of them; else none.
Parts held_parts(const RuleContext& c) {
  if (c.step.primitive != Primitive::kMerge ||
      !is_unshared(c.graph, c.step.in[0], Primitive::kShift))
    return {};
  const Parts parts = parts_cut_again(c.graph, c.step.in[0], c.step.size);
  if (parts.empty() || c.graph.weight_count(parts[0]) == 0) return {};
  for (const CoordinateId part : parts) {
    if (!same_holders(c.graph, part, parts[0])) return {};
  }
  bool held = false;
  is_made_of(c.graph, c.step.in[0], parts, held);
  return held ? Parts() : parts;
}

bool matches(const RuleContext& c) {
  return !held_parts(c).empty();
}

// The steps that have to stand before the Merge, or nothing when a weight that holds the parts is one of them.
std::optional<std::vector<bool>> steps_before(const RuleContext& c, const Parts& parts) {
  std::vector<bool> before(c.graph.steps().size(), false);
  before[step_of(c.graph, c.step.in[0])] = true;
  add_needed_steps(c.graph, before,
                   [&](std::size_t /*step*/, CoordinateId id) { return !is_part(parts, id); });
  for (std::size_t s = 0; s < before.size(); ++s) {
    if (before[s] && holds(c.graph.steps()[s], parts[0])) return std::nullopt;
  }
  return before;
}

// The weights take the remainder instead of the parts. They stand after the Merge.
std::optional<Graph> rewrite(const RuleContext& c) {
  const Parts parts = held_parts(c);
  const std::optional<std::vector<bool>> before = steps_before(c, parts);
  if (!before) return std::nullopt;
  Rebuild rebuild(c);
  std::vector<bool> taken(before->size(), false);
  CoordinateId remainder = kNoCoordinate;
  for (const bool phase : {true, false}) {
    for (std::size_t s = 0; s < before->size(); ++s) {
      if ((*before)[s] != phase) continue;
      const Step& step = c.graph.steps()[s];
      if (step.primitive != Primitive::kContraction) {
        rebuild.copy(s);
      } else {
        Step weight = with_roles(c.graph, s, taken, rebuild.graph(), rebuild.renamed(step));
        WeightDims dims;
        for (std::size_t d = 0; d < step.dims.size(); ++d) {
          const CoordinateId held = step.dims[d].coordinate;
          if (held == parts[0]) dims.push_back({remainder, weight.dims[d].role});
          if (!is_part(parts, held)) dims.push_back(weight.dims[d]);
        }
        weight.dims = std::move(dims);
        rebuild.add(std::move(weight));
      }
      taken[s] = true;
    }
    if (phase) remainder = rebuild.add(rebuild.renamed(c.step)).out[1];
  }
  return rebuild.graph();
}

}  // namespace

const Rule kHeldRemainder{
    .id = "R26",
    .name = "held-remainder",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      With |j| = B, weights that hold j below (sh(split(i, j))) mod B are rejected. The form in which they hold
           this remainder is kept. j may be several parts of nested Splits that the same weights hold.
Why:       The remainder is a cyclic shift of j, so the elements of the weights are relabeled.
When:      The weights that hold j can be placed above the Merge. No weight holds a result of the Splits and Shifts.
Soundness: exact (E3)
Status:    unreleased, new after 0.1
Example:   contract(r keep, ..); split(h, r:[s]) -> c; shift(c, 1) -> d; merge(d, s) -> q, m is rejected; contract(m
           keep, ..) above the Merge is kept.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
    .version = "49d4f139",
};

}  // namespace syno
