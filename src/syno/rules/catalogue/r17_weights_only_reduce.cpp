#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// Fingerprints everything that `id` is made of.
void mark(const Graph& graph, CoordinateId id, std::vector<bool>& marked) {
  if (marked[static_cast<std::size_t>(id)]) return;
  marked[static_cast<std::size_t>(id)] = true;
  const Step* step = graph.producer(id);
  if (step == nullptr) return;
  for (const CoordinateId in : step->in) {
    if (in != kNoCoordinate) mark(graph, in, marked);
  }
}

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kContraction) return false;
  const std::size_t count = c.graph.coordinates().size();
  std::vector<bool> leaves(count, false);
  bool any = false;
  for (const WeightDim& dim : c.step.dims) {
    const bool gone = dim.role != WeightRole::kKeep;
    leaves[static_cast<std::size_t>(dim.coordinate)] = gone;
    any = any || gone;
  }
  if (!any) return false;
  std::vector<bool> reached(count, false);
  for (const CoordinateId id : c.graph.frontier()) {
    if (!leaves[static_cast<std::size_t>(id)]) mark(c.graph, id, reached);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<CoordinateId>(i);
    if (reached[i] || !c.graph.is_reduction(id)) continue;
    int held = c.graph.weight_count(id);
    for (const WeightDim& dim : c.step.dims) held += dim.coordinate == id;
    if (held < 2) return true;
  }
  return false;
}

}  // namespace

const Rule kWeightsOnlyReduce{
    .id = "R17",
    .name = "weights-only-reduce",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      A Reduce that no data coordinate depends on any more must be held whole by two weights. Other forms are
           left out.
Why:       Such a Reduce is an index that only weights share, as in a low-rank product. If the weights hold other
           coordinates made of it, the sum takes scrambled pairs of elements of the weights.
When:      The step is the contraction that takes the last coordinate made of the Reduce out of the data.
Soundness: restriction. It excludes low-rank products whose shared index is mixed with an output index.
Status:    unreleased, new after 0.1
Example:   split(r, o) -> c; merge(c, s) -> q, m; contract(q keep, m drop); contract(q join, i keep) is left out.)",
    .steps = {Primitive::kContraction},
    .matches = matches,
    .rewrite = nullptr,
    .version = "42836e55",
};

}  // namespace syno
