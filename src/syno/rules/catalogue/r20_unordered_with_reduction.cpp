#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// The unordered output iterator that `id` is made of, if there is no other; kNoCoordinate otherwise.
CoordinateId unordered_source(const Graph& graph, CoordinateId id) {
  const Step* step = graph.producer(id);
  if (step == nullptr) return is_unordered_iterator(graph, id) ? id : kNoCoordinate;
  CoordinateId source = kNoCoordinate;
  for (const CoordinateId in : step->in) {
    if (in == kNoCoordinate) continue;
    const CoordinateId other = unordered_source(graph, in);
    if (other == kNoCoordinate || (source != kNoCoordinate && other != source))
      return kNoCoordinate;
    source = other;
  }
  return source;
}

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kSplit) return false;
  const auto bare = [&](CoordinateId id) {
    return c.graph.reductions_only(id) && !seen_by_weight(c.graph, id);
  };
  // As large as the iterator: all of it. A piece of one, joined to a Reduce, is how groups of channels are read.
  const auto whole = [&](CoordinateId id) {
    const CoordinateId source = unordered_source(c.graph, id);
    return source != kNoCoordinate && c.graph.extent(source) == c.graph.extent(id);
  };
  const auto [i, j] = c.step.in;
  return (whole(i) && bare(j)) || (bare(i) && whole(j));
}

}  // namespace

const Rule kUnorderedWithReduction{
    .id = "R20",
    .name = "unordered-with-reduction",
    .kind = RuleKind::kRestriction,
    .doc =
        R"(What:      A Split of a whole unordered output index with Reduces that no weight holds is left out.
Why:       The index has no order, so a mixture of it with a sum is cut into pieces without a meaning. Groups of
           channels are cut first and then joined with a Reduce.
When:      The index is the iterator, or Merges and Splits have put the whole iterator together again.
Soundness: restriction. It excludes channel indices that are mixed with sums, such as (C_out*r + o) mod 3 as the
           position in a window.
Status:    unreleased, new after 0.1
Example:   split(r, o:[C_out: unordered]) is left out; merge(o, g) -> q, m; split(r, m) is kept.)",
    .steps = {Primitive::kSplit},
    .matches = matches,
    .rewrite = nullptr,
    .version = "6ba96b8a",
};

}  // namespace syno
