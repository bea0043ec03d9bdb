#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// The first part of nested Splits, the most major one.
CoordinateId first_part(const Graph& graph, CoordinateId id) {
  while (is_unshared(graph, id, Primitive::kSplit)) id = graph.producer(id)->in[0];
  return id;
}

bool matches(const RuleContext& c) {
  if (c.step.primitive != Primitive::kShift ||
      !is_unshared(c.graph, c.step.in[0], Primitive::kSplit))
    return false;
  const auto [major, minor] = c.graph.producer(c.step.in[0])->in;
  const CoordinateId first = first_part(c.graph, major);
  if (!is_unshared(c.graph, first, Primitive::kReduce) || c.graph.reductions_only(c.step.in[0]))
    return false;
  // With one part left, the Shift moves to a coordinate that no weight may hold.
  return major != first || c.graph.weight_count(minor) == 0;
}

// The Splits without the first part; the others come in the order that the guard has to check.
CoordinateId without(Rebuild& rebuild, const Graph& graph, CoordinateId id, CoordinateId first) {
  const Step& split = *graph.producer(id);
  const CoordinateId minor = rebuild.now(split.in[1]);
  if (split.in[0] == first) return minor;
  return rebuild.add(Step::split(without(rebuild, graph, split.in[0], first), minor)).out[0];
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const CoordinateId whole = c.step.in[0];
  const CoordinateId first = first_part(c.graph, whole);
  std::vector<bool> skipped(c.graph.steps().size(), false);
  for (CoordinateId id = whole; id != first; id = c.graph.producer(id)->in[0])
    skipped[step_of(c.graph, id)] = true;
  Rebuild rebuild(c);
  for (std::size_t s = 0; s < skipped.size(); ++s) {
    if (!skipped[s]) rebuild.copy(s);
  }
  const CoordinateId rest = without(rebuild, c.graph, whole, first);
  const Step rotated = rebuild.add(Step::shift(rest, c.step.amount));
  rebuild.add(Step::split(rebuild.now(first), rotated.out[0]));
  return rebuild.graph();
}

}  // namespace

const Rule kRotationPastReduction{
    .id = "R25",
    .name = "rotation-past-reduction",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      A Shift of nested Splits whose first part is a Reduce is rejected. A Shift of the other parts is kept.
Why:       |i|*r + i + d is |i|*r' + sh(i), where r' is r, or the next value of r if i + d passes the end of i. For
           each i, the sum over r' is the sum over r.
When:      No weight holds the Reduce, a result of the Splits, or the only other part.
Soundness: exact (E4)
Status:    unreleased, new after 0.1
Example:   split(r:[s], h) -> c; shift(c, 1) is rejected; shift(h, 1) -> u; split(r, u) is kept.)",
    .steps = {Primitive::kShift},
    .matches = matches,
    .rewrite = rewrite,
    .version = "df54e0da",
};

}  // namespace syno
