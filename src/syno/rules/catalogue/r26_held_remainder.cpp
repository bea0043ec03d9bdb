#include <utility>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"
#include "syno/rules/reorder.h"

namespace syno {
namespace {

// The Split that the Merge cuts again after Shifts, where weights hold its minor part and nothing above it; else null.
const Step* split_below(const RuleContext& c) {
  if (c.step.primitive != Primitive::kMerge ||
      !is_unshared(c.graph, c.step.in[0], Primitive::kShift))
    return nullptr;
  const Step* split = split_cut_again(c.graph, c.step.in[0], c.step.size);
  if (split == nullptr || c.graph.share_count(split->in[1]) == 0) return nullptr;
  for (CoordinateId id = c.step.in[0]; id != split->out[0]; id = c.graph.producer(id)->in[0]) {
    if (c.graph.share_count(id) > 0) return nullptr;
  }
  return c.graph.share_count(split->out[0]) == 0 ? split : nullptr;
}

bool matches(const RuleContext& c) {
  return split_below(c) != nullptr;
}

// The steps that have to stand before the Merge, or nothing when a weight that holds the minor part is one of them.
std::optional<std::vector<bool>> steps_before(const RuleContext& c, CoordinateId minor) {
  const auto& steps = c.graph.steps();
  std::vector<bool> before(steps.size(), false);
  const auto need = [&](CoordinateId id) {
    if (!c.graph.is_iterator(id)) before[step_of(c.graph, id)] = true;
  };
  need(c.step.in[0]);
  for (std::size_t s = steps.size(); s-- > 0;) {
    if (!before[s]) continue;
    if (holds(steps[s], minor)) return std::nullopt;
    for (const SharedDim& dim : steps[s].dims) need(dim.coordinate);
    for (const CoordinateId in : steps[s].in) {
      if (in == kNoCoordinate) continue;
      need(in);
      if (in == minor) continue;
      // Weights hold a coordinate before a view takes it.
      for (std::size_t w = 0; w < s; ++w) before[w] = before[w] || holds(steps[w], in);
    }
  }
  return before;
}

// The weights take the remainder instead of the minor part. They stand after the Merge.
std::optional<Graph> rewrite(const RuleContext& c) {
  const CoordinateId minor = split_below(c)->in[1];
  const std::optional<std::vector<bool>> before = steps_before(c, minor);
  if (!before) return std::nullopt;
  Rebuild rebuild(c);
  std::vector<bool> taken(before->size(), false);
  CoordinateId remainder = kNoCoordinate;
  for (const bool phase : {true, false}) {
    for (std::size_t s = 0; s < before->size(); ++s) {
      if ((*before)[s] != phase) continue;
      const Step& step = c.graph.steps()[s];
      if (step.primitive != Primitive::kShare) {
        rebuild.copy(s);
      } else {
        Step weight = with_roles(c.graph, s, taken, rebuild.graph(), rebuild.renamed(step));
        for (std::size_t d = 0; d < step.dims.size(); ++d) {
          if (step.dims[d].coordinate == minor) weight.dims[d].coordinate = remainder;
        }
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
        R"(What:      with |j| = B, weights hold the remainder of (sh(split(i, j))) mod B instead of j
Why:       the remainder is j, rotated: the weights' elements are relabelled
When:      the weights that hold j can stand above the Merge; no weight holds the Split's result or what Shifts make of it
Soundness: exact (E3)
Status:    stable since 0.2
Example:   contract(r keep, ..); split(h, r:[s]) -> c; shift(c, 1) -> d; merge(d, s) -> q, m is refused; contract(m keep, ..)
           above the Merge is kept)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
};

}  // namespace syno
