#include "syno/rules/catalogue.h"
#include "syno/rules/rebuild.h"

namespace syno {
namespace {

// The Shift of the major part of the Split that the Merge cuts again at the same place, with any Shifts between; null
// otherwise.
const Step* rotation_below(const RuleContext& c) {
  CoordinateId id = c.step.in[0];
  while (is_unshared(c.graph, id, Primitive::kShift)) id = c.graph.producer(id)->in[0];
  if (!is_unshared(c.graph, id, Primitive::kSplit)) return nullptr;
  const Step& split = *c.graph.producer(id);
  if (c.graph.extent(split.in[1]) != c.step.size ||
      !is_unshared(c.graph, split.in[0], Primitive::kShift))
    return nullptr;
  return c.graph.producer(split.in[0]);
}

bool matches(const RuleContext& c) {
  return c.step.primitive == Primitive::kMerge && rotation_below(c) != nullptr;
}

std::optional<Graph> rewrite(const RuleContext& c) {
  const Step& rotation = *rotation_below(c);
  const std::size_t place = step_of(c.graph, rotation.out[0]);
  Rebuild rebuild(c);
  for (std::size_t s = 0; s < c.graph.steps().size(); ++s) {
    if (s == place) {
      rebuild.rename(rotation.out[0], rebuild.now(rotation.in[0]));
    } else {
      rebuild.copy(s);
    }
  }
  const Step merged = rebuild.add(rebuild.renamed(c.step));
  rebuild.add(Step::shift(merged.out[0], rotation.amount));
  return rebuild.graph();
}

}  // namespace

const Rule kRotationOfMajor{
    .id = "R24",
    .name = "rotation-of-major",
    .kind = RuleKind::kExact,
    .doc =
        R"(What:      With |j| = B, a Shift of i in (sh(split(i, j))) div B, mod B is rejected. A Shift of the quotient is kept.
Why:       A cyclic shift of i by d is a cyclic shift of B*i + j by B*d. It commutes with every Shift and shifts the
           quotient cyclically by d. The remainder does not change.
When:      No weight holds the shifted part, the result of the Split, or the result of a Shift of it.
Soundness: exact
Status:    unreleased, new after 0.1
Example:   shift(h, 1) -> u; split(u, r:[s]) -> c; shift(c, 1) -> d; merge(d, s) is rejected; the Shift of the
           quotient is kept.)",
    .steps = {Primitive::kMerge},
    .matches = matches,
    .rewrite = rewrite,
    .version = "1c9a23c5",
};

}  // namespace syno
